//! [`Switches`]: which of a session's skills are on.
//!
//! Skills that are off are kept apart, by name: one that is gone and comes back is off still.

use std::collections::BTreeMap;

use skills_core::{Skill, SkillName, SkillSet};

/// All skills of a session, and which of them are off.
#[derive(Debug, Clone, Default)]
pub(crate) struct Switches {
    /// Those of the library.
    library: SkillSet,
    /// Those that the client brought.
    client_skills: SkillSet,
    all: SkillSet,
    /// By key.
    off: BTreeMap<String, SkillName>,
    /// What is off in new sessions of the same directory, by key.
    remembered: BTreeMap<String, SkillName>,
}

impl Switches {
    /// In a session in whose directory these are off.
    pub(crate) fn remembering(off: Vec<SkillName>) -> Self {
        let off: BTreeMap<_, _> = off.into_iter().map(|name| (name.key(), name)).collect();
        Self { remembered: off.clone(), off, ..Self::default() }
    }

    /// All of them, on or off.
    pub(crate) fn all(&self) -> &SkillSet {
        &self.all
    }

    /// Those of the library, on or off.
    pub(crate) fn library(&self) -> &SkillSet {
        &self.library
    }

    /// Those that the client brought, on or off.
    pub(crate) fn client_skills(&self) -> &SkillSet {
        &self.client_skills
    }

    /// These are the skills of the library now. Returns those that are on.
    pub(crate) fn replace(&mut self, library: SkillSet) -> SkillSet {
        self.library = library;
        self.join()
    }

    /// These are the skills that the client brings, for this session alone; names of the library's stay the library's.
    /// Returns those that are on.
    pub(crate) fn set_client_skills(&mut self, client_skills: SkillSet) -> SkillSet {
        self.client_skills = client_skills;
        self.join()
    }

    fn join(&mut self) -> SkillSet {
        let client_skills =
            self.client_skills.filtered(|skill| self.library.get(skill.name.as_str()).is_none());
        self.all = self.library.with(&client_skills);
        self.on()
    }

    /// Those that are on.
    pub(crate) fn on(&self) -> SkillSet {
        self.all.filtered(|skill| !self.is_off(&skill.name))
    }

    /// Those that are there and off, in order.
    pub(crate) fn off(&self) -> impl Iterator<Item = &Skill> {
        self.all.iter().map(AsRef::as_ref).filter(|skill| self.is_off(&skill.name))
    }

    /// Whether a skill is off, there or not.
    pub(crate) fn is_off(&self, name: &SkillName) -> bool {
        self.off.contains_key(&name.key())
    }

    /// Whether it is off in new sessions of the same directory.
    pub(crate) fn is_remembered(&self, name: &SkillName) -> bool {
        self.remembered.contains_key(&name.key())
    }

    /// A name that is off, there or not, as it was written.
    pub(crate) fn name_of(&self, word: &str) -> Option<&SkillName> {
        let key = SkillName::key_of(word);
        self.off.get(&key).or_else(|| self.remembered.get(&key))
    }

    /// Turns a skill on or off. Returns whether it was not so.
    pub(crate) fn turn(&mut self, name: &SkillName, on: bool) -> bool {
        if on {
            self.off.remove(&name.key()).is_some()
        } else {
            self.off.insert(name.key(), name.clone()).is_none()
        }
    }

    /// New sessions of the same directory have it so as well.
    pub(crate) fn remember(&mut self, name: &SkillName, on: bool) {
        if on {
            self.remembered.remove(&name.key());
        } else {
            self.remembered.insert(name.key(), name.clone());
        }
    }
}
