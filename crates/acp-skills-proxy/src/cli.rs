//! The command line: its help, which command it means, and how errors are told. `flags` has the flags, `choices` the
//! words for their values.

mod choices;
mod flags;

use std::{env, ffi::OsString, io, process::ExitCode};

use clap::{Parser, Subcommand, error::ErrorKind};
use tracing_subscriber::filter::LevelFilter;

pub use self::{choices::*, flags::*};
#[cfg(unix)]
use crate::agent::watchdog;
use crate::{agent::StartError, commands, mcp::bridge, stdio};

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
  agent-client-protocol-conductor agent 'acp-skills-proxy --skill ./code-review' claude-agent-acp
      One of several proxies under an ACP conductor: no agent command of its own.
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
    /// Tell what a file of `--events` says: which skills are used, by whom, what fails, what takes how long.
    Report(commands::report::ReportArgs),
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
        Some(Command::Report(args)) => commands::report::run(args),
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
