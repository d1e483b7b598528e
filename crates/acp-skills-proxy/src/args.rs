//! The flags, in the groups in which the help shows them, each with what it overrides in a configuration file.
//!
//! A new flag is a field in one of the groups here and the field of the same name in [`Config`]. `skills` has the group that says
//! which skills there are.

mod skills;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{
    Args,
    builder::{PathBufValueParser, TypedValueParser},
};

use acp_skills::{
    agents::{self, AgentError},
    config::{CatalogLocation, Config, LogLevel, SandboxKind, SearchTool, Words, expand_home},
    intercept::{Activation, Approve, CatalogIn, McpMode, Titles, ToolPolicy},
    skills_core::{
        catalog::{Detail, Format},
        exec::{Environment, ScriptCwd},
    },
};

pub(crate) use self::skills::{ConfigArgs, SkillArgs};

/// Declares a group of flags, each of which overrides the field of [`Config`] that has its name.
macro_rules! flags {
    ($(#[$group:meta])* struct $name:ident { $($(#[$flag:meta])* $field:ident: $type:ty,)* }) => {
        #[derive(Debug, Clone, Default, Args)]
        $(#[$group])*
        pub(crate) struct $name {
            $($(#[$flag])* pub $field: $type,)*
        }

        impl $name {
            pub(crate) fn override_in(self, config: &mut Config) {
                $(self.$field.overrides(&mut config.$field);)*
            }
        }
    };
}

/// A flag that can be left out; then the file decides.
trait Flag {
    fn overrides(self, value: &mut Self);
}

impl<T> Flag for Option<T> {
    fn overrides(self, value: &mut Self) {
        if self.is_some() {
            *value = self;
        }
    }
}

/// A switch, which a flag can only turn on.
impl Flag for bool {
    fn overrides(self, value: &mut Self) {
        *value |= self;
    }
}

/// Flags of the proxy itself.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProxyArgs {
    /// The skills of sessions, and the way in which agents get them.
    #[command(flatten)]
    pub session: SessionArgs,
    /// What users type, and what they are asked.
    #[command(flatten)]
    pub user: UserArgs,
    /// The agent's process.
    #[command(flatten)]
    pub process: ProcessArgs,
    /// What is kept.
    #[command(flatten)]
    pub record: RecordArgs,
    /// Messages for people.
    #[command(flatten)]
    pub log: LogArgs,
    /// Which agent.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// The flags that decide what sessions get. Commands that load skills as the proxy does flatten this group.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SessionArgs {
    /// The skills.
    #[command(flatten)]
    pub skills: SkillArgs,
    /// The text that the model sees at the start.
    #[command(flatten)]
    pub catalog: CatalogArgs,
    /// The server with the tools.
    #[command(flatten)]
    pub server: ServerArgs,
    /// The scripts of skills.
    #[command(flatten)]
    pub scripts: ScriptArgs,
}

impl From<SkillArgs> for SessionArgs {
    fn from(skills: SkillArgs) -> Self {
        Self { skills, ..Self::default() }
    }
}

impl SessionArgs {
    fn override_in(self, config: &mut Config) {
        self.skills.override_in(config);
        // `--location` and `--mount` exclude each other, so the flag replaces the other setting of the file too.
        if self.catalog.location.is_some() {
            config.mount = None;
        }
        self.catalog.override_in(config);
        self.server.override_in(config);
        self.scripts.override_in(config);
    }
}

/// Which agent.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Agent")]
pub(crate) struct AgentArgs {
    /// The agent by its identifier in the ACP registry, such as `claude-acp`, or a name like `claude`: its program if that is
    /// in PATH, else its package with npx or uvx. `acp-skills-proxy setup --agents` lists them.
    #[arg(long = "agent", value_name = "ID", conflicts_with = "command")]
    pub id: Option<String>,
    /// The agent: a program and its arguments, run as they are, without a shell. Where there is none, the proxy runs under an
    /// ACP conductor, and `try` and `doctor` use a built-in scripted agent, which needs no account and no network.
    #[arg(last = true, value_name = "AGENT")]
    pub command: Vec<OsString>,
}

impl AgentArgs {
    /// The command; empty when no agent is named.
    ///
    /// # Errors
    /// No agent has the name, or neither its program nor what runs its package is in PATH.
    pub(crate) fn words(self) -> Result<Vec<OsString>, AgentError> {
        if let Some(id) = &self.id {
            return agents::command(agents::find(id)?);
        }
        let Some((program, arguments)) = self.command.split_first() else { return Ok(Vec::new()) };
        // What comes after it is the agent's own affair.
        let program = expand_home(Path::new(program)).into_os_string();
        Ok([&[program], arguments].concat())
    }
}

flags! {
    /// What the model sees at the start.
    #[command(next_help_heading = "Catalog")]
    struct CatalogArgs {
        /// Where names and descriptions go: the system prompt where the agent takes one (`auto`, `system`), else in front
        /// of the first prompt (`prompt`); or nowhere (`off`) [default: auto].
        #[arg(long, value_name = "PLACE")]
        catalog_in: Option<CatalogIn>,
        /// How they are written [default: xml].
        #[arg(long, value_name = "FORMAT")]
        catalog_format: Option<Format>,
        /// How much of each skill [default: full].
        #[arg(long, value_name = "DETAIL")]
        catalog_detail: Option<Detail>,
        /// How long the catalog may get, in characters: descriptions are shortened first [default: 8000].
        #[arg(long, value_name = "CHARS")]
        catalog_budget: Option<usize>,
        /// Whether the catalog names the SKILL.md files [default: none].
        #[arg(long, value_name = "WHICH")]
        location: Option<CatalogLocation>,
        /// Name the SKILL.md files as PREFIX/NAME/SKILL.md, for agents that see them elsewhere.
        #[arg(long, value_name = "PREFIX", conflicts_with = "location")]
        mount: Option<String>,
    }
}

flags! {
    /// How the agent gets the tools.
    #[command(next_help_heading = "Tools")]
    struct ServerArgs {
        /// How the agent reaches the skills server: by what it advertises (`auto`), or one way; `off` leaves it to read
        /// the files with its own tools [default: auto].
        #[arg(long, value_name = "HOW")]
        mcp: Option<McpMode>,
        /// How many seconds after the opening of a session its first prompt waits at most until the agent has the tools
        /// [default: 2, and 0.3 for an agent that has not connected by then].
        #[arg(long, value_name = "SECONDS", value_parser = seconds())]
        mcp_wait: Option<Duration>,
        /// Who activates skills: the model (`model`), the proxy, which puts the skills that fit in front of each prompt
        /// (`prompt`; for agents without tools), or the proxy where the model has no tools of ours (`hybrid`)
        /// [default: model].
        #[arg(long, value_name = "WHO")]
        activation: Option<Activation>,
        /// Whether the model can search the skills: when the catalog does not hold them all (`auto`), or `on` or `off`
        /// [default: auto].
        #[arg(long, value_name = "WHEN")]
        search: Option<SearchTool>,
    }
}

flags! {
    /// Whether and how scripts of skills are run.
    #[command(next_help_heading = "Scripts")]
    struct ScriptArgs {
        /// Let the model run scripts of stored skills with `run_skill_script`. Without this, scripts are only text.
        #[arg(long)]
        allow_scripts: bool,
        /// How many seconds a script may run [default: 30].
        #[arg(long, value_name = "SECONDS", value_parser = seconds())]
        script_timeout: Option<Duration>,
        /// Where scripts run: in the session's directory or in the skill's [default: session].
        #[arg(long, value_name = "WHERE")]
        script_cwd: Option<ScriptCwd>,
        /// Which variables scripts get: all of ours, or only what programs need to start [default: inherit].
        #[arg(long, value_name = "WHICH")]
        script_env: Option<Environment>,
        /// How many bytes of stdout and of stderr the model gets [default: 20480].
        #[arg(long, value_name = "BYTES")]
        max_output: Option<usize>,
        /// Run scripts in a sandbox: with bubblewrap, the skill read-only, the session's directory writable, no network.
        #[arg(long, value_name = "KIND")]
        sandbox: Option<SandboxKind>,
        /// Let scripts in the sandbox use the network.
        #[arg(long, requires = "sandbox")]
        sandbox_net: bool,
    }
}

flags! {
    /// What users type, and what they are asked.
    #[command(next_help_heading = "Commands and permissions")]
    struct UserArgs {
        /// Let `$NAME` at the start of a prompt invoke a skill, as `/NAME` and `/skill:NAME` do.
        #[arg(long)]
        dollar: bool,
        /// Show each skill, 30 at most, as a switch among the session's options, in editors that show such.
        #[arg(long)]
        toggles: bool,
        /// Speak the drafts of the protocol about skills, for editors that know them: `skills/list` is answered with the
        /// session's skills, and `agentSkills` that an editor brings for a session are served in it, with any agent.
        #[arg(long)]
        drafts: bool,
        /// Which requests for permission are granted without asking, once each: those for our own tools that only read
        /// (`own`), or `none` [default: own].
        #[arg(long, value_name = "WHICH")]
        approve: Option<Approve>,
        /// What the `allowed-tools` of active skills mean: tools outside of them are logged (`permissive`); those inside
        /// are granted once when you invoked the skill by command (`approval`); those outside are refused (`strict`). This
        /// is advice and no sandbox: a call that the agent does not ask about is not seen [default: permissive].
        #[arg(long, value_name = "POLICY")]
        tool_policy: Option<ToolPolicy>,
        /// What the editor calls our own tools' calls: what they are for (`people`), as in `Skill: code-review`, or what the
        /// agent calls them (`agent`) [default: people].
        #[arg(long, value_name = "WHOSE")]
        titles: Option<Titles>,
    }
}

flags! {
    /// The agent's process.
    #[command(next_help_heading = "Agent")]
    struct ProcessArgs {
        /// How many seconds the agent has to end by itself once the editor has gone, before it is told to [default: 3, or
        /// what is known of the agent].
        #[arg(long, value_name = "SECONDS", value_parser = seconds())]
        exit_wait: Option<Duration>,
    }
}

flags! {
    /// What is kept.
    #[command(next_help_heading = "Record")]
    struct RecordArgs {
        /// Append what happens with the skills to this file, one JSON object a line: names, times, sizes and outcomes, and
        /// never contents. `acp-skills-proxy report` reads it.
        #[arg(long, value_name = "FILE", value_parser = path())]
        events: Option<PathBuf>,
        /// Remember in this directory, by name, which skills were activated in which session, for when the session is
        /// loaded or resumed, which are off in which directory (`/skills off NAME --here`), which of a project you trust (by
        /// hash; without this flag, where the platform keeps such files), and which agents never connect to the skills
        /// server, so that nobody waits for them again.
        #[arg(long, value_name = "DIR", value_parser = path())]
        state: Option<PathBuf>,
    }
}

flags! {
    /// Messages for people.
    #[command(next_help_heading = "Messages")]
    struct LogArgs {
        /// What is written to stderr or --log-file [default: warn].
        #[arg(long, value_name = "LEVEL", env = "ACP_SKILLS_LOG")]
        log: Option<LogLevel>,
        /// Write messages to this file instead of stderr.
        #[arg(long, value_name = "FILE", value_parser = path())]
        log_file: Option<PathBuf>,
    }
}

impl ProxyArgs {
    /// Whether there may be an agent without a command of its own behind `--`.
    pub(crate) fn names_an_agent(&self) -> bool {
        self.session.skills.config.path_to_read().is_some() || self.agent.id.is_some()
    }

    /// The configuration file that the flags name, with what they override.
    ///
    /// # Errors
    /// The file cannot be read or is wrong, or the agent is not known.
    pub(crate) fn config(self) -> anyhow::Result<Config> {
        let mut config = match self.session.skills.config.path_to_read() {
            Some(path) => Config::read(&path)?,
            None => Config::default(),
        };
        self.session.override_in(&mut config);
        self.user.override_in(&mut config);
        self.process.override_in(&mut config);
        self.record.override_in(&mut config);
        self.log.override_in(&mut config);
        let agent = self.agent.words()?;
        if !agent.is_empty() {
            config.agent = Words(agent);
        }
        Ok(config)
    }
}

/// Reads a path, in which `~` is the home directory: no shell has expanded it in the settings of an editor.
pub(crate) fn path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| expand_home(&path))
}

/// Reads a number of seconds such as `2` or `0.5`.
pub(crate) fn seconds() -> impl TypedValueParser<Value = Duration> {
    clap::builder::NonEmptyStringValueParser::new().try_map(|text| {
        text.parse()
            .ok()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .ok_or("a number of seconds, such as 2 or 0.5")
    })
}
