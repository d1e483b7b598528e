//! Parses the command line and dispatches to a command. `help` renders the help pages, and `mistakes` explains invalid command lines.

mod help;
mod mistakes;
#[cfg(test)]
mod tests;

use std::{env, ffi::OsString, io, process};

use acp_skills::config::Config;
use acp_skills_runtime::mcp::bridge;
#[cfg(unix)]
use acp_skills_servers::processes::watchdog;
use acp_skills_setup::editors;
use clap::{FromArgMatches, Parser, Subcommand, error::ErrorKind};

use crate::{args::ProxyArgs, commands, error, log, output, refusal, stdio, words::command_line};

const EXAMPLES: &str = "\
Examples:
  acp-skills-proxy --skill ./code-review -- claude-agent-acp
      Use this in the editor instead of `claude-agent-acp`.
  acp-skills-proxy --skills ~/skills --discover user -- npx -y @agentclientprotocol/codex-acp
      Use every skill below ~/skills and in the user's own directories.
  acp-skills-proxy --config skills.yaml
      Read everything from a file, including the agent.
  agent-client-protocol-conductor agent 'acp-skills-proxy --skill ./code-review' claude-agent-acp
      Run as one of several proxies under an ACP conductor, without an agent command.

Exit codes:
  The agent's own exit code, or 128 + the signal that ended it. 2: the command line, the configuration or a skill is \
  invalid. 125: the proxy failed. 126: the agent is not executable. 127: the agent was not found.

The proxy writes nothing to the project. Stdout carries the protocol; messages are written to stderr or to --log-file.";

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "acp-skills-proxy",
    // This makes the help pages the same on all systems, because there is no `.exe` in the name on Windows.
    bin_name = "acp-skills-proxy",
    version = env!("ACP_SKILLS_PROXY_VERSION"),
    about = "Agent Skills for every ACP agent, in any editor",
    long_about = "Agent Skills for every ACP agent, in any editor.\n\nThe editor starts the proxy instead of the agent. The proxy starts the agent, forwards all messages, and adds the skills: \
                  their names and descriptions for the model, and tools to load and use them.",
    after_long_help = EXAMPLES,
    args_conflicts_with_subcommands = true,
    max_term_width = 120,
    subcommand_negates_reqs = true,
)]
pub(crate) struct Cli {
    /// The command. Without one, the proxy itself runs.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The flags of the proxy itself.
    #[command(flatten)]
    pub proxy: ProxyArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one prompt through the proxy and show each step.
    Try(Box<commands::r#try::TryArgs>),
    /// Check skills against the specification.
    Check(commands::check::CheckArgs),
    /// List skills, their sources and their size in the catalog.
    List(Box<commands::list::ListArgs>),
    /// Search skills by name, description and instructions.
    Search(Box<commands::search::SearchArgs>),
    /// Serve skills to MCP clients without ACP.
    Mcp(Box<commands::mcp::McpArgs>),
    /// Summarize an event file: which skills are used, what fails, and how long it takes.
    Report(commands::report::ReportArgs),
    /// Test step by step whether skills work with an agent.
    Doctor(Box<commands::doctor::DoctorArgs>),
    /// Add the proxy to the settings of an editor, or remove it.
    Setup(Box<commands::setup::SetupArgs>),
    /// Print a completion script for your shell.
    Completions(commands::completions::CompletionsArgs),
    /// (internal) Write the manual pages, for packages.
    #[command(hide = true)]
    Man(commands::man::ManArgs),
    /// Evaluate a skill on one or more agents.
    Eval(Box<commands::eval::EvalArgs>),
    /// Create a valid skill with evaluation cases.
    Init(commands::init::InitArgs),
    /// Add a source of skills, such as a git repository.
    Add(commands::sources::add::AddArgs),
    /// Fetch new versions of sources, show the changes, and ask for approval.
    Update(commands::sources::update::UpdateArgs),
    /// List skills of which a source has a newer version.
    Outdated(commands::sources::outdated::OutdatedArgs),
    /// Explain where a skill comes from, who approved it, and why a session has it or not.
    Why(Box<commands::sources::why::WhyArgs>),
    /// Trust the skills of a project, after a look at their files.
    Trust(commands::sources::trust::TrustArgs),
    /// Take the trust in skills of a project back.
    Untrust(commands::sources::trust::UntrustArgs),
    /// Remove a source.
    Remove(commands::sources::remove::RemoveArgs),
    /// List sources and their approved versions.
    Sources(commands::sources::list::SourcesArgs),
    /// Show the policy of this machine, or validate a policy file.
    Policy(commands::policy::PolicyArgs),
    /// (internal) Bridge the stdio transport of the skills server. Agents start it.
    #[command(name = bridge::SUBCOMMAND, hide = true)]
    Bridge,
    /// (internal) End the agent and all scripts if the proxy is killed.
    #[cfg(unix)]
    #[command(name = watchdog::SUBCOMMAND, hide = true)]
    Watchdog {
        /// The role of the process, if it is not the watchdog itself.
        part: Option<String>,
    },
}

/// Parses words of a command line.
fn try_parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = help::command();
    let matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Returns the command line that tries the skills of this one in a terminal, with `agent`.
pub(crate) fn to_try(agent: &[OsString]) -> String {
    let own: Vec<_> = env::args_os().skip(1).collect();
    let same = [&["acp-skills-proxy".into(), "try".into()], &own[..]].concat();
    let words = if !own.is_empty() && try_parse(&same).is_ok() {
        same
    } else {
        // A flag that `try` does not have is not worth an explanation here.
        let words = ["acp-skills-proxy", "try", "--skill", "DIR"].map(OsString::from);
        let end = if agent.is_empty() { Vec::new() } else { vec!["--".into()] };
        [&words[..], &end, agent].concat()
    };
    command_line(&mistakes::texts(&words))
}

/// Parses the command line, or exits with an error. Returns the command line and additional arguments for the agent.
///
/// Additional arguments come from clients that let the user log in to an agent: they run our command on a terminal and append
/// the arguments. If the agent is named by the configuration file or by `--agent`, there is no `--` before them.
pub(crate) fn parse() -> (Cli, Vec<OsString>) {
    let words = with_client(without_editor(env::args_os().collect()));
    if words.len() == 3 && words[1] == "help" && words[2] == "flags" {
        exit_after_print(output::print(&help::flags()));
    }
    let error = match try_parse(&words) {
        Ok(cli) => return (cli, Vec::new()),
        Err(error) => error,
    };
    let is_unknown = matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
    if is_unknown && stdio::is_terminal() && !words.iter().any(|word| word == "--") {
        for end in (2..words.len()).rev() {
            match try_parse(&words[..end]) {
                Ok(cli) if cli.command.is_none() && cli.proxy.names_an_agent() => {
                    return (cli, words[end..].to_vec());
                }
                _ => {}
            }
        }
    }
    if !error.use_stderr() {
        // The user asked for the help or the version.
        exit_after_print(output::print_help(&error));
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
    // If the proxy was started by an editor, it should also get the error as a response.
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

/// Marks the word after `setup mcp`, which is a client. There are no clients after an editor, so the command has only one word.
fn with_client(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_client = |word: &OsString| word.to_str().is_none_or(|word| !word.starts_with('-'));
    if words.len() > 3 && words[1] == "setup" && words[2] == "mcp" && is_client(&words[3]) {
        words.insert(3, "--client".into());
    }
    words
}

/// Removes the name of an editor from `help setup EDITOR`, because all editors have the same help page.
fn without_editor(mut words: Vec<OsString>) -> Vec<OsString> {
    let names_editor =
        |word: &OsString| word.to_str().is_some_and(|word| word == "mcp" || editors::find(word).is_ok());
    if words.len() == 4 && words[1] == "help" && words[2] == "setup" && names_editor(&words[3]) {
        words.pop();
    }
    words
}

/// Exits after a page was printed: with 0, or with 125 if stdout could not be written.
fn exit_after_print(printed: io::Result<bool>) -> ! {
    let Err(error) = printed else { process::exit(0) };
    let _ = error::report(&error.into());
    process::exit(error::EXIT_PROXY_FAILED.into())
}
