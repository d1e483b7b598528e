//! Adds, changes or removes one agent in the text of settings. Comments, order, line ends and indentation are kept.
//!
//! The result is parsed again before it is returned, to verify that only this agent has changed.

use std::ops::Range;

use jsonc_parser::{
    CollectOptions,
    ast::{Array, Value},
    common::Ranged,
    cst::{CstInputValue, CstRootNode},
    parse_to_ast, parse_to_serde_value,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use skills_core::order;

use super::{
    document::{Document, SettingsError, syntax},
    editors::Format,
};

/// A change of settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Adds an agent.
    Add {
        /// The name of the agent.
        name: String,
        /// The command of the agent.
        words: Vec<String>,
        /// The environment variables of the agent.
        env: Vec<(String, String)>,
    },
    /// Replaces words at the beginning of an agent's command.
    Splice {
        /// The name of the agent.
        name: String,
        /// The words to replace; at least one.
        before: Vec<String>,
        /// The new words; at least one.
        after: Vec<String>,
    },
    /// Removes an agent.
    Remove {
        /// The name of the agent.
        name: String,
    },
}

impl Change {
    /// Returns the name of the agent.
    pub fn name(&self) -> &str {
        match self {
            Self::Add { name, .. } | Self::Splice { name, .. } | Self::Remove { name } => name,
        }
    }

    /// Returns the words of the commands in changes.
    pub fn words(changes: &[Self]) -> Vec<String> {
        let words = |change: &Self| match change {
            Self::Add { words, .. } => words.clone(),
            Self::Splice { before, after, .. } => [before.as_slice(), after].concat(),
            Self::Remove { .. } => Vec::new(),
        };
        changes.iter().flat_map(words).collect()
    }
}

/// An error that leaves settings unchanged.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The text cannot be parsed.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent differs from what the change expects.
    #[error("agent `{0}` has changed in the meantime")]
    Other(String),
    /// The edit would change more than this agent, which is a bug in this module.
    #[error("changing `{0}` would also change other settings")]
    Unsafe(String),
}

/// Returns the document with the change.
///
/// # Errors
/// Returns [`EditError::Settings`] if the text cannot be parsed, [`EditError::Other`] if the agent does not match the change,
/// and [`EditError::Unsafe`] if the result would differ in more than the agent.
pub fn edit(document: &Document, format: &Format, change: &Change) -> Result<Document, EditError> {
    let agents = document.agents(format)?;
    let other = || EditError::Other(change.name().to_owned());
    let is_there = agents.iter().find(|agent| agent.name == change.name());
    match (change, is_there) {
        (Change::Add { .. }, None) | (Change::Remove { .. }, Some(_)) => {}
        (Change::Splice { before, .. }, Some(agent))
            if agent.command().is_some_and(|words| words.starts_with(before)) => {}
        _ => return Err(other()),
    }
    let text = match change {
        Change::Splice { name, before, after } => splice(document, format, name, before.len(), after),
        change => add_or_remove(document, format, change),
    };
    let result = document.with(text.ok_or_else(other)?);
    verify(document, &result, format, change)?;
    Ok(result)
}

/// Returns the text with an agent added or removed.
fn add_or_remove(document: &Document, format: &Format, change: &Change) -> Option<String> {
    let root = CstRootNode::parse(document.text(), &syntax()).ok()?;
    let list = root.object_value_or_create()?.object_value_or_create(format.key)?;
    match change {
        Change::Add { name, words, env } => {
            let _ = list.append(name, entry(format, words, env));
        }
        change => list.get(change.name())?.remove(),
    }
    Some(root.to_string())
}

/// Returns true if the settings have a list of agents, which may be empty.
pub(super) fn has_list(document: &Document, format: &Format) -> bool {
    let value: Option<Json> = parse_to_serde_value(document.text(), &syntax()).ok().flatten();
    value.is_some_and(|value| value.get(format.key).is_some())
}

/// Returns the document without its list of agents if that is empty and has no comments.
pub(super) fn without_empty_list(document: &Document, format: &Format) -> Document {
    let text = || {
        let root = CstRootNode::parse(document.text(), &syntax()).ok()?;
        let list = root.object_value()?.get(format.key)?;
        let value = list.value()?.to_string();
        let is_empty = value.chars().all(|c| c.is_whitespace() || matches!(c, '{' | '}'));
        is_empty.then(|| list.remove())?;
        Some(root.to_string())
    };
    text().map_or_else(|| document.clone(), |text| document.with(text))
}

/// Returns an agent in the format of the editor.
fn entry(format: &Format, words: &[String], env: &[(String, String)]) -> CstInputValue {
    let text = |text: &String| CstInputValue::String(text.clone());
    let texts = |words: &[String]| CstInputValue::Array(words.iter().map(text).collect());
    let mut members = Vec::new();
    if format.has_type {
        members.push(("type".to_owned(), "custom".into()));
    }
    if format.has_argv {
        members.push(("argv".to_owned(), texts(words)));
    } else {
        members.push(("command".to_owned(), words.first().map_or_else(|| "".into(), text)));
        members.push(("args".to_owned(), texts(words.get(1..).unwrap_or_default())));
    }
    if !env.is_empty() || format.has_env {
        let env = env.iter().map(|(name, value)| (name.clone(), text(value)));
        members.push(("env".to_owned(), CstInputValue::Object(env.collect())));
    }
    CstInputValue::Object(members)
}

/// Returns the text with the first `count` words of an agent's command replaced by `words`.
fn splice(
    document: &Document,
    format: &Format,
    name: &str,
    count: usize,
    words: &[String],
) -> Option<String> {
    let text = document.text();
    let parsed = parse_to_ast(text, &CollectOptions::default(), &syntax()).ok()?;
    let settings = parsed.value?;
    let agent = settings.as_object()?.get_object(format.key)?.get_object(name)?;
    if let Some(argv) = agent.get_array("argv").filter(|_| format.has_argv) {
        let (range, new) = replace_first(text, argv, count, words)?;
        return Some(replaced(text, range, &new));
    }
    let (program, arguments) = words.split_first()?;
    let command = agent.get("command")?;
    // Start from the end, so that the offsets before it stay valid.
    let text = match agent.get_array("args") {
        Some(args) => {
            let (range, new) = replace_first(text, args, count - 1, arguments)?;
            // The two ranges never overlap, but we don't know which is first.
            let program_range = command.value.range();
            let mut pieces = [(range, new), (program_range.start..program_range.end, quoted(program))];
            order::sort_by_key(&mut pieces, |piece| std::cmp::Reverse(piece.0.start));
            return Some(
                pieces.into_iter().fold(text.to_owned(), |text, (range, new)| replaced(&text, range, &new)),
            );
        }
        None if arguments.is_empty() => text.to_owned(),
        None => {
            let list: Vec<_> = arguments.iter().map(|word| quoted(word)).collect();
            let start = between(text, agent.range.start + 1, agent.properties.first()?.range.start);
            let gap = if start.contains('\n') { start } else { " " };
            let end = command.value.range().end;
            replaced(text, end..end, &format!(",{gap}\"args\": [{}]", list.join(", ")))
        }
    };
    let range = command.value.range();
    Some(replaced(&text, range.start..range.end, &quoted(program)))
}

/// Returns the range to replace and its new text, so that `words` replace the first `count` elements of a list.
fn replace_first(
    text: &str,
    list: &Array<'_>,
    count: usize,
    words: &[String],
) -> Option<(Range<usize>, String)> {
    let elements = &list.elements;
    let is_same = |(element, word): &(&Value<'_>, &String)| {
        element.as_string_lit().is_some_and(|text| text.value == word.as_str())
    };
    // Leave elements at the start alone if they stay the same, to keep the comments between them.
    let same = elements.iter().take(count).zip(words).take_while(is_same).count();
    let range_of = |at: usize| elements.get(at).map(Ranged::range);
    let first = list.range.start + 1;
    let separator = match (range_of(0), range_of(1)) {
        (Some(one), Some(other)) if is_separator(between(text, one.end, other.start)) => {
            between(text, one.end, other.start).to_owned()
        }
        (Some(one), _) if between(text, first, one.start).contains('\n') => {
            let line = between(text, first, one.start);
            format!(",{}", &line[line.rfind('\n')?..])
        }
        _ => ", ".to_owned(),
    };
    let new: Vec<_> = words[same..].iter().map(|word| quoted(word)).collect();
    let new = new.join(&separator);
    let is_empty = new.is_empty();
    Some(match (range_of(same), range_of(count)) {
        // If there are more elements, replace up to the start of the next one.
        (Some(start), Some(next)) => (start.start..next.start, if is_empty { new } else { new + &separator }),
        // Otherwise, replace all elements from here to the end.
        (Some(start), None) => {
            let end = range_of(elements.len() - 1)?.end;
            let start = if is_empty && same > 0 { range_of(same - 1)?.end } else { start.start };
            (start..end, new)
        }
        (None, _) if same == 0 => (first..first, new),
        (None, _) => {
            let end = range_of(same - 1)?.end;
            (end..end, if is_empty { new } else { separator + &new })
        }
    })
}

/// Returns true if the text between two elements is a comma and white space only, without a comment.
fn is_separator(text: &str) -> bool {
    text.starts_with(',') && text[1..].chars().all(char::is_whitespace)
}

fn between(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).unwrap_or_default()
}

fn replaced(text: &str, range: Range<usize>, new: &str) -> String {
    [&text[..range.start], new, &text[range.end..]].concat()
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Verifies that the change is the only difference between `before` and `after`.
fn verify(before: &Document, after: &Document, format: &Format, change: &Change) -> Result<(), EditError> {
    let name = change.name();
    let wrong = || EditError::Unsafe(name.to_owned());
    let agents = after.agents(format)?;
    let found = agents.iter().find(|agent| agent.name == name);
    let is_made = match change {
        Change::Add { words, env, .. } => {
            found.is_some_and(|agent| agent.command() == Some(words) && agent.env == *env)
        }
        Change::Splice { before: old, after: new, .. } => {
            let agents = before.agents(format)?;
            let was = agents.iter().find(|agent| agent.name == name).and_then(|agent| agent.command());
            let expected = was.and_then(|words| words.strip_prefix(old.as_slice()));
            let expected = expected.map(|rest| [new.as_slice(), rest].concat());
            found.and_then(|agent| agent.command()) == expected.as_deref()
        }
        Change::Remove { .. } => found.is_none(),
    };
    let rest = |document: &Document| rest(document, format, change).ok_or_else(wrong);
    if is_made && rest(before)? == rest(after)? { Ok(()) } else { Err(wrong()) }
}

/// Returns the settings without the changed part, which is the whole agent or only its command.
fn rest(document: &Document, format: &Format, change: &Change) -> Option<Json> {
    let value: Option<Json> = parse_to_serde_value(document.text(), &syntax()).ok()?;
    let mut value = value.unwrap_or_else(|| Json::Object(Map::new()));
    let settings = value.as_object_mut()?;
    let Some(agents) = settings.get_mut(format.key).and_then(Json::as_object_mut) else { return Some(value) };
    if let Change::Splice { name, .. } = change {
        agents
            .get_mut(name)?
            .as_object_mut()?
            .retain(|key, _| !matches!(key.as_str(), "command" | "args" | "argv"));
    } else {
        agents.shift_remove(change.name());
        if agents.is_empty() {
            settings.shift_remove(format.key);
        }
    }
    Some(value)
}
