//! A server in the `config.yaml` of Goose: an entry of `extensions`.
//!
//! The text is edited by lines, and parsed before and after, to verify that only the entry has changed.

use serde_json::{Map, Value};

use super::{SERVER, line_end, list, quoted, unsafe_edit};
use crate::document::SettingsError;

const KEY: &str = "extensions";
/// The keys of a server that `setup` changes. All other keys belong to the user.
const OURS: [&str; 2] = ["cmd", "args"];

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

/// Returns the key of a line that has no value, or only a comment as its value.
fn key(line: &str) -> Option<&str> {
    let (key, rest) = line.trim().split_once(':')?;
    (rest.trim_start().is_empty() || rest.trim_start().starts_with('#'))
        .then(|| key.trim_matches(['"', '\'']))
}

/// Returns the text with a line end after the last line, and without the value of `extensions: {}`.
fn prepared(text: &str) -> String {
    let end = line_end(text);
    let mut prepared = String::new();
    for line in text.split_inclusive('\n') {
        let value = line.strip_prefix(KEY).and_then(|rest| rest.strip_prefix(':'));
        match value.and_then(|value| value.trim_start().strip_prefix("{}")) {
            Some(rest) => prepared.extend([KEY, ":", rest]),
            None => prepared.push_str(line),
        }
    }
    if !prepared.is_empty() && !prepared.ends_with('\n') {
        prepared.push_str(end);
    }
    prepared
}

/// Returns the offsets of the lines after `extensions:` that belong to it, and their indentation. `None` if there is no such key.
fn block(text: &str) -> Option<(usize, usize, usize)> {
    let mut at = 0;
    let mut start = None;
    let mut indentation = None;
    for line in text.split_inclusive('\n') {
        match (start, indent(line)) {
            (None, Some(0)) if key(line) == Some(KEY) => start = Some(at + line.len()),
            (Some(start), Some(0)) => return Some((start, at, indentation.unwrap_or(2))),
            (Some(_), Some(found)) => indentation = indentation.or(Some(found)),
            _ => {}
        }
        at += line.len();
    }
    start.map(|start| (start, text.len(), indentation.unwrap_or(2)))
}

/// Returns the offsets of the lines of a key and its value, in the lines from `start` to `end`. `is_wanted`
/// selects the line of the key, which is indented by `indentation` spaces. Comments and blank lines after the value are left out.
fn lines_of(
    text: &str,
    (start, end): (usize, usize),
    indentation: usize,
    is_wanted: impl Fn(&str) -> bool,
) -> Option<(usize, usize)> {
    let mut at = start;
    let mut found = None;
    let mut last = start;
    for line in text[start..end].split_inclusive('\n') {
        if let Some(spaces) = indent(line) {
            // The items of a list may be as far left as its key.
            let is_item = spaces == indentation && line.trim_start().starts_with("- ");
            if found.is_some() && spaces <= indentation && !is_item {
                break;
            }
            if spaces == indentation && is_wanted(line.trim()) {
                found = Some(at);
            }
            last = at + line.len();
        }
        at += line.len();
    }
    found.map(|found| (found, last))
}

/// Returns the offsets of the entry with this name.
fn entry(text: &str, name: &str) -> Option<(usize, usize)> {
    let (start, end, indentation) = block(text)?;
    lines_of(text, (start, end), indentation, |line| key(line) == Some(name))
}

pub(super) fn with_server(text: &str, name: &str, command: &[String]) -> Result<String, SettingsError> {
    parse(text)?;
    let (program, arguments) =
        command.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let ours = [format!("cmd: {}", quoted(program)), format!("args: {}", list(arguments))];
    let end = line_end(text);
    let mut edited = prepared(text);
    if entry(&edited, name).is_some() {
        // The last member comes first, because a missing one is added at the start of the entry.
        for (key, line) in OURS.iter().zip(&ours).rev() {
            let Some((start, stop)) = entry(&edited, name) else { return Err(unsafe_edit(name)) };
            let first = edited[start..].find('\n').map_or(edited.len(), |at| start + at + 1);
            let spaces = edited[first..stop].lines().find_map(indent).unwrap_or(4);
            let is_key = |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'));
            let (from, to) = lines_of(&edited, (first, stop), spaces, is_key).unwrap_or((first, first));
            edited.replace_range(from..to, &format!("{}{line}{end}", " ".repeat(spaces)));
        }
    } else {
        if block(&edited).is_none() {
            edited.extend([KEY, ":", end]);
        }
        let Some((start, _, indentation)) = block(&edited) else { return Err(unsafe_edit(name)) };
        let [program, arguments] = &ours;
        let server = format!("name: {SERVER}");
        let members = ["type: stdio", &server, "enabled: true", program, arguments, "timeout: 300"];
        let outer = " ".repeat(indentation);
        let lines: Vec<_> = members.iter().map(|member| format!("{outer}{outer}{member}{end}")).collect();
        edited.insert_str(start, &format!("{outer}{name}:{end}{}", lines.concat()));
    }
    verified(text, edited, name, Some(command))
}

pub(super) fn without_server(text: &str, name: &str) -> Result<String, SettingsError> {
    parse(text)?;
    let Some((start, end)) = entry(text, name) else { return Err(unsafe_edit(name)) };
    verified(text, [&text[..start], &text[end..]].concat(), name, None)
}

/// Returns the new text, if it has the server with this command, or no server if there is no command, and if that is the only
/// difference to the old text.
fn verified(
    before: &str,
    after: String,
    name: &str,
    command: Option<&[String]>,
) -> Result<String, SettingsError> {
    let is_changed = server(before, name)?.is_some() && command.is_some();
    let rest = |text: &str| -> Result<Map<String, Value>, SettingsError> {
        let mut settings = parse(text)?;
        if let Some(Value::Object(servers)) = settings.get_mut(KEY) {
            match servers.get_mut(name).and_then(Value::as_object_mut).filter(|_| is_changed) {
                Some(server) => server.retain(|key, _| !OURS.contains(&key.as_str())),
                None => drop(servers.shift_remove(name)),
            }
        }
        // An empty block is read as null.
        let is_empty = |value: &Value| value.is_null() || value.as_object().is_some_and(Map::is_empty);
        if settings.get(KEY).is_some_and(is_empty) {
            settings.shift_remove(KEY);
        }
        Ok(settings)
    };
    let is_right =
        server(&after, name).ok().flatten().as_deref() == command && rest(before).ok() == rest(&after).ok();
    if is_right { Ok(after) } else { Err(unsafe_edit(name)) }
}
