//! What is recorded: the kinds of event, and what each says.
//!
//! Names, numbers and outcomes, never contents. Whoever writes a record adds the time.

use std::{fmt, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

pub use crate::active_skills::ActivatedBy;

/// What happened. The fields are explained in the table of each event above.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the documentation of the fields is the schema, and a test holds it to them")]
pub enum EventKind {
    /// The agent opened a session.
    SessionStarted {
        how: SessionOrigin,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        proxy: String,
        skills: Vec<String>,
    },
    /// The instructions of a skill were given to the model.
    SkillActivated {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skill: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
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
    /// The skills were looked for again.
    Reload {
        skills: u64,
        skipped: u64,
        added: Vec<String>,
        removed: Vec<String>,
        changed: Vec<String>,
        ms: Millis,
    },
    /// Something did not work, and the next best way was taken.
    Fallback {
        reason: FallbackReason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ms: Option<Millis>,
    },
    /// Events were not written.
    EventsDropped { count: u64 },
}

/// How something ended that took its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Whether it worked.
    pub outcome: Outcome,
    /// What kind of failure it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How much the model was given.
    pub bytes: u64,
    /// How long it took.
    pub ms: Millis,
}

/// Whether something worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It did.
    Ok,
    /// It did not.
    Error,
    /// Nobody wanted it any more.
    Cancelled,
}

/// How a session began.
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
    /// What a request of this method asks for.
    pub(crate) fn of(method: &str) -> Self {
        match method {
            "session/load" => Self::Load,
            "session/resume" => Self::Resume,
            "session/fork" => Self::Fork,
            _ => Self::New,
        }
    }
}

/// What became of a request for permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// The proxy granted it, once.
    Allowed,
    /// The proxy refused it, once.
    Refused,
    /// The user is asked.
    Asked,
}

/// Why the proxy decided, or had something to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// It was a call of one of our own tools.
    Own,
    /// The `allowed-tools` of the active skills.
    AllowedTools,
}

/// What did not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FallbackReason {
    /// The agent did not fetch our tools in time.
    NotConnected,
    /// The agent refused a session with our server in it.
    Refused,
    /// Our server could not be opened.
    NoServer,
}

/// A duration, written as a number of milliseconds with at most three decimals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis {
    micros: u64,
}

impl Millis {
    /// As a number of milliseconds.
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
        // To the nearest: what was written comes back.
        Ok(Self::from(duration.saturating_add(Duration::from_nanos(500))))
    }
}

impl EventKind {
    /// The name of the event.
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
            Self::EventsDropped { .. } => "events_dropped",
        }
    }

    /// How it ended, where it took its time.
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

    /// Whether it is a call of one of our tools that only read.
    pub(crate) fn is_reading_call(&self) -> bool {
        matches!(
            self,
            Self::SkillActivated { by: ActivatedBy::Model, .. } | Self::FileRead { .. } | Self::Search { .. }
        )
    }

    /// The skill that it is about.
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
