//! [`Decisions`]: what the lock file records about single skills of a source.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use skills_core::{name::MAX_LOADED_NAME_CHARS, text::shown};

use super::{Pinned, PinnedGit, PinnedWeb, unique};
use crate::reason::Reason;

/// The maximum number of other commits at which skills of a source can stay. The lock file of a project could name any number.
pub(crate) const MAX_KEPT: usize = 64;

/// The value in [`Decisions::declined`] for a skill whose removal was declined.
pub const REMOVED: &str = "removed";

/// The maximum length of a date or the name of a person, in bytes.
const MAX_TEXT_BYTES: usize = 200;
/// The maximum length of the name of a skill, in bytes.
const MAX_NAME_BYTES: usize = 4 * MAX_LOADED_NAME_CHARS;

/// The decisions about single skills of a source. Skills are named by their directory in a repository, or by their name on a web
/// site.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
#[non_exhaustive]
pub struct Decisions {
    /// The commit, or the checksum of the index, of each skill that stays at another version than its source.
    #[serde(deserialize_with = "unique::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, String>,
    /// The skills that updates don't change.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub pinned: BTreeSet<String>,
    /// The checksum of the version that the user has declined, or [`REMOVED`].
    #[serde(deserialize_with = "unique::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub declined: BTreeMap<String, String>,
    /// The date of the approval, such as `2026-11-23`. Skills that were approved by an older program have none.
    #[serde(deserialize_with = "unique::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub approved: BTreeMap<String, String>,
    /// The person who approved the skill, if a name was given.
    #[serde(deserialize_with = "unique::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub approved_by: BTreeMap<String, String>,
    /// The name of each approved skill whose directory has another name. With it, the name is known even if the approved version is not
    /// in the cache.
    #[serde(deserialize_with = "unique::map", skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
}

impl Decisions {
    /// Returns true if there is no decision.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns true if the user has decided not to take a version of a skill. `offered` is its checksum, or `None` if the skill is
    /// gone.
    pub fn rejects(&self, path: &str, offered: Option<&str>) -> bool {
        self.pinned.contains(path) || self.declines(path, offered)
    }

    /// Returns true if the user has declined this version of a skill. The arguments are those of [`rejects`](Self::rejects).
    pub fn declines(&self, path: &str, offered: Option<&str>) -> bool {
        self.declined.get(path).is_some_and(|declined| declined == offered.unwrap_or(REMOVED))
    }

    /// Checks the name of a person who approves skills.
    ///
    /// # Errors
    /// Returns a message if the name is empty, or if it has more than 200 bytes.
    pub fn check_name(name: &str) -> Result<(), &'static str> {
        match name.len() {
            0 => Err("expected a name"),
            1..=MAX_TEXT_BYTES => Ok(()),
            _ => Err("expected a name of at most 200 bytes"),
        }
    }

    /// Returns the name of an approved skill: the recorded one, or the last part of its directory.
    pub fn name_of<'a>(&'a self, path: &'a str) -> &'a str {
        self.names.get(path).map_or_else(|| last_part(path), String::as_str)
    }

    /// Records the name of an approved skill.
    pub(crate) fn set_name(&mut self, path: &str, name: &str) {
        self.names.remove(path);
        if last_part(path) != name {
            self.names.insert(path.to_owned(), name.to_owned());
        }
    }

    /// Copies the date of an approval, the name of the person, and the name of the skill.
    pub(crate) fn copy_approval(&mut self, path: &str, from: &Self) {
        for (to, from) in [
            (&mut self.approved, &from.approved),
            (&mut self.approved_by, &from.approved_by),
            (&mut self.names, &from.names),
        ] {
            to.remove(path);
            to.extend(from.get(path).map(|text| (path.to_owned(), text.clone())));
        }
    }

    /// Checks the values. `check_version` checks a commit or an index.
    pub(super) fn check(&self, check_version: impl Fn(&str) -> Result<(), Reason>) -> Result<(), Reason> {
        self.kept.values().try_for_each(|version| check_version(version))?;
        let declined = self.declined.values().filter(|digest| *digest != REMOVED);
        declined.into_iter().try_for_each(|digest| super::check_digest(digest))?;
        let texts = self.approved.values().chain(self.approved_by.values());
        let texts = texts.map(|text| (text, MAX_TEXT_BYTES));
        let names = self.names.values().map(|name| (name, MAX_NAME_BYTES));
        match texts.chain(names).find(|(text, most)| text.len() > *most) {
            Some((text, _)) => Err(format!("`{:.20}…` is too long", shown(text)).into()),
            None => Ok(()),
        }
    }
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

impl Pinned {
    /// Returns the decisions about single skills.
    pub fn decisions(&self) -> &Decisions {
        match self {
            Self::Git(git) => &git.decisions,
            Self::Web(web) => &web.decisions,
        }
    }

    /// Returns the decisions about single skills, to change them.
    pub fn decisions_mut(&mut self) -> &mut Decisions {
        match self {
            Self::Git(git) => &mut git.decisions,
            Self::Web(web) => &mut web.decisions,
        }
    }

    /// Returns the commit or the checksum of the index.
    pub fn version(&self) -> &str {
        match self {
            Self::Git(git) => &git.commit,
            Self::Web(web) => &web.index,
        }
    }

    /// Returns the commit of a skill, or the checksum of the index that lists its approved version.
    pub fn version_of(&self, path: &str) -> &str {
        self.decisions().kept.get(path).map_or(self.version(), String::as_str)
    }

    /// Returns the tag of a skill's version, or else its commit or the checksum of its index.
    pub fn label_of(&self, path: &str) -> &str {
        let own = match self {
            Self::Git(git) => git.tag.as_deref().unwrap_or(&git.commit),
            Self::Web(web) => &web.index,
        };
        self.decisions().kept.get(path).map_or(own, String::as_str)
    }

    /// Returns the checksums of the approved skills. `None` if all skills of an index are approved.
    pub fn skills(&self) -> Option<&BTreeMap<String, String>> {
        match self {
            Self::Git(git) => Some(&git.skills),
            Self::Web(web) => web.skills.as_ref(),
        }
    }

    /// Returns all commits, or all checksums of indexes and of their skills. The version of an archive is the checksum of its skill.
    pub(crate) fn into_versions(self) -> impl Iterator<Item = String> {
        let version = self.version().to_owned();
        let (kept, archives) = match self {
            Self::Git(git) => (git.decisions.kept, None),
            Self::Web(web) => (web.decisions.kept, web.skills),
        };
        std::iter::once(version)
            .chain(kept.into_values())
            .chain(archives.into_iter().flatten().map(|skill| skill.1))
    }
}

impl PinnedGit {
    /// Divides the skills by their commit. The first part has the commit of the source, and can be empty. The parts have no decisions.
    pub(crate) fn parts(&self) -> Vec<Self> {
        let mut own = BTreeMap::new();
        let mut others: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
        for (path, digest) in &self.skills {
            let part = match self.decisions.kept.get(path) {
                // One more than the maximum is enough to notice it, and each part costs time.
                Some(commit) if others.len() > MAX_KEPT && !others.contains_key(&**commit) => continue,
                Some(commit) if *commit != self.commit => others.entry(commit).or_default(),
                _ => &mut own,
            };
            part.insert(path.clone(), digest.clone());
        }
        let others = others.into_iter().map(|(commit, skills)| Self::new(commit.to_owned(), skills));
        let parts = std::iter::once(Self::new(self.commit.clone(), own)).chain(others);
        parts.map(|part| Self { registry: self.registry.clone(), ..part }).collect()
    }

    /// Creates a pin without decisions.
    pub(crate) fn new(commit: String, skills: BTreeMap<String, String>) -> Self {
        Self {
            commit,
            tag: None,
            registry: None,
            committed: None,
            has_signed_tag: false,
            skills,
            decisions: Decisions::default(),
        }
    }
}

impl PinnedWeb {
    /// Creates a pin without decisions.
    pub(crate) fn new(index: String, skills: Option<BTreeMap<String, String>>) -> Self {
        Self { index, skills, decisions: Decisions::default() }
    }
}
