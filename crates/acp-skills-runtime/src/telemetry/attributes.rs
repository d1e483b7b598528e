//! The attributes for events. This module decides which fields of an event can be sent to a collector.
//!
//! A field will only be sent if it is listed in the [table](ATTRIBUTES). When possible, an attribute uses a name from the
//! [conventions for generative AI](https://github.com/open-telemetry/semantic-conventions-genai). All other names use the
//! prefix `acp_skills.`.

use serde_json::Value as Json;

use super::messages::{AnyValue, ArrayValue, KeyValue, Value};
use crate::events::Event;

/// The maximum length of a name.
const MAX_NAME: usize = 128;
/// The maximum number of names in a list.
const MAX_NAMES: usize = 100;

/// The name of the agent.
pub(super) const AGENT: &str = "gen_ai.agent.name";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(super) const ERROR: &str = "error.type";
pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const ORIGIN: &str = "acp_skills.session.origin";
pub(super) const OUTCOME: &str = "acp_skills.outcome";
pub(super) const SKILL: &str = "gen_ai.skill.name";
pub(super) const TOOL: &str = "gen_ai.tool.name";
pub(super) const ACTIVATED_BY: &str = "acp_skills.activated_by";
pub(super) const DECISION: &str = "acp_skills.permission.decision";
pub(super) const RULE: &str = "acp_skills.permission.rule";
pub(super) const EVENT: &str = "acp_skills.event";
pub(super) const TOKENS: &str = "acp_skills.tokens";

/// Maps a field of an event to the name of an attribute. This table must not contain a field with a path, or the reason for a
/// refusal, because both are private.
const ATTRIBUTES: [(&str, &str); 23] = [
    ("agent", AGENT),
    ("skill", SKILL),
    ("tool", TOOL),
    ("error", ERROR),
    ("exit_code", "process.exit.code"),
    ("how", ORIGIN),
    ("outcome", OUTCOME),
    ("by", ACTIVATED_BY),
    ("tokens", TOKENS),
    ("bytes", "acp_skills.result.bytes"),
    ("ms", "acp_skills.duration_ms"),
    ("found", "acp_skills.found"),
    ("decision", DECISION),
    ("rule", RULE),
    ("skills", "acp_skills.skills"),
    ("skipped", "acp_skills.skipped"),
    ("added", "acp_skills.added"),
    ("removed", "acp_skills.removed"),
    ("changed", "acp_skills.changed"),
    ("signal", "acp_skills.compaction.signal"),
    ("count", "acp_skills.count"),
    ("skill_count", "acp_skills.skill_count"),
    ("fallback", "acp_skills.fallback.reason"),
];

/// A list of attributes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Attributes(pub(super) Vec<KeyValue>);

impl Attributes {
    /// Returns the attributes for an event.
    pub(super) fn of(event: &Event) -> Self {
        let mut json = Vec::new();
        let mut all = Self::default();
        // This never fails, because the record consists of texts and numbers.
        let _ = serde_json::to_writer(&mut json, event);
        let Ok(Json::Object(fields)) = serde_json::from_slice(&json) else { return all };
        for (field, value) in &fields {
            let field = match (field.as_str(), event.what.name()) {
                // The reason of a refusal is not sent, because it is a text that names the refused thing.
                ("reason", "fallback") => "fallback",
                ("skills", "reload") => "skill_count",
                (field, _) => field,
            };
            if let Some((_, name)) = ATTRIBUTES.iter().find(|(known, _)| *known == field) {
                all.0.extend(
                    value_of(name, value)
                        .map(|value| KeyValue { key: (*name).to_owned(), value: Some(value) }),
                );
            }
        }
        all
    }

    /// Adds a string attribute.
    pub(super) fn text(mut self, key: &str, text: impl Into<String>) -> Self {
        self.0.push(KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(Value::Text(text.into())) }),
        });
        self
    }

    /// Adds a string attribute if `text` is not `None`.
    pub(super) fn optional(self, key: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(key, text),
            None => self,
        }
    }

    /// Returns the value of a string attribute.
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|attribute| attribute.key == key)?;
        match &found.value.as_ref()?.value {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns the value of an integer attribute.
    pub(super) fn number(&self, key: &str) -> Option<i64> {
        let found = self.0.iter().find(|attribute| attribute.key == key)?;
        match &found.value.as_ref()?.value {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        }
    }

    /// Returns only the attributes with the given keys.
    pub(super) fn only(&self, keys: &[&str]) -> Self {
        let kept = self.0.iter().filter(|attribute| keys.contains(&attribute.key.as_str()));
        Self(kept.cloned().collect())
    }

    /// Removes an attribute.
    pub(super) fn without(mut self, key: &str) -> Self {
        self.0.retain(|attribute| attribute.key != key);
        self
    }
}

/// Converts a field of an event to an attribute value. Returns `None` for a string that is not a valid name.
fn value_of(name: &str, value: &Json) -> Option<AnyValue> {
    let value = match value {
        Json::String(text) => Value::Text(checked(name, text)?),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Double(number.as_f64()?),
        },
        Json::Array(list) => {
            let names = list.iter().take(MAX_NAMES).filter_map(|value| value_of(SKILL, value));
            Value::List(ArrayValue { values: names.collect() })
        }
        _ => return None,
    };
    Some(AnyValue { value: Some(value) })
}

/// Returns the string if it is a valid name. The names of agents and tools are provided by the agent, so they could contain a path or
/// a sentence.
fn checked(attribute: &str, text: &str) -> Option<String> {
    let fits = match attribute {
        AGENT => is_name(text, "_.:@/- "),
        TOOL => is_name(text, "_.:@/-"),
        // The rules of skills have been checked when the skill was loaded.
        _ => text.len() <= 2 * MAX_NAME,
    };
    fits.then(|| text.to_owned())
}

/// Returns the session id from the agent, or `None` if the id could be a path.
pub(super) fn session_id(id: &str) -> Option<&str> {
    is_name(id, "_.:@-").then_some(id)
}

/// Returns true if a string only contains letters, digits and the characters in `others`, and doesn't start like a path.
fn is_name(text: &str, others: &str) -> bool {
    let fits = |character: char| character.is_alphanumeric() || others.contains(character);
    let begins =
        !text.is_empty() && !text.starts_with(['/', '.', '~']) && !text.get(1..3).is_some_and(is_drive);
    text.len() <= MAX_NAME && begins && text.chars().all(fits)
}

fn is_drive(text: &str) -> bool {
    text == ":/"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_be_paths_are_left_out() {
        for (attribute, text, expected) in [
            (AGENT, "claude-agent-acp", true),
            (AGENT, "@agentclientprotocol/claude-agent-acp", true),
            (AGENT, "Gemini CLI", true),
            (AGENT, "/home/me/agent", false),
            (AGENT, "~/agent", false),
            (AGENT, "C:/agent", false),
            (AGENT, "C:\\agent", false),
            (AGENT, "", false),
            (AGENT, &*"a".repeat(129), false),
            (TOOL, "mcp__server__tool", true),
            (TOOL, "developer/shell", true),
            (TOOL, "cat secret.txt", false),
            (TOOL, "./run", false),
            (SKILL, "r\u{e9}sum\u{e9}", true),
        ] {
            assert_eq!(checked(attribute, text).is_some(), expected, "{attribute} {text}");
        }
        for (id, expected) in
            [("0198c7f0-1d2e", true), ("sess_1", true), ("/home/me/session.json", false), ("a/b", false)]
        {
            assert_eq!(session_id(id).is_some(), expected, "{id}");
        }
    }
}
