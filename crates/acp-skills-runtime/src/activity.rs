//! [`Activity`]: everything that the model does with skills, reported while it happens.
//!
//! There is one hook, the [`Observer`]. It receives tool calls with their full contents, which are meant to be shown
//! to people, and the events of the [record](crate::events), which have no contents.

use std::{sync::Arc, time::Duration};

use acp_skills_intercept::SessionKey;
use serde_json::{Map, Value};
use skills_core::ToolOutput;

use crate::events::{EventFile, Record};

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
    Recorded(Arc<Record>),
}

/// A function that is called with each activity. It is called by the threads that move messages, so it must not
/// block.
pub type Observer = Arc<dyn Fn(&Activity) + Send + Sync>;

/// Returns an observer that writes the events of the record to `file` and ignores all other activities.
pub fn record_to(file: &EventFile) -> Observer {
    let appender = file.appender();
    Arc::new(move |activity| {
        if let Activity::Recorded(record) = activity {
            appender.append(Arc::clone(record));
        }
    })
}
