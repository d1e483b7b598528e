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

/// How the ids of our own requests to the client begin, in JSON a text.
pub const OWN_REQUEST: &str = "acp-skills-ask-";

/// A request; its id begins with [`OWN_REQUEST`].
pub fn request(id: &str, method: &str, params: &Value) -> Vec<u8> {
    let (id, method) = (Value::from(id), Value::from(method));
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}\n").into_bytes()
}

/// Whether a line is a request that was built here.
pub fn is_own_request(line: &[u8]) -> bool {
    let id = line.strip_prefix(br#"{"jsonrpc":"2.0","id":""#);
    id.is_some_and(|id| id.starts_with(OWN_REQUEST.as_bytes()))
}

/// A notification.
pub fn notification(method: &str, params: &Value) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":{},\"params\":{params}}}\n", Value::from(method)).into_bytes()
}
