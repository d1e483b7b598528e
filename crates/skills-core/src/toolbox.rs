//! The tools that a model gets, as plain Rust: their definitions, and [`Toolbox::call`].
//!
//! An MCP server, or the loop of any agent, exposes them; this file knows neither.

use serde_json::{Map, Value};

use crate::SkillSet;

/// Name of the tool that loads the instructions of a skill.
pub const ACTIVATE_SKILL: &str = "activate_skill";
/// Name of the tool that runs a tool of a virtual skill.
pub const CALL_SKILL_TOOL: &str = "call_skill_tool";
/// Name of the tool that reads a file of a stored skill.
pub const READ_SKILL_FILE: &str = "read_skill_file";

/// What a model is told about one tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolDefinition {
    /// Its name, one of the constants of this module.
    pub name: &'static str,
    /// A short name for people.
    pub title: &'static str,
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
        Self { content: vec![Content::Text(text.into())], structured: None, is_error: false }
    }

    /// A failure: what went wrong, and what to do next.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }
}

/// The tools over one set of skills. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Toolbox {
    skills: SkillSet,
}

impl Toolbox {
    /// The tools over `skills`.
    pub fn new(skills: SkillSet) -> Self {
        Self { skills }
    }

    /// The skills that the tools serve.
    pub fn skills(&self) -> &SkillSet {
        &self.skills
    }
}
