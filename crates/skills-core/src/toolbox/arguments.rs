//! The arguments of a call, as a model sends them: checked one by one, and forgiving where the meaning is clear.

use serde_json::{Map, Value};

use super::errors::CallError;

/// The arguments of one call. `null` counts as absent, except where any JSON is welcome.
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    pub(super) fn new(arguments: Map<String, Value>) -> Self {
        Self(arguments)
    }

    /// A string that must be there, and must say something.
    pub(super) fn required(&self, name: &'static str) -> Result<&str, CallError> {
        match self.optional(name)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(CallError::arguments(format!("`{name}` must not be empty"))),
            None => Err(CallError::arguments(format!("`{name}` is missing; it must be a string"))),
        }
    }

    /// A string.
    pub(super) fn optional(&self, name: &'static str) -> Result<Option<&str>, CallError> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, "a string", other)),
        }
    }

    /// A number from 0; models also send `10.0` and `"10"`.
    pub(super) fn number(&self, name: &'static str) -> Result<Option<u64>, CallError> {
        let number = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(Value::Number(number)) => number.as_u64().or_else(|| whole(number.as_f64()?)),
            Some(_) => None,
        };
        number.map(Some).ok_or_else(|| wrong(name, "a whole number from 0", &self.0[name]))
    }

    /// A list of strings.
    pub(super) fn strings(&self, name: &'static str) -> Result<Vec<String>, CallError> {
        let expected = || wrong(name, "a list of strings", &self.0[name]);
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(list)) => {
                list.iter().map(|it| it.as_str().map(str::to_owned).ok_or_else(expected)).collect()
            }
            Some(_) => Err(expected()),
        }
    }

    /// All of them.
    pub(super) fn into_object(self) -> Map<String, Value> {
        self.0
    }

    /// Any JSON; `null` is not the same as nothing.
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
    CallError::arguments(format!("`{name}` must be {expected}, not {actual}"))
}
