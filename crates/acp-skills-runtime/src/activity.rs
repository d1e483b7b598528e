//! [`Activity`]: everything that the model does with skills, reported while it happens.
//!
//! There is one hook, the [`Observer`]. It receives tool calls with their full contents, which are meant to be shown
//! to people, and the events of the [record](crate::events), which have no contents.

use std::{sync::Arc, time::Duration};

use acp_skills_intercept::SessionKey;
use serde_json::{Map, Value};
use skills_core::ToolOutput;

use crate::events::{Event, EventFile, TraceContext};

/// A finished call of one of our tools.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The session of the call.
    pub session: SessionKey,
    /// The name of the tool.
    pub tool: String,
    /// The arguments that the model passed.
    pub arguments: Map<String, Value>,
    /// The result that the model received.
    pub output: ToolOutput,
    /// The duration of the call.
    pub duration: Duration,
}

/// Something that happened with skills.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Activity {
    /// The agent listed the tools.
    Listed {
        /// The session.
        session: SessionKey,
        /// The revision of MCP that the agent uses, if it says so.
        revision: Option<String>,
    },
    /// The agent read a file of a skill as an MCP resource.
    ResourceRead {
        /// The session.
        session: SessionKey,
        /// The name of the skill.
        skill: String,
        /// The path of the file, relative to the skill's directory.
        path: String,
    },
    /// The model called a tool.
    Called(Box<ToolCall>),
    /// An event of the record, as `--events` writes it.
    Recorded(Arc<Event>),
    /// A session, or a turn in it, begins or ends.
    Session(SessionKey, SessionStep),
}

/// The beginning or the end of a session or a turn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum SessionStep {
    /// The client has requested a session. It may belong to a trace of the client.
    Requested(Option<Box<TraceContext>>),
    /// The agent has opened the session. This is its id of the session.
    Opened(String),
    /// The client has sent a prompt to the agent. It may belong to a trace of the client.
    TurnStarted(Option<Box<TraceContext>>),
    /// The agent has answered the prompt. This is also reported if there is no turn.
    TurnEnded,
    /// The session has ended, or could not be opened.
    Closed,
}

/// A function that is called with each activity. It is called by the threads that move messages, so it must not
/// block.
pub type Observer = Arc<dyn Fn(&Activity) + Send + Sync>;

/// Returns an observer that calls both observers.
pub fn both(first: Option<Observer>, second: Option<Observer>) -> Option<Observer> {
    match (first, second) {
        (Some(first), Some(second)) => Some(Arc::new(move |activity| {
            first(activity);
            second(activity);
        })),
        (first, second) => first.or(second),
    }
}

/// Returns an observer that writes the events of the record to `file` and ignores all other activities.
pub fn record_to(file: &EventFile) -> Observer {
    let appender = file.appender();
    Arc::new(move |activity| {
        if let Activity::Recorded(event) = activity {
            appender.append(Arc::clone(event));
        }
    })
}
