//! A server in settings that are JSON with comments.

use jsonc_parser::{
    CollectOptions, ast,
    cst::{CstInputValue, CstRootNode},
    parse_to_ast, parse_to_serde_value,
};
use serde_json::{Map, Value};

use super::unsafe_edit;
use crate::document::{MARK, SettingsError, only, syntax};

/// The keys of a server that `setup` writes. All other keys belong to the user.
const OURS: [&str; 3] = ["type", "command", "args"];

/// The shape of a server.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
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

/// Refuses duplicate keys on the way to the server, because programs differ in which of the two they use.
fn refuse_duplicates(text: &str, key: &str, name: &str) -> Result<(), SettingsError> {
    let Ok(parsed) = parse_to_ast(text, &CollectOptions::default(), &syntax()) else { return Ok(()) };
    let mut value = parsed.value;
    for key in [key, name] {
        let Some(ast::Value::Object(object)) = &value else { return Ok(()) };
        let found = only(text, object, key)?.map(|property| property.value.clone());
        value = found;
    }
    let Some(ast::Value::Object(server)) = &value else { return Ok(()) };
    for key in OURS {
        only(text, server, key)?;
    }
    Ok(())
}

/// The keys that contain servers in the settings of editors and clients.
const SERVER_KEYS: [&str; 3] = ["mcpServers", "servers", "context_servers"];

/// Returns the names and entries of all MCP servers in the settings of an editor or of an MCP client.
///
/// # Errors
/// Returns an error if the text is not JSON with comments, or not an object.
pub fn servers(text: &str) -> Result<Vec<(String, Value)>, SettingsError> {
    let mut settings = parse(text.trim_start_matches(MARK))?;
    let mut servers = Vec::new();
    for key in SERVER_KEYS {
        if let Some(Value::Object(found)) = settings.remove(key) {
            servers.extend(found);
        }
    }
    Ok(servers)
}

pub(super) fn server(text: &str, key: &str, name: &str) -> Result<Option<Vec<String>>, SettingsError> {
    let settings = parse(text)?;
    refuse_duplicates(text, key, name)?;
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
        match servers.get(name).map(|existing| existing.object_value_or_set()) {
            Some(existing) => {
                for (key, value) in shape.command(command) {
                    match existing.get(key) {
                        Some(member) => member.set_value(value),
                        None => drop(existing.append(key, value)),
                    }
                }
            }
            None => drop(servers.append(name, shape.server(command))),
        }
        let mut text = root.to_string();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        Some(text)
    };
    let edited = edited().ok_or_else(|| unsafe_edit(name))?;
    verified(text, edited, key, name, Some(command))
}

pub(super) fn without_server(text: &str, key: &str, name: &str) -> Result<String, SettingsError> {
    parse(text)?;
    let edited = || {
        let root = CstRootNode::parse(text, &syntax()).ok()?;
        root.object_value()?.object_value(key)?.get(name)?.remove();
        Some(root.to_string())
    };
    let edited = edited().ok_or_else(|| unsafe_edit(name))?;
    verified(text, edited, key, name, None)
}

/// Returns the new text, if it has the server with this command, or no server if there is no command, and if that is the only
/// difference to the old text.
fn verified(
    before: &str,
    after: String,
    key: &str,
    name: &str,
    command: Option<&[String]>,
) -> Result<String, SettingsError> {
    let is_changed = server(before, key, name)?.is_some() && command.is_some();
    let rest = |text: &str| -> Result<Map<String, Value>, SettingsError> {
        let mut settings = parse(text)?;
        if let Some(servers) = settings.get_mut(key).and_then(Value::as_object_mut) {
            match servers.get_mut(name).and_then(Value::as_object_mut).filter(|_| is_changed) {
                Some(server) => server.retain(|key, _| !OURS.contains(&key.as_str())),
                None => drop(servers.shift_remove(name)),
            }
            if servers.is_empty() {
                settings.shift_remove(key);
            }
        }
        Ok(settings)
    };
    let is_right = server(&after, key, name)?.as_deref() == command && rest(before)? == rest(&after)?;
    if is_right { Ok(after) } else { Err(unsafe_edit(name)) }
}

impl Shape {
    /// Returns the members of a server with this command.
    fn command(self, command: &[String]) -> Vec<(&'static str, CstInputValue)> {
        let text = |text: &String| CstInputValue::String(text.clone());
        let texts = |words: &[String]| CstInputValue::Array(words.iter().map(text).collect());
        if let Self::Local = self {
            return vec![("type", "local".into()), ("command", texts(command))];
        }
        let mut members = Vec::new();
        if let Self::Typed = self {
            members.push(("type", "stdio".into()));
        }
        members.push(("command", command.first().map_or_else(|| "".into(), text)));
        members.push(("args", texts(command.get(1..).unwrap_or_default())));
        members
    }

    /// Returns a new server.
    fn server(self, command: &[String]) -> CstInputValue {
        let mut members = self.command(command);
        if let Self::Local = self {
            members.push(("enabled", true.into()));
        }
        CstInputValue::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }
}
