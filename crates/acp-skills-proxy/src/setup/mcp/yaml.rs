//! A server in the `config.yaml` of Goose: an entry of `extensions`.
//!
//! The text is edited by lines, and parsed before and after, to verify that only the entry has changed.

use serde_json::{Map, Value};

use super::{SERVER, list, quoted, unsafe_edit};
use crate::setup::document::SettingsError;

const KEY: &str = "extensions";

fn parse(text: &str) -> Result<Map<String, Value>, SettingsError> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Map::new());
    }
    serde_yaml::from_str(text).map_err(|error| {
        let message = error.to_string();
        let message = message.lines().next().unwrap_or_default();
        SettingsError { line: 1, column: 1, message: format!("invalid YAML: {message}") }
    })
}

pub(super) fn server(text: &str, name: &str) -> Result<Option<Vec<String>>, SettingsError> {
    let settings = parse(text)?;
    let Some(server) = settings.get(KEY).and_then(|servers| servers.get(name)) else { return Ok(None) };
    let program = server["cmd"].as_str().map(str::to_owned);
    let arguments = server["args"].as_array().into_iter().flatten();
    let arguments = arguments.filter_map(|word| Some(word.as_str()?.to_owned()));
    Ok(Some(program.into_iter().chain(arguments).collect()))
}

/// Returns the number of spaces before the first word of a line. `None` if the line is blank or a comment.
fn indent(line: &str) -> Option<usize> {
    let text = line.trim_start_matches(' ');
    let is_empty = text.trim().is_empty() || text.starts_with('#');
    (!is_empty).then(|| line.len() - text.len())
}

/// Returns the offsets of the lines after `extensions:` that belong to it, and their indentation. `None` if there is no such key.
fn block(text: &str) -> Option<(usize, usize, usize)> {
    let mut at = 0;
    let mut start = None;
    let mut indentation = None;
    for line in text.split_inclusive('\n') {
        match (start, indent(line)) {
            (None, Some(0)) if line.trim_end() == format!("{KEY}:") => start = Some(at + line.len()),
            (Some(start), Some(0)) => return Some((start, at, indentation.unwrap_or(2))),
            (Some(_), Some(found)) => indentation = indentation.or(Some(found)),
            _ => {}
        }
        at += line.len();
    }
    start.map(|start| (start, text.len(), indentation.unwrap_or(2)))
}

/// Returns the offsets of the entry with this name.
fn entry(text: &str, name: &str) -> Option<(usize, usize)> {
    let (start, end, indentation) = block(text)?;
    let mut at = start;
    let mut found = None;
    let mut last = start;
    for line in text[start..end].split_inclusive('\n') {
        if let Some(spaces) = indent(line) {
            if found.is_some() && spaces <= indentation {
                break;
            }
            let key = line.trim().trim_end_matches(':').trim_matches(['"', '\'']);
            if spaces == indentation && key == name {
                found = Some(at);
            }
            last = at + line.len();
        }
        at += line.len();
    }
    found.map(|found| (found, last))
}

pub(super) fn with_server(text: &str, name: &str, command: &[String]) -> Result<String, SettingsError> {
    parse(text)?;
    let (program, arguments) =
        command.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let members = [
        "type: stdio".to_owned(),
        format!("name: {SERVER}"),
        "enabled: true".to_owned(),
        format!("cmd: {}", quoted(program)),
        format!("args: {}", list(arguments)),
        "timeout: 300".to_owned(),
    ];
    let written = |indentation: usize| {
        let outer = " ".repeat(indentation);
        let lines: Vec<_> = members.iter().map(|member| format!("{outer}{outer}{member}\n")).collect();
        format!("{outer}{name}:\n{}", lines.concat())
    };
    let edited = match (entry(text, name), block(text)) {
        (Some((start, end)), Some((_, _, indentation))) => {
            [&text[..start], &written(indentation), &text[end..]].concat()
        }
        (None, Some((start, _, indentation))) => {
            [&text[..start], &written(indentation), &text[start..]].concat()
        }
        (_, None) => {
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            [text, gap, KEY, ":\n", &written(2)].concat()
        }
    };
    verified(text, edited, name)
}

pub(super) fn without_server(text: &str, name: &str) -> Result<String, SettingsError> {
    parse(text)?;
    let Some((start, end)) = entry(text, name) else { return Err(unsafe_edit(name)) };
    verified(text, [&text[..start], &text[end..]].concat(), name)
}

/// Returns the new text, if the server is the only difference to the old one.
fn verified(before: &str, after: String, name: &str) -> Result<String, SettingsError> {
    let rest = |text: &str| -> Result<Map<String, Value>, SettingsError> {
        let mut settings = parse(text)?;
        match settings.get_mut(KEY) {
            Some(Value::Object(servers)) => {
                servers.shift_remove(name);
                if servers.is_empty() {
                    settings.shift_remove(KEY);
                }
            }
            Some(Value::Null) => {
                settings.shift_remove(KEY);
            }
            _ => {}
        }
        Ok(settings)
    };
    match (rest(before), rest(&after)) {
        (Ok(before), Ok(now)) if before == now => Ok(after),
        _ => Err(unsafe_edit(name)),
    }
}
