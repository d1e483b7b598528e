//! The results of calls of tools.

use serde_json::Value;
use skills_core::{ToolOutput, tool::Content};

use super::ServerError;

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

pub(super) fn part(part: Value) -> Content {
    match (part["text"].as_str(), part.as_object()) {
        (Some(text), Some(members)) if members.len() == 2 && part["type"] == "text" => {
            Content::Text(text.to_owned())
        }
        _ => Content::Raw(part),
    }
}
