//! [`TrustStore`]: the user's decisions for each project, stored in the directory `trust` of the state directory.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use skills_core::SkillName;

use crate::disk::state::{self, StateDir};

const VERSION: u32 = 1;

/// The maximum number of earlier refused versions of a directory. The file has a maximum size.
const MAX_REFUSED_BEFORE: usize = 16;

/// The store of decisions, with one file per project.
#[derive(Debug, Clone)]
pub(super) struct TrustStore(StateDir);

/// Decisions for the skills in a project: checksums, by directory relative to the project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Decisions {
    v: u32,
    #[serde(default)]
    trusted: BTreeMap<String, String>,
    /// The version that was refused last, or an empty text if it was trusted later. A configuration that trusts the project does not apply
    /// to these directories.
    #[serde(default)]
    refused: BTreeMap<String, String>,
    /// Other versions that were refused, oldest first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    refused_before: BTreeMap<String, Vec<String>>,
    /// The names of the skills, by directory. A directory without an entry has a skill with its own name. Files of earlier versions have
    /// no names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    names: BTreeMap<String, BTreeSet<String>>,
    /// Other names of skills about which the user decides one by one, although a configuration trusts the project.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    declined: BTreeSet<String>,
    /// True if there are decisions that can't be read.
    #[serde(skip)]
    is_unreadable: bool,
}

/// A trusted version whose name was not saved by an earlier version of this program.
pub(super) struct Unnamed {
    pub(super) place: String,
    pub(super) digest: String,
    pub(super) name: SkillName,
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
        read(&file).unwrap_or_else(|why| {
            tracing::warn!("cannot read {}: {why}; you need to approve project skills again", file.display());
            Decisions { is_unreadable: true, ..Decisions::default() }
        })
    }

    /// Changes the decisions for a project. A file that can't be read is kept, because it can contain skills that the user has declined.
    fn change(
        &self,
        project: &Path,
        change: impl FnOnce(Option<Decisions>) -> Option<Decisions>,
    ) -> io::Result<()> {
        let file = self.file(project);
        if let Err(why) = read(&file) {
            let why = format!("cannot read {}: {why}; move the file away to decide again", file.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        self.0.change(&file, change)
    }

    /// Adds decisions for a project.
    ///
    /// # Errors
    /// Returns an error if the file can't be locked or written. The file is then unchanged.
    pub(super) fn save(&self, project: &Path, more: &Decisions) -> io::Result<()> {
        self.change(project, |old| {
            let mut all = old.unwrap_or_default();
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
        self.change(project, |old| {
            let mut all = old?;
            all.revoke(places.iter());
            Some(all)
        })
    }

    /// Adds the names of versions that are still trusted.
    ///
    /// # Errors
    /// Returns an error if the file can't be locked or written. The file is then unchanged.
    pub(super) fn add_names(&self, project: &Path, unnamed: &[Unnamed]) -> io::Result<()> {
        self.change(project, |old| {
            let mut all = old?;
            for Unnamed { place, digest, name } in unnamed {
                if all.trusts(place, digest) {
                    let mut names =
                        if all.refused.contains_key(place) { all.names_of(place) } else { BTreeSet::new() };
                    names.insert(name.to_string());
                    all.names.insert(place.clone(), names);
                }
            }
            Some(all)
        })
    }
}

/// Reads the decisions in a file. Returns the reason if that is not possible.
fn read(file: &Path) -> Result<Decisions, String> {
    match state::read::<Decisions>(file) {
        Ok(None) => Ok(Decisions::default()),
        Ok(Some(decisions)) if decisions.v == VERSION => Ok(decisions),
        Ok(Some(_)) => Err("another version of this program has written it".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Decisions {
    /// Returns the decision that the user decides about each skill with one of these names.
    pub(super) fn declining(names: &[SkillName]) -> Self {
        Self { declined: names.iter().map(ToString::to_string).collect(), ..Self::default() }
    }

    /// Refuses the trusted versions of skills.
    pub(super) fn revoke<'a>(&mut self, places: impl Iterator<Item = &'a String>) {
        for place in places {
            if let Some(digest) = self.trusted.remove(place) {
                self.refuse(place, digest);
            }
        }
    }

    /// Refuses a version. Earlier ones stay refused.
    fn refuse(&mut self, place: &str, digest: String) {
        self.forget_refused(place, &digest);
        let before = self.refused.insert(place.to_owned(), digest).filter(|before| !before.is_empty());
        let Some(before) = before else { return };
        let all = self.refused_before.entry(place.to_owned()).or_default();
        all.push(before);
        if all.len() > MAX_REFUSED_BEFORE {
            all.remove(0);
        }
    }

    /// Removes the refusal of a version. The directory remains one of which a version was refused.
    fn forget_refused(&mut self, place: &str, digest: &str) {
        if let Some(refused) = self.refused.get_mut(place).filter(|refused| **refused == digest) {
            refused.clear();
        }
        if let Some(all) = self.refused_before.get_mut(place) {
            all.retain(|refused| refused != digest);
            if all.is_empty() {
                self.refused_before.remove(place);
            }
        }
    }

    /// Returns true if there are decisions that can't be read.
    pub(super) fn is_unreadable(&self) -> bool {
        self.is_unreadable
    }

    /// Returns the directories of which a skill is trusted in some version.
    pub(super) fn places(&self) -> impl Iterator<Item = &String> {
        self.trusted.keys()
    }

    /// Returns the names of which the user has declined a skill.
    pub(super) fn declined_names(&self) -> BTreeSet<String> {
        let refused = self.refused.keys().flat_map(|place| self.names_of(place));
        refused.chain(self.declined.iter().cloned()).collect()
    }

    /// Returns the directories of which a version was refused.
    pub(super) fn refused_places(&self) -> impl Iterator<Item = &String> {
        self.refused.keys()
    }

    /// Returns the names of the versions in a directory that the user decided about.
    pub(super) fn names_of(&self, place: &str) -> BTreeSet<String> {
        let own = || BTreeSet::from([own_name(place).to_owned()]);
        self.names.get(place).cloned().unwrap_or_else(own)
    }

    /// Returns a trusted version if its name was not saved.
    pub(super) fn unnamed(&self, place: String, digest: String, name: &SkillName) -> Option<Unnamed> {
        let is_known = self.names_of(&place).contains(name.as_str());
        (!is_known).then(|| Unnamed { place, digest, name: name.clone() })
    }

    pub(super) fn trusts(&self, place: &str, digest: &str) -> bool {
        self.trusted.get(place).is_some_and(|known| known == digest)
    }

    pub(super) fn refuses(&self, place: &str, digest: &str) -> bool {
        let last = self.refused.get(place);
        last.into_iter()
            .chain(self.refused_before.get(place).into_iter().flatten())
            .any(|known| known == digest)
    }

    /// Returns true if any version of a skill was trusted.
    pub(super) fn knows(&self, place: &str) -> bool {
        self.trusted.contains_key(place)
    }

    /// Sets the decision about a version, which has these names.
    pub(super) fn set(&mut self, place: String, digest: String, mut names: BTreeSet<String>, trusted: bool) {
        if trusted {
            // If the user has declined the directory or the name before, the user decides about each version from now on.
            let declined: BTreeSet<_> =
                self.declined_names().iter().map(|name| SkillName::key_of(name)).collect();
            if self.refused.contains_key(&place) {
                self.declined.extend(self.names_of(&place));
            } else if names.iter().any(|name| declined.contains(&SkillName::key_of(name))) {
                self.refused.insert(place.clone(), String::new());
            }
        } else if self.knows(&place) || self.refused.contains_key(&place) {
            // An earlier version stays trusted, maybe with another name.
            names.extend(self.names_of(&place));
        }
        // The name of the directory, which most skills have, needs no entry. The file has a maximum size.
        if names.iter().eq([own_name(&place)]) {
            self.names.remove(&place);
        } else {
            self.names.insert(place.clone(), names);
        }
        if trusted {
            self.forget_refused(&place, &digest);
            self.trusted.insert(place, digest);
        } else {
            self.refuse(&place, digest);
        }
    }

    /// Adds later decisions, which take precedence.
    pub(super) fn add(&mut self, later: &Self) {
        self.declined.extend(later.declined.iter().cloned());
        for (place, versions) in &later.refused_before {
            for digest in versions {
                self.set(place.clone(), digest.clone(), later.names_of(place), false);
            }
        }
        for (decisions, trusted) in [(&later.trusted, true), (&later.refused, false)] {
            for (place, digest) in decisions {
                self.set(place.clone(), digest.clone(), later.names_of(place), trusted);
            }
        }
    }
}

/// Returns the name of a directory.
fn own_name(place: &str) -> &str {
    place.rsplit('/').next().unwrap_or(place)
}
