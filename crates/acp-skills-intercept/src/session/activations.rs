//! [`Activations`]: the active skills of a session.

use std::path::Path;

use skills_core::{Skill, SkillName, SkillSet};

use crate::active_skills::{ActivatedBy, ActiveSkill, ActiveSkills};

/// The active skills of a session, in the order of their last use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Activations(ActiveSkills);

impl Activations {
    pub(crate) fn recalled(active: ActiveSkills) -> Self {
        Self(active)
    }

    /// Remembers that a skill was activated. Returns true if that changes the list. An activation by the user replaces
    /// one by the model or the proxy. `skills` are the skills of the session, and `cwd` is its directory.
    pub(crate) fn add(
        &mut self,
        name: &SkillName,
        by: ActivatedBy,
        skills: &SkillSet,
        cwd: Option<&Path>,
    ) -> bool {
        let by_user = Some(by).filter(|by| *by == ActivatedBy::User);
        let identity = by_user.and_then(|_| skills.get(name.as_str())).map(|skill| identity(skill, cwd));
        let Some(moved) = self.used(name) else {
            self.0.push(ActiveSkill { name: name.clone(), by, identity });
            return true;
        };
        match self.0.last_mut() {
            Some(known) if by_user.is_some() && (known.by, &known.identity) != (by, &identity) => {
                known.by = by;
                known.identity = identity;
                true
            }
            _ => moved,
        }
    }

    /// Notes that a skill was used: it moves to the end of the list. Returns true if it was not there before, and `None` if it is
    /// not active.
    pub(crate) fn used(&mut self, name: &SkillName) -> Option<bool> {
        let index = self.position(name)?;
        self.0[index..].rotate_left(1);
        Some(index + 1 < self.0.len())
    }

    /// Removes a skill if it is active.
    pub(crate) fn remove(&mut self, name: &SkillName) {
        if let Some(index) = self.position(name) {
            self.0.remove(index);
        }
    }

    fn position(&self, name: &SkillName) -> Option<usize> {
        self.0.iter().position(|active| active.name.key() == name.key())
    }

    /// Returns the party that activated this skill, or `None` if the skill is not active.
    pub(crate) fn by(&self, name: &SkillName) -> Option<ActivatedBy> {
        self.position(name).map(|index| self.0[index].by)
    }

    pub(crate) fn is_active(&self, name: &SkillName) -> bool {
        self.by(name).is_some()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&SkillName, ActivatedBy)> {
        self.0.iter().map(|active| (&active.name, active.by))
    }

    /// Returns the skills that the user activated in `cwd`, the directory of the session, if they are still the same in `skills`. Another
    /// skill can get the name of an active one, an approved skill can get a new version, and the session can move to another directory.
    /// They have no rights until the user activates them.
    pub(crate) fn of_user<'a>(
        &'a self,
        skills: &'a SkillSet,
        cwd: Option<&'a Path>,
    ) -> impl Iterator<Item = &'a Skill> {
        let of_user = self.0.iter().filter(|active| active.by == ActivatedBy::User);
        of_user.filter_map(move |active| {
            let skill = skills.get(active.name.as_str())?;
            (active.identity == Some(identity(skill, cwd))).then_some(&**skill)
        })
    }

    /// Returns the reason for the user why a skill is active, or `None` if it is not active. `skills` are the skills of the session, and
    /// `cwd` is its directory.
    pub(crate) fn reason(
        &self,
        skill: &Skill,
        skills: &SkillSet,
        cwd: Option<&Path>,
    ) -> Option<&'static str> {
        let by = self.by(&skill.name)?;
        let is_other =
            by == ActivatedBy::User && !self.of_user(skills, cwd).any(|same| same.name == skill.name);
        Some(if is_other { "by you in another version or directory" } else { by.reason() })
    }

    /// Returns the list for saving.
    pub(crate) fn to_remember(&self) -> ActiveSkills {
        self.0.clone()
    }
}

/// Returns a text that identifies a skill and the directory in which the user activated it.
fn identity(skill: &Skill, cwd: Option<&Path>) -> String {
    // `Debug` keeps apart paths that are not UTF-8.
    format!("{} in {cwd:?}", skill.identity())
}
