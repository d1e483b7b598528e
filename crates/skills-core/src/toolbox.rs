//! The built-in tools, which give a model access to skills.
//!
//! An MCP server or an agent loop offers these tools to the model. This module is independent of both. [`ToolDefinition`] and
//! [`ToolOutput`] are always available. `Toolbox`, which answers calls, needs the feature `toolbox`.

#[cfg(feature = "toolbox")]
mod dispatch;

use std::borrow::Cow;

use serde_json::{Map, Value};

#[cfg(feature = "toolbox")]
pub use dispatch::{Toolbox, ToolboxOptions};

pub use crate::tool::{
    ACTIVATE_SKILL, BUILT_IN_TOOLS, CALL_SKILL_TOOL, READ_SKILL_FILE, RUN_SKILL_SCRIPT, SEARCH_SKILLS,
};

/// The definition of a tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The name: one of [`BUILT_IN_TOOLS`], or the name of a tool that belongs to no skill.
    pub name: Cow<'static, str>,
    /// A short title for users.
    pub title: Cow<'static, str>,
    /// A description for the model, which says when to use the tool.
    pub description: String,
    /// The JSON schema of the arguments, which are always an object.
    pub input_schema: Map<String, Value>,
    /// True if the tool has no side effects, so that hosts can run it without asking the user.
    pub read_only: bool,
}

/// The result of a tool call. Errors are results too, so that the model can react to them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The content for the model, in order.
    pub content: Vec<Content>,
    /// The content as JSON, if the tool has a structured result.
    pub structured: Option<Value>,
    /// True if the call failed.
    pub is_error: bool,
    /// The code of the failure, for programs. The text starts with the same code, for example `SkillNotFound`.
    pub code: Option<&'static str>,
}

impl ToolDefinition {
    /// Returns the name, the description and the schema as one line of JSON.
    ///
    /// The model reads about this text in every turn, so its length is the cost of offering the tool.
    pub fn for_model(&self) -> String {
        let Self { name, description, input_schema, .. } = self;
        serde_json::json!({ "name": name, "description": description, "inputSchema": input_schema })
            .to_string()
    }
}

/// A part of a tool's result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// The media type, for example `image/png`.
        media_type: &'static str,
        /// The bytes of the image file.
        data: Vec<u8>,
    },
}

impl ToolOutput {
    /// Creates a successful result with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], structured: None, is_error: false, code: None }
    }

    /// Returns all texts, joined by line breaks. Images are left out.
    pub fn to_text(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            Content::Text(text) => Some(text.as_str()),
            Content::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Creates a failed result. The text should say what failed and what the model can do next.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }
}

#[cfg(all(test, feature = "toolbox"))]
mod tests;
