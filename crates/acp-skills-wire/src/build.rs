//! Building lines of our own: responses, errors, notifications.

use serde_json::{Value, json};

use crate::message::Id;

/// A successful response.
pub fn result(id: &Id, result: &Value) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n", id.to_json()).into_bytes()
}

/// An error response.
pub fn error(id: &Id, code: i64, message: &str) -> Vec<u8> {
    let error = json!({ "code": code, "message": message });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{error}}}\n", id.to_json()).into_bytes()
}

/// An error response to a line that shows no id.
pub fn error_to_nobody(code: i64, message: &str) -> Vec<u8> {
    error(&Id::Raw("null".to_owned()), code, message)
}

/// A notification.
pub fn notification(method: &str, params: &Value) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":{},\"params\":{params}}}\n", Value::from(method)).into_bytes()
}
