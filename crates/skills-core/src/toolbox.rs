//! The built-in tools, which give a model access to skills.
//!
//! An MCP server or an agent loop offers these tools to the model. This module is independent of both. [`ToolDefinition`] and
//! [`ToolOutput`] are always available. `Toolbox`, which answers calls, needs the feature `toolbox`.

#[cfg(feature = "toolbox")]
mod dispatch;
#[cfg(feature = "toolbox")]
mod turns;

use std::borrow::Cow;

use serde_json::{Map, Value};

#[cfg(feature = "toolbox")]
pub use dispatch::{Toolbox, ToolboxOptions};
#[cfg(feature = "toolbox")]
pub use turns::{Turn, turn};

pub use crate::tool::{
    ACTIVATE_SKILL, BUILT_IN_TOOLS, CALL_SKILL_TOOL, Content, READ_SKILL_FILE, RUN_SKILL_SCRIPT,
    SEARCH_SKILLS, ToolOutput,
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

#[cfg(all(test, feature = "toolbox"))]
mod tests;
