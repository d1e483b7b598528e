//! Parses the agents of an evaluation from the command line.

use std::ffi::OsString;

use acp_skills::agents::{self, AgentError};
use acp_skills_eval::AgentCommand;
use skills_core::catalog::Style;

use crate::error::UsageError;

/// Returns the agents with their names and commands.
///
/// # Errors
/// Returns an error if an agent is unknown, or if a command is empty or has an unclosed quote.
pub(super) fn named(flags: &[String], command: Vec<OsString>) -> anyhow::Result<Vec<AgentCommand>> {
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
        return Ok(vec![AgentCommand::new(name, command)]);
    }
    let mut named = Vec::new();
    for text in flags {
        let Some((name, command)) = text.split_once('=') else {
            let agent = agents::find(text).map_err(|error| unknown(text, &error))?;
            named.push(AgentCommand::new(agent.id, agents::command(agent)?));
            continue;
        };
        named.push(AgentCommand::new(name, words(command)?));
    }
    Ok(named)
}

/// Returns a row for each model of each agent. An agent without models keeps its own choice.
///
/// # Errors
/// Returns an error if a value has no models.
pub(super) fn with_models(
    agents: Vec<AgentCommand>,
    values: &[String],
) -> Result<Vec<AgentCommand>, UsageError> {
    let mut of_agents = vec![Vec::new(); agents.len()];
    for value in values {
        let named = value.split_once('=').and_then(|(name, models)| {
            let place = agents.iter().position(|agent| agent.name == name)?;
            Some((place..=place, models))
        });
        let (places, models) = named.unwrap_or((0..=agents.len().saturating_sub(1), value));
        let models: Vec<_> = models.split(',').map(str::trim).filter(|model| !model.is_empty()).collect();
        if models.is_empty() {
            return Err(UsageError::new(format!("no models in `{value}`"))
                .hint("separate the names of models by commas: `--models opus,haiku`"));
        }
        for place in places {
            of_agents[place].extend(models.iter().map(|model| (*model).to_owned()));
        }
    }
    let mut rows = Vec::new();
    for (agent, models) in agents.into_iter().zip(of_agents) {
        if models.is_empty() {
            rows.push(agent);
            continue;
        }
        for model in models {
            let mut row = agent.clone();
            row.name = format!("{}-{}", agent.name, plain(&model));
            row.model = Some(model);
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Returns a row for each style of the catalog for each agent.
pub(super) fn with_styles(agents: Vec<AgentCommand>) -> Vec<AgentCommand> {
    let styled = |agent: AgentCommand| {
        Style::ALL.map(|style| {
            let mut row = agent.clone();
            row.name = format!("{}-{}", agent.name, style.name());
            row.catalog_style = Some(style);
            row
        })
    };
    agents.into_iter().flat_map(styled).collect()
}

/// Returns a text with only the characters that names of agents can have.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect()
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
    fn each_model_is_a_row() {
        let agents = || ["a", "b"].map(|name| AgentCommand::new(name, Vec::new())).to_vec();
        for (values, rows) in [
            (&[][..], &["a", "b"][..]),
            (&["x,y"], &["a-x x", "a-y y", "b-x x", "b-y y"]),
            (&["b=x", "b=y:z"], &["a", "b-x x", "b-y-z y:z"]),
            (&["c=x"], &["a-c-x c=x", "b-c-x c=x"]),
        ] {
            let values: Vec<_> = values.iter().map(|value: &&str| (*value).to_owned()).collect();
            let found = with_models(agents(), &values).unwrap();
            let shown = found.iter().map(|row| match &row.model {
                Some(model) => format!("{} {model}", row.name),
                None => row.name.clone(),
            });
            assert_eq!(shown.collect::<Vec<_>>(), rows, "{values:?}");
        }
        assert!(with_models(agents(), &["a=".to_owned()]).is_err());
    }

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
