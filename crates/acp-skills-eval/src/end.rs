//! [`End`]: the way in which a run ended, and [`Failure`], the kinds of ends that say nothing about the skill.

use serde::{Deserialize, Serialize};
use skills_core::json::MAX_VALUES;

use super::transcript::MAX_CALL_BYTES;

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
    /// The agent's process ended during the run, or we ended it because of what it sent.
    Crashed {
        /// A description such as `exited with code 3` or `sent a message of more than 256 MiB`.
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

/// A kind of failure of the agent. A run with a failure has no result for the skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Failure {
    /// The agent could not be started.
    NotStarted,
    /// The agent's process ended during the run, or we ended it because of what it sent.
    Crashed,
    /// The timeout passed.
    TimedOut,
    /// The agent reported that a rate limit or a quota was reached, or that the model is overloaded.
    RateLimited,
    /// The agent answered a request with another error.
    Error,
    /// The model refused to answer.
    Refusal,
    /// The turn ended early for another reason, such as `max_tokens`.
    EndedEarly,
}

impl Failure {
    /// Returns the failure in words, such as `timed out`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotStarted => "did not start",
            Self::Crashed => "crashed",
            Self::TimedOut => "timed out",
            Self::RateLimited => "rate limited",
            Self::Error => "answered with an error",
            Self::Refusal => "refused",
            Self::EndedEarly => "ended early",
        }
    }
}

/// Parts of error messages that report a limit of the model's provider, in lower case.
const RATE_LIMITS: [&str; 9] = [
    "rate limit",
    "rate-limit",
    "rate_limit",
    "ratelimit",
    "too many requests",
    "overloaded",
    "quota",
    "usage limit",
    "resource_exhausted",
];

/// Returns true if an error of the agent reports a rate limit. The code 429 has to be a separate word, because it can be part
/// of an id.
fn is_rate_limit(why: &str) -> bool {
    let why = why.to_lowercase();
    RATE_LIMITS.iter().any(|part| why.contains(part))
        || why.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "429")
}

impl End {
    /// Returns the kind of the failure, or `None` if the run has a valid result.
    pub fn failure(&self) -> Option<Failure> {
        match self {
            Self::Finished { stop_reason } => match stop_reason.as_str() {
                "end_turn" => None,
                "refusal" => Some(Failure::Refusal),
                _ => Some(Failure::EndedEarly),
            },
            Self::Triggered | Self::WorkedWithout { .. } | Self::Interrupted => None,
            Self::TimedOut { .. } => Some(Failure::TimedOut),
            Self::Refused { why } if is_rate_limit(why) => Some(Failure::RateLimited),
            Self::Refused { .. } => Some(Failure::Error),
            Self::Crashed { .. } => Some(Failure::Crashed),
            Self::NotStarted { .. } => Some(Failure::NotStarted),
        }
    }

    /// Returns the reason why the run has no valid result, or `None` if it has one.
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Finished { stop_reason } if stop_reason == "end_turn" => None,
            Self::Finished { stop_reason } => Some(format!("turn ended with `{stop_reason}`")),
            Self::Triggered | Self::WorkedWithout { .. } => None,
            Self::TimedOut { silent: true } => Some("timed out before the agent sent any message".to_owned()),
            Self::TimedOut { silent: false } => Some("timed out before the turn ended".to_owned()),
            Self::Crashed { why } => Some(format!("agent {why}")),
            Self::Refused { why } => Some(format!("agent rejected {why}")),
            Self::NotStarted { why } => Some(why.clone()),
            Self::Interrupted => Some("interrupted".to_owned()),
        }
    }

    /// Returns the end of a run whose agent sent a message with more values than are parsed.
    pub(super) fn too_many_values() -> Self {
        Self::Crashed { why: format!("sent a message with more than {MAX_VALUES} values") }
    }

    /// Returns the end of a run whose agent sent a message of more than `max_bytes`.
    pub(super) fn too_long(max_bytes: usize) -> Self {
        Self::Crashed { why: format!("sent a message of more than {} MiB", max_bytes >> 20) }
    }

    /// Returns the end of a run whose agent sent more tool calls and permission requests than are kept.
    pub(super) fn too_many_calls() -> Self {
        let limit = MAX_CALL_BYTES >> 20;
        Self::Crashed { why: format!("sent more than {limit} MiB of tool calls and permission requests") }
    }

    pub(super) fn is_crash(&self) -> bool {
        matches!(self, Self::Crashed { .. })
    }

    /// Adds the description of the process's end to [`End::Crashed`] if it has no description yet. `how` is empty for the
    /// built-in agent.
    pub(super) fn ended_as(self, how: &str) -> Self {
        match self {
            Self::Crashed { why } if !why.is_empty() => Self::Crashed { why },
            Self::Crashed { .. } if how.is_empty() => {
                Self::Crashed { why: "closed the connection".to_owned() }
            }
            Self::Crashed { .. } => Self::Crashed { why: how.to_owned() },
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_kinds() {
        let finished = |reason: &str| End::Finished { stop_reason: reason.to_owned() };
        let refused = |why: &str| End::Refused { why: why.to_owned() };
        for (end, failure) in [
            (finished("end_turn"), None),
            (finished("refusal"), Some(Failure::Refusal)),
            (finished("max_tokens"), Some(Failure::EndedEarly)),
            (End::Triggered, None),
            (End::TimedOut { silent: false }, Some(Failure::TimedOut)),
            (refused("`session/prompt`: no credit"), Some(Failure::Error)),
            (refused("`session/prompt`: request 1429: bad input"), Some(Failure::Error)),
            (refused("`session/prompt`: API Error: 429 {}"), Some(Failure::RateLimited)),
            (refused("`session/prompt`: Rate Limit reached"), Some(Failure::RateLimited)),
            (refused("`session/prompt`: RESOURCE_EXHAUSTED"), Some(Failure::RateLimited)),
        ] {
            assert_eq!(end.failure(), failure, "{end:?}");
            assert_eq!(end.problem().is_some(), failure.is_some(), "{end:?}");
        }
    }
}
