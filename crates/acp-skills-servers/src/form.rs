//! Forms that a server shows to the user with `elicitation/create`. Their texts are made safe to display.

use serde_json::Value;
use skills_core::text::shown_lines;

/// The maximum length of a message, in characters. Longer ones are cut.
const MAX_MESSAGE: usize = 4_000;
/// The maximum length of a schema, in bytes of JSON. Forms with longer ones are refused.
const MAX_SCHEMA: usize = 64 * 1024;
/// The members of a schema with texts for the user.
const TEXTS: [&str; 3] = ["title", "description", "default"];
/// The member of a schema with a list of texts for the user.
const NAMES: &str = "enumNames";

/// Returns the message and the schema of a form, as the user may see them. Otherwise, returns the reason to refuse the form.
pub(super) fn read(mut params: Value) -> Result<(String, Value), &'static str> {
    let message = params["message"].as_str().unwrap_or_default();
    let message = match message.char_indices().nth(MAX_MESSAGE) {
        Some((cut, _)) => format!("{}…", shown_lines(&message[..cut])),
        None => shown_lines(message).into_owned(),
    };
    let mut schema = params.get_mut("requestedSchema").map(Value::take).unwrap_or_default();
    if schema.to_string().len() > MAX_SCHEMA {
        return Err("`requestedSchema` is longer than 64 KiB");
    }
    if clean(&mut schema) {
        Ok((message, schema))
    } else {
        Err("a name or a value in `requestedSchema` has characters that cannot be shown")
    }
}

/// Escapes the texts of a schema. Returns false if a name or a value would have to be escaped, because the server would not
/// recognize it in the answer.
fn clean(schema: &mut Value) -> bool {
    match schema {
        Value::String(text) => is_clean(text),
        Value::Array(items) => items.iter_mut().all(clean),
        Value::Object(members) => members.iter_mut().all(|(key, value)| match value {
            Value::String(text) if TEXTS.contains(&key.as_str()) => {
                escape(text);
                true
            }
            Value::Array(names) if key == NAMES => {
                for name in names {
                    if let Value::String(name) = name {
                        escape(name);
                    }
                }
                true
            }
            value => is_clean(key) && clean(value),
        }),
        _ => true,
    }
}

fn escape(text: &mut String) {
    *text = shown_lines(text).into_owned();
}

fn is_clean(text: &str) -> bool {
    shown_lines(text) == text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(message: &str, schema: Value) -> Value {
        json!({ "message": message, "requestedSchema": schema })
    }

    #[test]
    fn texts_are_escaped() {
        let schema = json!({ "type": "object", "properties": {
            "title": { "type": "string", "title": "\u{202e}a", "description": "b\u{1b}[2J", "default": "c\u{7}" },
            "which": { "enum": ["x", "y"], "enumNames": ["X\u{200b}", "Y"] },
        } });
        let expected = json!({ "type": "object", "properties": {
            "title": {
                "type": "string", "title": "\\u{202e}a", "description": "b\\u{1b}[2J", "default": "c\\u{7}",
            },
            "which": { "enum": ["x", "y"], "enumNames": ["X\\u{200b}", "Y"] },
        } });
        let read = read(form("one\ntwo\u{1b}", schema));
        assert_eq!(read, Ok(("one\ntwo\\u{1b}".to_owned(), expected)));
    }

    #[test]
    fn forms_have_limits() {
        let (message, schema) = read(form(&"ä".repeat(1 << 20), json!({}))).unwrap();
        assert_eq!((message.chars().count(), schema), (MAX_MESSAGE + 1, json!({})));
        for (schema, is_shown) in [
            (json!({ "description": "x".repeat(MAX_SCHEMA) }), false),
            (json!({ "enum": ["a", "a\u{200b}"] }), false),
            (json!({ "properties": { "\u{202e}": { "type": "string" } } }), false),
            (json!({ "properties": { "description": { "type": "string" } } }), true),
            (Value::Null, true),
        ] {
            assert_eq!(read(form("x", schema.clone())).is_ok(), is_shown, "{schema}");
        }
        assert_eq!(read(json!([])), Ok((String::new(), Value::Null)));
    }
}
