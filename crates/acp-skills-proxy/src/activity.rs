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

/// Is told of each call of one of our tools. Runs on the server's task, so it must not block.
pub type Observer = Arc<dyn Fn(&ToolCall) + Send + Sync>;
