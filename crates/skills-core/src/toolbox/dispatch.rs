//! [`Toolbox`]: lists the tools and dispatches calls.
//!
//! A failure becomes a result ([`ToolOutput::is_error`]). Its text starts with a code and says what the model can do next, for
//! example `SkillNotFound: no skill "pfd" found. Did you mean "pdf"?`.

mod answers;
mod arguments;
mod definitions;
mod errors;
mod schema;
#[cfg(feature = "exec")]
mod script;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::arguments::Arguments;
#[cfg(feature = "exec")]
use super::RUN_SKILL_SCRIPT;
use super::{
    ACTIVATE_SKILL, CALL_SKILL_TOOL, READ_SKILL_FILE, SEARCH_SKILLS, ToolDefinition, ToolOutput, turn,
};
#[cfg(feature = "exec")]
use crate::exec::ScriptOptions;
use crate::{
    activation::{Activation, ActivationError, ActivationOptions, BodyCache, activate},
    catalog::Guide,
    set::SkillSet,
    skill::Skill,
    tool::{CallContext, Offer},
};

/// Options of a [`Toolbox`].
#[derive(Debug, Clone, Default)]
pub struct ToolboxOptions {
    /// The directory that contains the skills' directories from the agent's point of view, for example in a container. The
    /// default, `None`, is for agents that see them at the same paths.
    pub mount: Option<String>,
    /// True if the agent runs elsewhere and can't open the files of skills. Activations then don't contain the directory of a
    /// skill. The default is `false`.
    pub elsewhere: bool,
    /// True if the tool [`SEARCH_SKILLS`] is offered, which is useful if the catalog doesn't show all skills. The default is
    /// `false`.
    pub search: bool,
    /// The limits for scripts. If set, the tool [`RUN_SKILL_SCRIPT`] is offered. The default, `None`, doesn't allow scripts.
    #[cfg(feature = "exec")]
    pub scripts: Option<ScriptOptions>,
}

/// The built-in tools for a set of skills. It is cheap to clone.
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
    /// True if no schema lists the names of the skills.
    has_open_names: bool,
}

/// The state that is kept if the skills are reloaded.
#[derive(Debug, Default)]
struct Shared {
    options: ToolboxOptions,
    bodies: BodyCache,
}

impl Toolbox {
    /// Creates a toolbox with default options: without search and scripts.
    pub fn new(skills: SkillSet) -> Self {
        Self::with_options(skills, ToolboxOptions::default())
    }

    /// Creates a toolbox.
    pub fn with_options(skills: SkillSet, options: ToolboxOptions) -> Self {
        let shared = Arc::new(Shared { options, bodies: BodyCache::default() });
        Self { skills, shared, has_open_names: false }
    }

    /// Returns a toolbox for other skills with the same options and the same cache of fetched texts.
    ///
    /// Calls that are in flight keep their skills.
    #[must_use]
    pub fn with_skills(&self, skills: SkillSet) -> Self {
        Self { skills, ..self.clone() }
    }

    /// Returns the same toolbox, but the schema of [`ACTIVATE_SKILL`] doesn't list the names of the skills.
    ///
    /// This is for hosts that refuse calls with other names themselves, and don't notice that there are new skills.
    #[must_use]
    pub fn with_open_names(self) -> Self {
        Self { has_open_names: true, ..self }
    }

    /// Returns the same toolbox with the tool [`SEARCH_SKILLS`].
    #[must_use]
    pub fn with_search(self) -> Self {
        if self.options().search {
            return self;
        }
        let options = ToolboxOptions { search: true, ..self.options().clone() };
        Self { has_open_names: self.has_open_names, ..Self::with_options(self.skills, options) }
    }

    /// Returns the skills.
    pub fn skills(&self) -> &SkillSet {
        &self.skills
    }

    /// Returns the options.
    pub fn options(&self) -> &ToolboxOptions {
        &self.shared.options
    }

    /// Returns the definitions of all tools, always in the same order.
    ///
    /// First come the built-in tools, each only if the set has a skill that it can be used for. The tools that belong to no
    /// skill follow.
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        let mut all = definitions::definitions(self);
        all.extend(self.skills.tools().iter().map(definitions::plain));
        all
    }

    /// Calls a tool by one of the names in [`Toolbox::definitions`].
    ///
    /// All failures become results, including panics in handlers. Dropping the future cancels the call.
    ///
    /// # Panics
    /// Panics if it is not called within a tokio runtime. If tools or scripts are programs, the runtime must have time and I/O
    /// enabled.
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

    /// Activates a skill for the user, who may activate every skill.
    ///
    /// `arguments` is the text that the user wrote after the skill's name, and `guide` says how the model accesses files and
    /// tools. For activations by the model, use [`Toolbox::call`] with [`ACTIVATE_SKILL`].
    ///
    /// # Errors
    /// Returns an error if the instructions can't be read or fetched. [`ActivationError::Interrupted`] means that the runtime
    /// is shutting down.
    pub async fn activate(
        &self,
        skill: &Arc<Skill>,
        arguments: Option<String>,
        guide: Guide,
    ) -> Result<Activation, ActivationError> {
        self.activate_in(skill, arguments, guide, &CallContext::default()).await
    }

    /// Activates a skill like [`activate`](Self::activate), for a session with this context. If the skill has a
    /// [provider](crate::tool::ToolProvider), it is asked for its tools, unless the model can't call tools.
    ///
    /// # Errors
    /// Returns the errors of [`activate`](Self::activate). If the provider fails, the activation says so.
    pub async fn activate_in(
        &self,
        skill: &Arc<Skill>,
        arguments: Option<String>,
        guide: Guide,
        context: &CallContext,
    ) -> Result<Activation, ActivationError> {
        let offer = match &skill.provider {
            Some(provider) if guide == Guide::Tools => {
                let offered = provider.offer(context.clone()).await;
                Some(offered.unwrap_or_else(|error| Offer::failed(error.to_string())))
            }
            _ => None,
        };
        let ToolboxOptions { mount, elsewhere, .. } = self.options();
        let options = ActivationOptions {
            arguments,
            mount: mount.clone(),
            guide,
            elsewhere: *elsewhere,
            scripts: self.runs_scripts(),
            offer,
        };
        let turn = turn(skill).await;
        let skill = Arc::clone(skill);
        let bodies = self.shared.bodies.clone();
        let reading = tokio::task::spawn_blocking(move || turn.run(|| activate(&skill, &options, &bodies)));
        reading.await.map_err(|_| ActivationError::Interrupted)?
    }

    /// Returns true if the tool `run_skill_script` is offered.
    #[cfg_attr(
        not(feature = "exec"),
        expect(clippy::unused_self, reason = "scripts need the feature `exec`")
    )]
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

    /// Returns the skill with this name if the model may use it in this session. A skill of a service can also be named by the URI of its
    /// `SKILL.md`, which other texts of the service may contain.
    pub fn usable(&self, name: &str, context: &CallContext) -> Option<&Arc<Skill>> {
        let named = self.skills.get(name).or_else(|| self.skills.get(&unescape(name)));
        let skill = named.or_else(|| self.skills.iter().find(|skill| skill.service_uri() == Some(name)))?;
        (skill.is_model_invocable() || context.is_unlocked(&skill.name)).then_some(skill)
    }
}

/// Reverts the XML escapes in a name, because models copy names from the catalog.
fn unescape(name: &str) -> String {
    name.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}
