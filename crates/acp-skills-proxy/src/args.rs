//! The flags of the proxy, in the groups of the help page. A flag overrides the same setting in a configuration file.
//!
//! To add a flag, add a field to one of the groups and a field of the same name to [`Config`]. The module `skills` contains the flags
//! that select skills, and `model` those for the catalog and the tools.

mod skills;

use std::{
    ffi::OsString,
    num::NonZeroU32,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use clap::{
    Args,
    builder::{PathBufValueParser, TypedValueParser},
};

use acp_skills::{
    agents::{self, AgentError},
    config::{Config, LogLevel, SandboxKind, ServersOnDemand, TelemetryProtocol, Words, expand_home},
    intercept::{Approve, CommandNames, Titles, ToolPolicy},
    skills_core::exec::{Environment, ScriptCwd},
};

use crate::log;

pub(crate) use self::{
    model::{CatalogArgs, CatalogTextArgs, SearchArgs, ServerArgs},
    skills::{ConfigArgs, SkillArgs},
};

/// Declares a group of flags. Each flag overrides the field of [`Config`] with the same name.
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

// The macro above must come first.
mod model;

/// The value of a flag, which may override the value in a configuration file.
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

/// A switch. A flag can turn it on, but not off.
impl Flag for bool {
    fn overrides(self, value: &mut Self) {
        *value |= self;
    }
}

/// The flags of the proxy itself.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ProxyArgs {
    /// The skills of sessions, and the way in which agents get them.
    #[command(flatten)]
    pub session: SessionArgs,
    /// Slash commands and permissions.
    #[command(flatten)]
    pub user: UserArgs,
    /// The agent's process.
    #[command(flatten)]
    pub process: ProcessArgs,
    /// Event file and state directory.
    #[command(flatten)]
    pub record: RecordArgs,
    /// Log messages.
    #[command(flatten)]
    pub log: LogArgs,
    /// The agent to start.
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
        // `--location` and `--mount` can't be used together, so the flag must replace `mount` from the file as well.
        if self.catalog.place.location.is_some() {
            config.mount = None;
        }
        self.catalog.override_in(config);
        self.server.override_in(config);
        self.scripts.override_in(config);
    }
}

/// The agent to start.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Agent")]
pub(crate) struct AgentArgs {
    /// Start an agent by its identifier in the ACP registry, such as `claude-acp`, or by a short name, such as
    /// `claude`. The agent's program is used if it is in PATH. Otherwise, its package is run with npx or uvx.
    /// `acp-skills-proxy setup --agents` lists all agents.
    #[arg(long = "agent", value_name = "ID", conflicts_with = "command")]
    pub id: Option<String>,
    /// The agent's program and arguments, run without a shell. Without an agent, the proxy runs under an ACP conductor, and `try`
    /// and `doctor` use a built-in scripted agent, which needs no account and no network.
    #[arg(last = true, value_name = "AGENT")]
    pub command: Vec<OsString>,
}

impl AgentArgs {
    /// Returns the agent's command, or an empty list if no agent is named.
    ///
    /// # Errors
    /// Returns an error if the name is unknown, or if neither the agent's program nor a runner for its package is in `PATH`.
    pub(crate) fn words(self) -> Result<Vec<OsString>, AgentError> {
        if let Some(id) = &self.id {
            return agents::command(agents::find(id)?);
        }
        let Some((program, arguments)) = self.command.split_first() else { return Ok(Vec::new()) };
        // Only expand `~` in the program, and pass all arguments to the agent as is.
        let program = expand_home(Path::new(program)).into_os_string();
        Ok([&[program], arguments].concat())
    }
}

flags! {
    /// Scripts of skills.
    #[command(next_help_heading = "Scripts")]
    struct ScriptArgs {
        /// Let the model run scripts of skills with the tool `run_skill_script`. Without this flag, the model can only read them.
        #[arg(long)]
        allow_scripts: bool,
        /// The timeout for scripts in seconds [default: 30].
        #[arg(long, value_name = "SECONDS", value_parser = seconds(), allow_negative_numbers = true)]
        script_timeout: Option<Duration>,
        /// The working directory of scripts: the directory of the session or of the skill [default: session].
        #[arg(long, value_name = "WHERE")]
        script_cwd: Option<ScriptCwd>,
        /// The environment variables of scripts: all variables of the proxy, or only those that programs need to start
        /// [default: inherit].
        #[arg(long, value_name = "WHICH")]
        script_env: Option<Environment>,
        /// The maximum number of bytes of stdout and of stderr that the model gets [default: 20480].
        #[arg(long, value_name = "BYTES", value_parser = number::<usize>(), allow_negative_numbers = true)]
        max_output: Option<usize>,
        /// Run scripts in a sandbox. `bwrap` uses bubblewrap: the skill is read-only, the directory of the session is writable,
        /// and there is no network.
        #[arg(long, value_name = "KIND")]
        sandbox: Option<SandboxKind>,
        /// Allow scripts in the sandbox to use the network.
        #[arg(long, requires = "sandbox")]
        sandbox_net: bool,
    }
}

flags! {
    /// Slash commands and permissions.
    #[command(next_help_heading = "Commands and permissions")]
    struct UserArgs {
        /// Decide who gets `/NAME` if a skill and a command of the agent have the same name: the skill if you named it with --skill,
        /// otherwise the agent (`auto`), always the skill (`skills`), or always the agent (`agent`). The other one is
        /// `/skill:NAME` or `/agent:NAME` [default: auto].
        #[arg(long, value_name = "WHOSE")]
        commands: Option<CommandNames>,
        /// Use the skill NAME if a prompt starts with `$NAME`, in addition to `/NAME` and `/skill:NAME`.
        #[arg(long)]
        dollar: bool,
        /// Offer each skill as a switch in the options of the session, in editors that support this. At most 30 skills.
        #[arg(long)]
        toggles: bool,
        /// Support the draft extensions of the protocol for skills, for editors that use them: send the skills of a session
        /// as `available_skills_update`, answer `skills/list` with them, and serve the `agentSkills` that an editor
        /// provides for a session.
        #[arg(long)]
        drafts: bool,
        /// Grant permission requests without asking: for our own tools that only read (`own`), or for none (`none`). Each request
        /// is granted once [default: own].
        #[arg(long, value_name = "WHICH")]
        approve: Option<Approve>,
        /// Apply the `allowed-tools` of active skills: log other tools (`permissive`), also grant the listed tools once if
        /// you invoked the skill by a command (`approval`), or refuse other tools (`strict`). This is not a sandbox, because
        /// agents don't ask for permission for every call [default: permissive].
        #[arg(long, value_name = "POLICY")]
        tool_policy: Option<ToolPolicy>,
        /// The titles of our tools' calls in the editor: readable ones such as `Skill: code-review`, with one line instead of the
        /// loaded instructions (`people`), or the agent's own, with whole results (`agent`). The model always gets everything
        /// [default: people].
        #[arg(long, value_name = "WHOSE")]
        titles: Option<Titles>,
    }
}

flags! {
    /// The agent's process.
    #[command(next_help_heading = "Agent")]
    struct ProcessArgs {
        /// The grace period for the agent to exit after the editor has disconnected, in seconds. After that it is terminated
        /// [default: 3, or a value for the agent if one is known].
        #[arg(long, value_name = "SECONDS", value_parser = seconds(), allow_negative_numbers = true)]
        exit_wait: Option<Duration>,
        /// The maximum size of a message in MiB. A longer message of the editor or the agent is not forwarded, and its request gets
        /// an error as the response [default: 256].
        #[arg(long, value_name = "MIB", value_parser = number::<NonZeroU32>(), allow_negative_numbers = true)]
        max_message: Option<NonZeroU32>,
    }
}

flags! {
    /// Event file and state directory.
    #[command(next_help_heading = "Record")]
    struct RecordArgs {
        /// Append events about skills to a file, one JSON object per line: names, times, sizes and results, but no contents.
        /// `acp-skills-proxy report` summarizes the file.
        #[arg(long, value_name = "FILE", value_parser = path())]
        events: Option<PathBuf>,
        /// Send the same events as spans, logs and metrics to an OpenTelemetry collector, over HTTP. This needs the environment
        /// variable `OTEL_EXPORTER_OTLP_ENDPOINT`, and the other `OTEL_*` variables apply as well.
        #[arg(long, value_name = "PROTOCOL")]
        telemetry: Option<TelemetryProtocol>,
        /// Keep state between runs in a directory: the active skills of each session, which are restored if the session
        /// is loaded or resumed; skills that are turned off in a directory (`/skills off NAME --here`); project skills
        /// that you trust, and the secret of the marks around our text (without this flag, these are in the platform's
        /// state directory); and agents that never connect to the tools, so that prompts don't wait for these agents in
        /// later runs.
        #[arg(long, value_name = "DIR", value_parser = path())]
        state: Option<PathBuf>,
    }
}

flags! {
    /// Log messages.
    #[command(next_help_heading = "Messages")]
    struct LogArgs {
        /// The log level for stderr or --log-file [default: warn].
        #[arg(long, value_name = "LEVEL", env = "ACP_SKILLS_LOG")]
        log: Option<LogLevel>,
        /// Write log messages to a file instead of stderr.
        #[arg(long, value_name = "FILE", value_parser = path())]
        log_file: Option<PathBuf>,
    }
}

impl ProxyArgs {
    /// Returns true if the agent may be named by the configuration file or by `--agent`, without a command after `--`.
    pub(crate) fn names_an_agent(&self) -> bool {
        self.session.skills.config.path_to_read().is_some() || self.agent.id.is_some()
    }

    /// Reads the configuration file and applies the flags.
    ///
    /// # Errors
    /// Returns an error if the file can't be read or is invalid, or if the agent is unknown.
    pub(crate) fn config(self) -> anyhow::Result<Config> {
        let mut config = match self.session.skills.config.path_to_read() {
            Some(path) => log::with_warnings_on_stderr(|| Config::read(&path))?,
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

/// Parses a path and expands `~`, because the settings of an editor are not expanded by a shell.
pub(crate) fn path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(|path| expand_home(&path))
}

/// Parses names of MCP servers.
fn servers() -> impl TypedValueParser<Value = ServersOnDemand> {
    clap::builder::StringValueParser::new().map(|names| ServersOnDemand::named(&names))
}

/// Parses a number of seconds, such as `2` or `0.5`.
pub(crate) fn seconds() -> impl TypedValueParser<Value = Duration> {
    clap::builder::NonEmptyStringValueParser::new().try_map(|text| {
        text.parse()
            .ok()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .ok_or("expected a number of seconds, for example 2 or 0.5")
    })
}

/// Parses a whole number.
pub(crate) fn number<T>() -> impl TypedValueParser<Value = T>
where
    T: FromStr + Clone + Send + Sync + 'static,
{
    let expected = match T::from_str("0") {
        Ok(_) => "expected a whole number, for example 100",
        Err(_) => "expected a whole number, at least 1",
    };
    clap::builder::NonEmptyStringValueParser::new()
        .try_map(move |text| text.parse::<T>().map_err(|_| expected))
}
