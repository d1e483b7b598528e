//! The tools that a model gets, as plain Rust: their definitions, and [`Toolbox::call`].
//!
//! An MCP server, or the loop of any agent, exposes them; this part knows neither. Whatever goes wrong becomes an
//! answer ([`ToolOutput::is_error`]) that begins with a code and says what to do next, for example
//! `SkillNotFound: there is no skill "pfd". Did you mean "pdf"?`.

mod answers;
mod arguments;
mod definitions;
mod errors;

use std::{borrow::Cow, sync::Arc};

use serde_json::{Map, Value};

use crate::{
    Activation, ActivationOptions, CallContext, Guide, Skill, SkillSet, activate,
    activation::{ActivationError, BodyCache},
    exec::ScriptOptions,
};
use arguments::Arguments;

/// Name of the tool that loads the instructions of a skill.
pub const ACTIVATE_SKILL: &str = "activate_skill";
/// Name of the tool that runs a tool of a virtual skill.
pub const CALL_SKILL_TOOL: &str = "call_skill_tool";
/// Name of the tool that reads a file of a stored skill.
pub const READ_SKILL_FILE: &str = "read_skill_file";
/// Name of the tool that finds skills; only there when search is on.
pub const SEARCH_SKILLS: &str = "search_skills";
/// Name of the tool that runs a script of a stored skill; only there when scripts are allowed.
pub const RUN_SKILL_SCRIPT: &str = "run_skill_script";

/// The names that are taken, whether the tools are there or not.
pub const NAMES: [&str; 5] =
    [ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE, SEARCH_SKILLS, RUN_SKILL_SCRIPT];

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

/// What the tools offer beyond the three that are always there.
#[derive(Debug, Clone, Default)]
pub struct ToolboxOptions {
    /// The root under which the agent sees the skills' directories, when it does not see them where they are.
    pub mount: Option<String>,
    /// Whether there is the tool [`SEARCH_SKILLS`]; for when the catalog does not show every skill.
    pub search: bool,
    /// How scripts are run, when they are allowed; then there is the tool [`RUN_SKILL_SCRIPT`].
    pub scripts: Option<ScriptOptions>,
}

/// The tools over one set of skills. Cheap to clone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::{Value, json};
/// use skills_core::{CallContext, Skill, SkillSet, Toolbox};
///
/// let skill = Skill::builder("echo", "Says it again.")
///     .body("Call `say`.")
///     .tool("say", "Says `text`.", |input: Value| async move { Ok(input["text"].clone()) })
///     .build()?;
/// let toolbox = Toolbox::new([skill].into_iter().collect());
///
/// let arguments = json!({ "skill": "echo", "tool": "say", "input": { "text": "hi" } });
/// let output = toolbox
///     .call("call_skill_tool", arguments.as_object().cloned().unwrap(), &CallContext::default())
///     .await;
/// assert_eq!(output.to_text(), "hi");
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Toolbox {
    skills: SkillSet,
    shared: Arc<Shared>,
}

/// What stays the same when the skills are loaded again.
#[derive(Debug, Default)]
struct Shared {
    options: ToolboxOptions,
    bodies: BodyCache,
}

impl Toolbox {
    /// The three tools over `skills`.
    pub fn new(skills: SkillSet) -> Self {
        Self::with_options(skills, ToolboxOptions::default())
    }

    /// The tools over `skills`.
    pub fn with_options(skills: SkillSet, options: ToolboxOptions) -> Self {
        let shared = Arc::new(Shared { options, bodies: BodyCache::default() });
        Self { skills, shared }
    }

    /// The same tools over other skills; what was fetched is kept. Calls that run keep the skills they began with.
    #[must_use]
    pub fn with_skills(&self, skills: SkillSet) -> Self {
        Self { skills, shared: Arc::clone(&self.shared) }
    }

    /// The skills that the tools serve.
    pub fn skills(&self) -> &SkillSet {
        &self.skills
    }

    /// What the tools offer beyond the three that are always there.
    pub fn options(&self) -> &ToolboxOptions {
        &self.shared.options
    }

    /// The tools, always in the same order: those for skills, when there are skills, then those that belong to none.
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        let mut all = if self.skills.is_empty() { Vec::new() } else { definitions::definitions(self) };
        all.extend(self.skills.tools().iter().map(definitions::plain));
        all
    }

    /// Calls a tool by one of the names in [`Toolbox::definitions`].
    ///
    /// Never fails and never panics: whatever goes wrong, in a handler too, is an answer. Dropping the future cancels
    /// the call. Needs a tokio runtime, with time and I/O where tools are programs.
    pub async fn call(&self, name: &str, arguments: Map<String, Value>, context: &CallContext) -> ToolOutput {
        let arguments = Arguments::new(arguments);
        let answer = match name {
            ACTIVATE_SKILL => answers::activate_skill(self, &arguments, context).await,
            CALL_SKILL_TOOL => answers::call_skill_tool(self, arguments, context).await,
            READ_SKILL_FILE => answers::read_skill_file(self, &arguments, context).await,
            SEARCH_SKILLS if self.options().search => answers::search_skills(self, &arguments).await,
            RUN_SKILL_SCRIPT if self.options().scripts.is_some() => {
                answers::run_skill_script(self, &arguments, context).await
            }
            other => match self.skills.tool(other) {
                Some(tool) => {
                    let input = definitions::plain_input(tool, arguments);
                    answers::run(tool, input, context).await
                }
                None => Err(errors::unknown_tool(self, other)),
            },
        };
        answer.unwrap_or_else(|error| ToolOutput {
            code: Some(error.code),
            ..ToolOutput::error(error.to_string())
        })
    }

    /// Activates a skill on behalf of the user, who may activate every skill; `arguments` is what the user wrote behind
    /// its name, and `guide` how the model gets at files and tools.
    ///
    /// For what a model may activate, use [`Toolbox::call`] with [`ACTIVATE_SKILL`].
    ///
    /// # Errors
    /// When the body cannot be read or fetched.
    pub async fn activate(
        &self,
        skill: &Arc<Skill>,
        arguments: Option<String>,
        guide: Guide,
    ) -> Result<Activation, ActivationError> {
        let ToolboxOptions { mount, scripts, .. } = self.options();
        let options =
            ActivationOptions { arguments, mount: mount.clone(), guide, scripts: scripts.is_some() };
        let (skill, bodies) = (Arc::clone(skill), self.shared.bodies.clone());
        let reading = tokio::task::spawn_blocking(move || activate(&skill, &options, &bodies));
        reading.await.map_err(|_| ActivationError::Interrupted)?
    }

    /// The skill that a model means by `name`, when it may use it.
    pub fn usable(&self, name: &str, context: &CallContext) -> Option<&Arc<Skill>> {
        let skill = self.skills.get(name).or_else(|| self.skills.get(&unescape(name)))?;
        (skill.is_model_invocable() || context.is_unlocked(&skill.name)).then_some(skill)
    }
}

/// A name as it stands in a catalog, back to what it was; models copy what they see.
fn unescape(name: &str) -> String {
    name.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

#[cfg(test)]
mod tests;
