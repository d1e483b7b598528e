//! Black-box tests of the proxy: its binary runs between a scripted editor and a scripted agent, over real pipes.
//!
//! | file | contents |
//! |---|---|
//! | `editor` | the scripted editor: starts the proxy, writes and reads lines, and fails on a line that isn't JSON-RPC |
//! | `agent` | the scripted agent: what this binary does if the proxy starts it as its agent |
//! | `fixture` | both ends behind one interface, so that a test reads as a conversation |
//! | `skills` | the skills that the tests use |
//! | `file_server` | a server with files, such as archives |
//! | `repositories` | git repositories, and users with their own home directory |
//! | `machine` | a machine with a policy of an administrator |
//!
//! The other files are the tests, by topic. Tests don't sleep: they wait for an event, with a generous deadline.

#![expect(clippy::disallowed_methods, reason = "the scripted agent of these tests writes to its own stdout")]

mod agent;
mod approval;
mod approved;
mod archives;
mod cache;
mod catalog;
mod chain;
mod chain_ends;
mod clients;
mod collector;
mod commands;
mod compaction;
mod conformance;
mod decisions;
mod drafts;
mod editor;
mod elsewhere;
mod event_file_faults;
mod events;
#[cfg(target_os = "linux")]
mod faults;
mod file_server;
#[cfg(target_os = "linux")]
mod files_and_disks;
mod fixture;
mod flow;
mod git;
mod http_access;
mod joining;
mod killed;
#[cfg(unix)]
mod local_socket;
mod lock_file;
#[cfg(unix)]
mod login;
#[cfg(target_os = "linux")]
mod machine;
mod mcp_over_acp;
mod nested;
mod on_demand;
mod oversize;
mod packages;
#[cfg(target_os = "linux")]
mod policy;
#[cfg(target_os = "linux")]
mod policy_files;
mod private_authorities;
mod progress;
mod project_tree;
mod reload;
mod remotes;
mod repositories;
mod root_rights;
mod roots;
#[cfg(target_os = "linux")]
mod sandboxed;
mod script_queue;
mod scripts;
mod sessions;
mod signatures;
mod single_skills;
mod site_archives;
mod skill_server;
mod skill_server_faults;
mod skill_servers;
mod skills;
#[cfg(target_os = "linux")]
#[path = "../soak/soak.rs"]
mod soak;
mod source;
mod start;
mod state;
mod supervision;
mod switches;
mod team;
mod telemetry;
mod telemetry_faults;
mod tool_server_extras;
mod tool_server_faults;
mod tool_server_http;
#[cfg(unix)]
mod tool_server_secrets;
mod tool_server_sessions;
mod tool_servers;
mod tools;
mod trust;
mod trust_commands;
mod trust_in_advance;
mod trust_question;
mod unresponsive;
mod untrust;
mod update;
mod update_check;
mod version;
mod waiting;
#[cfg(windows)]
mod windows;
mod wire;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Lists the tests of a file, under the file's name.
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

/// Returns true if the tests run under Wine, which lacks some features of Windows. Each test that calls this says which one.
fn is_wine() -> bool {
    cfg!(windows) && std::env::var_os("WINEHOMEDIR").is_some()
}

fn main() -> ExitCode {
    // If this is set, we've been started by the proxy, and we should run as the agent.
    if let Ok(script) = std::env::var(agent::SCRIPT) {
        return agent::run(&script);
    }
    let mut trials = Vec::new();
    trials.extend(approval::trials());
    trials.extend(approved::trials());
    trials.extend(archives::trials());
    trials.extend(cache::trials());
    trials.extend(catalog::trials());
    trials.extend(chain::trials());
    trials.extend(chain_ends::trials());
    trials.extend(clients::trials());
    trials.extend(commands::trials());
    trials.extend(compaction::trials());
    trials.extend(conformance::trials());
    trials.extend(decisions::trials());
    trials.extend(drafts::trials());
    trials.extend(elsewhere::trials());
    trials.extend(event_file_faults::trials());
    trials.extend(events::trials());
    #[cfg(target_os = "linux")]
    trials.extend(faults::trials());
    #[cfg(target_os = "linux")]
    trials.extend(files_and_disks::trials());
    trials.extend(flow::trials());
    trials.extend(git::trials());
    trials.extend(http_access::trials());
    trials.extend(killed::trials());
    #[cfg(unix)]
    trials.extend(local_socket::trials());
    trials.extend(lock_file::trials());
    #[cfg(unix)]
    trials.extend(login::trials());
    trials.extend(mcp_over_acp::trials());
    trials.extend(on_demand::trials());
    trials.extend(oversize::trials());
    trials.extend(packages::trials());
    #[cfg(target_os = "linux")]
    trials.extend(policy::trials());
    #[cfg(target_os = "linux")]
    trials.extend(policy_files::trials());
    trials.extend(private_authorities::trials());
    trials.extend(progress::trials());
    trials.extend(reload::trials());
    trials.extend(remotes::trials());
    #[cfg(target_os = "linux")]
    trials.extend(sandboxed::trials());
    trials.extend(sessions::trials());
    trials.extend(script_queue::trials());
    trials.extend(scripts::trials());
    #[cfg(target_os = "linux")]
    trials.extend(soak::trials());
    trials.extend(signatures::trials());
    trials.extend(single_skills::trials());
    trials.extend(site_archives::trials());
    trials.extend(skill_server_faults::trials());
    trials.extend(skill_servers::trials());
    trials.extend(source::trials());
    trials.extend(start::trials());
    trials.extend(state::trials());
    trials.extend(supervision::trials());
    trials.extend(switches::trials());
    trials.extend(team::trials());
    trials.extend(telemetry::trials());
    trials.extend(telemetry_faults::trials());
    trials.extend(tool_server_extras::trials());
    trials.extend(tool_server_faults::trials());
    trials.extend(tool_server_http::trials());
    #[cfg(unix)]
    trials.extend(tool_server_secrets::trials());
    trials.extend(tool_server_sessions::trials());
    trials.extend(tool_servers::trials());
    trials.extend(tools::trials());
    trials.extend(nested::trials());
    trials.extend(root_rights::trials());
    trials.extend(roots::trials());
    trials.extend(project_tree::trials());
    trials.extend(joining::trials());
    trials.extend(trust::trials());
    trials.extend(trust_in_advance::trials());
    trials.extend(trust_question::trials());
    trials.extend(unresponsive::trials());
    trials.extend(untrust::trials());
    trials.extend(update::trials());
    trials.extend(update_check::trials());
    trials.extend(trust_commands::trials());
    trials.extend(version::trials());
    trials.extend(waiting::trials());
    #[cfg(windows)]
    trials.extend(windows::trials());
    trials.extend(wire::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
