//! [`Shell`]: true if the agent's shell may have left the working directory of the session. Some agents keep the directory of their shell
//! between commands, and don't ask before `cd`. A relative path then leads to another program, and `git` reads other settings.

use acp_skills_wire::Node;

use crate::Workspace;

/// Commands of shells that change the working directory.
const MOVES: [&str; 7] = ["cd", "chdir", "popd", "push-location", "pushd", "set-location", "sl"];

/// The agent's shell.
#[derive(Debug, Default)]
pub(crate) struct Shell {
    has_moved: bool,
}

impl Shell {
    /// Looks at the input of a tool call. Lists of words are started without a shell that stays.
    pub(crate) fn runs(&mut self, input: Option<Node<'_>>, workspace: &Workspace) {
        let Some(command) = input.and_then(|input| input.get("command")?.as_str()) else { return };
        let text = command.replace(['\'', '"', '\\'], "");
        let is_end = |c: char| c.is_whitespace() || ";&|(){}`$<>".contains(c);
        if !text.split(is_end).any(|word| MOVES.contains(&&*word.to_ascii_lowercase())) {
            return;
        }
        let target = text.trim().strip_prefix("cd ").map(str::trim);
        let cwd = workspace.cwd.as_deref().and_then(std::path::Path::to_str);
        self.has_moved = target.is_none() || target != cwd;
    }

    /// Returns true if the shell may be in another directory than the session.
    pub(crate) fn has_moved(&self) -> bool {
        self.has_moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_that_leaves_the_directory() {
        for (commands, expected) in [
            (&["ls", "git log --grep=cdrom", "./cd.sh"] as &[&str], false),
            (&["cd vendor/evil"], true),
            (&["ls && cd x"], true),
            (&["'c'd x"], true),
            (&["(pushd x)"], true),
            (&["cd vendor", "ls"], true),
            (&["cd vendor", "cd /project"], false),
            (&["cd /project", "cd /project/x"], true),
            (&["cd /project && cd x"], true),
        ] {
            let mut shell = Shell::default();
            for command in commands {
                let input = serde_json::json!({ "command": command }).to_string();
                shell.runs(Node::parse(input.as_bytes()), &Workspace::of("/project"));
            }
            assert_eq!(shell.has_moved(), expected, "{commands:?}");
        }
        let mut shell = Shell::default();
        shell.runs(Node::parse(br#"{"command":["bash","-lc","cd x"]}"#), &Workspace::of("/project"));
        assert!(!shell.has_moved());
    }
}
