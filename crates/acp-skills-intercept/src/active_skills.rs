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
    /// The proxy, because the skill matches a prompt.
    Prompt,
}

/// The active skills of a session, in the order of their last use.
pub type ActiveSkills = Vec<(SkillName, ActivatedBy)>;
