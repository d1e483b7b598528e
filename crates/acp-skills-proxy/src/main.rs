//! The program `acp-skills-proxy`: a command line over the library `acp-skills`.
//!
//! | file | owns |
//! |---|---|
//! | `cli` | the command line as a whole, and what a wrong one probably meant |
//! | `args/` | the flags, and what they override in a configuration file |
//! | `commands/` | one file each |
//! | `error` | errors of the user's world, exit codes |
//! | `html` | pages that open from disk: templates, escaping |
//! | `log` | where messages for people go |
//! | `output` | the only place that prints, which makes text safe to show |
//! | `progress` | what is shown on a terminal while work takes long |
//! | `refusal` | a start that fails, told to the client |
//! | `report/` | what a record says when it is added up, and as a page |
//! | `runtime` | the runtime of tasks |
//! | `setup/` | what the settings of editors say of agents |
//! | `stdio` | our own stdin and stdout |
//! | `system/` | what differs between systems, apart from `stdio` |
//! | `words` | numbers in sentences |

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
mod setup;
mod stdio;
mod system;
mod words;

use std::process::ExitCode;

use acp_skills_runtime::mcp::bridge;
#[cfg(unix)]
use acp_skills_runtime::processes::watchdog;

use clap::CommandFactory;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    // Before anything is written, a help text included.
    system::report_large_files();
    let (cli, login) = cli::parse();
    let result = match cli.command {
        None => Ok(commands::proxy::run(cli.proxy, login)),
        Some(Command::Try(args)) => commands::r#try::run(*args),
        Some(Command::Check(args)) => commands::check::run(args),
        Some(Command::List(args)) => commands::list::run(*args),
        Some(Command::Search(args)) => commands::search::run(*args),
        Some(Command::Report(args)) => commands::report::run(args),
        Some(Command::Doctor(args)) => commands::doctor::run(*args),
        Some(Command::Setup(args)) => commands::setup::run(*args),
        Some(Command::Completions(args)) => commands::completions::run(args, &Cli::command()),
        Some(Command::Man(args)) => commands::man::run(args, Cli::command()),
        Some(Command::Bridge) => bridge::run().map(|()| ExitCode::SUCCESS).map_err(Into::into),
        Some(Command::Eval(args)) => commands::eval::run(*args),
        Some(Command::Init(args)) => commands::init::run(args),
        Some(Command::Add(args)) => commands::sources::add::run(args),
        Some(Command::Update(args)) => commands::sources::update::run(args),
        Some(Command::Remove(args)) => commands::sources::remove::run(args),
        Some(Command::Sources(args)) => commands::sources::list::run(args),
        #[cfg(unix)]
        Some(Command::Watchdog { part }) => {
            watchdog::run(part.as_deref()).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
    };
    result.unwrap_or_else(|error| error::report(&error))
}
