//! [`Trace`]: the visible steps of one prompt, for programs that show them to the user.

use std::sync::Arc;

use acp_skills_runtime::activity::Activity;
use serde_json::Value;

use crate::permission::{PermissionOption, PermissionRequest};

/// A step of a prompt.
#[derive(Debug)]
#[non_exhaustive]
pub enum Trace<'a> {
    /// The agent received this message.
    ToAgent(&'a Value),
    /// The model used our MCP server, for example to call a tool.
    Activity(&'a Activity),
    /// The agent sent this [update](https://agentclientprotocol.com/protocol/v1/schema#sessionupdate). See
    /// [`Update`](crate::client::Update) for reading it.
    Update(&'a Value),
    /// The agent asked for permission, and this option was selected. `None` means that the request was answered as
    /// cancelled.
    Permission(&'a PermissionRequest, Option<&'a PermissionOption>),
}

/// Receives the steps of a prompt. It is called from several threads.
pub type Tracer = Arc<dyn Fn(Trace<'_>) + Send + Sync>;
