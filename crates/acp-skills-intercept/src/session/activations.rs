//! [`Activations`]: which skills were activated in a session, and by whom.

use serde::{Deserialize, Serialize};
use skills_core::SkillName;

/// Who activated a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The model, with our tool or a prompt of our server's.
    Model,
    /// The user, by command.
    User,
    /// The proxy, because the skill fits a prompt.
    Prompt,
}

/// What is active in a session, in order.
pub type Active = Vec<(SkillName, By)>;

/// The skills that were activated in one session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Activations(Active);

impl Activations {
    pub(crate) fn recalled(active: Active) -> Self {
        Self(active)
    }

    /// Notes that a skill was activated; returns whether that is new. That the user did it outweighs that anybody else
    /// did.
    pub(crate) fn add(&mut self, name: &SkillName, by: By) -> bool {
        match self.0.iter_mut().find(|(active, _)| active.key() == name.key()) {
            Some((_, known)) if by == By::User && *known != by => *known = by,
            Some(_) => return false,
            None => self.0.push((name.clone(), by)),
        }
        true
    }

    /// Who activated this skill.
    pub(crate) fn by(&self, name: &SkillName) -> Option<By> {
        self.0.iter().find(|(active, _)| active.key() == name.key()).map(|(_, by)| *by)
    }

    pub(crate) fn is_active(&self, name: &SkillName) -> bool {
        self.by(name).is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SkillName, By)> {
        self.0.iter().map(|(name, by)| (name, *by))
    }

    /// The skills that the user activated.
    pub(crate) fn unlocked(&self) -> Vec<SkillName> {
        self.iter().filter(|(_, by)| *by == By::User).map(|(name, _)| name.clone()).collect()
    }

    /// All of it, to be remembered; nothing when there is nothing.
    pub(crate) fn to_remember(&self) -> Option<Active> {
        (!self.0.is_empty()).then(|| self.0.clone())
    }
}
