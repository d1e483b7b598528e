//! Tells from a tool call if the agent works, and which files it names.

use acp_skills::intercept::SERVER_NAME;
use serde_json::{Value, json};
use skills_core::toolbox;

use super::transcript::ToolUse;

/// Returns true if a call edits files or runs a command. Calls of our own tools don't count: some agents report every MCP tool
/// as a command.
pub(super) fn is_work(call: &ToolUse) -> bool {
    let is_kind = matches!(call.kind.as_str(), "edit" | "delete" | "move" | "execute");
    let has_begun = call.status != "pending" && !call.status.is_empty()
        || !call.input.is_null() && call.input != json!({})
        || call.locations.as_array().is_some_and(|places| !places.is_empty());
    let is_ours = [SERVER_NAME]
        .into_iter()
        .chain(toolbox::BUILT_IN_TOOLS)
        .any(|name| call.title.contains(name) || call.name().contains(name) || mentions(&call.input, name));
    is_kind && has_begun && !is_ours
}

/// Returns true if any string in a value contains `text`.
pub(super) fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::String(string) => string.contains(text),
        Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        Value::Object(members) => members.values().any(|member| mentions(member, text)),
        _ => false,
    }
}
