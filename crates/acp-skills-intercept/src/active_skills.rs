//! The active skills of a session, in the form in which they are recorded and saved.

use serde::{Deserialize, Serialize};
use skills_core::SkillName;

/// The party that activated a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActivatedBy {
    /// The model, with a skill tool or a prompt of the skills server.
    Model,
    /// The user, with a command.
    User,
    /// The proxy, because the skill matches a prompt, or because a prompt that may contain the text of a file names it.
    Prompt,
}

impl ActivatedBy {
    /// Returns the reason for the user why a skill is active.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Model => "by the model",
            Self::User => "by you",
            Self::Prompt => "because of a prompt",
        }
    }
}

/// An active skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActiveSkill {
    /// The name of the skill.
    pub name: SkillName,
    /// The party that activated it.
    pub by: ActivatedBy,
    /// The [identity](skills_core::Skill::identity) of the skill that the user activated, and the directory of the session. `None` if
    /// it is not known, or if another party activated the skill.
    pub identity: Option<String>,
}

impl ActiveSkill {
    /// Creates an active skill without an identity.
    pub fn new(name: SkillName, by: ActivatedBy) -> Self {
        Self { name, by, identity: None }
    }
}

/// The active skills of a session, in the order of their last use.
pub type ActiveSkills = Vec<ActiveSkill>;
