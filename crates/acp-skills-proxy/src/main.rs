//! The program `acp-skills-proxy`: the command line of the library `acp-skills`.
//!
//! | file | responsible for |
//! |---|---|
//! | `cli` | parsing the command line, help pages, and explanations of invalid command lines |
//! | `args/` | the flags, which override settings of a configuration file |
//! | `commands/` | one file per command |
//! | `error` | error messages, hints and exit codes |
//! | `html` | HTML pages that open from disk |
//! | `log` | logging |
//! | `output` | all output to stdout and stderr; makes untrusted text safe to display |
//! | `progress` | progress on a terminal |
//! | `refusal` | answering the client if the start fails |
//! | `report/` | summaries of event files, as text and as a page |
//! | `runtime` | the async runtime |
//! | `stdio` | stdin and stdout of the proxy |
//! | `system/` | code that differs by operating system |
//! | `words` | plurals |

mod args;
mod cli;
mod commands;
mod error;
mod html;
mod log;
mod output;
mod progress;
mod refusal;
mod report;
mod runtime;
mod stdio;
mod system;
mod words;

use std::process::ExitCode;

use acp_skills_runtime::mcp::bridge;
#[cfg(unix)]
use acp_skills_servers::processes::watchdog;

use clap::CommandFactory;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    // We need to do this before we write any output, including help pages.
    system::catch_harmless_signals();
    let (cli, login) = cli::parse();
    let result = match cli.command {
        None => Ok(commands::proxy::run(cli.proxy, login, cli::to_try)),
        Some(Command::Try(args)) => commands::r#try::run(*args),
        Some(Command::Check(args)) => commands::check::run(args),
        Some(Command::List(args)) => commands::list::run(*args),
        Some(Command::Search(args)) => commands::search::run(*args),
        Some(Command::Report(args)) => commands::report::run(args),
        Some(Command::Doctor(args)) => commands::doctor::run(*args),
        Some(Command::Setup(args)) => commands::setup::run(*args),
        Some(Command::Completions(args)) => commands::completions::run(args, &Cli::command()),
        Some(Command::Mcp(args)) => Ok(commands::mcp::run(*args)),
        Some(Command::Man(args)) => commands::man::run(args, Cli::command()),
        Some(Command::Bridge) => bridge::run().map(|()| ExitCode::SUCCESS).map_err(Into::into),
        Some(Command::Eval(args)) => commands::eval::run(*args),
        Some(Command::Init(args)) => commands::init::run(args),
        Some(Command::Add(args)) => commands::sources::add::run(args),
        Some(Command::Update(args)) => commands::sources::update::run(args),
        Some(Command::Remove(args)) => commands::sources::remove::run(args),
        Some(Command::Why(args)) => commands::sources::why::run(*args),
        Some(Command::Trust(args)) => commands::sources::trust::trust(args),
        Some(Command::Untrust(args)) => commands::sources::trust::untrust(args),
        Some(Command::Outdated(args)) => commands::sources::outdated::run(args),
        Some(Command::Policy(args)) => commands::policy::run(&args),
        Some(Command::Sources(args)) => commands::sources::list::run(args),
        #[cfg(unix)]
        Some(Command::Watchdog { part }) => {
            // A leader has to end together with its group.
            if part.is_none() {
                system::catch_signals();
            }
            watchdog::run(part.as_deref()).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
    };
    result.unwrap_or_else(|error| error::report(&error))
}
