//! `skills.yaml`: everything that flags can say, and virtual skills.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use serde::{
    Deserialize, Deserializer,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use serde_json::Value;
use skills_core::{Instructions, Properties, Skill, SkillTool, exec::CommandTool};

use crate::cli::{
    ActivationBy, ApproveKind, CatalogDetail, CatalogFormat, CatalogPlace, Discover, LocationKind, LogLevel,
    McpTransport, SandboxKind, ScriptDirectory, ScriptVariables, SearchWhen, ToolPolicyKind, UsageError,
};

/// The contents of a configuration file. Relative paths in it are relative to the file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the file")]
pub struct Config {
    /// The agent's command: a list, or one string without arguments.
    pub agent: Words,
    /// Directories of skills, and virtual skills.
    pub skills: Vec<SkillEntry>,
    /// Directories to look for skills in (`--skills`).
    pub roots: Vec<PathBuf>,
    /// Web sites that offer skills (`--source`).
    pub sources: Vec<String>,
    /// `--discover`
    pub discover: Vec<Discover>,
    /// `--include`
    pub include: Vec<String>,
    /// `--exclude`
    pub exclude: Vec<String>,
    /// `--max-skills`
    pub max_skills: Option<usize>,
    /// `--strict`
    pub strict: bool,
    /// `--watch`, or `--no-watch` when it is false.
    pub watch: Option<bool>,
    /// `--catalog-in`
    pub catalog_in: Option<CatalogPlace>,
    /// `--catalog-format`
    pub catalog_format: Option<CatalogFormat>,
    /// `--catalog-detail`
    pub catalog_detail: Option<CatalogDetail>,
    /// `--catalog-budget`
    pub catalog_budget: Option<usize>,
    /// `--location`
    pub location: Option<LocationKind>,
    /// `--mount`
    pub mount: Option<String>,
    /// `--mcp`
    pub mcp: Option<McpTransport>,
    /// `--mcp-wait`, in seconds.
    pub mcp_wait: Option<f64>,
    /// `--activation`
    pub activation: Option<ActivationBy>,
    /// `--search`
    pub search: Option<SearchWhen>,
    /// `--allow-scripts`
    pub allow_scripts: bool,
    /// `--script-timeout`, in seconds.
    pub script_timeout: Option<f64>,
    /// `--script-cwd`
    pub script_cwd: Option<ScriptDirectory>,
    /// `--script-env`
    pub script_env: Option<ScriptVariables>,
    /// `--max-output`
    pub max_output: Option<usize>,
    /// `--sandbox`
    pub sandbox: Option<SandboxKind>,
    /// `--sandbox-net`
    pub sandbox_net: bool,
    /// `--dollar`
    pub dollar: bool,
    /// `--approve`
    pub approve: Option<ApproveKind>,
    /// `--tool-policy`
    pub tool_policy: Option<ToolPolicyKind>,
    /// `--events`
    pub events: Option<PathBuf>,
    /// `--state`
    pub state: Option<PathBuf>,
    /// `--log`
    pub log: Option<LogLevel>,
    /// `--log-file`
    pub log_file: Option<PathBuf>,
    /// What to do about command tools whose program does not exist.
    pub validation: Validation,
}

/// A list of words; in the file also a single one.
#[derive(Debug, Clone, Default)]
pub struct Words(pub Vec<String>);

/// An entry of `skills`.
#[derive(Debug)]
pub enum SkillEntry {
    /// A directory with a SKILL.md.
    Directory(PathBuf),
    /// A virtual skill.
    Virtual(Box<VirtualSkill>),
}

/// A virtual skill.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VirtualSkill {
    name: String,
    description: String,
    /// The instructions themselves,
    body: Option<String>,
    /// or a file with them,
    #[serde(alias = "body-file")]
    body_file: Option<PathBuf>,
    /// or an address (https, or http on loopback).
    #[serde(alias = "body-url")]
    body_url: Option<String>,
    #[serde(default)]
    tools: Vec<ToolEntry>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    priority: i64,
    #[serde(default, alias = "allowed-tools")]
    allowed_tools: Vec<String>,
    #[serde(alias = "argument-hint")]
    argument_hint: Option<String>,
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
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolEntry {
    name: String,
    #[serde(default)]
    description: String,
    command: Words,
    /// The JSON schema of the input, for the model.
    #[serde(alias = "input-schema")]
    input_schema: Option<Value>,
    /// Where it runs; the session's directory by default.
    cwd: Option<PathBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// In seconds.
    timeout: Option<f64>,
}

/// What to do about a tool whose program does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validation {
    /// Refuse to start.
    Strict,
    /// Start, and say so; the model is told too.
    #[default]
    Warn,
    /// Do not look.
    Ignore,
}

// By hand and not `untagged`: serde forgets line, column and key of what is wrong in an untagged variant.
impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or a list of words")
            }

            fn visit_str<E>(self, word: &str) -> Result<Words, E> {
                Ok(Words(vec![word.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<Words, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(words)).map(Words)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl<'de> Deserialize<'de> for SkillEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = SkillEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the directory of a skill, or a skill with `name`, `description` and `body`")
            }

            fn visit_str<E>(self, path: &str) -> Result<SkillEntry, E> {
                Ok(SkillEntry::Directory(path.into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, skill: A) -> Result<SkillEntry, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(skill)).map(SkillEntry::Virtual)
            }
        }
        deserializer.deserialize_any(Read)
    }
}

const fn yes() -> bool {
    true
}

impl Config {
    /// Reads a file. Relative paths in it become relative to its directory.
    ///
    /// # Errors
    /// [`UsageError`] with line and column when the file is not what it should be.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| UsageError::new(format!("cannot read {}: {error}", path.display())))?;
        let base = std::path::absolute(path)?.parent().map(Path::to_owned).unwrap_or_default();
        Self::parse(&text, &base)
            .map_err(|error| UsageError::new(format!("{}: {error:#}", path.display())).into())
    }

    fn parse(text: &str, base: &Path) -> anyhow::Result<Self> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut config: Self = serde_yaml::from_str(text).map_err(|error| {
            let text = error.to_string();
            anyhow::anyhow!("{}", text.strip_prefix("error: ").unwrap_or(&text))
        })?;
        let absolute = |path: &mut PathBuf| *path = base.join(&*path);
        config.roots.iter_mut().for_each(absolute);
        config.log_file.iter_mut().for_each(absolute);
        config.events.iter_mut().for_each(absolute);
        config.state.iter_mut().for_each(absolute);
        for entry in &mut config.skills {
            match entry {
                SkillEntry::Directory(path) => absolute(path),
                SkillEntry::Virtual(skill) => {
                    skill.body_file.iter_mut().for_each(absolute);
                    for tool in &mut skill.tools {
                        tool.cwd.iter_mut().for_each(absolute);
                        relative_program(&mut tool.command, base);
                    }
                }
            }
        }
        relative_program(&mut config.agent, base);
        Ok(config)
    }
}

/// A program with a relative path is relative to the file; a bare name is looked up in `PATH`.
fn relative_program(words: &mut Words, base: &Path) {
    if let Some(program) = words.0.first_mut() {
        let path = Path::new(&*program);
        if path.is_relative()
            && path.components().count() > 1
            && let Some(absolute) = base.join(path).to_str()
        {
            absolute.clone_into(program);
        }
    }
}

impl VirtualSkill {
    /// The skill, and warnings about it.
    ///
    /// # Errors
    /// A sentence that says what is missing or wrong.
    pub fn build(self, default: Validation) -> anyhow::Result<(Skill, Vec<String>)> {
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
        anyhow::ensure!(
            sources.next().is_none(),
            "skill `{name}` has more than one of `body`, `body-file` and `body-url`"
        );
        for tool in self.tools {
            let tool = tool.build(&name, validation)?;
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
        properties.allowed_tools = self.allowed_tools;
        properties.tags = self.tags;
        properties.priority = self.priority;
        properties.user_invocable = self.user_invocable;
        properties.disable_model_invocation = self.disable_model_invocation;
        properties.hide_from_discovery = self.hide_from_discovery;
        Ok((builder.properties(properties).build()?, warnings))
    }
}

impl ToolEntry {
    fn build(self, skill: &str, validation: Validation) -> anyhow::Result<SkillTool> {
        let name = self.name;
        let mut words = self.command.0.into_iter().map(OsString::from);
        let program = words
            .next()
            .filter(|program| !program.is_empty())
            .with_context(|| format!("skill `{skill}`, tool `{name}`: `command` is empty"))?;
        let mut command = CommandTool::new(program).args(words);
        if let Some(cwd) = self.cwd {
            command = command.cwd(cwd);
        }
        for (variable, value) in self.env {
            command = command.env(variable, value);
        }
        if let Some(seconds) = self.timeout {
            let timeout = Duration::try_from_secs_f64(seconds).with_context(|| {
                format!("skill `{skill}`, tool `{name}`: `timeout` is no number of seconds")
            })?;
            command = command.timeout(timeout);
        }
        let missing = if validation == Validation::Ignore { None } else { command.missing() };
        if let (Validation::Strict, Some(missing)) = (validation, &missing) {
            anyhow::bail!("skill `{skill}`, tool `{name}`: {missing}");
        }
        let mut tool = SkillTool::new(name, self.description, command);
        tool.input_schema = self.input_schema;
        tool.missing = missing;
        Ok(tool)
    }
}

#[cfg(test)]
mod tests;
