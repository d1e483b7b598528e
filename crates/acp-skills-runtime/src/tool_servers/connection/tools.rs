//! [`Listed`]: the tools in a server's list, and the results of their calls.

use std::collections::HashSet;

use serde_json::Value;
use skills_core::{
    ToolOutput,
    tool::{Content, OfferedTool},
};

use super::ServerError;

/// The maximum number of tools of a server. Others are left out.
const MAX_TOOLS: usize = 500;
/// The maximum length of the description and the schema of one tool, in bytes of JSON. Longer tools are left out.
const MAX_TOOL_BYTES: usize = 64 * 1024;
/// The maximum length of all descriptions and schemas, in bytes of JSON. Further tools are left out.
const MAX_TOOLS_BYTES: usize = 512 * 1024;

/// The tools of a server at one moment.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) tools: Vec<OfferedTool>,
    /// The number of changes that the server had announced before.
    pub(super) changes: u64,
}

/// Converts the result of a call. Its content is passed on as it is.
pub(super) fn output(mut result: Value) -> Result<ToolOutput, ServerError> {
    // `take` panics if the value is not an object.
    if !result.is_object() {
        return Err(ServerError::Invalid("result is not an object"));
    }
    let content = match result["content"].take() {
        Value::Array(parts) => parts,
        Value::Null if result["structuredContent"].is_object() => Vec::new(),
        _ => return Err(ServerError::Invalid("result has no content")),
    };
    let is_error = result["isError"] == true;
    let mut output = if is_error { ToolOutput::error("") } else { ToolOutput::text("") };
    output.content = content.into_iter().map(part).collect();
    output.structured = Some(result["structuredContent"].take()).filter(Value::is_object);
    Ok(output)
}

fn part(part: Value) -> Content {
    match (part["text"].as_str(), part.as_object()) {
        (Some(text), Some(members)) if members.len() == 2 && part["type"] == "text" => {
            Content::Text(text.to_owned())
        }
        _ => Content::Raw(part),
    }
}

/// The tools of a list, within the limits.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) listed: Listed,
    names: HashSet<String>,
    bytes: usize,
}

impl Tally {
    /// Adds a tool, or leaves it out. Returns false if there is no room for further tools.
    pub(super) fn add(&mut self, tool: &Value) -> bool {
        let Some(name) = tool["name"].as_str().filter(|name| !name.is_empty()) else { return true };
        let description = tool["description"].as_str().or_else(|| tool["title"].as_str()).unwrap_or_default();
        let schema = Some(&tool["inputSchema"]).filter(|schema| schema.is_object());
        let bytes = name.len() + description.len() + schema.map_or(0, |schema| schema.to_string().len());
        if bytes > MAX_TOOL_BYTES || !self.names.insert(name.to_owned()) {
            tracing::warn!(tool = %skills_core::text::shown(name), "left out a tool: too long, or listed twice");
            return true;
        }
        if self.listed.tools.len() == MAX_TOOLS || self.bytes + bytes > MAX_TOOLS_BYTES {
            tracing::warn!(first = %skills_core::text::shown(name), "left out the last tools: too many");
            return false;
        }
        self.bytes += bytes;
        self.listed.tools.push(OfferedTool {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: schema.cloned(),
            read_only: tool["annotations"]["readOnlyHint"] == true,
        });
        true
    }
}
