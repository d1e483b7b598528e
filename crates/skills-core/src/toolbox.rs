//! The tools that a model gets, as plain Rust: their names, their definitions, and what they answer.
//!
//! An MCP server, or the loop of any agent, exposes them; this part knows neither. The names and the shapes are always
//! here; `Toolbox`, which answers the calls, comes with the feature `toolbox`.

#[cfg(feature = "toolbox")]
mod answers;
#[cfg(feature = "toolbox")]
mod arguments;
#[cfg(feature = "toolbox")]
mod definitions;
#[cfg(feature = "toolbox")]
mod dispatch;
#[cfg(feature = "toolbox")]
mod errors;
#[cfg(feature = "toolbox")]
mod schema;
#[cfg(all(feature = "toolbox", feature = "exec"))]
mod script;

use std::borrow::Cow;

use serde_json::{Map, Value};

#[cfg(feature = "toolbox")]
pub use dispatch::{Toolbox, ToolboxOptions};

pub use crate::tool::{
    ACTIVATE_SKILL, BUILT_IN_TOOLS, CALL_SKILL_TOOL, READ_SKILL_FILE, RUN_SKILL_SCRIPT, SEARCH_SKILLS,
};

/// What a model is told about one tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// Its name: one of the constants of this module, or that of a tool that belongs to no skill.
    pub name: Cow<'static, str>,
    /// A short name for people.
    pub title: Cow<'static, str>,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// The JSON schema of its arguments (an object).
    pub input_schema: Map<String, Value>,
    /// Whether it changes nothing, so that hosts need not ask before it runs.
    pub read_only: bool,
}

/// What a tool answers; errors are answers too, so that the model can do something about them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// What the model reads, in order.
    pub content: Vec<Content>,
    /// The same as JSON, where the tool has a structured result.
    pub structured: Option<Value>,
    /// Whether the call failed.
    pub is_error: bool,
    /// What kind of failure it was, for programs: the code that the text begins with, for example `SkillNotFound`.
    pub code: Option<&'static str>,
}

impl ToolDefinition {
    /// What a model reads of it: the name, the description and the schema, as one line of JSON.
    ///
    /// Its length is what the tool costs in every turn, before anybody calls it.
    pub fn for_model(&self) -> String {
        let Self { name, description, input_schema, .. } = self;
        serde_json::json!({ "name": name, "description": description, "inputSchema": input_schema })
            .to_string()
    }
}

/// A part of a tool's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// An image: its media type and its bytes.
    Image {
        /// For example `image/png`.
        media_type: &'static str,
        /// The file's bytes.
        data: Vec<u8>,
    },
}

impl ToolOutput {
    /// A success with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::Text(text.into())], structured: None, is_error: false, code: None }
    }

    /// All texts of the answer, for callers that show nothing else.
    pub fn to_text(&self) -> String {
        let texts = self.content.iter().filter_map(|part| match part {
            Content::Text(text) => Some(text.as_str()),
            Content::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// A failure: what went wrong, and what to do next.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }
}

#[cfg(all(test, feature = "toolbox"))]
mod tests;
