//! [`VirtualSkill`]: a skill that is defined in a configuration file. Its tools are commands.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use acp_skills_servers::{Secrets, ServerProvider, SkillVariables, ToolServer, processes::Processes};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use skills_core::{
    Instructions, Properties, Skill, SkillTool, ToolProvider,
    exec::CommandTool,
    paths,
    skill::{Example, Parameter, Usage},
};

use super::{
    choices::Validation,
    error::ConfigError,
    tool_server::{SecretsEntry, ServerEntry},
    words::Words,
};

/// A skill that is defined in the configuration file. It needs exactly one of `body`, `body_file` and `body_url`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VirtualSkill {
    /// The skill's name.
    pub(super) name: String,
    /// The description in the catalog.
    description: String,
    /// The instructions as text.
    body: Option<String>,
    /// The file with the instructions.
    #[serde(alias = "body-file")]
    pub(super) body_file: Option<PathBuf>,
    /// The URL of the instructions: `https`, or `http` on loopback.
    #[serde(alias = "body-url")]
    pub(super) body_url: Option<String>,
    /// Tools that the model can call after it has loaded the skill.
    #[serde(default)]
    pub(super) tools: Vec<ToolEntry>,
    /// The MCP server whose tools belong to the skill. It is started when the skill is first used in a session. With a server, the
    /// skill needs no instructions of its own.
    pub(super) mcp: Option<ServerEntry>,
    /// Additional environment variables for the tools and the MCP server of the skill. `${NAME}` stands for a secret or an environment
    /// variable of the proxy.
    #[serde(default, deserialize_with = "super::values::variables")]
    pub(super) env: BTreeMap<String, String>,
    /// The secrets for `${NAME}` in the values of `env` and `mcp`: the path of a file that only its owner may read, with lines such as
    /// `NAME=VALUE`, or a map from names to `{ command: [PROGRAM, …] }` or `{ file: PATH }`.
    #[serde(default)]
    #[schemars(with = "Option<super::schema::SecretsShape>")]
    secrets: SecretsEntry,
    /// Tags for the search.
    #[serde(default)]
    tags: Vec<String>,
    /// The priority in the catalog. Skills with a higher priority come first. The default is 0.
    #[serde(default)]
    priority: i64,
    /// Tools that the skill uses; see `tool_policy`.
    #[serde(default, alias = "allowed-tools")]
    allowed_tools: Vec<String>,
    /// The hint for the arguments of the slash command.
    #[serde(alias = "argument-hint")]
    argument_hint: Option<String>,
    /// The arguments of the slash command.
    #[serde(default)]
    parameters: Vec<Parameter>,
    /// Examples for using the skill.
    #[serde(default)]
    examples: Vec<Example>,
    /// The requirements of the skill, such as an operating system.
    compatibility: Option<String>,
    /// The license of the skill.
    license: Option<String>,
    /// The version of the skill.
    version: Option<String>,
    /// Offer the skill as a slash command. The default is true.
    #[serde(default = "yes", alias = "user-invocable")]
    user_invocable: bool,
    /// Only the user can activate the skill. The default is false.
    #[serde(default, alias = "disable-model-invocation")]
    disable_model_invocation: bool,
    /// Leave the skill out of the catalog and the search. The default is false.
    #[serde(default, alias = "hide-from-discovery")]
    hide_from_discovery: bool,
    /// Globs of files for which the skill is meant, such as `infra/**`. The skill is left out of the catalog until a file that
    /// matches one of them comes up in the session.
    #[serde(default)]
    paths: Vec<String>,
    /// Overrides the `validation` of the file.
    validation: Option<Validation>,
}

/// A tool of a virtual skill: a command that receives the input as JSON on stdin and writes the result to stdout.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolEntry {
    /// The tool's name.
    name: String,
    /// The description for the model.
    #[serde(default)]
    description: String,
    /// The program and its arguments.
    #[schemars(with = "super::schema::OneOrMany")]
    pub(super) command: Words,
    /// The JSON schema of the input.
    #[serde(alias = "input-schema")]
    input_schema: Option<Value>,
    /// The working directory. The default is the session's directory.
    pub(super) cwd: Option<PathBuf>,
    /// Additional environment variables, which can also contain `${NAME}`. They have precedence over those of the skill.
    #[serde(default, deserialize_with = "super::values::variables")]
    env: BTreeMap<String, String>,
    /// The timeout in seconds.
    #[serde(default, deserialize_with = "super::values::seconds")]
    #[schemars(with = "Option<f64>")]
    timeout: Option<Duration>,
}

const fn yes() -> bool {
    true
}

/// Checks the `paths` of the skill `name`.
///
/// # Errors
/// Returns [`ConfigError::VirtualSkill`] with the first invalid glob.
pub(super) fn check_globs(name: &str, globs: &[String]) -> Result<(), ConfigError> {
    globs.iter().find(|glob| !paths::is_valid(glob)).map_or(Ok(()), |glob| {
        let message =
            format!("skill `{name}`: invalid glob `{glob}` in `paths`; use globs such as `src/**/*.ts`");
        Err(ConfigError::VirtualSkill(message))
    })
}

/// Returns the server of the skill `name`, if it should be asked for skills.
///
/// # Errors
/// Returns [`ConfigError::VirtualSkill`] if the entry of the server is not valid.
pub(super) fn offering(
    server: Option<&ServerEntry>,
    env: &BTreeMap<String, String>,
    name: &str,
    secrets: &SecretsEntry,
) -> Result<Option<ToolServer>, ConfigError> {
    let Some(server) = server.filter(|server| server.skills) else { return Ok(None) };
    let mut server = server.clone();
    server.add_env(env);
    let resolved = server.resolve(name, &secrets.0);
    resolved.map(Some).map_err(|error| ConfigError::VirtualSkill(format!("skill `{name}`, `mcp`: {error}")))
}

impl VirtualSkill {
    /// Resolves the paths of the server and of the secrets against the file's directory.
    pub(super) fn make_server_absolute(&mut self, base: &Path) {
        if let Some(server) = &mut self.mcp {
            server.make_absolute(base);
        }
        self.secrets.make_absolute(base);
    }

    /// Returns the server of the skill, if it should be asked for skills.
    ///
    /// # Errors
    /// Returns [`ConfigError::VirtualSkill`] if the entry of the server is not valid.
    pub(super) fn offering(&self) -> Result<Option<ToolServer>, ConfigError> {
        offering(self.mcp.as_ref(), &self.env, &self.name, &self.secrets)
    }

    /// Builds the skill. Returns it with warnings, such as a program that doesn't exist.
    ///
    /// # Errors
    /// Returns [`ConfigError::VirtualSkill`] if a field is missing or invalid, or if a program doesn't exist and the validation
    /// is strict.
    pub fn build(self, default: Validation) -> Result<(Skill, Vec<String>), ConfigError> {
        self.build_with(default, &Processes::default())
    }

    /// Builds the skill like [`build`](Self::build). Running tools are registered in `processes`.
    pub(crate) fn build_with(
        self,
        default: Validation,
        processes: &Processes,
    ) -> Result<(Skill, Vec<String>), ConfigError> {
        let validation = self.validation.unwrap_or(default);
        let name = self.name.clone();
        let mut warnings = Vec::new();
        let mut builder = Skill::builder(self.name, self.description);
        let sources = [
            self.body.map(|body| Instructions::Inline(body.into())),
            self.body_file.map(Instructions::File),
            self.body_url.map(Instructions::Url),
        ];
        let provider = self.mcp.map(|mut entry| {
            entry.add_env(&self.env);
            let server = entry
                .resolve(&name, &self.secrets.0)
                .map_err(|error| ConfigError::VirtualSkill(format!("skill `{name}`, `mcp`: {error}")))?;
            Ok::<_, ConfigError>(ServerProvider::new(server, processes.clone()))
        });
        let provider = provider.transpose()?;
        let mut sources = sources.into_iter().flatten();
        if let Some(instructions) = sources.next() {
            builder = builder.instructions(instructions);
        } else if provider.is_some() {
            builder = builder.body("Use the tools of this skill.");
        }
        if sources.next().is_some() {
            let text = format!("skill `{name}` has more than one of `body`, `body-file` and `body-url`");
            return Err(ConfigError::VirtualSkill(text));
        }
        for mut tool in self.tools {
            for (variable, value) in &self.env {
                tool.env.entry(variable.clone()).or_insert_with(|| value.clone());
            }
            let tool = tool.build(&name, validation, &self.secrets.0, processes)?;
            warnings.extend(
                tool.missing
                    .as_ref()
                    .map(|missing| format!("skill `{name}`, tool `{}`: {missing}", tool.name)),
            );
            builder = builder.add_tool(tool);
        }
        let mut properties = Properties::default();
        properties.license = self.license.map(Into::into);
        properties.compatibility = self.compatibility.map(Into::into);
        properties.version = self.version.map(Into::into);
        properties.argument_hint = self.argument_hint.map(Into::into);
        properties.usage = Usage::of(self.parameters, self.examples);
        properties.allowed_tools = self.allowed_tools;
        properties.tags = self.tags;
        properties.priority = self.priority;
        properties.user_invocable = self.user_invocable;
        properties.disable_model_invocation = self.disable_model_invocation;
        properties.hide_from_discovery = self.hide_from_discovery;
        check_globs(&name, &self.paths)?;
        properties.paths = self.paths;
        let skill = builder.properties(properties).build();
        let mut skill = skill.map_err(|error| ConfigError::VirtualSkill(error.to_string()))?;
        skill.provider = provider.map(|provider| Arc::new(provider) as Arc<dyn ToolProvider>);
        Ok((skill, warnings))
    }
}

impl ToolEntry {
    fn build(
        self,
        skill: &str,
        validation: Validation,
        secrets: &Secrets,
        processes: &Processes,
    ) -> Result<SkillTool, ConfigError> {
        let name = self.name;
        let wrong = |what: &str| ConfigError::VirtualSkill(format!("skill `{skill}`, tool `{name}`: {what}"));
        let mut words = self.command.0.into_iter();
        let program =
            words.next().filter(|program| !program.is_empty()).ok_or_else(|| wrong("`command` is empty"))?;
        let mut command = CommandTool::new(program).args(words);
        command.executor = command.executor.observed_by(Arc::new(processes.clone()));
        if let Some(cwd) = self.cwd {
            command = command.cwd(cwd);
        }
        if let Some(timeout) = self.timeout {
            command = command.timeout(timeout);
        }
        let missing = if validation == Validation::Ignore { None } else { command.missing() };
        if let (Validation::Strict, Some(missing)) = (validation, &missing) {
            return Err(wrong(missing));
        }
        let variables =
            SkillVariables::new(self.env.into_iter().collect(), secrets.clone(), processes.clone());
        let mut tool = SkillTool::new(name, self.description, variables.of_tool(command));
        tool.input_schema = self.input_schema;
        tool.missing = missing;
        Ok(tool)
    }
}
