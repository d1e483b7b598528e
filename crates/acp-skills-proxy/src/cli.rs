//! The command line: its flags, its help, and which command they mean.

use std::{env, ffi::OsString, io, path::PathBuf, process::ExitCode, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum, builder::TypedValueParser, error::ErrorKind};
use tracing_subscriber::filter::LevelFilter;

#[cfg(unix)]
use crate::agent::watchdog;
use crate::{
    agent::StartError,
    commands,
    intercept::{Approve, CatalogIn, McpMode, ToolPolicy},
    mcp::bridge,
    stdio,
};

/// The proxy itself failed (as in GNU `env`).
pub const EXIT_PROXY_FAILED: u8 = 125;
/// The command line, the configuration or a skill named in it is wrong.
pub const EXIT_USAGE: u8 = 2;

const EXAMPLES: &str = "\
Examples:
  acp-skills-proxy --skill ./code-review -- claude-agent-acp
      Put this into the editor in place of `claude-agent-acp`.
  acp-skills-proxy --skills ~/skills --discover user -- npx -y @agentclientprotocol/codex-acp
      Every skill below ~/skills, and the user's own.
  acp-skills-proxy --config skills.yaml
      Everything from a file, the agent too.
  acp-skills-proxy try --skill ./code-review --prompt 'Review src/main.rs'
      Watch a skill work in the terminal, with a built-in agent.

Exit codes:
  The agent's own, or 128 + the signal that ended it; 2 a wrong command line, configuration or skill; 125 the proxy
  failed; 126 the agent is not executable; 127 the agent was not found.

Nothing is written into the project. stdout carries the protocol; messages go to stderr, or to --log-file.";

#[derive(Debug, Parser)]
#[command(
    name = "acp-skills-proxy",
    version,
    about = "Agent Skills for every ACP agent, in any editor",
    long_about = "Agent Skills for every ACP agent, in any editor.\n\nAn editor starts the proxy in place of the agent. The proxy starts the agent, forwards everything, and adds the skills: \
                  their names and descriptions for the model, and the tools to load and use them.",
    after_long_help = EXAMPLES,
    after_help = "`--help` shows examples, exit codes and every flag in full.",
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    subcommand_negates_reqs = true,
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    proxy: ProxyArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one prompt through the proxy and watch: what the agent received, each tool call, the answer.
    Try(Box<commands::r#try::TryArgs>),
    /// Check skills against the specification, with source excerpts; made for a pre-commit hook.
    Check(commands::check::CheckArgs),
    /// List the skills: where they come from, what they cost, which were left out and why.
    List(Box<commands::list::ListArgs>),
    /// Rank the skills by what they do.
    Search(Box<commands::search::SearchArgs>),
    /// Start an agent through the proxy and tell, step by step, whether skills would work with it.
    Doctor(Box<commands::doctor::DoctorArgs>),
    /// (internal) The stdio transport of the skills server; agents start it.
    #[command(name = bridge::SUBCOMMAND, hide = true)]
    Bridge,
    /// (internal) Ends the agent when the proxy was killed.
    #[cfg(unix)]
    #[command(name = watchdog::SUBCOMMAND, hide = true)]
    Watchdog {
        /// The agent's process group.
        group: String,
    },
}

/// Flags of the proxy itself.
#[derive(Debug, Clone, Default, Args)]
pub struct ProxyArgs {
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
    /// Messages for people.
    #[command(flatten)]
    pub log: LogArgs,
    /// The agent: a program and its arguments, run as they are, without a shell.
    #[arg(last = true, value_name = "AGENT")]
    pub agent: Vec<OsString>,
}

/// Which skills there are.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Skills")]
pub struct SkillArgs {
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
    /// A file with everything that flags can say, and with skills of its own; flags win.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Places with skills that nobody named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discover {
    /// The user's own directories.
    User,
    /// The project of the session.
    Project,
}

/// What the model sees at the start.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Catalog")]
pub struct CatalogArgs {
    /// Where names and descriptions go: the system prompt where the agent takes one (`auto`, `system`), else in front
    /// of the first prompt (`prompt`); or nowhere (`off`) [default: auto].
    #[arg(long, value_name = "PLACE")]
    pub catalog_in: Option<CatalogPlace>,
    /// How they are written [default: xml].
    #[arg(long, value_name = "FORMAT")]
    pub catalog_format: Option<CatalogFormat>,
    /// How much of each skill [default: full].
    #[arg(long, value_name = "DETAIL")]
    pub catalog_detail: Option<CatalogDetail>,
    /// How long the catalog may get, in characters: descriptions are shortened first [default: 8000].
    #[arg(long, value_name = "CHARS")]
    pub catalog_budget: Option<usize>,
    /// Whether the catalog names the SKILL.md files [default: none].
    #[arg(long, value_name = "WHICH")]
    pub location: Option<LocationKind>,
    /// Name the SKILL.md files as PREFIX/NAME/SKILL.md, for agents that see them elsewhere.
    #[arg(long, value_name = "PREFIX", conflicts_with = "location")]
    pub mount: Option<String>,
}

/// How the agent gets the tools.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Tools")]
pub struct ServerArgs {
    /// How the agent reaches the skills server: by what it advertises (`auto`), or one way; `off` leaves it to read
    /// the files with its own tools [default: auto].
    #[arg(long, value_name = "HOW")]
    pub mcp: Option<McpTransport>,
    /// How many seconds the first prompt of a session waits until the agent has the tools [default: 2].
    #[arg(long, value_name = "SECONDS", value_parser = seconds())]
    pub mcp_wait: Option<Duration>,
    /// Who activates skills: the model (`model`), the proxy, which puts the skills that fit in front of each prompt
    /// (`prompt`; for agents without tools), or the proxy where the model has no tools of ours (`hybrid`)
    /// [default: model].
    #[arg(long, value_name = "WHO")]
    pub activation: Option<ActivationBy>,
    /// Whether the model can search the skills: when the catalog does not hold them all (`auto`), or `on` or `off`
    /// [default: auto].
    #[arg(long, value_name = "WHEN")]
    pub search: Option<SearchWhen>,
}

/// Whether and how scripts of skills are run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Scripts")]
pub struct ScriptArgs {
    /// Let the model run scripts of stored skills with `run_skill_script`. Without this, scripts are only text.
    #[arg(long)]
    pub allow_scripts: bool,
    /// How many seconds a script may run [default: 30].
    #[arg(long, value_name = "SECONDS", value_parser = seconds())]
    pub script_timeout: Option<Duration>,
    /// Where scripts run: in the session's directory or in the skill's [default: session].
    #[arg(long, value_name = "WHERE")]
    pub script_cwd: Option<ScriptDirectory>,
    /// Which variables scripts get: all of ours, or only what programs need to start [default: inherit].
    #[arg(long, value_name = "WHICH")]
    pub script_env: Option<ScriptVariables>,
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
pub struct UserArgs {
    /// Let `$NAME` at the start of a prompt invoke a skill, as `/NAME` and `/skill:NAME` do.
    #[arg(long)]
    pub dollar: bool,
    /// Which requests for permission are granted without asking, once each: those for our own tools that only read
    /// (`own`), or `none` [default: own].
    #[arg(long, value_name = "WHICH")]
    pub approve: Option<ApproveKind>,
    /// What the `allowed-tools` of active skills mean: tools outside of them are logged (`permissive`); those inside
    /// are granted once when you invoked the skill by command (`approval`); those outside are refused (`strict`). This
    /// is advice and no sandbox: a call that the agent does not ask about is not seen [default: permissive].
    #[arg(long, value_name = "POLICY")]
    pub tool_policy: Option<ToolPolicyKind>,
}

/// Messages for people.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Messages")]
pub struct LogArgs {
    /// What is written to stderr or --log-file [default: warn].
    #[arg(long, value_name = "LEVEL", env = "ACP_SKILLS_LOG")]
    pub log: Option<LogLevel>,
    /// Write messages to this file instead of stderr.
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
}

macro_rules! choices {
    ($(#[$meta:meta])* $name:ident { $($variant:ident),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[expect(missing_docs, reason = "the flags explain their values")]
        pub enum $name { $($variant),+ }
    };
}

choices!(
    /// `--catalog-in`
    CatalogPlace { Auto, System, Prompt, Off }
);
choices!(
    /// `--catalog-format`
    CatalogFormat { Xml, Json, Markdown }
);
choices!(
    /// `--catalog-detail`
    CatalogDetail { Full, Names }
);
choices!(
    /// `--location`
    LocationKind { None, Absolute }
);
choices!(
    /// `--mcp`
    McpTransport { Auto, Acp, Http, Stdio, Off }
);
choices!(
    /// `--activation`
    ActivationBy { Model, Prompt, Hybrid }
);
choices!(
    /// `--search`
    SearchWhen { Auto, On, Off }
);
choices!(
    /// `--script-cwd`
    ScriptDirectory { Session, Skill }
);
choices!(
    /// `--script-env`
    ScriptVariables { Inherit, Clean }
);
choices!(
    /// `--sandbox`
    SandboxKind { Bwrap }
);
choices!(
    /// `--approve`
    ApproveKind { Own, None }
);
choices!(
    /// `--tool-policy`
    ToolPolicyKind { Permissive, Approval, Strict }
);
choices!(
    /// `--log`
    LogLevel { Off, Error, Warn, Info, Debug, Trace }
);

impl From<CatalogPlace> for CatalogIn {
    fn from(place: CatalogPlace) -> Self {
        match place {
            CatalogPlace::Auto => Self::Auto,
            CatalogPlace::System => Self::System,
            CatalogPlace::Prompt => Self::Prompt,
            CatalogPlace::Off => Self::Off,
        }
    }
}

impl From<McpTransport> for McpMode {
    fn from(transport: McpTransport) -> Self {
        match transport {
            McpTransport::Auto => Self::Auto,
            McpTransport::Acp => Self::Acp,
            McpTransport::Http => Self::Http,
            McpTransport::Stdio => Self::Stdio,
            McpTransport::Off => Self::Off,
        }
    }
}

impl From<ApproveKind> for Approve {
    fn from(kind: ApproveKind) -> Self {
        match kind {
            ApproveKind::Own => Self::Own,
            ApproveKind::None => Self::None,
        }
    }
}

impl From<ToolPolicyKind> for ToolPolicy {
    fn from(kind: ToolPolicyKind) -> Self {
        match kind {
            ToolPolicyKind::Permissive => Self::Permissive,
            ToolPolicyKind::Approval => Self::Approval,
            ToolPolicyKind::Strict => Self::Strict,
        }
    }
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Off => Self::OFF,
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
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

/// Reads the command line. To let its user log in to the agent, a client runs our command on a terminal with arguments
/// added for the agent; where the agent stands in the configuration file there is no `--` in front of them.
fn parse() -> (Cli, Vec<OsString>) {
    let words: Vec<OsString> = env::args_os().collect();
    let error = match Cli::try_parse_from(&words) {
        Ok(cli) => return (cli, Vec::new()),
        Err(error) => error,
    };
    let is_unknown = matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
    if is_unknown && stdio::is_terminal() && !words.iter().any(|word| word == "--") {
        for end in (2..words.len()).rev() {
            match Cli::try_parse_from(&words[..end]) {
                Ok(cli) if cli.command.is_none() && cli.proxy.skills.config.is_some() => {
                    return (cli, words[end..].to_vec());
                }
                _ => {}
            }
        }
    }
    error.exit()
}

/// Runs the program. Returns its exit code.
pub fn main() -> ExitCode {
    let (cli, login) = parse();
    let result = match cli.command {
        None => commands::proxy::run(cli.proxy, login),
        Some(Command::Try(args)) => commands::r#try::run(*args),
        Some(Command::Check(args)) => commands::check::run(args),
        Some(Command::List(args)) => commands::list::run(*args),
        Some(Command::Search(args)) => commands::search::run(*args),
        Some(Command::Doctor(args)) => commands::doctor::run(*args),
        Some(Command::Bridge) => bridge::run().map(|()| ExitCode::SUCCESS),
        #[cfg(unix)]
        Some(Command::Watchdog { group }) => watchdog::run(&group).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| fail(&error))
}

/// An error of the user's world: it is told without ado, and ends the program with [`EXIT_USAGE`].
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct UsageError {
    message: String,
    hint: Option<String>,
}

impl UsageError {
    /// What is wrong.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// The same with a remedy.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    let usage = error.downcast_ref::<UsageError>();
    let start = error.downcast_ref::<StartError>();
    let hint = match (usage, start) {
        (Some(usage), _) => usage.hint.clone(),
        (None, Some(_)) => Some(
            "the agent command goes after `--`, for example `acp-skills-proxy --skill DIR -- npx …`"
                .to_owned(),
        ),
        (None, None) => None,
    };
    let code = match (usage, start) {
        (Some(_), _) => EXIT_USAGE,
        (None, Some(start)) => start.exit_code(),
        (None, None) => EXIT_PROXY_FAILED,
    };
    commands::complain(&format!("{error:#}"), hint.as_deref());
    ExitCode::from(code)
}

/// Where messages for people go, from now on.
///
/// # Errors
/// The log file cannot be opened.
pub fn start_log(args: &LogArgs) -> io::Result<()> {
    use tracing_subscriber::{
        Layer, filter::Targets, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt,
    };
    let level = LevelFilter::from(args.log.unwrap_or(LogLevel::Warn));
    // Others tell what they do in detail, and may tell contents; and they warn of what is in order, as when a client
    // asks again for a stream that has ended.
    let others = level.min(match level {
        LevelFilter::TRACE => LevelFilter::TRACE,
        LevelFilter::DEBUG => LevelFilter::WARN,
        _ => LevelFilter::ERROR,
    });
    let ours = Targets::new()
        .with_default(others)
        .with_target("acp_skills_proxy", level)
        .with_target("skills_core", level);
    let layer = fmt::layer().with_target(false).with_ansi(false);
    // A second call in one process (tests, embedding) keeps the first log.
    match &args.log_file {
        Some(path) => {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
            let layer = layer.with_writer(std::sync::Mutex::new(file)).with_filter(ours);
            drop(registry().with(layer).try_init());
        }
        None => {
            drop(registry().with(layer.with_writer(io::stderr).without_time().with_filter(ours)).try_init());
        }
    }
    Ok(())
}
