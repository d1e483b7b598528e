//! The program `acp-skills-proxy`: a command line over the library `acp-skills`.
//!
//! | file | owns |
//! |---|---|
//! | `args/` | the command line, and what it overrides in a configuration file |
//! | `commands/` | one file each; the only place that prints |
//! | `error` | errors of the user's world, exit codes |
//! | `log` | where messages for people go |
//! | `report/` | what a record says when it is added up, and as a page |
//! | `stdio` | our own stdin and stdout |

mod args;
mod commands;
mod error;
mod log;
mod report;
mod stdio;

use std::process::ExitCode;

#[cfg(unix)]
use acp_skills::agent::watchdog;
use acp_skills::mcp::bridge;

use crate::args::Command;

fn main() -> ExitCode {
    let (cli, login) = args::parse();
    let result = match cli.command {
        None => commands::proxy::run(cli.proxy, login),
        Some(Command::Try(args)) => commands::r#try::run(*args),
        Some(Command::Check(args)) => commands::check::run(args),
        Some(Command::List(args)) => commands::list::run(*args),
        Some(Command::Search(args)) => commands::search::run(*args),
        Some(Command::Report(args)) => commands::report::run(args),
        Some(Command::Doctor(args)) => commands::doctor::run(*args),
        Some(Command::Eval(args)) => commands::eval::run(*args),
        Some(Command::Init(args)) => commands::init::run(args),
        Some(Command::Bridge) => bridge::run().map(|()| ExitCode::SUCCESS),
        #[cfg(unix)]
        Some(Command::Watchdog { group }) => watchdog::run(&group).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| error::report(&error))
}
