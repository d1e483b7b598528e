//! Parses the agents of an evaluation from the command line.

use std::ffi::OsString;

use acp_skills::agents::{self, AgentError};

use crate::error::UsageError;

/// Returns the agents with their names and commands.
///
/// # Errors
/// Returns an error if an agent is unknown, or if a command is empty or has an unclosed quote.
pub(super) fn named(
    flags: &[String],
    command: Vec<OsString>,
) -> anyhow::Result<Vec<(String, Vec<OsString>)>> {
    if !command.is_empty() {
        let program = std::path::Path::new(&command[0]).file_stem().unwrap_or_default().to_string_lossy();
        let plain: String = program
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' })
            .collect();
        let plain = plain.trim_matches(['-', '_']);
        // The name is not from the user, so we can use a different one if it's not allowed.
        let is_taken = plain.is_empty() || plain.starts_with("eval-") || plain == "triggers";
        let name = if is_taken { "agent".to_owned() } else { plain.to_owned() };
        return Ok(vec![(name, command)]);
    }
    let mut named = Vec::new();
    for text in flags {
        let Some((name, command)) = text.split_once('=') else {
            let agent = agents::find(text).map_err(|error| unknown(text, &error))?;
            named.push((agent.id.to_owned(), agents::command(agent)?));
            continue;
        };
        named.push((name.to_owned(), words(command)?));
    }
    Ok(named)
}

/// Returns the error for an unknown agent. The text may also be a command without a name.
fn unknown(text: &str, error: &AgentError) -> UsageError {
    match error {
        AgentError::Unknown { similar: None, .. } => UsageError::new(format!("unknown agent `{text}`"))
            .hint("`acp-skills-proxy setup --agents` lists the known agents; for another one, use `--agent NAME='COMMAND'`"),
        _ => UsageError::new(error.to_string()).hint(error.hint()),
    }
}

/// Splits a command into words. Quotes group words as in a shell. All other characters have no special meaning.
///
/// # Errors
/// Returns an error if a quote is not closed or if there are no words.
pub(super) fn words(command: &str) -> Result<Vec<OsString>, UsageError> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut quote = None;
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
        (Some(_), _) => Err(UsageError::new(format!("unclosed quote in `{command}`"))),
        (None, true) => Err(UsageError::new("agent command is empty")),
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
