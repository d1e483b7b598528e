//! The agents of an evaluation, as command lines name them.

use std::ffi::OsString;

use acp_skills::agents::{self, AgentError};

use crate::error::UsageError;

/// The agents by name.
pub(super) fn named(said: &[String], command: Vec<OsString>) -> anyhow::Result<Vec<(String, Vec<OsString>)>> {
    if !command.is_empty() {
        let program = std::path::Path::new(&command[0]).file_stem().unwrap_or_default().to_string_lossy();
        let plain: String = program
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' })
            .collect();
        let plain = plain.trim_matches(['-', '_']);
        // Nobody chose this name, so it is never a wrong one.
        let is_taken = plain.is_empty() || plain.starts_with("eval-") || plain == "triggers";
        let name = if is_taken { "agent".to_owned() } else { plain.to_owned() };
        return Ok(vec![(name, command)]);
    }
    let mut named = Vec::new();
    for text in said {
        let Some((name, command)) = text.split_once('=') else {
            let agent = agents::find(text).map_err(|error| unknown(text, &error))?;
            named.push((agent.id.to_owned(), agents::command(agent)?));
            continue;
        };
        named.push((name.to_owned(), words(command)?));
    }
    Ok(named)
}

/// A name that is no agent's may be a command that was given no name.
fn unknown(text: &str, error: &AgentError) -> UsageError {
    match error {
        AgentError::Unknown { similar: None, .. } => {
            UsageError::new(format!("no agent is known as `{text}`"))
                .hint(format!("a command of your own needs a name: `--agent NAME='{text}'`"))
        }
        _ => UsageError::new(error.to_string()).hint(error.hint()),
    }
}

/// The words of a command. Quotes hold words together, as in a shell; nothing else means anything.
pub(super) fn words(command: &str) -> Result<Vec<OsString>, UsageError> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take().map(OsString::from)),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.map(OsString::from));
    match (quote, words.is_empty()) {
        (Some(_), _) => Err(UsageError::new(format!("a quote is not closed in `{command}`"))),
        (None, true) => Err(UsageError::new("the command of an agent is empty")),
        (None, false) => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_words() {
        for (command, expected) in [
            ("gemini --acp", vec!["gemini", "--acp"]),
            ("  a\t'b c' \"d 'e'\" ''", vec!["a", "b c", "d 'e'", ""]),
            ("x=y$HOME;ls", vec!["x=y$HOME;ls"]),
        ] {
            assert_eq!(words(command).unwrap(), expected, "{command}");
        }
        for command in ["", "   ", "a 'b"] {
            assert!(words(command).is_err(), "{command}");
        }
    }
}
