//! The proxy as a black box: its binary between a scripted editor and a scripted agent, over real pipes.
//!
//! | file | owns |
//! |---|---|
//! | `editor` | the editor's end: starts the proxy, writes lines, reads lines, and fails on any that is no JSON-RPC |
//! | `agent` | the agent's end: what this binary does when the proxy starts it as its agent |
//! | `stage` | both ends in one hand, so that a test reads as a conversation |
//! | `fixtures` | the skills of the tests |
//! | `repositories` | git repositories, and users with a home of their own |
//!
//! The others are the tests, by topic. Nothing sleeps: everything waits for an event, with a deadline far away.

#![expect(clippy::disallowed_methods, reason = "the scripted agent of these tests writes to its own stdout")]

mod agent;
mod catalog;
mod chain;
mod clients;
mod commands;
mod conformance;
mod drafts;
mod editor;
mod events;
#[cfg(target_os = "linux")]
mod faults;
mod fixtures;
mod flow;
mod git;
mod http_access;
mod killed;
#[cfg(unix)]
mod login;
mod reload;
mod repositories;
#[cfg(target_os = "linux")]
mod sandboxed;
mod scripts;
mod sessions;
#[cfg(target_os = "linux")]
#[path = "../soak/soak.rs"]
mod soak;
mod source;
mod stage;
mod start;
mod supervision;
mod switches;
mod team;
mod tools;
mod trust;
mod version;
mod waiting;
#[cfg(windows)]
mod windows;
mod wire;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// The tests of a file, under its name.
macro_rules! trials {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
            vec![$($(#[$meta])* crate::trial(module_path!(), stringify!($name), $name)),*]
        }
    };
}
use trials;

fn trial(file: &str, name: &str, test: fn()) -> Trial {
    let file = file.rsplit("::").next().unwrap_or(file);
    Trial::test(format!("{file}::{name}"), move || {
        test();
        Ok(())
    })
}

/// Whether Windows is played by Wine, which lacks a little of it. Each test that asks says what.
fn is_wine() -> bool {
    cfg!(windows) && std::env::var_os("WINEHOMEDIR").is_some()
}

fn main() -> ExitCode {
    // Started by the proxy and not by a person.
    if let Ok(script) = std::env::var(agent::SCRIPT) {
        return agent::run(&script);
    }
    let mut trials = Vec::new();
    trials.extend(catalog::trials());
    trials.extend(chain::trials());
    trials.extend(clients::trials());
    trials.extend(commands::trials());
    trials.extend(conformance::trials());
    trials.extend(drafts::trials());
    trials.extend(events::trials());
    #[cfg(target_os = "linux")]
    trials.extend(faults::trials());
    trials.extend(flow::trials());
    trials.extend(git::trials());
    trials.extend(http_access::trials());
    trials.extend(killed::trials());
    #[cfg(unix)]
    trials.extend(login::trials());
    trials.extend(reload::trials());
    #[cfg(target_os = "linux")]
    trials.extend(sandboxed::trials());
    trials.extend(sessions::trials());
    trials.extend(scripts::trials());
    #[cfg(target_os = "linux")]
    trials.extend(soak::trials());
    trials.extend(source::trials());
    trials.extend(start::trials());
    trials.extend(supervision::trials());
    trials.extend(switches::trials());
    trials.extend(team::trials());
    trials.extend(tools::trials());
    trials.extend(trust::trials());
    trials.extend(version::trials());
    trials.extend(waiting::trials());
    #[cfg(windows)]
    trials.extend(windows::trials());
    trials.extend(wire::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
