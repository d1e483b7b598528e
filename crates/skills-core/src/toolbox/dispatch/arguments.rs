//! [`Arguments`]: validates the arguments of a tool call. Wrong types are accepted if the meaning is clear.

use serde_json::{Map, Value};

use super::errors::CallError;

/// The arguments of a tool call. `null` is treated like a missing argument, except by [`Arguments::take`].
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    pub(super) fn new(arguments: Map<String, Value>) -> Self {
        Self(arguments)
    }

    /// Returns a required string that is not blank.
    pub(super) fn required(&self, name: &'static str) -> Result<&str, CallError> {
        match self.optional(name)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(CallError::arguments(format!("`{name}` must not be empty"))),
            None => Err(CallError::arguments(format!("missing `{name}`: expected a string"))),
        }
    }

    /// Returns an optional string.
    pub(super) fn optional(&self, name: &'static str) -> Result<Option<&str>, CallError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, "a string", other)),
        }
    }

    /// Returns an optional non-negative integer. Also accepts `10.0` and `"10"`, because models send them.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<u64>, CallError> {
        let number = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(Value::Number(number)) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            Some(_) => None,
        };
        number.map(Some).ok_or_else(|| wrong(name, "an integer of at least 0", &self.0[name]))
    }

    /// Returns a list of strings, which is empty if the argument is missing.
    pub(super) fn strings(&self, name: &'static str) -> Result<Vec<String>, CallError> {
        let expected = || wrong(name, "a list of strings", &self.0[name]);
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(list)) => {
                list.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(expected)).collect()
            }
            Some(_) => Err(expected()),
        }
    }

    /// Returns all arguments as an object.
    pub(super) fn into_object(self) -> Map<String, Value> {
        self.0
    }

    /// Removes and returns an argument of any type. `null` is a value here.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be whole and small")]
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as u64)
}

fn wrong(name: &str, expected: &str, actual: &Value) -> CallError {
    let actual = match actual {
        Value::Null | Value::Bool(_) | Value::Number(_) => &actual.to_string(),
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    CallError::arguments(format!("expected {expected} for `{name}`, but got {actual}"))
}
