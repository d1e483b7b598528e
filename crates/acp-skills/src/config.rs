//! [`Config`]: all settings, from a file (`skills.yaml`), from flags or from code.
//!
//! [`Config::read`] reads a file, and [`Settings::resolve`] turns a configuration into the policy, the skills and the tools of a
//! proxy. [`edit`] adds sources to a file and removes them, and [`schema()`] returns the JSON schema of the file.

mod choices;
pub mod edit;
mod elsewhere;
mod entries;
mod error;
mod governed;
mod named;
mod on_demand;
mod project;
mod schema;
mod scripts;
mod servers;
mod settings;
mod source_access;
mod specs;
mod syntax;
mod tool_server;
mod values;
mod virtual_skill;
mod words;

use std::{
    net::SocketAddr,
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};

use acp_skills_intercept::{Activation, Approve, CatalogIn, CommandNames, McpMode, Titles, ToolPolicy};
use schemars::JsonSchema;
use serde::Deserialize;
use skills_core::{
    catalog::{Detail, Format, Style},
    exec::{Environment, ScriptCwd},
};
use skills_sources::disk::patient;

pub use skills_sources::disk::{cache_dir, config_file, error_text, expand_home, shorten_home, state_dir};

pub use self::{
    choices::{
        CatalogLocation, CheckUpdates, Discover, Elsewhere, LogLevel, SandboxKind, SearchTool,
        TelemetryProtocol, Trusted, Validation, Verify,
    },
    entries::{SkillEntry, SourceEntry, StoredSkill},
    error::{ConfigError, describe_load_error},
    on_demand::ServersOnDemand,
    project::{Globs, Project},
    schema::schema,
    settings::{Settings, SkillSources},
    source_access::SourceAccess,
    syntax::{Place, SyntaxError},
    virtual_skill::VirtualSkill,
    words::Words,
};

/// The maximum size of a configuration file, in bytes.
pub const MAX_BYTES: u64 = 16 << 20;

/// The maximum number of different sources in a configuration file, which can be that of a project. Each source can need some memory, and
/// much more disk space.
const MAX_SOURCES: usize = 64;
/// The maximum number of entries in all lists of sources.
const MAX_ENTRIES: usize = 256;
/// The maximum number of MCP servers that are asked for skills. An answer of each can have 16 MiB.
const MAX_SKILL_SERVERS: usize = 32;

/// All settings of the proxy: the contents of a configuration file, with the values that flags override.
///
/// Fields of type `Option` and empty lists use their default. Relative paths in a file are relative to the directory of the
/// file, and `~` is the user's home directory.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "fields are independent switches")]
#[non_exhaustive]
pub struct Config {
    /// The command of the agent: a list with the program and its arguments, or one string with the program alone. It is run
    /// without a shell. If it is empty, the proxy runs under an ACP conductor.
    #[schemars(with = "schema::OneOrMany")]
    pub agent: Words,
    /// Skills by name: directories with a `SKILL.md` (`--skill`), and virtual skills that are defined in the file. The order is
    /// kept. A skill that can't be loaded is an error.
    #[schemars(with = "Vec<schema::SkillShape>")]
    pub skills: Vec<SkillEntry>,
    /// Directories that are searched for skills, up to a depth of 6 (`--skills`).
    pub roots: Vec<PathBuf>,
    /// Git repositories, archives, npm packages, web sites and MCP servers with skills (`--source`). All but MCP servers are fetched
    /// once and then pinned until they are updated.
    #[schemars(with = "Vec<schema::SourceShape>")]
    pub sources: Vec<SourceEntry>,
    /// Use only skills that are in `skills.lock`, and fetch nothing else (`--locked`). The default is false.
    pub locked: bool,
    /// Settings for sessions in some directories, in addition to those of the whole file.
    pub projects: Vec<Project>,
    /// Other places to search for skills (`--discover`). By default, none of them is searched.
    pub discover: Vec<Discover>,
    /// Discovered skills that are used without asking the user (`--trust`). By default, the user has to approve the skills of a
    /// project.
    pub trust: Vec<Trusted>,
    /// Globs such as `pdf-*`: only skills with a matching name are used (`--include`). If the list is empty, all skills are used.
    pub include: Vec<String>,
    /// Globs: skills with a matching name are not used (`--exclude`). This takes precedence over `include`.
    pub exclude: Vec<String>,
    /// Use a `SKILL.md` within the directory of another skill as a skill, too (`--nested`). The default is false: it is a file of
    /// the outer skill.
    pub nested: bool,
    /// The maximum number of skills that are searched for (`--max-skills`). The default is 10000.
    pub max_skills: Option<usize>,
    /// The maximum number of MiB to receive from a git repository, or to unpack from an archive (`--max-fetch`). The default is 256. The number of its files and
    /// the length of their paths are limited in proportion.
    pub max_fetch: Option<NonZeroU32>,
    /// The check for new versions of sources in the background (`--check-updates`). The default is `daily`, or `never` if the
    /// environment variable `CI` is set.
    #[serde(deserialize_with = "values::choice")]
    pub check_updates: Option<CheckUpdates>,
    /// The name that is recorded with approvals in `skills.lock` (`--approved-by`), at most 200 bytes. By default, no name is recorded.
    #[serde(deserialize_with = "values::approver")]
    #[schemars(with = "Option<String>")]
    pub approved_by: Option<String>,
    /// Refuse skills that break any rule of the specification (`--strict`). The default is false: skills with minor problems are
    /// used with a warning.
    pub strict: bool,
    /// Notice changes of skills while the agent runs (`--watch`, or `--no-watch` for false). The default is true. If it is false,
    /// skills are read at the start and when a user types `/skills reload`.
    pub watch: Option<bool>,
    /// The place for the names and descriptions of skills (`--catalog-in`). The default is `auto`: the system prompt if the agent
    /// accepts one, and the first prompt otherwise.
    #[serde(deserialize_with = "values::choice")]
    pub catalog_in: Option<CatalogIn>,
    /// The format of the catalog (`--catalog-format`). The default is `xml`.
    #[serde(deserialize_with = "values::choice")]
    pub catalog_format: Option<Format>,
    /// The wording and order of the catalog (`--catalog-style`). The default is `list`.
    #[serde(deserialize_with = "values::choice")]
    pub catalog_style: Option<Style>,
    /// Name the skill that clearly fits a prompt best in a line before the prompt (`--hint`). The default is false.
    pub hint: bool,
    /// The amount of detail for each skill in the catalog (`--catalog-detail`). The default is `full`.
    #[serde(deserialize_with = "values::choice")]
    pub catalog_detail: Option<Detail>,
    /// The maximum length of the catalog in characters (`--catalog-budget`). The default is 8000. If the catalog is longer, its
    /// descriptions are shortened first.
    pub catalog_budget: Option<usize>,
    /// The maximum number of tokens for the instructions of active skills that are repeated after the agent has compacted the
    /// conversation (`--restore-budget`). A skill gets at most a fifth of it. The default is 25000.
    pub restore_budget: Option<usize>,
    /// The paths of `SKILL.md` files in the catalog (`--location`). The default is `none`.
    #[serde(deserialize_with = "values::choice")]
    pub location: Option<CatalogLocation>,
    /// The prefix of `SKILL.md` paths in the catalog, for agents that see the skills below another directory (`--mount`). Paths
    /// are written as `PREFIX/NAME/SKILL.md`.
    pub mount: Option<String>,
    /// The transport between the agent and our MCP server (`--mcp`). The default is `auto`: a transport that the agent
    /// advertises. With `off`, the model reads the skills with the agent's own tools.
    #[serde(deserialize_with = "values::choice")]
    pub mcp: Option<McpMode>,
    /// The MCP servers of the editor that the agent doesn't get, because they become skills (`--mcp-on-demand`): `true` for all of
    /// them, or a list of names. The default is none.
    #[schemars(with = "schema::FlagOrNames")]
    pub mcp_on_demand: Option<ServersOnDemand>,
    /// The MCP servers of the editor that are asked for skills (`--mcp-skills`): `true` for all that are reached over HTTP, or a list of
    /// names. A named server that is a program is started a second time. The default is none.
    #[schemars(with = "schema::FlagOrNames")]
    pub mcp_skills: Option<ServersOnDemand>,
    /// The place where the agent runs (`--elsewhere`). The default is `auto`: with commands such as `docker run` and `ssh`, it runs
    /// elsewhere and cannot reach the files or the loopback address of the proxy.
    #[serde(deserialize_with = "values::choice")]
    pub elsewhere: Option<Elsewhere>,
    /// The address and port of the tools over HTTP, for agents that run elsewhere (`--listen`). By default, it is a free port of the
    /// loopback address.
    #[schemars(with = "Option<String>")]
    pub listen: Option<SocketAddr>,
    /// The start of the URL with which the agent reaches the address of `listen` (`--listen-url`). The default is the address itself.
    pub listen_url: Option<String>,
    /// The time that the first prompt of a session waits until the agent has our tools, counted from the session's
    /// opening (`--mcp-wait`). In the file, it is in seconds. The default is 2 seconds, or 0.3 seconds if the agent has
    /// failed to connect before.
    #[serde(deserialize_with = "values::seconds")]
    #[schemars(with = "Option<f64>")]
    pub mcp_wait: Option<Duration>,
    /// The shutdown grace period: the time that the agent has to end by itself after the editor has closed the
    /// connection (`--exit-wait`). In the file, it is in seconds. The default is 3 seconds, or a value for the agent if
    /// one is known.
    #[serde(deserialize_with = "values::seconds")]
    #[schemars(with = "Option<f64>")]
    pub exit_wait: Option<Duration>,
    /// The maximum size of a message in MiB (`--max-message`). The default is 256. A longer message of the editor or the agent is
    /// not forwarded, and its request gets an error as the response.
    pub max_message: Option<NonZeroU32>,
    /// The party that activates skills (`--activation`). The default is `model`.
    #[serde(deserialize_with = "values::choice")]
    pub activation: Option<Activation>,
    /// The search tool for the model (`--search`). The default is `auto`: it is offered if the catalog doesn't contain all skills.
    #[serde(deserialize_with = "values::choice")]
    pub search: Option<SearchTool>,
    /// Let the model run scripts of stored skills (`--allow-scripts`). The default is false: the model can only read scripts.
    pub allow_scripts: bool,
    /// The timeout of a script (`--script-timeout`). In the file, it is in seconds. The default is 30 seconds.
    #[serde(deserialize_with = "values::seconds")]
    #[schemars(with = "Option<f64>")]
    pub script_timeout: Option<Duration>,
    /// The working directory of scripts (`--script-cwd`). The default is `session`, the session's directory.
    #[serde(deserialize_with = "values::choice")]
    pub script_cwd: Option<ScriptCwd>,
    /// The environment variables of scripts (`--script-env`). The default is `inherit`, all variables of the proxy.
    pub script_env: Option<Environment>,
    /// The maximum number of bytes that the model receives of each of a script's output streams (`--max-output`). The default is
    /// 20480.
    pub max_output: Option<usize>,
    /// The sandbox for scripts (`--sandbox`). By default, there is no sandbox.
    #[serde(deserialize_with = "values::choice")]
    pub sandbox: Option<SandboxKind>,
    /// Let scripts in the sandbox use the network (`--sandbox-net`). The default is false.
    pub sandbox_net: bool,
    /// The party that gets a slash command if a skill and a command of the agent have the same name (`--commands`). The other one
    /// is `/skill:NAME` or `/agent:NAME`. The default is `auto`: skills in `skills` get it, and other skills don't.
    #[serde(deserialize_with = "values::choice")]
    pub commands: Option<CommandNames>,
    /// Let `$NAME` at the start of a prompt invoke a skill, in addition to `/NAME` and `/skill:NAME` (`--dollar`). The default is
    /// false.
    pub dollar: bool,
    /// Permission requests that are granted without asking the user (`--approve`). The default is `own`: calls of our own tools
    /// that only read.
    #[serde(deserialize_with = "values::choice")]
    pub approve: Option<Approve>,
    /// The effect of the `allowed-tools` of active skills (`--tool-policy`). The default is `permissive`: calls of other tools are
    /// logged.
    #[serde(deserialize_with = "values::choice")]
    pub tool_policy: Option<ToolPolicy>,
    /// The titles of calls of our own tools in the editor (`--titles`). The default is `people`, such as `Skill: code-review`, with
    /// one line instead of the loaded instructions. With `agent`, titles and results are those of the agent.
    #[serde(deserialize_with = "values::choice")]
    pub titles: Option<Titles>,
    /// Show up to 30 skills as switches among the session's options, in editors that support it (`--toggles`). The default is
    /// false.
    pub toggles: bool,
    /// Support the drafts of ACP about skills, for editors that use them (`--drafts`). The default is false.
    pub drafts: bool,
    /// The file to which the record of events is appended (`--events`). By default, no record is written.
    pub events: Option<PathBuf>,
    /// Send the record as telemetry with this protocol (`--telemetry`), if the environment variable `OTEL_EXPORTER_OTLP_ENDPOINT` is
    /// set. By default, no telemetry is sent.
    #[serde(deserialize_with = "values::choice")]
    pub telemetry: Option<TelemetryProtocol>,
    /// The path of the configuration file. `None` if there is no file.
    #[serde(skip)]
    pub file: Option<PathBuf>,
    /// The directory for state that outlives a session, such as the active skills of sessions and skills that are switched off
    /// (`--state`). By default, only the user's trust in the skills of projects and the secret of the marks around our text are
    /// stored, in the state directory of the platform.
    pub state: Option<PathBuf>,
    /// The level of log messages (`--log`). The default is `warn`.
    #[serde(deserialize_with = "values::choice")]
    pub log: Option<LogLevel>,
    /// The file for log messages (`--log-file`). Its name must end with `.log` or `.txt`. By default, they are written to stderr.
    #[serde(deserialize_with = "values::log_file")]
    pub log_file: Option<PathBuf>,
    /// The reaction to command tools whose program doesn't exist. The default is `warn`.
    pub validation: Validation,
}

/// Converts a number of MiB to bytes.
pub fn bytes_of_mebibytes(number: NonZeroU32) -> u64 {
    u64::from(number.get()) << 20
}

impl Config {
    /// Reads a configuration file. Relative paths in it are resolved against the file's directory, and `~` becomes the home
    /// directory.
    ///
    /// # Errors
    /// Returns [`ConfigError::Unreadable`] if the file can't be read, if it is larger than 16 MiB, or if it is a FIFO that no process
    /// writes to for 30 seconds, and [`ConfigError::Syntax`] with line and column if it is
    /// not valid.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::read_with_text(path).map(|(config, _)| config)
    }

    /// Reads a configuration file as [`read`](Self::read) does, and returns its text as well, so that the file can be edited.
    ///
    /// # Errors
    /// Returns the errors of [`read`](Self::read).
    pub fn read_with_text(path: &Path) -> Result<(Self, String), ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
        let text = patient::read_text(path, MAX_BYTES).map_err(unreadable)?;
        let base = std::path::absolute(path).map_err(unreadable)?;
        let base = base.parent().unwrap_or(Path::new(""));
        let mut config =
            Self::parse(&text, base).map_err(|error| SyntaxError::new(path.to_owned(), &text, &error))?;
        config.file = std::path::absolute(path).ok();
        let lock = base.join(skills_sources::LOCK_NAME);
        let sources = config.projects.iter_mut().flat_map(|project| &mut project.sources);
        sources.chain(&mut config.sources).for_each(|source| {
            source.lock = Some(lock.clone());
            source.make_absolute(base);
        });
        Ok((config, text))
    }

    /// Returns the maximum number of bytes to receive from a git repository or to unpack, if it is set.
    pub fn max_fetch_bytes(&self) -> Option<u64> {
        self.max_fetch.map(bytes_of_mebibytes)
    }

    /// Returns the sources of the whole file and of all projects.
    pub fn all_sources(&self) -> impl Iterator<Item = &SourceEntry> {
        self.sources.iter().chain(self.projects.iter().flat_map(|project| &project.sources))
    }

    /// Returns the reason if the file has more sources than a session can use.
    fn check_numbers(&self) -> Result<(), String> {
        let entries = || self.all_sources().filter(|entry| entry.server_url().is_none());
        let of_projects = self.projects.iter().flat_map(|project| &project.skills);
        let skills = of_projects.chain(&self.skills).filter(|skill| skill.offers_skills());
        let servers =
            self.all_sources().filter(|entry| entry.server_url().is_some()).count() + skills.count();
        let different = skills_core::order::set(entries().map(|entry| &*entry.source)).len();
        for (number, most, what) in [
            (different, MAX_SOURCES, "different sources"),
            (entries().count(), MAX_ENTRIES, "entries in all lists of sources"),
            (servers, MAX_SKILL_SERVERS, "MCP servers that offer skills"),
        ] {
            if number > most {
                return Err(format!("{number} {what}, but the maximum is {most}"));
            }
        }
        Ok(())
    }

    fn parse(text: &str, base: &Path) -> Result<Self, Box<serde_yaml::Error>> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut config: Self = serde_yaml::from_str(text).map_err(Box::new)?;
        config.check_numbers().map_err(|why| Box::new(serde::de::Error::custom(why)))?;
        let absolute = |path: &mut PathBuf| *path = base.join(expand_home(path));
        config.roots.iter_mut().for_each(absolute);
        config.log_file.iter_mut().for_each(absolute);
        config.events.iter_mut().for_each(absolute);
        config.state.iter_mut().for_each(absolute);
        for project in &mut config.projects {
            project.path.make_absolute(base);
            project.roots.iter_mut().for_each(absolute);
        }
        let of_projects = config.projects.iter_mut().flat_map(|project| &mut project.skills);
        for entry in of_projects.chain(&mut config.skills) {
            match entry {
                SkillEntry::Directory(path) => absolute(path),
                SkillEntry::Stored(skill) => skill.make_absolute(base),
                SkillEntry::Virtual(skill) => {
                    skill.body_file.iter_mut().for_each(absolute);
                    skill.make_server_absolute(base);
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

/// Resolves the path of a program against the file's directory. A name without a directory is looked up in `PATH` later.
fn relative_program(words: &mut Words, base: &Path) {
    if let Some(program) = words.0.first_mut() {
        let path = expand_home(Path::new(&*program));
        if path.components().count() > 1 {
            *program = base.join(path).into();
        }
    }
}

/// Does the same as [`relative_program`], for a name that is Unicode.
fn relative_program_name(program: &mut String, base: &Path) {
    let path = expand_home(Path::new(&*program));
    if path.components().count() > 1
        && let Some(path) = base.join(path).to_str()
    {
        path.clone_into(program);
    }
}

#[cfg(test)]
mod tests;
