//! [`Config`]: everything that can be decided before the start, from a file (`skills.yaml`), from flags, or in code.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | what can be said, and reading it from a file |
//! | `entries` | values that a file may write in more than one way |
//! | `virtual_skill` | skills that are defined in the file |
//! | `choices` | words that only this crate acts on |
//! | `words` | a command line, as a list or as one word |
//! | `settings` | what a configuration comes to: a policy, skills, tools |
//! | `edit` | adding sources to the text of a file |
//! | `project` | what differs for sessions in some directories |
//! | `scripts` | how scripts run |
//! | `error` | what can be wrong |
//! | `schema` | the JSON schema of a file |
//! | `syntax` | what can be wrong with the text of a file |

mod choices;
pub mod edit;
mod entries;
mod error;
mod project;
mod schema;
mod scripts;
mod settings;
mod syntax;
mod virtual_skill;
mod words;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use acp_skills_intercept::{Activation, Approve, CatalogIn, McpMode, Titles, ToolPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de::Error as _};
use skills_core::{
    catalog::{Detail, Format},
    exec::{Environment, ScriptCwd},
};

pub use skills_sources::disk::{cache_dir, config_file, expand_home, state_dir};

pub use self::{
    choices::{CatalogLocation, Discover, LogLevel, SandboxKind, SearchTool, Trusted, Validation},
    entries::{SkillEntry, SourceEntry},
    error::ConfigError,
    project::{Globs, Project},
    schema::schema,
    settings::{Settings, SkillSources},
    syntax::{Place, SyntaxError},
    virtual_skill::VirtualSkill,
    words::Words,
};

/// Everything that can be decided before the start: the contents of a configuration file, and what the flags of the
/// program override in it. What is not said has the default of whoever acts on it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own in the file")]
#[non_exhaustive]
pub struct Config {
    /// The agent's command: a list, or one string without arguments.
    #[schemars(with = "schema::OneOrMany")]
    pub agent: Words,
    /// Directories of skills, and virtual skills.
    #[schemars(with = "Vec<schema::SkillShape>")]
    pub skills: Vec<SkillEntry>,
    /// Directories to look for skills in (`--skills`).
    pub roots: Vec<PathBuf>,
    /// Git repositories and web sites with skills (`--source`).
    #[schemars(with = "Vec<schema::SourceShape>")]
    pub sources: Vec<SourceEntry>,
    /// `--locked`
    pub locked: bool,
    /// What differs for sessions in some directories.
    pub projects: Vec<Project>,
    /// `--discover`
    pub discover: Vec<Discover>,
    /// `--trust`
    pub trust: Vec<Trusted>,
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
    pub catalog_in: Option<CatalogIn>,
    /// `--catalog-format`
    pub catalog_format: Option<Format>,
    /// `--catalog-detail`
    pub catalog_detail: Option<Detail>,
    /// `--catalog-budget`
    pub catalog_budget: Option<usize>,
    /// `--location`
    pub location: Option<CatalogLocation>,
    /// `--mount`
    pub mount: Option<String>,
    /// `--mcp`
    pub mcp: Option<McpMode>,
    /// `--mcp-wait`; in the file, in seconds.
    #[serde(deserialize_with = "seconds")]
    #[schemars(with = "Option<f64>")]
    pub mcp_wait: Option<Duration>,
    /// `--exit-wait`; in the file, in seconds.
    #[serde(deserialize_with = "seconds")]
    #[schemars(with = "Option<f64>")]
    pub exit_wait: Option<Duration>,
    /// `--activation`
    pub activation: Option<Activation>,
    /// `--search`
    pub search: Option<SearchTool>,
    /// `--allow-scripts`
    pub allow_scripts: bool,
    /// `--script-timeout`; in the file, in seconds.
    #[serde(deserialize_with = "seconds")]
    #[schemars(with = "Option<f64>")]
    pub script_timeout: Option<Duration>,
    /// `--script-cwd`
    pub script_cwd: Option<ScriptCwd>,
    /// `--script-env`
    pub script_env: Option<Environment>,
    /// `--max-output`
    pub max_output: Option<usize>,
    /// `--sandbox`
    pub sandbox: Option<SandboxKind>,
    /// `--sandbox-net`
    pub sandbox_net: bool,
    /// `--dollar`
    pub dollar: bool,
    /// `--approve`
    pub approve: Option<Approve>,
    /// `--tool-policy`
    pub tool_policy: Option<ToolPolicy>,
    /// `--titles`
    pub titles: Option<Titles>,
    /// `--toggles`
    pub toggles: bool,
    /// `--drafts`
    pub drafts: bool,
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

/// A number of seconds such as `2` or `0.5`.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let seconds = Option::<f64>::deserialize(deserializer)?;
    let duration = |seconds| {
        Duration::try_from_secs_f64(seconds)
            .map_err(|_| D::Error::custom("not a number of seconds, such as 2 or 0.5"))
    };
    seconds.map(duration).transpose()
}

impl Config {
    /// Reads a file. Relative paths in it become relative to its directory, and `~` is the home directory.
    ///
    /// # Errors
    /// [`ConfigError::Unreadable`], and [`ConfigError::Syntax`] with line and column when the file is not what it should
    /// be.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let base = std::path::absolute(path).map_err(unreadable)?;
        let base = base.parent().unwrap_or(Path::new(""));
        let mut config =
            Self::parse(&text, base).map_err(|error| SyntaxError::new(path.to_owned(), &text, &error))?;
        let lock = base.join(skills_sources::LOCK_NAME);
        let sources = config.projects.iter_mut().flat_map(|project| &mut project.sources);
        sources.chain(&mut config.sources).for_each(|source| source.lock = Some(lock.clone()));
        Ok(config)
    }

    /// The sources, wherever they are to be used.
    pub fn all_sources(&self) -> impl Iterator<Item = &SourceEntry> {
        self.sources.iter().chain(self.projects.iter().flat_map(|project| &project.sources))
    }

    fn parse(text: &str, base: &Path) -> Result<Self, Box<serde_yaml::Error>> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut config: Self = serde_yaml::from_str(text).map_err(Box::new)?;
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
        let path = expand_home(Path::new(&*program));
        if path.components().count() > 1 {
            *program = base.join(path).into();
        }
    }
}

#[cfg(test)]
mod tests;
