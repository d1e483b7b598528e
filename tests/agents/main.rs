//! Real agents, bare and behind the proxy, with a scripted model behind their providers' APIs:
//!
//!     AGENTS_HOME=~/.cache/acp-agents cargo test -p acp-skills-proxy --test agents -- NAME
//!
//! Without AGENTS_HOME, and for agents that are not installed there, the tests are skipped and say so; with
//! `AGENTS_INSTALL=1` they are installed first (npm, Python, cargo). With `AGENTS_WRITE=1` what was seen of those that came out clean
//! goes into the program's table of agents, of which the README's is made. Linux only: what is left of an agent is found in `/proc`.
//!
//! | file | owns |
//! |---|---|
//! | `agents.json`, `catalogue` | which agents, in which versions, and how each is started |
//! | `model/` | the model |
//! | `client` | the client's end |
//! | `visit/` | a conversation, and what was seen of it |
//! | `verdict` | what must be the same bare and proxied, and what the proxy promises |
//! | `clients` | other people's clients (`AGENTS_CLIENTS=1`) |
//! | `ledger` | what is kept of it: the program's table of agents |
//! | `recorder` | recordings for the replay tests (`AGENTS_RECORD=DIR`) |

#![expect(clippy::print_stdout, reason = "tests that are skipped say so, and show a table")]
#![cfg_attr(
    target_os = "linux",
    expect(
        clippy::print_stderr,
        clippy::disallowed_methods,
        reason = "these tests tell what they do, and work with files and processes"
    )
)]

#[cfg(target_os = "linux")]
mod catalogue;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod clients;
#[cfg(target_os = "linux")]
mod ledger;
#[cfg(target_os = "linux")]
mod model;
#[cfg(target_os = "linux")]
mod recorder;
#[cfg(target_os = "linux")]
mod verdict;
#[cfg(target_os = "linux")]
mod visit;

use std::process::ExitCode;

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    println!("SKIPPED: real agents are tested on Linux alone");
    ExitCode::SUCCESS
}

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use std::{
        env,
        sync::{Arc, Mutex},
    };

    use libtest_mimic::{Arguments, Trial};

    // Started as an agent, by the proxy or by a client.
    if let Some(code) = recorder::run_as_tee() {
        return code;
    }
    let mut arguments = Arguments::from_args();
    // Agents need much memory, and a busy machine tells little about time.
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
                Err(why) => println!("{} cannot be installed: {why}", spec.id),
            }
        }
        if is_wanted && !is_here && !arguments.list {
            let why = if home.is_some() { "it is not in AGENTS_HOME" } else { "AGENTS_HOME is not set" };
            eprintln!("SKIPPED: {} {}: {why}", spec.id, spec.version());
        }
        if let Some(home) = home.clone().filter(|_| is_here && env::var_os("AGENTS_CLIENTS").is_some()) {
            for client in clients::CLIENTS.into_iter().filter(|client| clients::fits(client, spec, &home)) {
                let (spec, home) = (spec.clone(), home.clone());
                trials.push(Trial::test(format!("{client} {}", spec.id), move || {
                    println!("{client} {}: {}", spec.id, clients::compare(client, &spec, &home)?);
                    Ok(())
                }));
            }
        }
        let (spec, installed, rows) = (spec.clone(), home.clone().unwrap_or_default(), Arc::clone(&rows));
        let trial = Trial::test(spec.id.clone(), move || {
            if let Some(dir) = env::var_os("AGENTS_RECORD") {
                return recorder::record(&spec, &installed, dir.as_ref()).map_err(Into::into);
            }
            let (row, problems) = verdict::judge(&spec, &installed);
            if problems.is_empty() && env::var_os("AGENTS_WRITE").is_some() {
                ledger::write(&spec, &row)?;
            }
            rows.lock().expect("no test panics with it").push(row);
            if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
        });
        trials.push(trial.with_ignored_flag(!is_here));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    verdict::table(&rows.lock().expect("all tests are over"));
    conclusion.exit_code()
}
