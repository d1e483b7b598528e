//! Runs real attacks in the sandbox, as root and as an unprivileged user.
//!
//! The attacking script is this program itself; see `sandbox/attacks.rs`. Each case in the other files of `sandbox/` runs in
//! its own process, as the user at the beginning of its name, and with its own environment. The test prints a message if it
//! skips cases, because bubblewrap doesn't work or because only root can switch to another user.

#[cfg(target_os = "linux")]
#[path = "sandbox/attacks.rs"]
mod attacks;
#[cfg(target_os = "linux")]
#[path = "sandbox/cases.rs"]
mod cases;
#[cfg(target_os = "linux")]
#[path = "sandbox/directories.rs"]
mod directories;
#[cfg(target_os = "linux")]
#[path = "sandbox/fixture.rs"]
mod fixture;
#[cfg(target_os = "linux")]
#[path = "sandbox/processes.rs"]
mod processes;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, attacks::FLAG, _, attack, ref rest @ ..] => attacks::run(attack, rest),
        [_, fixture::CASE_FLAG, case] => cases::run(case),
        _ => suite(),
    }
}

#[cfg(not(target_os = "linux"))]
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn main() -> ExitCode {
    eprintln!("skipped: the sandbox exists only for Linux");
    ExitCode::SUCCESS
}

#[cfg(target_os = "linux")]
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn suite() -> ExitCode {
    use libtest_mimic::{Arguments, Trial};

    let program = std::sync::Arc::new(fixture::Program::install());
    let mut trials = Vec::new();
    for user in fixture::users() {
        let reason = match &user {
            Ok(user) => program.run(*user, cases::AVAILABLE).err(),
            Err(reason) => Some(reason.clone()),
        };
        if let Some(reason) = &reason {
            let reason = reason.to_string();
            eprintln!("skipped: no case runs as {}: {}", fixture::name(&user), reason.trim());
        }
        for case in cases::names() {
            let program = std::sync::Arc::clone(&program);
            let user = user.clone();
            let trial = Trial::test(format!("{}::{case}", fixture::name(&user)), move || {
                Ok(program.run(user?, case)?)
            });
            trials.push(trial.with_ignored_flag(reason.is_some()));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
