//! [`SkillTool`]: a tool that a skill or a set provides, its handler, and the names of the built-in tools.
//!
//! Tools whose input and output are Rust types are made with [`SkillTool::typed`].

mod caller;
mod output;
mod provider;
mod typed;

use std::{any::Any, fmt, path::PathBuf, sync::Arc};

use futures::future::BoxFuture;
use serde_json::Value;

use crate::name::SkillName;

pub use caller::Caller;
pub use output::{Content, ToolOutput};
pub use provider::{Offer, OfferedTool, ProviderError, ToolProvider, Variables};
pub use typed::{InvalidInput, schema_of};

/// The name of the built-in tool that loads the instructions of a skill.
pub const ACTIVATE_SKILL: &str = "activate_skill";
/// The name of the built-in tool that calls a tool of a virtual skill. This tool is offered when a skill has tools.
pub const CALL_SKILL_TOOL: &str = "call_skill_tool";
/// The name of the built-in tool that reads a file of a skill. This tool is offered when a skill is stored or remote.
pub const READ_SKILL_FILE: &str = "read_skill_file";
/// The name of the built-in tool that finds skills. This tool is offered when search is enabled.
pub const SEARCH_SKILLS: &str = "search_skills";
/// The name of the built-in tool that runs a script of a stored skill. This tool is offered when scripts are allowed.
pub const RUN_SKILL_SCRIPT: &str = "run_skill_script";

/// The names of all built-in tools. They are reserved even if a tool isn't offered.
pub const BUILT_IN_TOOLS: [&str; 5] =
    [ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE, SEARCH_SKILLS, RUN_SKILL_SCRIPT];

/// A tool that belongs to a virtual skill or to a set.
///
/// The tools of a skill are not listed up front. The model learns about them when it activates the skill, and uses
/// [`CALL_SKILL_TOOL`] to call them. The tools of a set are listed from the beginning ([`SkillSetBuilder::add_tool`]).
///
/// [`SkillSetBuilder::add_tool`]: crate::SkillSetBuilder::add_tool
#[derive(Clone)]
#[non_exhaustive]
pub struct SkillTool {
    /// The name, unique within the skill or the set.
    pub name: String,
    /// A description for the model.
    pub description: String,
    /// The JSON schema of the input, which is shown to the model but not used for validation. `None` means that any JSON is
    /// accepted.
    pub input_schema: Option<Value>,
    /// Runs the tool.
    pub handler: Arc<dyn ToolHandler>,
    /// The reason why the tool can't work, if one is known: for example, its program doesn't exist.
    pub missing: Option<String>,
}

impl SkillTool {
    /// Creates a tool that runs `handler`, without an input schema.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        handler: impl ToolHandler + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema: None,
            handler: Arc::new(handler),
            missing: None,
        }
    }
}

impl fmt::Debug for SkillTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillTool")
            .field("name", &self.name)
            .field("description", &self.description)
            .field("input_schema", &self.input_schema)
            .field("missing", &self.missing)
            .finish_non_exhaustive()
    }
}

/// The session that a tool is called from.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CallContext {
    /// The session's working directory as an absolute path, or `None` if it has none.
    pub cwd: Option<PathBuf>,
    /// Skills that the user activated in this session. The model may use their tools and files even if it may not
    /// activate the skills itself ([`Properties::disable_model_invocation`]).
    ///
    /// [`Properties::disable_model_invocation`]: crate::Properties::disable_model_invocation
    pub unlocked: Arc<[SkillName]>,
    /// The session, as far as the order of programs is concerned. By default, each context is a session of its own.
    pub caller: Caller,
    /// Data of the host about the session or the call, for its own [tool providers](ToolProvider).
    pub host_data: Option<Arc<dyn Any + Send + Sync>>,
}

impl CallContext {
    /// Creates the context of a session that works in `cwd`, an absolute path.
    pub fn in_directory(cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: Some(cwd.into()), ..Self::default() }
    }

    /// Replaces the list of skills that the user activated.
    #[must_use]
    pub fn unlock(self, skills: impl Into<Arc<[SkillName]>>) -> Self {
        Self { unlocked: skills.into(), ..self }
    }

    /// Sets the session whose programs start in turn with those of other sessions.
    #[must_use]
    pub fn called_by(self, caller: Caller) -> Self {
        Self { caller, ..self }
    }

    /// Sets the host's own data.
    #[must_use]
    pub fn with_host_data(self, data: Arc<dyn Any + Send + Sync>) -> Self {
        Self { host_data: Some(data), ..self }
    }

    /// Returns true if the user activated this skill in the session.
    pub fn is_unlocked(&self, skill: &SkillName) -> bool {
        self.unlocked.iter().any(|name| name.key() == skill.key())
    }
}

/// The error of a failed tool call. Its text is shown to the model.
pub type ToolError = Box<dyn std::error::Error + Send + Sync>;

/// The code that runs a tool.
///
/// Closures of the type `Fn(Value) -> impl Future<Output = Result<Value, ToolError>>` implement this trait. If a call has
/// no input, they receive `null`.
pub trait ToolHandler: Send + Sync {
    /// Runs the tool and returns its result: a string is shown to the model as it is, any other value as JSON.
    ///
    /// The `input` can be any JSON value, or `None` if the call has no input. Dropping the future cancels the call.
    ///
    /// # Errors
    /// Returns an error if the tool fails. The model reads its text.
    fn call(
        &self,
        input: Option<Value>,
        context: CallContext,
    ) -> BoxFuture<'static, Result<Value, ToolError>>;
}

impl<F, Fut> ToolHandler for F
where
    F: Fn(Value) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
{
    fn call(
        &self,
        input: Option<Value>,
        _context: CallContext,
    ) -> BoxFuture<'static, Result<Value, ToolError>> {
        Box::pin(self(input.unwrap_or(Value::Null)))
    }
}
