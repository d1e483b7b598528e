//! What the model does with the skills, as it happens.
//!
//! There is one hook, the [`Observer`]. It is called with the calls of tools and everything in them, for people to look at,
//! and with the events of the [record](crate::events), which hold no contents.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use skills_core::ToolOutput;

use crate::events::{EventFile, Record};
use acp_skills_intercept::SessionKey;

/// One call of one of our tools, when it is over.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// The session that it belongs to.
    pub session: SessionKey,
    /// The tool.
    pub tool: String,
    /// What the model gave it.
    pub arguments: Map<String, Value>,
    /// What the model got.
    pub output: ToolOutput,
    /// How long it took.
    pub duration: Duration,
}

/// Something that happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Activity {
    /// The agent got the list of tools.
    Listed {
        /// The session that it belongs to.
        session: SessionKey,
        /// The revision of MCP that it speaks, when it says so.
        revision: Option<String>,
    },
    /// The agent read a file of a skill as a resource.
    ResourceRead {
        /// Whose session.
        session: SessionKey,
        /// The skill.
        skill: String,
        /// The file, relative to the skill's directory.
        path: String,
    },
    /// The model called a tool.
    Called(Box<ToolCall>),
    /// An event of the record: what `--events` writes.
    Recorded(Arc<Record>),
}

/// Is called with everything that happens, by the threads that move the messages: it must not block.
pub type Observer = Arc<dyn Fn(&Activity) + Send + Sync>;

/// An observer that writes the events of the record to `file`, and ignores everything else.
pub fn record_to(file: &EventFile) -> Observer {
    let appender = file.appender();
    Arc::new(move |activity| {
        if let Activity::Recorded(record) = activity {
            appender.append(Arc::clone(record));
        }
    })
}
