//! What to do about an agent that does not start.

use std::{env, ffi::OsStr, io, path::Path};

use acp_skills::{agents, one_shot::StartError};
use skills_core::text::shown_path;

use crate::system;

/// What to do about `error`, where that is known.
pub(super) fn hint(error: &StartError) -> Option<String> {
    let program = Path::new(&error.program);
    match error.source.kind() {
        _ if error.program.is_empty() => Some("the agent's command is an empty word".to_owned()),
        io::ErrorKind::NotFound => Some(not_found(program, env::var_os("PATH").as_deref())),
        io::ErrorKind::PermissionDenied => Some(not_executable(program)),
        // What the standard library says on Windows.
        io::ErrorKind::InvalidInput if error.source.to_string().contains("batch file") => Some(
            "no argument of a batch file may have a line break, because it could become a command; start the program \
             that the batch file starts, such as `node …\\cli.js`, or put the text into a file"
                .to_owned(),
        ),
        _ => None,
    }
}

fn not_found(program: &Path, search: Option<&OsStr>) -> String {
    let shown = shown_path(program);
    let words: Vec<_> = shown.split_whitespace().map(str::to_owned).collect();
    if words.len() > 1 && !program.exists() && !is_path_with_blanks(&words) {
        let list: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
        return format!(
            "these are {} words in one: write `-- {}`, in the settings of an editor {}",
            words.len(),
            words.join(" "),
            list.join(", ")
        );
    }
    if program.is_file() {
        return "the file is there, but the interpreter that its first line names is not".to_owned();
    }
    if program.components().count() > 1 {
        let from = match env::current_dir() {
            Ok(dir) if program.is_relative() => format!(" from {} on", shown_path(&dir)),
            _ => String::new(),
        };
        return format!("there is no such file{from}");
    }
    let search = match search {
        Some(path) => format!("it is not in PATH, which is {}", shown_path(Path::new(path))),
        None => "PATH is not set".to_owned(),
    };
    let package = agents::find(&shown).ok().and_then(|agent| match (agent.npx, agent.uvx) {
        (Some(_), _) => Some((agent, "npx")),
        (None, Some(_)) => Some((agent, "uvx")),
        (None, None) => None,
    });
    let by_name = package.map_or_else(String::new, |(agent, runner)| {
        format!("\n`--agent {}` in place of `-- {shown}` runs its package with {runner}", agent.id)
    });
    format!(
        "{search}{by_name}\n(an editor may have another PATH than a terminal: give the program with its directory)"
    )
}

/// Whether words that stand in one are a path that has blanks: `C:\Program Files\agent.exe`, and not `/bin/node /opt/agent`.
fn is_path_with_blanks(words: &[String]) -> bool {
    let is_separator = |c: char| c == '/' || c == '\\';
    let goes_on = |word: &String| {
        word.contains(is_separator) && !word.starts_with(is_separator) && !word.starts_with('-')
    };
    words[0].contains(is_separator) && !Path::new(&words[0]).is_file() && words[1..].iter().any(goes_on)
}

fn not_executable(program: &Path) -> String {
    let shown = shown_path(program);
    if program.is_dir() {
        return "it is a directory; the agent is a program".to_owned();
    }
    system::make_executable_hint(&shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_paths() {
        for (text, is_path) in [
            (r"C:\Program Files\agent.exe", true),
            ("/opt/my agent/bin/agent", true),
            ("npx -y @agentclientprotocol/claude-agent-acp", false),
            ("/nowhere/node /opt/agent.js", false),
            ("/nowhere/gemini --acp", false),
            ("gemini --acp", false),
        ] {
            let words: Vec<_> = text.split(' ').map(str::to_owned).collect();
            assert_eq!(is_path_with_blanks(&words), is_path, "{text}");
            assert_eq!(not_found(Path::new(text), None).contains("words in one"), !is_path, "{text}");
        }
    }
}
