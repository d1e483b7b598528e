//! [`VirtualSkill`]: a skill that is defined in a configuration file, with tools that are commands.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use skills_core::{
    Instructions, Properties, Skill, SkillTool,
    exec::CommandTool,
    skill::{Example, Parameter, Usage},
};

use super::{choices::Validation, error::ConfigError, words::Words};
use acp_skills_runtime::processes::Processes;

/// A virtual skill.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VirtualSkill {
    name: String,
    description: String,
    /// The instructions themselves,
    body: Option<String>,
    /// or a file with them,
    #[serde(alias = "body-file")]
    pub(super) body_file: Option<PathBuf>,
    /// or an address (https, or http on loopback).
    #[serde(alias = "body-url")]
    body_url: Option<String>,
    #[serde(default)]
    pub(super) tools: Vec<ToolEntry>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    priority: i64,
    #[serde(default, alias = "allowed-tools")]
    allowed_tools: Vec<String>,
    #[serde(alias = "argument-hint")]
    argument_hint: Option<String>,
    /// What a user may say behind the command.
    #[serde(default)]
    parameters: Vec<Parameter>,
    #[serde(default)]
    examples: Vec<Example>,
    compatibility: Option<String>,
    license: Option<String>,
    version: Option<String>,
    #[serde(default = "yes", alias = "user-invocable")]
    user_invocable: bool,
    #[serde(default, alias = "disable-model-invocation")]
    disable_model_invocation: bool,
    #[serde(default, alias = "hide-from-discovery")]
    hide_from_discovery: bool,
    /// Overrides the file's `validation`.
    validation: Option<Validation>,
}

/// A tool of a virtual skill: a command that gets the input as JSON on stdin and answers on stdout.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolEntry {
    name: String,
    #[serde(default)]
    description: String,
    #[schemars(with = "super::schema::OneOrMany")]
    pub(super) command: Words,
    /// The JSON schema of the input, for the model.
    #[serde(alias = "input-schema")]
    input_schema: Option<Value>,
    /// Where it runs; the session's directory by default.
    pub(super) cwd: Option<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// In seconds.
    #[serde(default, deserialize_with = "super::seconds")]
    #[schemars(with = "Option<f64>")]
    timeout: Option<Duration>,
}

const fn yes() -> bool {
    true
}

impl VirtualSkill {
    /// The skill, and warnings about it.
    ///
    /// # Errors
    /// [`ConfigError::VirtualSkill`] says what is missing or wrong.
    pub fn build(self, default: Validation) -> Result<(Skill, Vec<String>), ConfigError> {
        self.build_with(default, &Processes::default())
    }

    /// The same; the programs of its tools are registered with `processes`.
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
        let mut sources = sources.into_iter().flatten();
        if let Some(instructions) = sources.next() {
            builder = builder.instructions(instructions);
        }
        if sources.next().is_some() {
            let text = format!("skill `{name}` has more than one of `body`, `body-file` and `body-url`");
            return Err(ConfigError::VirtualSkill(text));
        }
        for tool in self.tools {
            let tool = tool.build(&name, validation, processes)?;
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
        let skill = builder.properties(properties).build();
        Ok((skill.map_err(|error| ConfigError::VirtualSkill(error.to_string()))?, warnings))
    }
}

impl ToolEntry {
    fn build(
        self,
        skill: &str,
        validation: Validation,
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
        for (variable, value) in self.env {
            command = command.env(variable, value);
        }
        if let Some(timeout) = self.timeout {
            command = command.timeout(timeout);
        }
        let missing = if validation == Validation::Ignore { None } else { command.missing() };
        if let (Validation::Strict, Some(missing)) = (validation, &missing) {
            return Err(wrong(missing));
        }
        let mut tool = SkillTool::new(name, self.description, command);
        tool.input_schema = self.input_schema;
        tool.missing = missing;
        Ok(tool)
    }
}
