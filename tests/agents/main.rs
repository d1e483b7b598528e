//! Runs real agents, first directly and then through the proxy, against a scripted model that serves their providers' APIs:
//!
//!     AGENTS_HOME=~/.cache/acp-agents cargo test -p acp-skills-proxy --test agents -- NAME
//!
//! A test is skipped with a message if `AGENTS_HOME` is not set or the agent is not installed there. With `AGENTS_INSTALL=1`,
//! missing agents are installed first (npm, Python, cargo). With `AGENTS_WRITE=1`, the results of agents without any problem
//! are written to the program's table of agents, from which the README's table is generated. The tests run on Linux only
//! because they look for leftover processes in `/proc`.
//!
//! | file | owns |
//! |---|---|
//! | `agents.json`, `catalogue` | the agents, their versions, and how each is installed and started |
//! | `model/` | the scripted model |
//! | `client` | the ACP client |
//! | `conversation/` | the conversation with an agent, and the observations that it yields |
//! | `verdict` | comparing the direct and the proxied run, and checking what the proxy promises |
//! | `clients` | third-party clients (`AGENTS_CLIENTS=1`) |
//! | `ledger` | writing the results to the program's table of agents |
//! | `recorder` | recordings for the replay tests (`AGENTS_RECORD=DIR`) |

#![expect(clippy::print_stdout, reason = "the tests print which ones are skipped, and a table of results")]
#![cfg_attr(
    target_os = "linux",
    expect(
        clippy::print_stderr,
        clippy::disallowed_methods,
        reason = "the tests report their progress, and work with files and processes"
    )
)]

#[cfg(target_os = "linux")]
mod catalogue;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod clients;
#[cfg(target_os = "linux")]
mod conversation;
#[cfg(target_os = "linux")]
mod ledger;
#[cfg(target_os = "linux")]
mod model;
#[cfg(target_os = "linux")]
mod recorder;
#[cfg(target_os = "linux")]
mod verdict;

use std::process::ExitCode;

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    println!("SKIPPED: real agents are tested on Linux only");
    ExitCode::SUCCESS
}

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use std::{
        env,
        sync::{Arc, Mutex},
    };

    use libtest_mimic::{Arguments, Trial};

    // To make a recording, the proxy or the client will start this binary instead of the agent.
    if let Some(code) = recorder::run_as_tee() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    // We only run one test at a time, because agents use a lot of memory, and we can't measure anything if the machine is busy.
    arguments.test_threads.get_or_insert(1);
    let home = catalogue::home();
    let catalogue = catalogue::read();
    let rows = Arc::new(Mutex::new(Vec::new()));
    let mut trials = Vec::new();
    for spec in &catalogue.agents {
        let is_wanted = arguments.filter.as_ref().is_none_or(|filter| spec.id.contains(filter));
        let mut is_here = home.as_ref().is_some_and(|home| spec.is_installed(home));
        if let Some(home) =
            home.as_ref().filter(|_| is_wanted && !is_here && env::var_os("AGENTS_INSTALL").is_some())
        {
            println!("installing {} {} …", spec.id, spec.version());
            match catalogue.install(spec, home) {
                Ok(()) => is_here = spec.is_installed(home),
                Err(why) => println!("cannot install {}: {why}", spec.id),
            }
        }
        if is_wanted && !is_here && !arguments.list {
            let why = if home.is_some() { "not installed in AGENTS_HOME" } else { "AGENTS_HOME is not set" };
            eprintln!("SKIPPED: {} {}: {why}", spec.id, spec.version());
        }
        if let Some(home) = home.clone().filter(|_| is_here && env::var_os("AGENTS_CLIENTS").is_some()) {
            for client in clients::CLIENTS.into_iter().filter(|client| clients::fits(client, spec, &home)) {
                let spec = spec.clone();
                let home = home.clone();
                trials.push(Trial::test(format!("{client} {}", spec.id), move || {
                    println!("{client} {}: {}", spec.id, clients::compare(client, &spec, &home)?);
                    Ok(())
                }));
            }
        }
        let spec = spec.clone();
        let installed = home.clone().unwrap_or_default();
        let rows = Arc::clone(&rows);
        let trial = Trial::test(spec.id.clone(), move || {
            if let Some(dir) = env::var_os("AGENTS_RECORD") {
                return recorder::record(&spec, &installed, dir.as_ref()).map_err(Into::into);
            }
            let (row, problems) = verdict::judge(&spec, &installed);
            if problems.is_empty() && env::var_os("AGENTS_WRITE").is_some() {
                ledger::write(&spec, &row)?;
            }
            rows.lock().expect("no test panicked while it held the lock").push(row);
            if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
        });
        trials.push(trial.with_ignored_flag(!is_here));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    verdict::table(&rows.lock().expect("no test panicked while it held the lock"));
    conclusion.exit_code()
}
