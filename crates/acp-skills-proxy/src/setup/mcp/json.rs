//! A server in settings that are JSON with comments.

use jsonc_parser::{
    cst::{CstInputValue, CstRootNode},
    parse_to_serde_value,
};
use serde_json::{Map, Value};

use super::unsafe_edit;
use crate::setup::document::{SettingsError, syntax};

/// The shape of a server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// `command` and `args`.
    Plain,
    /// The same with `"type": "stdio"`.
    Typed,
    /// `"type": "local"`, and the whole command as a list.
    Local,
}

/// Parses settings. An empty text has no settings.
fn parse(text: &str) -> Result<Map<String, Value>, SettingsError> {
    let parsed = parse_to_serde_value(text, &syntax()).map_err(|error| SettingsError {
        line: error.line_display(),
        column: error.column_display(),
        message: format!("invalid JSON: {}", error.kind()),
    })?;
    match parsed {
        None => Ok(Map::new()),
        Some(Value::Object(settings)) => Ok(settings),
        Some(_) => {
            Err(SettingsError { line: 1, column: 1, message: "expected an object `{ … }`".to_owned() })
        }
    }
}

pub(super) fn server(text: &str, key: &str, name: &str) -> Result<Option<Vec<String>>, SettingsError> {
    let settings = parse(text)?;
    let Some(server) = settings.get(key).and_then(|servers| servers.get(name)) else { return Ok(None) };
    Ok(Some(words(server).unwrap_or_default()))
}

/// Returns the command of a server.
fn words(server: &Value) -> Option<Vec<String>> {
    let texts = |list: &Value| -> Option<Vec<String>> {
        list.as_array()?.iter().map(|word| Some(word.as_str()?.to_owned())).collect()
    };
    match &server["command"] {
        Value::String(program) => {
            let arguments = server.get("args").map_or(Some(Vec::new()), texts)?;
            Some([vec![program.clone()], arguments].concat())
        }
        list => texts(list),
    }
}

pub(super) fn with_server(
    text: &str,
    key: &str,
    shape: Shape,
    name: &str,
    command: &[String],
) -> Result<String, SettingsError> {
    let settings = parse(text)?;
    if settings.get(key).is_some_and(|servers| !servers.is_object()) {
        return Err(SettingsError {
            line: 1,
            column: 1,
            message: format!("`{key}` must be an object `{{ … }}`"),
        });
    }
    let edited = || {
        let root = CstRootNode::parse(text, &syntax()).ok()?;
        let servers = root.object_value_or_create()?.object_value_or_create(key)?;
        let server = shape.server(command);
        match servers.get(name) {
            Some(existing) => existing.set_value(server),
            None => {
                let _ = servers.append(name, server);
            }
        }
        let mut text = root.to_string();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Some(text)
    };
    let edited = edited().ok_or_else(|| unsafe_edit(name))?;
    verified(text, edited, key, name)
}

pub(super) fn without_server(text: &str, key: &str, name: &str) -> Result<String, SettingsError> {
    parse(text)?;
    let edited = || {
        let root = CstRootNode::parse(text, &syntax()).ok()?;
        root.object_value()?.object_value(key)?.get(name)?.remove();
        Some(root.to_string())
    };
    let edited = edited().ok_or_else(|| unsafe_edit(name))?;
    verified(text, edited, key, name)
}

/// Returns the new text, if the server is the only difference to the old one.
fn verified(before: &str, after: String, key: &str, name: &str) -> Result<String, SettingsError> {
    let rest = |text: &str| -> Result<Map<String, Value>, SettingsError> {
        let mut settings = parse(text)?;
        if let Some(servers) = settings.get_mut(key).and_then(Value::as_object_mut) {
            servers.shift_remove(name);
            if servers.is_empty() {
                settings.shift_remove(key);
            }
        }
        Ok(settings)
    };
    if rest(before)? == rest(&after)? { Ok(after) } else { Err(unsafe_edit(name)) }
}

impl Shape {
    fn server(self, command: &[String]) -> CstInputValue {
        let text = |text: &String| CstInputValue::String(text.clone());
        let texts = |words: &[String]| CstInputValue::Array(words.iter().map(text).collect());
        let mut members: Vec<(String, CstInputValue)> = Vec::new();
        if let Self::Local = self {
            members.push(("type".to_owned(), "local".into()));
            members.push(("command".to_owned(), texts(command)));
            members.push(("enabled".to_owned(), true.into()));
        } else {
            if let Self::Typed = self {
                members.push(("type".to_owned(), "stdio".into()));
            }
            members.push(("command".to_owned(), command.first().map_or_else(|| "".into(), text)));
            members.push(("args".to_owned(), texts(command.get(1..).unwrap_or_default())));
        }
        CstInputValue::Object(members)
    }
}
