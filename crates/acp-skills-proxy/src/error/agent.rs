//! Hints for an agent that can't be started.

use std::{env, ffi::OsStr, io, path::Path};

use acp_skills::{agents, config::shorten_home, one_shot::StartError};
use skills_core::text::shown_path;

use crate::system;

/// Returns a hint that explains how to fix `error`, if there is one.
pub(super) fn hint(error: &StartError) -> Option<String> {
    let program = Path::new(&error.program);
    match error.source.kind() {
        _ if error.program.is_empty() => None,
        io::ErrorKind::NotFound => Some(not_found(program, env::var_os("PATH").as_deref())),
        io::ErrorKind::PermissionDenied => Some(not_executable(program)),
        // On Windows, the standard library uses this message.
        io::ErrorKind::InvalidInput if error.source.to_string().contains("batch file") => Some(
            "batch file arguments cannot contain a line break, because the next line could run as a command; start \
             the program directly, for example `node …\\cli.js`, or use a file for the text"
                .to_owned(),
        ),
        _ => None,
    }
}

fn not_found(program: &Path, search: Option<&OsStr>) -> String {
    let shown = shown_path(program);
    let words: Vec<_> = shown.split_whitespace().map(str::to_owned).collect();
    if words.len() > 1 && !program.exists() && !is_path_with_spaces(&words) {
        let list: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
        return format!(
            "command was passed as a single string; use separate arguments instead: `-- {}`, or in editor settings {}",
            words.join(" "),
            list.join(", ")
        );
    }
    if program.is_file() {
        return "file exists, but the interpreter from the first line does not".to_owned();
    }
    if program.components().count() > 1 {
        let directory = match env::current_dir() {
            Ok(dir) if program.is_relative() => format!(" in {}", shown_path(&dir)),
            _ => String::new(),
        };
        return format!("file does not exist{directory}");
    }
    let search = match search {
        Some(path) => format!("\nPATH is {}", shown_path(Path::new(path))),
        None => "\nPATH is not set".to_owned(),
    };
    let package = agents::find(&shown).ok().and_then(|agent| match (agent.npx, agent.uvx) {
        (Some(_), _) => Some((agent, "npx")),
        (None, Some(_)) => Some((agent, "uvx")),
        (None, None) => None,
    });
    let by_name = package.map_or_else(String::new, |(agent, runner)| {
        format!("; use `--agent {}` instead of `-- {shown}` to run its package with {runner}", agent.id)
    });
    format!(
        "program is not in PATH{by_name}; editors may use a different PATH than your terminal, but an absolute path always works{search}"
    )
}

/// Returns true if the words are a path with spaces, such as `C:\Program Files\agent.exe`, and not a command such as `/bin/node
/// /opt/agent`.
fn is_path_with_spaces(words: &[String]) -> bool {
    let is_separator = |c: char| c == '/' || c == '\\';
    let continues_path = |word: &String| {
        word.contains(is_separator) && !word.starts_with(is_separator) && !word.starts_with('-')
    };
    words[0].contains(is_separator)
        && !Path::new(&words[0]).is_file()
        && words[1..].iter().any(continues_path)
}

fn not_executable(program: &Path) -> String {
    let shown = shorten_home(program);
    if program.is_dir() {
        return "path is a directory, but the agent must be a program".to_owned();
    }
    system::make_executable_hint(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_not_a_path_with_spaces() {
        for (text, is_path) in [
            (r"C:\Program Files\agent.exe", true),
            ("/opt/my agent/bin/agent", true),
            ("npx -y @agentclientprotocol/claude-agent-acp", false),
            ("/nowhere/node /opt/agent.js", false),
            ("/nowhere/gemini --acp", false),
            ("gemini --acp", false),
        ] {
            let words: Vec<_> = text.split(' ').map(str::to_owned).collect();
            assert_eq!(is_path_with_spaces(&words), is_path, "{text}");
            assert_eq!(not_found(Path::new(text), None).contains("single string"), !is_path, "{text}");
        }
    }
}
