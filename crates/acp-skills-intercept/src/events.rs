//! [`EventKind`]: the events in the record.
//!
//! An event has names, numbers and outcomes, but no contents. The writer of the record adds the time.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use skills_core::{Catalog, CatalogOptions, Skill, SkillSet, set::REFUSED_BY_POLICY};

pub use crate::{active_skills::ActivatedBy, trace_context::TraceContext};

/// An event. The fields are explained in the table of each event above.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "fields are documented in the schema, and a test compares both")]
pub enum EventKind {
    /// The agent opened a session.
    SessionStarted {
        how: SessionOrigin,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        proxy: String,
        skills: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        saved_tokens: Option<u64>,
    },
    /// The model got the instructions of a skill.
    SkillActivated {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skill: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        root: Option<String>,
        by: ActivatedBy,
        tokens: u64,
        #[serde(flatten)]
        end: End,
    },
    /// The model read a file of a skill.
    FileRead {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skill: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        #[serde(flatten)]
        end: End,
    },
    /// The model called a tool of a virtual skill.
    ToolCalled {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skill: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        #[serde(flatten)]
        end: End,
    },
    /// The model ran a script of a skill.
    ScriptRun {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skill: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        script: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        #[serde(flatten)]
        end: End,
    },
    /// The model searched the skills.
    Search {
        found: u64,
        #[serde(flatten)]
        end: End,
    },
    /// The agent asked for permission to do something.
    Permission {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        decision: Decision,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<Rule>,
    },
    /// The skills were reloaded.
    Reload {
        skills: u64,
        skipped: u64,
        added: Vec<String>,
        removed: Vec<String>,
        changed: Vec<String>,
        ms: Millis,
    },
    /// A feature did not work, and a fallback was used.
    Fallback {
        reason: FallbackReason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ms: Option<Millis>,
    },
    /// Skills joined the catalog, because a file came up that matches their `paths`.
    SkillsJoined { skills: Vec<String> },
    /// The catalog or instructions of skills were repeated, because the agent had compacted the conversation.
    Restored { skills: Vec<String>, tokens: u64, signal: CompactionSignal },
    /// The policy of an administrator refused a skill, a source, a server or a setting.
    Refused { reason: String },
    /// Events were dropped instead of written.
    EventsDropped { count: u64 },
}

/// The result and the duration of an activity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The outcome.
    pub outcome: Outcome,
    /// The kind of error, if the activity failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The size of the result for the model, in bytes.
    pub bytes: u64,
    /// The duration.
    pub ms: Millis,
    /// The trace of the agent that the activity belongs to. It is not written to the record.
    #[serde(skip)]
    pub trace: Option<Box<TraceContext>>,
}

/// The outcome of an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The activity succeeded.
    Ok,
    /// The activity failed.
    Error,
    /// The activity was cancelled.
    Cancelled,
}

/// The request that opened a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionOrigin {
    /// `session/new`
    New,
    /// `session/load`
    Load,
    /// `session/resume`
    Resume,
    /// `session/fork`
    Fork,
}

impl SessionOrigin {
    /// Returns the origin for a method.
    pub(crate) fn of(method: &str) -> Self {
        match method {
            "session/load" => Self::Load,
            "session/resume" => Self::Resume,
            "session/fork" => Self::Fork,
            _ => Self::New,
        }
    }
}

/// The decision about a request for permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The proxy allowed the call once.
    Allowed,
    /// The proxy refused the call once.
    Refused,
    /// The user is asked.
    Asked,
}

/// The rule behind a decision or a log message of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The call is for one of the skill tools.
    Own,
    /// The `allowed-tools` of the active skills.
    AllowedTools,
}

/// The feature that did not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FallbackReason {
    /// The agent did not list the skill tools in time.
    NotConnected,
    /// The agent refused a session with the skills server.
    Refused,
    /// The skills server could not be opened.
    NoServer,
}

/// The first signal of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionSignal {
    /// A `compaction_update` of the agent.
    CompactionUpdate,
    /// A tool call.
    ToolCall,
    /// A message of the agent.
    Message,
    /// A fall of the context usage.
    Usage,
    /// A command of the user.
    Command,
}

impl fmt::Display for CompactionSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CompactionUpdate => "compaction_update",
            Self::ToolCall => "tool_call",
            Self::Message => "message",
            Self::Usage => "usage",
            Self::Command => "command",
        })
    }
}

/// A duration. It is serialized as a number of milliseconds with at most three decimals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis {
    micros: u64,
}

impl Millis {
    /// Returns the number of milliseconds.
    #[expect(clippy::cast_precision_loss, reason = "exact for 285 years")]
    pub fn as_f64(self) -> f64 {
        self.micros as f64 / 1000.0
    }
}

impl From<Duration> for Millis {
    fn from(duration: Duration) -> Self {
        Self { micros: u64::try_from(duration.as_micros()).unwrap_or(u64::MAX) }
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let millis = f64::deserialize(deserializer)?;
        let duration = Duration::try_from_secs_f64(millis / 1000.0).map_err(D::Error::custom)?;
        // Round to the nearest microsecond, so that a value doesn't change when it's written and read back.
        Ok(Self::from(duration.saturating_add(Duration::from_nanos(500))))
    }
}

impl EventKind {
    /// Returns the name of the event in the record.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SessionStarted { .. } => "session_started",
            Self::SkillActivated { .. } => "skill_activated",
            Self::FileRead { .. } => "file_read",
            Self::ToolCalled { .. } => "tool_called",
            Self::ScriptRun { .. } => "script_run",
            Self::Search { .. } => "search",
            Self::Permission { .. } => "permission",
            Self::Reload { .. } => "reload",
            Self::Fallback { .. } => "fallback",
            Self::SkillsJoined { .. } => "skills_joined",
            Self::Restored { .. } => "restored",
            Self::Refused { .. } => "refused",
            Self::EventsDropped { .. } => "events_dropped",
        }
    }

    /// Returns the estimated number of tokens that the first request of a session is shorter, because the tools of MCP servers belong to
    /// skills. `None` if there are no such skills, or if it is not known.
    pub fn saved_tokens(skills: &SkillSet) -> Option<u64> {
        let saved = |skill: &Arc<Skill>| {
            let entry = Catalog::entry_tokens(skill, &CatalogOptions::default()) as u64;
            skill.provider.as_ref().map_or(0, |provider| provider.tokens().saturating_sub(entry))
        };
        Some(skills.iter().map(saved).sum()).filter(|saved| *saved > 0)
    }

    /// Returns an event for each refusal of a policy in a set of skills.
    pub fn refusals(skills: &SkillSet) -> Vec<Self> {
        let findings = skills.skipped().iter().flat_map(|skipped| &skipped.diagnostics);
        let refused = findings.filter(|finding| finding.code == REFUSED_BY_POLICY);
        refused.map(|finding| Self::Refused { reason: finding.message.clone() }).collect()
    }

    /// Returns an event for each refusal in `after` that is not in `before`.
    pub fn new_refusals(before: &SkillSet, after: &SkillSet) -> Vec<Self> {
        let known = Self::refusals(before);
        Self::refusals(after).into_iter().filter(|refusal| !known.contains(refusal)).collect()
    }

    /// Returns the end of the activity, or `None` if the event has no duration.
    pub fn end(&self) -> Option<&End> {
        match self {
            Self::SkillActivated { end, .. }
            | Self::FileRead { end, .. }
            | Self::ToolCalled { end, .. }
            | Self::ScriptRun { end, .. }
            | Self::Search { end, .. } => Some(end),
            _ => None,
        }
    }

    /// Returns true for a call of one of the skill tools that only read.
    pub(crate) fn is_reading_call(&self) -> bool {
        matches!(
            self,
            Self::SkillActivated { by: ActivatedBy::Model, .. } | Self::FileRead { .. } | Self::Search { .. }
        )
    }

    /// Returns the name of the skill in the event.
    pub fn skill(&self) -> Option<&str> {
        match self {
            Self::SkillActivated { skill, .. }
            | Self::FileRead { skill, .. }
            | Self::ToolCalled { skill, .. }
            | Self::ScriptRun { skill, .. } => skill.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        })
    }
}
