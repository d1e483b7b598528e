//! Programs on this machine that are too old for an agent, and the order of versions.

use std::{
    ffi::OsString,
    process::{Command, Stdio},
};

use acp_skills::agents;

/// Explains that the installed Node.js can't run the current version of the agent. Returns `None` if it can, or if that is not known.
///
/// With an old Node.js, npx silently installs an old version of a package.
pub(super) fn old_node(command: &[OsString]) -> Option<String> {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let agent = agents::of_command(&words)?;
    let needed = agent.node?;
    let output =
        Command::new("node").arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout);
    let major: u32 = version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()?;
    (major < needed).then(|| {
        format!(
            "Node.js {major} is too old for the current version of {}, which needs {needed}; npx uses an old version of the agent then",
            agent.name
        )
    })
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
