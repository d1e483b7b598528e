//! Builds the lines that are sent by the proxy: responses, errors, requests and notifications. Each line ends with a line break.

use serde_json::{Value, json};

use crate::message::Id;

/// Builds a successful response.
pub fn result(id: &Id, result: &Value) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{result}}}\n", id.to_json()).into_bytes()
}

/// Builds an error response.
pub fn error(id: &Id, code: i64, message: &str) -> Vec<u8> {
    let error = json!({ "code": code, "message": message });
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{error}}}\n", id.to_json()).into_bytes()
}

/// Builds an error response with the id `null`, for a line whose id can't be read.
pub fn error_without_id(code: i64, message: &str) -> Vec<u8> {
    error(&Id::Raw("null".to_owned()), code, message)
}

/// The prefix used in ids for requests from the proxy to the client. These ids are JSON strings.
pub const OWN_REQUEST: &str = "acp-skills-ask-";

/// Builds a request. The given id should begin with [`OWN_REQUEST`].
pub fn request(id: &str, method: &str, params: &Value) -> Vec<u8> {
    let id = Value::from(id);
    let method = Value::from(method);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{method},\"params\":{params}}}\n").into_bytes()
}

/// Returns true if [`request`] built this line.
pub fn is_own_request(line: &[u8]) -> bool {
    let id = line.strip_prefix(br#"{"jsonrpc":"2.0","id":""#);
    id.is_some_and(|id| id.starts_with(OWN_REQUEST.as_bytes()))
}

/// Builds a notification.
pub fn notification(method: &str, params: &Value) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":{},\"params\":{params}}}\n", Value::from(method)).into_bytes()
}
