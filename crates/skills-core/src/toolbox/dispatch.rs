//! [`Toolbox`]: which tools there are, and who answers a call.
//!
//! Whatever goes wrong becomes an answer ([`ToolOutput::is_error`]) that begins with a code and says what to do next,
//! for example `SkillNotFound: there is no skill "pfd". Did you mean "pdf"?`.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{
    ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE, SEARCH_SKILLS, ToolDefinition, ToolOutput, answers,
    arguments::Arguments, definitions, errors,
};
#[cfg(feature = "exec")]
use super::{RUN_SKILL_SCRIPT, script};
#[cfg(feature = "exec")]
use crate::exec::ScriptOptions;
use crate::{
    activation::{Activation, ActivationError, ActivationOptions, BodyCache, activate},
    catalog::Guide,
    set::SkillSet,
    skill::Skill,
    tool::CallContext,
};

/// What the tools offer beyond activation, the skills' own tools and their files.
#[derive(Debug, Clone, Default)]
pub struct ToolboxOptions {
    /// The root under which the agent sees the skills' directories, when it does not see them where they are.
    pub mount: Option<String>,
    /// Whether there is the tool [`SEARCH_SKILLS`]; for when the catalog does not show every skill.
    pub search: bool,
    /// How scripts are run, when they are allowed; then there is the tool [`RUN_SKILL_SCRIPT`].
    #[cfg(feature = "exec")]
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
    /// The tools over `skills`, without search and scripts.
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

    /// What the tools offer beyond activation, the skills' own tools and their files.
    pub fn options(&self) -> &ToolboxOptions {
        &self.shared.options
    }

    /// The tools, always in the same order: those for skills, each while there is a skill that it can do something for, then
    /// those that belong to none.
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        let mut all = definitions::definitions(self);
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
            #[cfg(feature = "exec")]
            RUN_SKILL_SCRIPT if self.runs_scripts() => {
                script::run_skill_script(self, &arguments, context).await
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
        let mount = self.options().mount.clone();
        let options = ActivationOptions { arguments, mount, guide, scripts: self.runs_scripts() };
        let (skill, bodies) = (Arc::clone(skill), self.shared.bodies.clone());
        let reading = tokio::task::spawn_blocking(move || activate(&skill, &options, &bodies));
        reading.await.map_err(|_| ActivationError::Interrupted)?
    }

    /// Whether there is the tool `run_skill_script`.
    pub(super) fn runs_scripts(&self) -> bool {
        #[cfg(feature = "exec")]
        {
            self.options().scripts.is_some()
        }
        #[cfg(not(feature = "exec"))]
        {
            false
        }
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
