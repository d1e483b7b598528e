//! The scripted agent: what this binary does if the proxy, or a skill, starts it.
//!
//! The environment variable [`SCRIPT`] selects the role. Reports to the test that should not pass through the proxy go to
//! stderr, as lines that begin with `agent: `.

mod client;
mod roles;
mod scripted;
pub(crate) mod scripts;
pub(crate) mod skill_catalog;
pub(crate) mod tool_server;

use std::{
    io::{self, Write},
    process::ExitCode,
};

/// The environment variable that selects the role.
pub(crate) const SCRIPT: &str = "PROXY_TEST_AGENT";
/// The start of the proxy's marks, and the text that replaces it in the agent's reports.
pub(crate) const MARK: &str = "acp-skills-proxy:";
pub(crate) const MARK_REPORTED: &str = "acp-skills_proxy:";

/// The agent replaces this with [`long_text`] in the lines that it writes.
pub(crate) const LONG: &str = "(long text)";

/// Returns the JSON of a string of more than 1 MiB. Its braces and quotes must not end the text.
pub(crate) fn long_text() -> String {
    r#"\"}\\ "#.repeat(1 << 19)
}

/// The file that the role `tape` writes to its stdout.
pub(crate) const OUTPUT_FILE: &str = "PROXY_TEST_SAYS";
/// The file that `tape` copies its stdin to, and that `deaf` waits for.
pub(crate) const INPUT_FILE: &str = "PROXY_TEST_HEARS";

/// The number of bytes that the role `flood` writes.
pub(crate) const FLOOD_BYTES: usize = 100 * 1024 * 1024;

/// Runs a role until it ends.
pub(crate) fn run(script: &str) -> ExitCode {
    if let Some(name) = script.strip_prefix(scripts::PREFIX) {
        return scripts::run(name);
    }
    if let Some(mode) = script.strip_prefix(tool_server::PREFIX) {
        return tool_server::run(mode);
    }
    if let Some(dir) = script.strip_prefix(skill_catalog::PREFIX) {
        return skill_catalog::run(dir);
    }
    match script {
        "scripted" => scripted::run(),
        "tape" => roles::tape(),
        "arguments" => roles::arguments(),
        "echo" => roles::echo(),
        "flood" => roles::flood(),
        "deaf" => roles::deaf(),
        "deaf and dumb" => roles::silent(),
        "stubborn" => roles::stubborn(),
        "slow-to-leave" => roles::slow_exit(),
        #[cfg(unix)]
        "signals" => roles::signals(),
        other => panic!("no role is called {other}"),
    }
}

/// Reports a line to the test, on stderr.
fn report(text: &str) {
    // We write the line in a single call, because this stderr is shared with other processes.
    let line = format!("agent: {text}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}
