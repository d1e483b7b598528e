//! What the model does with the skills, as it happens: for whoever wants to watch.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};
use skills_core::ToolOutput;

use crate::session::SessionKey;

/// One call of one of our tools, when it is over.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolCall {
    /// Whose session.
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

/// Something that happened on a skills server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Activity {
    /// The agent got the list of tools.
    Listed {
        /// Whose session.
        session: SessionKey,
        /// The revision of MCP that it speaks, when it says so.
        revision: Option<String>,
    },
    /// The model called a tool.
    Called(ToolCall),
}

/// Is told of what happens. Runs on the server's task, so it must not block.
pub type Observer = Arc<dyn Fn(&Activity) + Send + Sync>;
