//! [`Activations`]: the active skills of a session.

use skills_core::SkillName;

use crate::active_skills::{ActivatedBy, ActiveSkills};

/// The active skills of a session, in the order in which they were activated.
#[derive(Debug, Clone, Default)]
pub(crate) struct Activations(ActiveSkills);

impl Activations {
    pub(crate) fn recalled(active: ActiveSkills) -> Self {
        Self(active)
    }

    /// Remembers that a skill was activated. Returns true if that changes the list. An activation by the user replaces
    /// one by the model or the proxy.
    pub(crate) fn add(&mut self, name: &SkillName, by: ActivatedBy) -> bool {
        match self.0.iter_mut().find(|(active, _)| active.key() == name.key()) {
            Some((_, known)) if by == ActivatedBy::User && *known != by => *known = by,
            Some(_) => return false,
            None => self.0.push((name.clone(), by)),
        }
        true
    }

    /// Returns the party that activated this skill, or `None` if the skill is not active.
    pub(crate) fn by(&self, name: &SkillName) -> Option<ActivatedBy> {
        self.0.iter().find(|(active, _)| active.key() == name.key()).map(|(_, by)| *by)
    }

    pub(crate) fn is_active(&self, name: &SkillName) -> bool {
        self.by(name).is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SkillName, ActivatedBy)> {
        self.0.iter().map(|(name, by)| (name, *by))
    }

    /// Returns the skills that the user activated.
    pub(crate) fn unlocked(&self) -> Vec<SkillName> {
        self.iter().filter(|(_, by)| *by == ActivatedBy::User).map(|(name, _)| name.clone()).collect()
    }

    /// Returns the list for saving, or `None` if no skill is active.
    pub(crate) fn to_remember(&self) -> Option<ActiveSkills> {
        (!self.0.is_empty()).then(|| self.0.clone())
    }
}
