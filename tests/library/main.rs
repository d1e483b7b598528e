//! The library from outside: one prompt from Rust, the example programs, and a proxy over a library that blocks.

mod examples;
mod one_shot;
mod slow;

use std::{env, path::Path, process::ExitCode};

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    // Started as an agent and not by a person.
    let mut arguments = env::args_os().skip(1);
    match arguments.next() {
        Some(part) if part == one_shot::SILENT_AGENT => {
            let file = arguments.next().expect("a file to write to");
            one_shot::silent_agent(Path::new(&file)).expect("somebody listens");
            return ExitCode::SUCCESS;
        }
        Some(part) if part == one_shot::ASKING_AGENT => {
            one_shot::asking_agent().expect("somebody listens");
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let mut trials = one_shot::trials();
    trials.extend(examples::trials());
    trials.extend(slow::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
