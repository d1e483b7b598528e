//! `eval` and `init`, black box, with scripted agents. The scripted agent is this program again.
//!
//! | file | owns |
//! |---|---|
//! | `agent` | what the scripted agent does |
//! | `stage` | a skill with cases, and the program run on it |
//! | `triggers` | whether the skill is loaded when it should be |
//! | `tasks` | whether results are better with it; the files of the standard |
//! | `flow` | agents, what is kept, going on, being interrupted, what goes wrong before |
//! | `shown` | the page, the new skill, the whole flow on the built-in agent |

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the scripted agent writes to its own stdout and stderr"
)]

mod agent;
mod flow;
mod shown;
mod stage;
mod tasks;
mod triggers;

use std::{env, process::ExitCode};

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    // Started as an agent and not by a person.
    let mut arguments = env::args().skip(1);
    if arguments.next().is_some_and(|first| first == agent::ARGUMENT) {
        return agent::run(&arguments.next().unwrap_or_default());
    }
    let mut trials = triggers::trials();
    trials.extend(tasks::trials());
    trials.extend(flow::trials());
    trials.extend(shown::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A test that fails by panicking.
fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}
