//! [`Trace`]: what can be seen of a prompt on its way, for programs that show it to a person.

use std::sync::Arc;

use serde_json::Value;

use acp_skills_runtime::activity::Activity;

use crate::permission::{PermissionOption, PermissionRequest};

/// One thing that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Trace<'a> {
    /// The agent received this message.
    ToAgent(&'a Value),
    /// Something happened on our MCP server: the model called a tool, for example.
    Activity(&'a Activity),
    /// The agent sent this [update](https://agentclientprotocol.com/protocol/v1/schema#sessionupdate).
    Update(&'a Value),
    /// The agent asked for permission, and got this option; none when the request was answered as cancelled.
    Permission(&'a PermissionRequest, Option<&'a PermissionOption>),
}

/// Is called with everything that happens, from several threads.
pub type Tracer = Arc<dyn Fn(Trace<'_>) + Send + Sync>;
