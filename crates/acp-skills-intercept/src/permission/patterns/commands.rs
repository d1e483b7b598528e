//! Matches shell commands with patterns such as `Bash(git log:*)`.

use std::path::Path;

use acp_skills_wire::Node;

use super::{Match, programs, wild};
use crate::tool_paths::has_path;

/// Members that don't affect what runs.
const BESIDE_COMMAND: [&str; 7] = [
    "command",
    "description",
    "is_background",
    "justification",
    "run_in_background",
    "timeout",
    "timeout_ms",
];

/// Members with the working directory.
const DIRECTORIES: [&str; 5] = ["cwd", "dir", "directory", "workdir", "working_directory"];

/// Characters of the shell that combine commands, substitute text, or redirect to files.
const STEERS: [char; 14] = [';', '&', '|', '`', '$', '<', '>', '(', ')', '{', '}', '\n', '\r', '\\'];

/// Returns true if an input names the directory of its command, so that the directory of the agent's shell doesn't matter.
fn names_directory(input: Node<'_>) -> bool {
    DIRECTORIES.iter().any(|name| {
        input.get(name).and_then(|dir| dir.as_str()).is_some_and(|dir| !matches!(&*dir, "" | "."))
    })
}

/// Matches the command in `input` with the argument of a pattern. `has_moved` is true if the agent's shell may be in another directory than
/// `cwd`.
pub(super) fn match_command(pattern: &str, input: Node<'_>, cwd: Option<&Path>, has_moved: bool) -> Match {
    // With a path in the input, we can't tell whether the tool is going to run the command or use the path.
    if has_path(input) {
        return Match::Unsure;
    }
    match text(input).map_or(Match::Unsure, |command| one(pattern, &command)) {
        Match::Inside if !is_all(input, cwd) || has_moved && !names_directory(input) => Match::Unsure,
        result => result,
    }
}

/// Returns the shell command in an input, which is a text or a list of words.
fn text(input: Node<'_>) -> Option<String> {
    let node = input.get("command")?;
    if let Some(text) = node.as_str() {
        return Some(text.into_owned());
    }
    let words: Option<Vec<_>> = node.elements().map(|word| word.as_str()).collect();
    // We don't know how the agent quotes words, but it only matters for words that contain white space. We put these in
    // backquotes, so that we will be unsure about the result.
    words.filter(|words| !words.is_empty()).map(|words| {
        let quoted = words.iter().map(|word| {
            if word.contains(char::is_whitespace) { format!("`{word}`") } else { word.to_string() }
        });
        quoted.collect::<Vec<_>>().join(" ")
    })
}

/// Returns true if nothing but the command affects what runs: no other directory, no environment variables, and no option that
/// turns off the agent's own sandbox.
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

fn one(pattern: &str, command: &str) -> Match {
    let command = command.trim_matches([' ', '\t', '\n', '\r']);
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
    // For a shell, other white space is a part of a word.
    let is_odd = |c: char| (c.is_control() || c.is_whitespace()) && !matches!(c, ' ' | '\t');
    let is_plain = !command.contains(STEERS) && !command.contains(is_odd);
    match fits {
        true if is_plain && programs::allows(pattern, command) => Match::Inside,
        true => Match::Unsure,
        false => Match::Outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_members_of_the_input_count() {
        for (input, expected) in [
            (r#"{"command":"ls","description":"Lists.","timeout":5}"#, Match::Inside),
            (r#"{"command":"ls","run_in_background":true}"#, Match::Inside),
            (r#"{"command":"ls","cwd":"/project"}"#, Match::Inside),
            (r#"{"command":"ls","workdir":"."}"#, Match::Inside),
            (r#"{"command":"ls","directory":""}"#, Match::Inside),
            (r#"{"command":"ls","dangerouslyDisableSandbox":false}"#, Match::Inside),
            (r#"{"command":"ls","env":null}"#, Match::Inside),
            (r#"{"command":"ls","dangerouslyDisableSandbox":true}"#, Match::Unsure),
            (r#"{"command":"ls","cwd":"/elsewhere"}"#, Match::Unsure),
            (r#"{"command":"ls","env":{"LD_PRELOAD":"evil"}}"#, Match::Unsure),
            (r#"{"command":"ls","args":["-l"]}"#, Match::Unsure),
            (r#"{"command":"ls","cmd":"rm -rf x"}"#, Match::Unsure),
            (r#"{"command":"ls","path":"src"}"#, Match::Unsure),
            (r#"{"command":"ls\u0000rm"}"#, Match::Outside),
            (r#"{"command":"ls \u0000rm"}"#, Match::Unsure),
            (r#"{"command":{}}"#, Match::Unsure),
        ] {
            let node = Node::parse(input.as_bytes()).unwrap();
            assert_eq!(match_command("ls:*", node, Some(Path::new("/project")), false), expected, "{input}");
        }
    }

    /// Only a directory in the input says where the command runs.
    #[test]
    fn a_shell_that_has_moved_makes_commands_uncertain() {
        for (input, expected) in [
            (r#"{"command":"ls"}"#, Match::Unsure),
            (r#"{"command":"ls","workdir":"."}"#, Match::Unsure),
            (r#"{"command":"ls","cwd":"/project"}"#, Match::Inside),
            (r#"{"command":"rm x"}"#, Match::Outside),
        ] {
            let node = Node::parse(input.as_bytes()).unwrap();
            assert_eq!(match_command("ls:*", node, Some(Path::new("/project")), true), expected, "{input}");
        }
    }
}
