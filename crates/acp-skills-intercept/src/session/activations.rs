//! [`Activations`]: the active skills of a session.

use skills_core::SkillName;

use crate::active_skills::{ActivatedBy, ActiveSkills};

/// The active skills of a session, in the order of their last use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Activations(ActiveSkills);

impl Activations {
    pub(crate) fn recalled(active: ActiveSkills) -> Self {
        Self(active)
    }

    /// Remembers that a skill was activated. Returns true if that changes the list. An activation by the user replaces
    /// one by the model or the proxy.
    pub(crate) fn add(&mut self, name: &SkillName, by: ActivatedBy) -> bool {
        let Some(moved) = self.used(name) else {
            self.0.push((name.clone(), by));
            return true;
        };
        match self.0.last_mut() {
            Some((_, known)) if by == ActivatedBy::User && *known != by => {
                *known = by;
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
        self.0.iter().position(|(active, _)| active.key() == name.key())
    }

    /// Returns the party that activated this skill, or `None` if the skill is not active.
    pub(crate) fn by(&self, name: &SkillName) -> Option<ActivatedBy> {
        self.0.iter().find(|(active, _)| active.key() == name.key()).map(|(_, by)| *by)
    }

    pub(crate) fn is_active(&self, name: &SkillName) -> bool {
        self.by(name).is_some()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&SkillName, ActivatedBy)> {
        self.0.iter().map(|(name, by)| (name, *by))
    }

    /// Returns the skills that the user activated.
    pub(crate) fn unlocked(&self) -> Vec<SkillName> {
        self.iter().filter(|(_, by)| *by == ActivatedBy::User).map(|(name, _)| name.clone()).collect()
    }

    /// Returns the list for saving.
    pub(crate) fn to_remember(&self) -> ActiveSkills {
        self.0.clone()
    }
}
