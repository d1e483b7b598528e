//! [`End`]: how a run ended, and what that says.

use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
#[non_exhaustive]
pub enum End {
    /// The turn ended.
    Finished {
        /// `end_turn`, `max_tokens` …
        stop_reason: String,
    },
    /// The skill was loaded, and nothing else was to be found out.
    Triggered,
    /// The agent began to work without the skill.
    WorkedWithout {
        /// With which tool call.
        call: String,
    },
    /// The time was over.
    TimedOut {
        /// Whether the agent had done nothing at all until then.
        silent: bool,
    },
    /// The agent's process ended in the middle.
    Crashed {
        /// In words.
        why: String,
    },
    /// The agent answered with an error.
    Refused {
        /// Which.
        why: String,
    },
    /// There was no agent to talk to.
    NotStarted {
        /// Why.
        why: String,
    },
    /// Somebody ended the evaluation. Such a run has no outcome.
    Interrupted,
}

impl End {
    /// What went wrong with the run itself; `None` when the run says something about the skill.
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Finished { stop_reason } if stop_reason == "end_turn" => None,
            Self::Finished { stop_reason } => Some(format!("the turn ended with `{stop_reason}`")),
            Self::Triggered | Self::WorkedWithout { .. } | Self::TimedOut { silent: false } => None,
            Self::TimedOut { silent: true } => {
                Some("the agent did nothing until the time was over".to_owned())
            }
            Self::Crashed { why } => Some(format!("the agent {why}")),
            Self::Refused { why } => Some(format!("the agent refuses {why}")),
            Self::NotStarted { why } => Some(why.clone()),
            Self::Interrupted => Some("interrupted".to_owned()),
        }
    }

    /// The same, once it is known how the agent's process ended.
    pub(super) fn ended_as(self, how: &str) -> Self {
        match self {
            Self::Crashed { .. } if how.is_empty() => Self::Crashed { why: "went away".to_owned() },
            Self::Crashed { .. } => Self::Crashed { why: how.to_owned() },
            other => other,
        }
    }
}
