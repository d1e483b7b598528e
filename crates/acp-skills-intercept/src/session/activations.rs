//! [`Activations`]: which skills were activated in a session, and by whom.

use skills_core::SkillName;

use crate::active_skills::{ActivatedBy, ActiveSkills};

/// The skills that were activated in one session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Activations(ActiveSkills);

impl Activations {
    pub(crate) fn recalled(active: ActiveSkills) -> Self {
        Self(active)
    }

    /// Notes that a skill was activated; returns whether that is new. That the user did it outweighs that anybody else
    /// did.
    pub(crate) fn add(&mut self, name: &SkillName, by: ActivatedBy) -> bool {
        match self.0.iter_mut().find(|(active, _)| active.key() == name.key()) {
            Some((_, known)) if by == ActivatedBy::User && *known != by => *known = by,
            Some(_) => return false,
            None => self.0.push((name.clone(), by)),
        }
        true
    }

    /// Who activated this skill.
    pub(crate) fn by(&self, name: &SkillName) -> Option<ActivatedBy> {
        self.0.iter().find(|(active, _)| active.key() == name.key()).map(|(_, by)| *by)
    }

    pub(crate) fn is_active(&self, name: &SkillName) -> bool {
        self.by(name).is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SkillName, ActivatedBy)> {
        self.0.iter().map(|(name, by)| (name, *by))
    }

    /// The skills that the user activated.
    pub(crate) fn unlocked(&self) -> Vec<SkillName> {
        self.iter().filter(|(_, by)| *by == ActivatedBy::User).map(|(name, _)| name.clone()).collect()
    }

    /// All of it, to be remembered; nothing when there is nothing.
    pub(crate) fn to_remember(&self) -> Option<ActiveSkills> {
        (!self.0.is_empty()).then(|| self.0.clone())
    }
}
