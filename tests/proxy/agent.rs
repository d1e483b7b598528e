//! The scripted agent: what this binary is when the proxy, or a skill, starts it.
//!
//! The environment variable [`SCRIPT`] says which part it plays. What it wants to tell the test without using the wire
//! goes to stderr, as lines that begin with `agent: `.

mod client;
mod parts;
mod scripted;
pub(crate) mod scripts;

use std::{
    io::{self, Write},
    process::ExitCode,
};

/// Names the part to play.
pub(crate) const SCRIPT: &str = "PROXY_TEST_AGENT";
/// A part of the proxy's marks, and what reports of the agent's have instead of it.
pub(crate) const MARK: &str = "acp-skills-proxy:";
pub(crate) const MARK_REPORTED: &str = "acp-skills_proxy:";

/// The file whose bytes `tape` says.
pub(crate) const SAYS: &str = "PROXY_TEST_SAYS";
/// The file that `tape` writes what it hears to, and that `deaf` waits for.
pub(crate) const HEARS: &str = "PROXY_TEST_HEARS";

/// How many bytes `flood` says.
pub(crate) const FLOOD_BYTES: usize = 100 * 1024 * 1024;

/// Plays a part.
pub(crate) fn run(script: &str) -> ExitCode {
    if let Some(name) = script.strip_prefix(scripts::PREFIX) {
        return scripts::run(name);
    }
    match script {
        "scripted" => scripted::run(),
        "tape" => parts::tape(),
        "arguments" => parts::arguments(),
        "echo" => parts::echo(),
        "flood" => parts::flood(),
        "deaf" => parts::deaf(),
        "deaf and dumb" => parts::deaf_and_dumb(),
        "stubborn" => parts::stubborn(),
        "slow-to-leave" => parts::slow_to_leave(),
        #[cfg(unix)]
        "signals" => parts::signals(),
        other => panic!("no part is called {other}"),
    }
}

/// Tells the test something.
fn report(what: &str) {
    // One write: others write to stderr too.
    let line = format!("agent: {what}\n");
    drop(io::stderr().write_all(line.as_bytes()));
}
