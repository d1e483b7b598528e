//! Tells from a tool call if the agent works, and which files it names.

use acp_skills::intercept::SERVER_NAME;
use serde_json::{Value, json};
use skills_core::toolbox;

use super::transcript::ToolUse;

/// The name of our program.
const PROGRAM: &str = "acp-skills-proxy";

/// Returns true if a call edits files or runs a command. Calls of our own tools don't count: some agents report every MCP tool
/// as a command.
pub(super) fn is_work(call: &ToolUse) -> bool {
    let is_kind = matches!(call.kind.as_str(), "edit" | "delete" | "move" | "execute");
    let has_begun = call.status != "pending" && !call.status.is_empty()
        || !call.input.is_null() && call.input != json!({})
        || call.locations.as_array().is_some_and(|places| !places.is_empty());
    let texts = [&call.title, call.name()];
    let is_ours = texts.into_iter().any(names_tool) || any_string(&call.input, &names_tool);
    is_kind && has_begun && !is_ours
}

/// Returns true if a text contains the name of our server or of one of our tools. The name of our program doesn't count, because it is
/// also the name of the directory in which runs can be.
fn names_tool(text: &str) -> bool {
    let is_server = |(at, _): (usize, &str)| !text[at..].starts_with(PROGRAM);
    text.match_indices(SERVER_NAME).any(is_server)
        || toolbox::BUILT_IN_TOOLS.into_iter().any(|name| text.contains(name))
}

/// Returns true if any string in a value contains `text`.
pub(super) fn mentions(value: &Value, text: &str) -> bool {
    any_string(value, &|string| string.contains(text))
}

/// Returns true if `is_right` returns true for any string in a value.
fn any_string(value: &Value, is_right: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(string) => is_right(string),
        Value::Array(items) => items.iter().any(|item| any_string(item, is_right)),
        Value::Object(members) => members.values().any(|member| any_string(member, is_right)),
        _ => false,
    }
}
