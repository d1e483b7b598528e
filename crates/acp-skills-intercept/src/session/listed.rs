//! [`Listed`]: the unapproved skills that the user was shown in one session.

use std::{borrow::Cow, collections::HashMap};

use skills_core::{SkillName, set::Unapproved, skill::FileService};

/// The unapproved skills that the user was shown, each with the [version](Unapproved::version) that was shown last. `all` are all
/// unapproved skills of the session, because a skill can get another name in commands when the others change.
#[derive(Debug, Default)]
pub(crate) struct Listed(HashMap<(Option<String>, String), String>);

impl Listed {
    /// Remembers that the user was shown a list of all skills, which contains these.
    pub(crate) fn replace(&mut self, skills: &[Unapproved], all: &[Unapproved]) {
        self.0.clear();
        self.add(skills, all);
    }

    /// Remembers that the user was also shown these skills.
    pub(crate) fn add(&mut self, skills: &[Unapproved], all: &[Unapproved]) {
        self.0.extend(skills.iter().map(|entry| (place(entry, all), entry.version())));
    }

    /// Forgets that the user was shown these skills.
    pub(crate) fn remove(&mut self, skills: &[Unapproved], all: &[Unapproved]) {
        for entry in skills {
            self.0.remove(&place(entry, all));
        }
    }

    /// Compares with the current unapproved skills. If a skill has another version now, no version counts as shown, even if the
    /// version that was shown comes back later: the user may have reviewed the other one.
    pub(crate) fn refresh(&mut self, all: &[Unapproved]) {
        for entry in all {
            if let Some(shown) = self.0.get_mut(&place(entry, all)).filter(|shown| **shown != entry.version())
            {
                shown.clear();
            }
        }
    }

    /// Returns true if the version of the skill that the user saw last is this one.
    pub(crate) fn has(&self, entry: &Unapproved, all: &[Unapproved]) -> bool {
        self.0.get(&place(entry, all)).is_some_and(|shown| *shown == entry.version())
    }

    /// Returns true if the version of the skill that the user saw last is a different one.
    pub(crate) fn has_other_version(&self, entry: &Unapproved, all: &[Unapproved]) -> bool {
        self.0.get(&place(entry, all)).is_some_and(|shown| *shown != entry.version())
    }
}

/// Returns the key for a skill: its directory or the identity of its service, and its name in commands. With another name, the skill does
/// not count as shown, because the user may mean the skill that had this name in the list.
fn place(entry: &Unapproved, all: &[Unapproved]) -> (Option<String>, String) {
    let dir = || Some(entry.skill.dir()?.to_string_lossy().into_owned());
    let service = entry.skill.service().map(|service| service.identity().to_owned());
    (service.or_else(dir), SkillName::key_of(&unique_name(entry, all)))
}

/// Returns the name of an unapproved skill in commands. If another one has the same name, a skill of a server has the name of the server
/// before its own, as in `docs-review`. Otherwise, a server could make the user trust its skill together with that of another server.
pub(crate) fn unique_name<'s>(entry: &'s Unapproved, all: &[Unapproved]) -> Cow<'s, str> {
    let name = &entry.skill.name;
    let has_name = |other: &&Unapproved| other.skill.name.key() == name.key();
    let namespace = entry.skill.service().and_then(FileService::namespace);
    match namespace.filter(|_| all.iter().filter(has_name).nth(1).is_some()) {
        Some(namespace) => format!("{namespace}-{name}").into(),
        None => name.as_str().into(),
    }
}
