//! Attacks on the sandbox, tried for real: scripts that want more than they may, run as root and as nobody.
//!
//! The scripts are this program itself, see `sandbox/attacks.rs`. Each case of `sandbox/cases.rs` and
//! `sandbox/directories.rs` runs in a process of its own, as the user that its name begins with and with the variables
//! that it needs. Where bubblewrap does not work, or we are not root and cannot become nobody, it says so.

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
    eprintln!("skipped: the sandbox exists for Linux");
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
            eprintln!("skipped: no case runs as {}: {}", fixture::name(&user), reason.trim());
        }
        for case in cases::names() {
            let (program, user) = (std::sync::Arc::clone(&program), user.clone());
            let trial = Trial::test(format!("{}::{case}", fixture::name(&user)), move || {
                Ok(program.run(user?, case)?)
            });
            trials.push(trial.with_ignored_flag(reason.is_some()));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
