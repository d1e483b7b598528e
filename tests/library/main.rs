//! Tests of the public API: the one-shot API, the output of the examples, and a proxy with a slow skill library.

mod examples;
mod one_shot;
mod slow;

use std::{env, path::Path, process::ExitCode};

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    // The tests also use this program as the agent.
    let mut arguments = env::args_os().skip(1);
    match arguments.next() {
        Some(part) if part == one_shot::SILENT_AGENT => {
            let file = arguments.next().expect("a file to write to");
            one_shot::silent_agent(Path::new(&file)).expect("the proxy reads the output");
            return ExitCode::SUCCESS;
        }
        Some(part) if part == one_shot::ASKING_AGENT => {
            one_shot::asking_agent().expect("the proxy reads the output");
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let mut trials = one_shot::trials();
    trials.extend(examples::trials());
    trials.extend(slow::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
