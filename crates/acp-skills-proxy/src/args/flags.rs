//! The flags, in the groups in which the help shows them, each with what it overrides in a configuration file.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{Args, builder::TypedValueParser};

use acp_skills::{
    config::{
        CatalogLocation, Config, ConfigError, Discover, LogLevel, SandboxKind, SearchTool, SkillEntry, Words,
    },
    intercept::{Activation, Approve, CatalogIn, McpMode, ToolPolicy},
    skills_core::{
        catalog::{Detail, Format},
        exec::{Environment, ScriptCwd},
    },
};

/// Flags of the proxy itself.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProxyArgs {
    /// Which skills.
    #[command(flatten)]
    pub skills: SkillArgs,
    /// What the model sees.
    #[command(flatten)]
    pub catalog: CatalogArgs,
    /// How the agent gets the tools.
    #[command(flatten)]
    pub server: ServerArgs,
    /// Whether and how scripts of skills are run.
    #[command(flatten)]
    pub scripts: ScriptArgs,
    /// What users type, and what they are asked.
    #[command(flatten)]
    pub user: UserArgs,
    /// What is kept.
    #[command(flatten)]
    pub record: RecordArgs,
    /// Messages for people.
    #[command(flatten)]
    pub log: LogArgs,
    /// The agent: a program and its arguments, run as they are, without a shell. Only under an ACP conductor there is none.
    #[arg(last = true, value_name = "AGENT")]
    pub agent: Vec<OsString>,
}

/// Which skills there are.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Skills")]
pub(crate) struct SkillArgs {
    /// A skill: a directory with a SKILL.md. Repeatable; the order is kept.
    #[arg(long = "skill", value_name = "DIR")]
    pub skill: Vec<PathBuf>,
    /// A directory to look for skills in, to depth 6. Repeatable.
    #[arg(long = "skills", value_name = "DIR")]
    pub roots: Vec<PathBuf>,
    /// A web site that offers skills, by its address or that of its index.json (https, or http on loopback): names and
    /// descriptions are fetched at the start, the rest when it is used. Repeatable. Anybody who can change the site
    /// speaks to your agent.
    #[arg(long = "source", value_name = "URL")]
    pub sources: Vec<String>,
    /// Where else to look: `user` (~/.agents/skills, ~/.claude/skills, $XDG_CONFIG_HOME/agents/skills) and `project`
    /// (.skills, .agents/skills, .claude/skills from the session's directory up to the repository's root). A project's
    /// skills speak to your agent: ask for them only where you trust the project.
    #[arg(long, value_name = "WHERE", value_delimiter = ',')]
    pub discover: Vec<Discover>,
    /// Only skills whose names match; a glob such as `pdf-*`. Repeatable.
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// No skills whose names match. Repeatable; wins over --include.
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// How many skills are looked for at most [default: 10000].
    #[arg(long, value_name = "NUMBER")]
    pub max_skills: Option<usize>,
    /// Refuse skills that break any rule of the specification.
    #[arg(long)]
    pub strict: bool,
    /// Notice when skills are added, changed or removed while the agent runs. This is the default.
    #[arg(long, overrides_with = "no_watch")]
    pub watch: bool,
    /// Look at skills at the start only, and when a user types `/skills reload`.
    #[arg(long, overrides_with = "watch")]
    pub no_watch: bool,
    /// A file with everything that flags can say, and with skills of its own; flags win.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// What the model sees at the start.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Catalog")]
pub(crate) struct CatalogArgs {
    /// Where names and descriptions go: the system prompt where the agent takes one (`auto`, `system`), else in front
    /// of the first prompt (`prompt`); or nowhere (`off`) [default: auto].
    #[arg(long, value_name = "PLACE")]
    pub catalog_in: Option<CatalogIn>,
    /// How they are written [default: xml].
    #[arg(long, value_name = "FORMAT")]
    pub catalog_format: Option<Format>,
    /// How much of each skill [default: full].
    #[arg(long, value_name = "DETAIL")]
    pub catalog_detail: Option<Detail>,
    /// How long the catalog may get, in characters: descriptions are shortened first [default: 8000].
    #[arg(long, value_name = "CHARS")]
    pub catalog_budget: Option<usize>,
    /// Whether the catalog names the SKILL.md files [default: none].
    #[arg(long, value_name = "WHICH")]
    pub location: Option<CatalogLocation>,
    /// Name the SKILL.md files as PREFIX/NAME/SKILL.md, for agents that see them elsewhere.
    #[arg(long, value_name = "PREFIX", conflicts_with = "location")]
    pub mount: Option<String>,
}

/// How the agent gets the tools.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Tools")]
pub(crate) struct ServerArgs {
    /// How the agent reaches the skills server: by what it advertises (`auto`), or one way; `off` leaves it to read
    /// the files with its own tools [default: auto].
    #[arg(long, value_name = "HOW")]
    pub mcp: Option<McpMode>,
    /// How many seconds the first prompt of a session waits until the agent has the tools [default: 2].
    #[arg(long, value_name = "SECONDS", value_parser = seconds())]
    pub mcp_wait: Option<Duration>,
    /// Who activates skills: the model (`model`), the proxy, which puts the skills that fit in front of each prompt
    /// (`prompt`; for agents without tools), or the proxy where the model has no tools of ours (`hybrid`)
    /// [default: model].
    #[arg(long, value_name = "WHO")]
    pub activation: Option<Activation>,
    /// Whether the model can search the skills: when the catalog does not hold them all (`auto`), or `on` or `off`
    /// [default: auto].
    #[arg(long, value_name = "WHEN")]
    pub search: Option<SearchTool>,
}

/// Whether and how scripts of skills are run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Scripts")]
pub(crate) struct ScriptArgs {
    /// Let the model run scripts of stored skills with `run_skill_script`. Without this, scripts are only text.
    #[arg(long)]
    pub allow_scripts: bool,
    /// How many seconds a script may run [default: 30].
    #[arg(long, value_name = "SECONDS", value_parser = seconds())]
    pub script_timeout: Option<Duration>,
    /// Where scripts run: in the session's directory or in the skill's [default: session].
    #[arg(long, value_name = "WHERE")]
    pub script_cwd: Option<ScriptCwd>,
    /// Which variables scripts get: all of ours, or only what programs need to start [default: inherit].
    #[arg(long, value_name = "WHICH")]
    pub script_env: Option<Environment>,
    /// How many bytes of stdout and of stderr the model gets [default: 20480].
    #[arg(long, value_name = "BYTES")]
    pub max_output: Option<usize>,
    /// Run scripts in a sandbox: with bubblewrap, the skill read-only, the session's directory writable, no network.
    #[arg(long, value_name = "KIND")]
    pub sandbox: Option<SandboxKind>,
    /// Let scripts in the sandbox use the network.
    #[arg(long, requires = "sandbox")]
    pub sandbox_net: bool,
}

/// What users type, and what they are asked.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Commands and permissions")]
pub(crate) struct UserArgs {
    /// Let `$NAME` at the start of a prompt invoke a skill, as `/NAME` and `/skill:NAME` do.
    #[arg(long)]
    pub dollar: bool,
    /// Which requests for permission are granted without asking, once each: those for our own tools that only read
    /// (`own`), or `none` [default: own].
    #[arg(long, value_name = "WHICH")]
    pub approve: Option<Approve>,
    /// What the `allowed-tools` of active skills mean: tools outside of them are logged (`permissive`); those inside
    /// are granted once when you invoked the skill by command (`approval`); those outside are refused (`strict`). This
    /// is advice and no sandbox: a call that the agent does not ask about is not seen [default: permissive].
    #[arg(long, value_name = "POLICY")]
    pub tool_policy: Option<ToolPolicy>,
}

/// What is kept.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Record")]
pub(crate) struct RecordArgs {
    /// Append what happens with the skills to this file, one JSON object a line: names, times, sizes and outcomes, and
    /// never contents. `acp-skills-proxy report` reads it.
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Remember in this directory, by name, which skills were activated in which session, for when the session is
    /// loaded or resumed.
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
}

/// Messages for people.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Messages")]
pub(crate) struct LogArgs {
    /// What is written to stderr or --log-file [default: warn].
    #[arg(long, value_name = "LEVEL", env = "ACP_SKILLS_LOG")]
    pub log: Option<LogLevel>,
    /// Write messages to this file instead of stderr.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
}

impl ProxyArgs {
    /// The configuration file that the flags name, with what they override.
    ///
    /// # Errors
    /// The file cannot be read or is wrong.
    pub(crate) fn config(self) -> Result<Config, ConfigError> {
        let mut config = match &self.skills.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        self.skills.override_in(&mut config);
        self.catalog.override_in(&mut config);
        self.server.override_in(&mut config);
        self.scripts.override_in(&mut config);
        self.user.override_in(&mut config);
        self.record.override_in(&mut config);
        self.log.override_in(&mut config);
        if !self.agent.is_empty() {
            config.agent = Words(self.agent);
        }
        Ok(config)
    }
}

/// What a flag says wins over what the file says.
fn set<T>(value: &mut Option<T>, flag: Option<T>) {
    if flag.is_some() {
        *value = flag;
    }
}

/// What flags list comes before what the file lists.
fn prepend<T>(list: &mut Vec<T>, flags: impl IntoIterator<Item = T>) {
    list.splice(0..0, flags);
}

impl SkillArgs {
    fn override_in(self, config: &mut Config) {
        prepend(&mut config.skills, self.skill.into_iter().map(SkillEntry::Directory));
        prepend(&mut config.roots, self.roots);
        prepend(&mut config.sources, self.sources);
        prepend(&mut config.discover, self.discover);
        if !self.include.is_empty() {
            config.include = self.include;
        }
        if !self.exclude.is_empty() {
            config.exclude = self.exclude;
        }
        set(&mut config.max_skills, self.max_skills);
        config.strict |= self.strict;
        if self.watch || self.no_watch {
            config.watch = Some(!self.no_watch);
        }
    }
}

impl CatalogArgs {
    fn override_in(self, config: &mut Config) {
        set(&mut config.catalog_in, self.catalog_in);
        set(&mut config.catalog_format, self.catalog_format);
        set(&mut config.catalog_detail, self.catalog_detail);
        set(&mut config.catalog_budget, self.catalog_budget);
        // Two ways to say the same; a flag for one replaces the file's other.
        if self.location.is_some() {
            config.mount = None;
        }
        set(&mut config.location, self.location);
        set(&mut config.mount, self.mount);
    }
}

impl ServerArgs {
    fn override_in(self, config: &mut Config) {
        set(&mut config.mcp, self.mcp);
        set(&mut config.mcp_wait, self.mcp_wait);
        set(&mut config.activation, self.activation);
        set(&mut config.search, self.search);
    }
}

impl ScriptArgs {
    fn override_in(self, config: &mut Config) {
        config.allow_scripts |= self.allow_scripts;
        set(&mut config.script_timeout, self.script_timeout);
        set(&mut config.script_cwd, self.script_cwd);
        set(&mut config.script_env, self.script_env);
        set(&mut config.max_output, self.max_output);
        set(&mut config.sandbox, self.sandbox);
        config.sandbox_net |= self.sandbox_net;
    }
}

impl UserArgs {
    fn override_in(self, config: &mut Config) {
        config.dollar |= self.dollar;
        set(&mut config.approve, self.approve);
        set(&mut config.tool_policy, self.tool_policy);
    }
}

impl RecordArgs {
    fn override_in(self, config: &mut Config) {
        set(&mut config.events, self.events);
        set(&mut config.state, self.state);
    }
}

impl LogArgs {
    fn override_in(self, config: &mut Config) {
        set(&mut config.log, self.log);
        set(&mut config.log_file, self.log_file);
    }
}

/// Reads a number of seconds such as `2` or `0.5`.
fn seconds() -> impl TypedValueParser<Value = Duration> {
    clap::builder::NonEmptyStringValueParser::new().try_map(|text| {
        text.parse()
            .ok()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .ok_or("a number of seconds, such as 2 or 0.5")
    })
}
