//! [`TrustStore`]: the user's decisions for each project, stored in the directory `trust` of the state directory.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use skills_core::SkillName;

use crate::disk::state::{self, StateDir};

const VERSION: u32 = 1;

/// The store of decisions, with one file per project.
#[derive(Debug, Clone)]
pub(super) struct TrustStore(StateDir);

/// Decisions for the skills in a project: checksums, by directory relative to the project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Decisions {
    v: u32,
    #[serde(default)]
    trusted: BTreeMap<String, String>,
    #[serde(default)]
    refused: BTreeMap<String, String>,
    /// The name that a skill had when it was trusted, by directory. Missing for older decisions.
    #[serde(default)]
    names: BTreeMap<String, String>,
}

impl TrustStore {
    pub(super) fn new(state: &Path) -> Self {
        Self(StateDir::later(state.join("trust")))
    }

    /// Returns the path of the file for a project.
    pub(super) fn file(&self, project: &Path) -> PathBuf {
        self.0.about_directory(project)
    }

    /// Returns the decisions for a project. If the file can't be read, a warning is logged and no skill is trusted.
    pub(super) fn load(&self, project: &Path) -> Decisions {
        let file = self.file(project);
        let read = state::read::<Decisions>(&file).unwrap_or_else(|error| {
            tracing::warn!(
                "cannot read {}: {error}; you need to approve project skills again",
                file.display()
            );
            None
        });
        read.filter(|decisions| decisions.v == VERSION).unwrap_or_default()
    }

    /// Adds decisions for a project.
    ///
    /// # Errors
    /// Returns an error if the file can't be locked or written. The file is then unchanged.
    pub(super) fn save(&self, project: &Path, more: &Decisions) -> io::Result<()> {
        self.0.change(&self.file(project), |old: Option<Decisions>| {
            let mut all = old.filter(|old| old.v == VERSION).unwrap_or_default();
            all.add(more);
            all.v = VERSION;
            Some(all)
        })
    }
}

impl TrustStore {
    /// Takes the trust in skills back. `places` are their directories.
    ///
    /// # Errors
    /// Returns an error if the file can't be locked or written. The file is then unchanged.
    pub(super) fn revoke(&self, project: &Path, places: &[String]) -> io::Result<()> {
        self.0.change(&self.file(project), |old: Option<Decisions>| {
            let mut all = old.filter(|old| old.v == VERSION)?;
            all.revoke(places.iter());
            Some(all)
        })
    }
}

impl Decisions {
    /// Refuses the trusted versions of skills.
    pub(super) fn revoke<'a>(&mut self, places: impl Iterator<Item = &'a String>) {
        for place in places {
            if let Some(digest) = self.trusted.remove(place) {
                self.refused.insert(place.clone(), digest);
            }
        }
    }

    /// Returns the directories of which a skill is trusted in some version, each with the name that the skill had. For older decisions,
    /// this is the name of the directory.
    pub(super) fn places(&self) -> impl Iterator<Item = (&String, &str)> {
        self.trusted.keys().map(|place| {
            let of_dir = || place.rsplit('/').next().unwrap_or_default();
            (place, self.names.get(place).map_or_else(of_dir, String::as_str))
        })
    }

    pub(super) fn trusts(&self, place: &str, digest: &str) -> bool {
        self.trusted.get(place).is_some_and(|known| known == digest)
    }

    pub(super) fn refuses(&self, place: &str, digest: &str) -> bool {
        self.refused.get(place).is_some_and(|known| known == digest)
    }

    /// Returns true if any version of a skill was trusted.
    pub(super) fn knows(&self, place: &str) -> bool {
        self.trusted.contains_key(place)
    }

    /// Trusts or refuses a version of the skill with this name.
    pub(super) fn decide(&mut self, place: String, name: &SkillName, digest: String, trusted: bool) {
        if trusted {
            self.names.insert(place.clone(), name.to_string());
        }
        self.set(place, digest, trusted);
    }

    fn set(&mut self, place: String, digest: String, trusted: bool) {
        if trusted {
            self.refused.remove(&place);
            self.trusted.insert(place, digest);
        } else {
            self.refused.insert(place, digest);
        }
    }

    /// Adds later decisions, which take precedence.
    pub(super) fn add(&mut self, later: &Self) {
        self.names.extend(later.names.clone());
        for (decisions, trusted) in [(&later.trusted, true), (&later.refused, false)] {
            for (place, digest) in decisions {
                self.set(place.clone(), digest.clone(), trusted);
            }
        }
    }
}
