//! Black-box tests of `eval` and `init` with scripted agents. The scripted agent is this test program itself.
//!
//! | file | owns |
//! |---|---|
//! | `agent` | the scripted agent |
//! | `fixture` | a skill with cases, and runs of the program on it |
//! | `triggers` | queries: is the skill loaded when it should be? |
//! | `tasks` | tasks: are results better with the skill? Also the files of the standard |
//! | `flow` | several agents, iterations, resuming, interrupts, invalid input |
//! | `formats` | files of other tools, and files for other tools |
//! | `grading` | weights, scores, two graders, several turns, costs |
//! | `scale` | models, parts of an evaluation, the trend |
//! | `writers` | descriptions and cases that an agent writes |
//! | `floods` | agents that send more than is kept |
//! | `processes` | the processes of agents and their home directories |
//! | `output` | the page, a new skill, the whole flow on the built-in agent |

#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the scripted agent writes to its own stdout and stderr"
)]

mod agent;
mod fixture;
mod floods;
mod flow;
mod formats;
mod grading;
mod output;
#[cfg(unix)]
mod processes;
mod scale;
mod tasks;
mod triggers;
mod writers;

use std::{env, process::ExitCode};

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    // If this argument is set, we should run as the agent.
    let mut arguments = env::args().skip(1);
    if arguments.next().is_some_and(|first| first == agent::ARGUMENT) {
        return agent::run(&arguments.next().unwrap_or_default());
    }
    let mut trials = triggers::trials();
    trials.extend(tasks::trials());
    trials.extend(flow::trials());
    trials.extend(floods::trials());
    trials.extend(output::trials());
    trials.extend(formats::trials());
    trials.extend(grading::trials());
    #[cfg(unix)]
    trials.extend(processes::trials());
    trials.extend(scale::trials());
    trials.extend(writers::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Returns a test that fails if `test` panics.
fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}
