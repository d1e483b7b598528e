//! The program's command line as a whole: its help, and which command it means. `mistakes` has what a wrong one probably
//! meant.

mod mistakes;
#[cfg(test)]
mod tests;

use std::{env, ffi::OsString, process};

use acp_skills::config::Config;
use acp_skills_runtime::mcp::bridge;
#[cfg(unix)]
use acp_skills_runtime::processes::watchdog;
use clap::{Parser, Subcommand, error::ErrorKind};

use crate::{args::ProxyArgs, commands, error, log, output, refusal, stdio};

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
  The agent's own, or 128 + the signal that ended it; 2 a wrong command line, configuration or skill; 125 the proxy \
  failed; 126 the agent is not executable; 127 the agent was not found.

Nothing is written into the project. stdout carries the protocol; messages go to stderr, or to --log-file.";

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "acp-skills-proxy",
    // Not as Windows has it, with `.exe`.
    bin_name = "acp-skills-proxy",
    version = env!("ACP_SKILLS_PROXY_VERSION"),
    about = "Agent Skills for every ACP agent, in any editor",
    long_about = "Agent Skills for every ACP agent, in any editor.\n\nAn editor starts the proxy in place of the agent. The proxy starts the agent, forwards everything, and adds the skills: \
                  their names and descriptions for the model, and the tools to load and use them.",
    after_long_help = EXAMPLES,
    after_help = "`--help` shows examples, exit codes and every flag in full.",
    args_conflicts_with_subcommands = true,
    max_term_width = 120,
    subcommand_negates_reqs = true,
)]
pub(crate) struct Cli {
    /// Which command; without one, the proxy itself.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Flags of the proxy itself.
    #[command(flatten)]
    pub proxy: ProxyArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
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
    /// Put the proxy in front of agents in an editor's settings, and take it back; without an editor, tell what is here.
    Setup(Box<commands::setup::SetupArgs>),
    /// Print a script that completes command lines in your shell.
    Completions(commands::completions::CompletionsArgs),
    /// (internal) Writes the manual pages, for packages.
    #[command(hide = true)]
    Man(commands::man::ManArgs),
    /// Evaluate a skill on agents: is it loaded when it should be, and are results better with it than without?
    Eval(Box<commands::eval::EvalArgs>),
    /// Make a new skill that breaks no rule, with cases to evaluate it by.
    Init(commands::init::InitArgs),
    /// Add a source of skills, such as a git repository: shows what comes, and asks.
    Add(commands::sources::add::AddArgs),
    /// Look what sources have now: shows what has changed since it was approved, and asks.
    Update(commands::sources::update::UpdateArgs),
    /// Remove a source.
    Remove(commands::sources::remove::RemoveArgs),
    /// List the sources, and what of them is approved.
    Sources(commands::sources::list::SourcesArgs),
    /// (internal) The stdio transport of the skills server; agents start it.
    #[command(name = bridge::SUBCOMMAND, hide = true)]
    Bridge,
    /// (internal) Ends the agent and the scripts when the proxy was killed.
    #[cfg(unix)]
    #[command(name = watchdog::SUBCOMMAND, hide = true)]
    Watchdog {
        /// What it does, when that is not to watch.
        part: Option<String>,
    },
}

/// Reads the command line, or ends the program with what is wrong with it. Returns it with the arguments for the agent that are
/// not part of it: to let its user log in to the agent, a client runs our command on a terminal and adds them; where the agent
/// stands in the configuration file or behind `--agent`, there is no `--` in front of them.
pub(crate) fn parse() -> (Cli, Vec<OsString>) {
    let words: Vec<OsString> = env::args_os().collect();
    let error = match Cli::try_parse_from(&words) {
        Ok(cli) => return (cli, Vec::new()),
        Err(error) => error,
    };
    let is_unknown = matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
    if is_unknown && stdio::is_terminal() && !words.iter().any(|word| word == "--") {
        for end in (2..words.len()).rev() {
            match Cli::try_parse_from(&words[..end]) {
                Ok(cli) if cli.command.is_none() && cli.proxy.names_an_agent() => {
                    return (cli, words[end..].to_vec());
                }
                _ => {}
            }
        }
    }
    if !error.use_stderr() {
        // Help and version.
        if let Err(error) = output::print_help(&error) {
            let _ = error::report(&error.into());
            process::exit(error::EXIT_PROXY_FAILED.into());
        }
        process::exit(0);
    }
    let (message, hint) = if let Some(explained) = mistakes::explain(&error, &words) {
        let explained = explained.into();
        let _ = error::report(&explained);
        (error::message(&explained), error::hint(&explained))
    } else {
        let error = mistakes::without_advice(error);
        output::complain_as(&error.render());
        (mistakes::message(&error), None)
    };
    // An editor that was given a wrong command line for the proxy itself.
    if !mistakes::names_a_command(&words) {
        let mut messages = Config::default();
        messages.log_file = mistakes::log_file(&words);
        log::failure(&messages, &message, hint.as_deref());
        if let Some(client) = stdio::spare() {
            refusal::answer(client.reader, client.writer, &message, hint.as_deref());
        }
    }
    process::exit(error::EXIT_USAGE.into())
}
