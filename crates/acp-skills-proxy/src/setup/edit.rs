//! One agent in the text of settings, added or changed in place. Comments, order, line ends and indentation stay as they are.
//!
//! The result is read again before anybody gets it: all but the one agent must say what it said.

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

use super::{
    document::{Document, SettingsError, syntax},
    editors::Format,
};

/// What is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// A new agent.
    Add {
        /// Its name.
        name: String,
        /// Its command.
        words: Vec<String>,
        /// Its environment.
        env: Vec<(String, String)>,
    },
    /// Other words at the beginning of an agent's command.
    Splice {
        /// Its name.
        name: String,
        /// The words that are there; at least one.
        before: Vec<String>,
        /// The words that are to be there; at least one.
        after: Vec<String>,
    },
    /// An agent less.
    Remove {
        /// Its name.
        name: String,
    },
}

impl Change {
    /// The agent that is changed.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Add { name, .. } | Self::Splice { name, .. } | Self::Remove { name } => name,
        }
    }
}

/// Why settings are not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    /// The text is broken.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The agent is not as the change supposes.
    #[error("the agent `{0}` is not as it was")]
    Other(String),
    /// The result says something else than it should: a mistake of ours, which nobody is to pay for.
    #[error("the change of `{0}` would change something else as well")]
    Unsafe(String),
}

/// The document with the change.
pub(crate) fn edit(document: &Document, format: &Format, change: &Change) -> Result<Document, EditError> {
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

/// The text with an agent more or less.
fn add_or_remove(document: &Document, format: &Format, change: &Change) -> Option<String> {
    let root = CstRootNode::parse(document.text(), &syntax()).ok()?;
    let list = root.object_value_or_create()?.object_value_or_create(format.key)?;
    match change {
        Change::Add { name, words, env } => drop(list.append(name, entry(format, words, env))),
        change => list.get(change.name())?.remove(),
    }
    Some(root.to_string())
}

/// An agent as the editor wants it.
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

/// The text with `words` in place of the first `count` of an agent's command.
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
    // From the end on, so that what is in front stays where it is.
    let text = match agent.get_array("args") {
        Some(args) => {
            let (range, new) = replace_first(text, args, count - 1, arguments)?;
            // What comes first in the text is not known: two pieces that do not overlap.
            let program_range = command.value.range();
            let mut pieces = [(range, new), (program_range.start..program_range.end, quoted(program))];
            pieces.sort_by_key(|piece| std::cmp::Reverse(piece.0.start));
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

/// What to write where, so that `words` are in place of the first `count` elements of a list.
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
    // What stays the same is not touched, so that it keeps its comments.
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
        // In front of what follows.
        (Some(start), Some(next)) => (start.start..next.start, if is_empty { new } else { new + &separator }),
        // All that there is from here on.
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

/// Whether this is between two elements and nothing else: no comment, for example.
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

/// Whether the result has the change and nothing else.
fn verify(before: &Document, after: &Document, format: &Format, change: &Change) -> Result<(), EditError> {
    let name = change.name();
    let wrong = || EditError::Unsafe(name.to_owned());
    let agents = after.agents(format)?;
    let found = agents.iter().find(|agent| agent.name == name);
    let is_made = match change {
        Change::Add { words, env, .. } => {
            found.is_some_and(|it| it.command() == Some(words) && it.env == *env)
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

/// What settings say but for what is changed: an agent that comes or goes, or the command of one.
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
