//! Patterns of shell commands: `Bash(git log:*)`.

use std::path::Path;

use acp_skills_wire::Node;

use super::{Fit, programs, wild};
use crate::tool_paths::has_path;

/// Members that say nothing of what runs.
const BESIDE_COMMAND: [&str; 7] = [
    "command",
    "description",
    "is_background",
    "justification",
    "run_in_background",
    "timeout",
    "timeout_ms",
];

/// Members with the directory in which it runs.
const DIRECTORIES: [&str; 5] = ["cwd", "dir", "directory", "workdir", "working_directory"];

/// What a shell makes of more than one command, or of one that runs others or writes files.
const STEERS: [char; 14] = [';', '&', '|', '`', '$', '<', '>', '(', ')', '{', '}', '\n', '\r', '\\'];

/// How the command in `input` stands to the argument of a pattern.
pub(super) fn fit(pattern: &str, input: Node<'_>, cwd: Option<&Path>) -> Fit {
    // The tool may take the path, and the command may be a word of its own.
    if has_path(input) {
        return Fit::Unsure;
    }
    match text(input).map_or(Fit::Unsure, |command| one(pattern, &command)) {
        Fit::Inside if !is_all(input, cwd) => Fit::Unsure,
        fit => fit,
    }
}

/// The shell command in an input: a text, or a list of words.
fn text(input: Node<'_>) -> Option<String> {
    let node = input.get("command")?;
    if let Some(text) = node.as_str() {
        return Some(text.into_owned());
    }
    let words: Option<Vec<_>> = node.elements().map(|word| word.as_str()).collect();
    // How a list is quoted matters only where a word has space in it, and then nobody can say.
    words.filter(|words| !words.is_empty()).map(|words| {
        let quoted = words.iter().map(|word| {
            if word.contains(char::is_whitespace) { format!("`{word}`") } else { word.to_string() }
        });
        quoted.collect::<Vec<_>>().join(" ")
    })
}

/// Whether the command is all that an input says of what runs: not in another directory, with other variables, or without the
/// agent's own sandbox.
fn is_all(input: Node<'_>, cwd: Option<&Path>) -> bool {
    input.members().all(|(key, value)| {
        let is_off = value.is_null() || value.as_bool() == Some(false);
        let is_here = || {
            let Some(directory) = value.as_str() else { return false };
            directory.is_empty() || directory == "." || cwd == Some(Path::new(&*directory))
        };
        let is = |names: &[&str]| names.iter().any(|name| key.is_str(name));
        is_off || is(&BESIDE_COMMAND) || is(&DIRECTORIES) && is_here()
    })
}

fn one(pattern: &str, command: &str) -> Fit {
    let command = command.trim();
    let fits = match pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *")) {
        Some(prefix) => {
            let prefix = prefix.trim_end();
            let begins = |prefix: &str| {
                command
                    .strip_prefix(prefix)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
            };
            if prefix.contains('*') {
                wild(&format!("{prefix} *"), command) || wild(prefix, command)
            } else {
                begins(prefix)
            }
        }
        None => wild(pattern, command),
    };
    let is_plain = !command.contains(STEERS) && !command.contains(|c: char| c.is_control() && c != '\t');
    match fits {
        true if is_plain && programs::says_what_runs(pattern, command) => Fit::Inside,
        true => Fit::Unsure,
        false => Fit::Outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_beside_a_command() {
        for (input, expected) in [
            (r#"{"command":"ls","description":"Lists.","timeout":5}"#, Fit::Inside),
            (r#"{"command":"ls","run_in_background":true}"#, Fit::Inside),
            (r#"{"command":"ls","cwd":"/project"}"#, Fit::Inside),
            (r#"{"command":"ls","workdir":"."}"#, Fit::Inside),
            (r#"{"command":"ls","directory":""}"#, Fit::Inside),
            (r#"{"command":"ls","dangerouslyDisableSandbox":false}"#, Fit::Inside),
            (r#"{"command":"ls","env":null}"#, Fit::Inside),
            (r#"{"command":"ls","dangerouslyDisableSandbox":true}"#, Fit::Unsure),
            (r#"{"command":"ls","cwd":"/elsewhere"}"#, Fit::Unsure),
            (r#"{"command":"ls","env":{"LD_PRELOAD":"evil"}}"#, Fit::Unsure),
            (r#"{"command":"ls","args":["-l"]}"#, Fit::Unsure),
            (r#"{"command":"ls","cmd":"rm -rf x"}"#, Fit::Unsure),
            (r#"{"command":"ls","path":"src"}"#, Fit::Unsure),
            (r#"{"command":"ls\u0000rm"}"#, Fit::Outside),
            (r#"{"command":"ls \u0000rm"}"#, Fit::Unsure),
            (r#"{"command":{}}"#, Fit::Unsure),
        ] {
            let node = Node::parse(input.as_bytes()).unwrap();
            assert_eq!(fit("ls:*", node, Some(Path::new("/project"))), expected, "{input}");
        }
    }
}
