//! [`End`]: the way in which a run ended.

use serde::{Deserialize, Serialize};

/// The way in which a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
#[non_exhaustive]
pub enum End {
    /// The agent ended the turn.
    Finished {
        /// The stop reason of ACP, such as `end_turn` or `max_tokens`.
        stop_reason: String,
    },
    /// The model loaded the skill of a query, which decides the result.
    Triggered,
    /// The agent started to work on a query without loading the skill.
    WorkedWithout {
        /// The title of the first tool call.
        call: String,
    },
    /// The timeout passed.
    TimedOut {
        /// True if the agent had not sent any message before the timeout.
        silent: bool,
    },
    /// The agent's process ended during the run.
    Crashed {
        /// A description such as `exited with code 3`.
        why: String,
    },
    /// The agent answered a request with an error.
    Refused {
        /// The method and the error.
        why: String,
    },
    /// The agent could not be started.
    NotStarted {
        /// The reason.
        why: String,
    },
    /// The evaluation was stopped. Such a run has no outcome.
    Interrupted,
}

impl End {
    /// Returns the reason why a query has no valid result, or `None` if it has one. A timeout counts as not loading the skill,
    /// unless the agent sent nothing.
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Finished { stop_reason } if stop_reason == "end_turn" => None,
            Self::Finished { stop_reason } => Some(format!("turn ended with `{stop_reason}`")),
            Self::Triggered | Self::WorkedWithout { .. } | Self::TimedOut { silent: false } => None,
            Self::TimedOut { silent: true } => Some("timed out before the agent sent any message".to_owned()),
            Self::Crashed { why } => Some(format!("agent {why}")),
            Self::Refused { why } => Some(format!("agent rejected {why}")),
            Self::NotStarted { why } => Some(why.clone()),
            Self::Interrupted => Some("interrupted".to_owned()),
        }
    }

    /// Returns the reason why a run has no valid result, or `None` if it has one. Unlike a query, a task that exceeds the timeout
    /// is incomplete and can't be graded.
    pub(super) fn problem_of(&self, is_task: bool) -> Option<String> {
        match self {
            Self::TimedOut { .. } if is_task => Some("timed out before the turn ended".to_owned()),
            end => end.problem(),
        }
    }

    /// Adds the description of the process's end to [`End::Crashed`]. `how` is empty for the built-in agent.
    pub(super) fn ended_as(self, how: &str) -> Self {
        match self {
            Self::Crashed { .. } if how.is_empty() => {
                Self::Crashed { why: "closed the connection".to_owned() }
            }
            Self::Crashed { .. } => Self::Crashed { why: how.to_owned() },
            other => other,
        }
    }
}
