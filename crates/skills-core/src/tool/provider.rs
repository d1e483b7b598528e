//! [`ToolProvider`]: a service that provides tools of a skill while the skill is in use.
//!
//! The tools are not known before the skill is activated, so only the catalog entry of the skill costs context until then. When
//! the skill is activated, the provider is asked for an [`Offer`], which becomes a part of the activation. The model calls the
//! tools with [`CALL_SKILL_TOOL`](crate::tool::CALL_SKILL_TOOL).

use std::{any::Any, fmt};

use futures::future::BoxFuture;
use serde_json::Value;

use super::{CallContext, ToolError, ToolOutput};

/// A service that provides tools of a skill. A host can convert it to [`Any`], to recognize its own providers.
pub trait ToolProvider: Any + fmt::Debug + Send + Sync {
    /// Returns the tools for a session. Starts the service first if it is not running.
    ///
    /// # Errors
    /// Returns an error if the service cannot be started or does not list its tools. The model reads its text.
    fn offer(&self, context: CallContext) -> BoxFuture<'static, Result<Offer, ToolError>>;

    /// Returns the estimated number of tokens that the definitions of the tools would take in each request, or 0 if it is not known.
    fn tokens(&self) -> u64 {
        0
    }

    /// Calls a tool. Starts the service first if it is not running. Dropping the future cancels the call.
    ///
    /// # Errors
    /// Returns an error if the tool is unknown or if the service fails. A failure of the tool itself is an output.
    fn call(
        &self,
        tool: String,
        input: Option<Value>,
        context: CallContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ProviderError>>;
}

/// Environment variables that are only known when a program is started, such as secrets.
pub trait Variables: fmt::Debug + Send + Sync {
    /// Returns the names and values.
    ///
    /// # Errors
    /// Returns an error if a value is not available. The model reads its text, so it must not contain values.
    fn resolve(&self) -> BoxFuture<'static, Result<Vec<(String, String)>, ToolError>>;
}

/// The tools of a [`ToolProvider`] at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Offer {
    /// The instructions of the service for using its tools. They are not trusted, and are escaped before the model sees them.
    pub instructions: Option<String>,
    /// The tools.
    pub tools: Vec<OfferedTool>,
    /// The reason why there are no tools, as a clause for the model.
    pub problem: Option<String>,
}

impl Offer {
    /// Creates an offer of these tools.
    pub fn new(instructions: Option<String>, tools: Vec<OfferedTool>) -> Self {
        Self { instructions, tools, problem: None }
    }

    /// Creates an offer without tools. `problem` is the reason, as a clause for the model.
    pub fn failed(problem: impl Into<String>) -> Self {
        Self { problem: Some(problem.into()), ..Self::default() }
    }
}

/// A tool of an [`Offer`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfferedTool {
    /// The name, unique within the offer.
    pub name: String,
    /// The description for the model. It is not trusted, and is escaped before the model sees it.
    pub description: String,
    /// The JSON schema of the input.
    pub input_schema: Option<Value>,
    /// True if the service says that the tool changes nothing.
    pub read_only: bool,
}

/// The error of [`ToolProvider::call`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The provider has no tool with this name.
    #[error("unknown tool")]
    UnknownTool {
        /// The names of its tools.
        tools: Vec<String>,
    },
    /// The call failed. The model reads the text.
    #[error(transparent)]
    Failed(#[from] ToolError),
}
