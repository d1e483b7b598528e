//! [`Shell`]: true if the agent's shell may have left the working directory of the session. Some agents keep the directory of their shell
//! between commands, and don't ask before `cd` or before they enter a worktree. A relative path then leads to another program, and `git`
//! reads other settings.

use acp_skills_wire::Node;
use memchr::memchr2_iter;

use crate::Workspace;

/// Commands of shells that change the working directory, or run other text that can.
const MOVES: [&str; 9] =
    ["cd", "chdir", "eval", "popd", "push-location", "pushd", "set-location", "sl", "source"];

/// A word in the name or the input of calls that check out files of the repository in another directory, such as `EnterWorktree`.
const WORKTREE: &str = "worktree";

/// The agent's shell.
#[derive(Debug, Default)]
pub(crate) struct Shell {
    has_moved: bool,
}

impl Shell {
    /// Looks at a tool call of the tool `name`. Lists of words are started without a shell that stays.
    ///
    /// A shell that has moved is never assumed to be back: a `cd` may be refused, and may run in the background or in another shell.
    pub(crate) fn runs(&mut self, call: Node<'_>, name: Option<&str>, workspace: &Workspace) {
        if self.has_moved {
            return;
        }
        let input = call.get("rawInput");
        let title = call.str("title");
        let cwd = workspace.cwd.as_deref().and_then(std::path::Path::to_str);
        let says_worktree = |text: &str| match cwd.filter(|cwd| has_worktree(cwd)) {
            // Each path of this session has the word.
            Some(cwd) => has_worktree(&text.replace(cwd, "")),
            None => has_worktree(text),
        };
        let command = input.and_then(|input| input.get("command")?.as_str());
        self.has_moved = [name, title.as_deref()].into_iter().flatten().any(says_worktree)
            || input.and_then(|input| std::str::from_utf8(input.raw()).ok()).is_some_and(says_worktree)
            || command.is_some_and(|command| changes_directory(&command));
    }

    /// Remembers that the directory of the shell is unknown, because the agent has opened a session again, or copied it.
    pub(crate) fn reopened(&mut self) {
        self.has_moved = true;
    }

    /// Returns true if the shell may be in another directory than the session.
    pub(crate) fn has_moved(&self) -> bool {
        self.has_moved
    }
}

/// Returns true if a text contains [`WORKTREE`] in any case.
fn has_worktree(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_here = |at: usize| {
        bytes.get(at..at + WORKTREE.len()).is_some_and(|word| word.eq_ignore_ascii_case(WORKTREE.as_bytes()))
    };
    memchr2_iter(b'w', b'W', bytes).any(is_here)
}

/// Returns true if a command may change the directory of its shell.
fn changes_directory(command: &str) -> bool {
    let text = command.replace(['\'', '"', '\\'], "");
    let is_end = |c: char| c.is_whitespace() || ";&|(){}`$<>,=".contains(c);
    let sources = |part: &str| part.trim_start().starts_with(". ");
    // In `$'\143d'`, the shell replaces numbers by characters.
    command.contains("$'")
        || text.split([';', '&', '|', '(', '{', '\n']).any(sources)
        || text.split(is_end).any(|word| MOVES.contains(&&*word.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn has_moved(cwd: &str, calls: &[(&str, Value)]) -> bool {
        let mut shell = Shell::default();
        for (name, input) in calls {
            let call = json!({ "rawInput": input }).to_string();
            shell.runs(Node::parse(call.as_bytes()).unwrap(), Some(name), &Workspace::of(cwd));
        }
        shell.has_moved()
    }

    #[test]
    fn a_shell_that_leaves_the_directory() {
        for (commands, expected) in [
            (&["ls", "git log --grep=cdrom", "./cd.sh", "find . -name x"] as &[&str], false),
            (&["cd vendor/evil"], true),
            (&["ls && cd x"], true),
            (&["'c'd x"], true),
            (&["(pushd x)"], true),
            (&["cd vendor", "ls"], true),
            (&["{cd,vendor}"], true),
            (&["x=cd; $x vendor"], true),
            (&["$'\\143d' vendor"], true),
            (&["ls && . ./vendor/env"], true),
            // This command may be refused, or run in the background.
            (&["cd vendor", "cd /project"], true),
            (&["cd /project"], true),
            (&["git worktree add ../x"], true),
        ] {
            let calls: Vec<_> =
                commands.iter().map(|command| ("Bash", json!({ "command": command }))).collect();
            assert_eq!(has_moved("/project", &calls), expected, "{commands:?}");
        }
        assert!(!has_moved("/project", &[("shell", json!({ "command": ["bash", "-lc", "cd x"] }))]));
    }

    #[test]
    fn a_worktree_is_another_directory() {
        let here = "/home/me/worktrees/a";
        for (cwd, name, input, expected) in [
            ("/project", "EnterWorktree", json!({}), true),
            ("/project", "exit_worktree", json!({}), true),
            ("/project", "Agent", json!({ "isolation": "worktree" }), true),
            ("/project", "Agent", json!({ "isolation": "none", "w": "www" }), false),
            ("/project", "Read", json!({ "file_path": "/project/.claude/WORKTREES/x" }), true),
            (here, "Read", json!({ "file_path": "/home/me/worktrees/a/b" }), false),
            (here, "Read", json!({ "file_path": "/home/me/worktrees/b" }), true),
            (here, "EnterWorktree", json!({}), true),
        ] {
            assert_eq!(has_moved(cwd, &[(name, input.clone())]), expected, "{cwd} {name} {input}");
        }
    }
}
