//! [`Switches`]: the skills of a session, enabled and disabled.
//!
//! The names of disabled skills are stored separately, so that a skill that is removed and added again is still disabled.

use std::collections::{BTreeMap, BTreeSet};

use skills_core::{Skill, SkillName, SkillSet, order};

/// All skills of a session, and the names of those that are disabled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Switches {
    /// The skills of the library.
    library: SkillSet,
    /// The skills that the client provides.
    client_skills: SkillSet,
    /// The skills of the client's MCP servers.
    servers: SkillSet,
    all: SkillSet,
    /// The names of disabled skills, by key.
    off: BTreeMap<String, SkillName>,
    /// The names of disabled skills in new sessions of the same directory, by key.
    remembered: BTreeMap<String, SkillName>,
    /// The keys of the skills that have joined because of a file.
    joined: BTreeSet<String>,
}

impl Switches {
    /// Creates the switches of a session. `off` contains the names of the skills that are disabled in the session's directory.
    pub(crate) fn remembering(off: Vec<SkillName>) -> Self {
        let off = order::map(off.into_iter().map(|name| (name.key(), name)));
        Self { remembered: off.clone(), off, ..Self::default() }
    }

    /// Replaces what was remembered for the old directory, because the session has another one. `off` contains the names of the
    /// skills that are disabled in the new directory.
    pub(crate) fn moved(&mut self, off: Vec<SkillName>) {
        self.off.retain(|key, _| !self.remembered.contains_key(key));
        self.remembered = order::map(off.into_iter().map(|name| (name.key(), name)));
        self.off.extend(self.remembered.clone());
    }

    /// Returns all skills, enabled or disabled.
    pub(crate) fn all(&self) -> &SkillSet {
        &self.all
    }

    /// Returns the skills of the library, enabled or disabled.
    pub(crate) fn library(&self) -> &SkillSet {
        &self.library
    }

    /// Returns the skills that the client provides, enabled or disabled.
    pub(crate) fn client_skills(&self) -> &SkillSet {
        &self.client_skills
    }

    /// Sets the skills of the library. Returns the enabled skills.
    pub(crate) fn replace(&mut self, library: SkillSet) -> SkillSet {
        self.library = library;
        self.join()
    }

    /// Sets the skills that the client provides for this session. A skill of the library takes precedence over one with the same
    /// name. Returns the enabled skills.
    pub(crate) fn set_client_skills(&mut self, client_skills: SkillSet) -> SkillSet {
        self.client_skills = client_skills;
        self.join()
    }

    /// Returns the skills of the client's MCP servers, enabled or disabled.
    pub(crate) fn servers(&self) -> &SkillSet {
        &self.servers
    }

    /// Sets the skills of the client's MCP servers. All other skills take precedence over those with the same name. Returns the enabled
    /// skills.
    pub(crate) fn set_servers(&mut self, servers: SkillSet) -> SkillSet {
        self.servers = servers;
        self.join()
    }

    fn join(&mut self) -> SkillSet {
        let is_free = |skill: &Skill| self.library.get(skill.name.as_str()).is_none();
        let client_skills = self.client_skills.filtered(is_free);
        // The user sees if a skill that a server offers is hidden.
        let servers = self.servers.filtered(|skill| skill.provider.is_none() || is_free(skill));
        self.all = self.library.with(&client_skills).with(&servers);
        self.on()
    }

    /// Returns the enabled skills.
    pub(crate) fn on(&self) -> SkillSet {
        let on = self.all.filtered(|skill| !self.is_off(&skill.name));
        if self.joined.is_empty() { on } else { on.joined(|skill| self.joined.contains(&skill.name.key())) }
    }

    /// Lists skills that waited for a file. Returns the enabled skills.
    pub(crate) fn join_for_files(&mut self, names: &[SkillName]) -> SkillSet {
        self.joined.extend(names.iter().map(SkillName::key));
        self.on()
    }

    /// Returns the disabled skills, in order.
    pub(crate) fn off(&self) -> impl Iterator<Item = &Skill> {
        self.all.iter().map(AsRef::as_ref).filter(|skill| self.is_off(&skill.name))
    }

    /// Returns true if a skill is disabled. The skill may not exist.
    pub(crate) fn is_off(&self, name: &SkillName) -> bool {
        self.names_of(name).iter().any(|name| self.off.contains_key(&name.key()))
    }

    /// Returns true if a skill is disabled in new sessions of the same directory.
    pub(crate) fn is_remembered(&self, name: &SkillName) -> bool {
        self.names_of(name).iter().any(|name| self.remembered.contains_key(&name.key()))
    }

    /// Returns the name of a skill, followed by its [other name](other_name).
    fn names_of(&self, name: &SkillName) -> Vec<SkillName> {
        let other = self.all.get(name.as_str()).and_then(|skill| other_name(skill));
        std::iter::once(name.clone()).chain(other).collect()
    }

    /// Returns the names to enable so that the skills with these names are enabled.
    pub(crate) fn names_to_enable(&self, names: &[SkillName]) -> Vec<SkillName> {
        let is_needed = |name: &SkillName| {
            names.contains(name)
                || self.off.contains_key(&name.key())
                || self.remembered.contains_key(&name.key())
        };
        names.iter().flat_map(|name| self.names_of(name)).filter(is_needed).collect()
    }

    /// Returns the name of a disabled skill, in its original spelling. The skill may not exist.
    pub(crate) fn name_of(&self, word: &str) -> Option<&SkillName> {
        let key = SkillName::key_of(word);
        self.off.get(&key).or_else(|| self.remembered.get(&key))
    }

    /// Turns a skill on or off. Returns true if that changes anything.
    pub(crate) fn turn(&mut self, name: &SkillName, on: bool) -> bool {
        if on {
            let names = self.names_of(name);
            names.iter().filter(|name| self.off.remove(&name.key()).is_some()).count() > 0
        } else {
            self.off.insert(name.key(), name.clone()).is_none()
        }
    }

    /// Remembers that a skill is enabled or disabled in new sessions of the same directory.
    pub(crate) fn remember(&mut self, name: &SkillName, on: bool) {
        if on {
            self.remembered.remove(&name.key());
        } else {
            self.remembered.insert(name.key(), name.clone());
        }
    }
}

/// Returns the other name that a skill of a service can have: with or without the namespace of the service. The name depends on the other
/// skills of the session, and a skill that the user has disabled must stay disabled. `None` for all other skills.
pub fn other_name(skill: &Skill) -> Option<SkillName> {
    let name = skill.name.as_str();
    let prefix = format!("{}-", skill.service()?.namespace()?);
    let without = name.strip_prefix(&prefix).map(str::to_owned);
    SkillName::new(&without.unwrap_or_else(|| format!("{prefix}{name}")))
}
