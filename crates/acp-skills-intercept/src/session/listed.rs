//! [`Listed`]: the unapproved skills that the user was shown in one session.

use std::{collections::HashMap, path::PathBuf};

use skills_core::set::Unapproved;

/// The unapproved skills that the user was shown, each with the [version](Unapproved::version) that was shown last.
#[derive(Debug, Default)]
pub(crate) struct Listed(HashMap<(Option<PathBuf>, String), String>);

impl Listed {
    /// Remembers that the user was shown a list of all skills, which contains these.
    pub(crate) fn replace(&mut self, skills: &[Unapproved]) {
        self.0.clear();
        self.add(skills);
    }

    /// Remembers that the user was also shown these skills.
    pub(crate) fn add(&mut self, skills: &[Unapproved]) {
        self.0.extend(skills.iter().map(|entry| (place(entry), entry.version())));
    }

    /// Forgets that the user was shown these skills.
    pub(crate) fn remove(&mut self, skills: &[Unapproved]) {
        for entry in skills {
            self.0.remove(&place(entry));
        }
    }

    /// Compares with the current unapproved skills. If a skill has another version now, no version counts as shown, even if the
    /// version that was shown comes back later: the user may have reviewed the other one.
    pub(crate) fn refresh(&mut self, skills: &[Unapproved]) {
        for entry in skills {
            if let Some(shown) = self.0.get_mut(&place(entry)).filter(|shown| **shown != entry.version()) {
                shown.clear();
            }
        }
    }

    /// Returns true if the version of the skill that the user saw last is this one.
    pub(crate) fn has(&self, entry: &Unapproved) -> bool {
        self.0.get(&place(entry)).is_some_and(|shown| *shown == entry.version())
    }

    /// Returns true if the version of the skill that the user saw last is a different one.
    pub(crate) fn has_other_version(&self, entry: &Unapproved) -> bool {
        self.0.get(&place(entry)).is_some_and(|shown| *shown != entry.version())
    }
}

/// Returns the key for a skill: its directory and its name.
fn place(entry: &Unapproved) -> (Option<PathBuf>, String) {
    (entry.skill.dir().map(ToOwned::to_owned), entry.skill.name.key())
}
