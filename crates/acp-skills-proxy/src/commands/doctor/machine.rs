//! Programs on this machine that are too old for an agent, and the order of versions.

use std::{
    ffi::OsString,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use acp_skills::agents;

/// The maximum time for `node --version`, which usually takes less than a tenth of a second.
const NODE_TIMEOUT: Duration = Duration::from_secs(10);

/// Explains that the installed Node.js can't run the current version of the agent. Returns `None` if it can, if that is not known, or if
/// the command doesn't use npx: an installed program may have a Node.js of its own.
///
/// With an old Node.js, npx silently installs an old version of a package.
pub(super) fn old_node(command: &[OsString]) -> Option<String> {
    if !is_npx(command) {
        return None;
    }
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let agent = agents::of_command(&words)?;
    let needed = agent.node?;
    let version = node_version()?;
    let major: u32 = version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()?;
    (major < needed).then(|| {
        format!(
            "Node.js {major} is too old for the current version of {}, which needs {needed}; npx uses an old version of the agent then",
            agent.name
        )
    })
}

/// Returns true if the program of a command is `npx`.
fn is_npx(command: &[OsString]) -> bool {
    command.first().and_then(|program| Path::new(program).file_stem()).is_some_and(|name| name == "npx")
}

/// Returns what `node --version` prints. Returns `None` if it fails, or does not end in time.
fn node_version() -> Option<String> {
    let mut command = Command::new("node");
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let (sender, output) = mpsc::channel();
    thread::Builder::new().spawn(move || sender.send(command.output())).ok()?;
    let output = output.recv_timeout(NODE_TIMEOUT).ok()?.ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns true if `version` is older than `other`. Only the numbers of `other` are compared, so 1.18.3 is not older than 1.18.
pub(super) fn is_older(version: &str, other: &str) -> bool {
    let numbers = |text: &str| -> Vec<u64> {
        let text = text.trim_start_matches('v');
        text.split(['.', '-', ' ']).map_while(|number| number.parse().ok()).collect()
    };
    let (ours, other) = (numbers(version), numbers(other));
    !ours.is_empty() && ours.iter().take(other.len()).lt(other.iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_npx_uses_the_installed_node() {
        for (program, expected) in [
            ("npx", true),
            ("/usr/bin/npx", true),
            ("npx.cmd", true),
            ("claude-agent-acp", false),
            ("node", false),
        ] {
            assert_eq!(is_npx(&[program.into(), "x".into()]), expected, "{program}");
        }
        assert!(!is_npx(&[]));
    }

    #[test]
    fn versions_are_compared_by_number() {
        for (version, other, expected) in [
            ("0.49.0", "0.100", true),
            ("0.100.4", "0.100", false),
            ("0.101.0", "0.100", false),
            ("1.0", "0.100", false),
            ("v1.17.9", "1.18", true),
            ("1", "1.18", true),
            ("", "1.18", false),
            ("dev", "1.18", false),
        ] {
            assert_eq!(is_older(version, other), expected, "{version} and {other}");
        }
    }
}
