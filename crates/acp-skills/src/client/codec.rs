//! [`Codec`]: the messages of an ACP client, without I/O.
//!
//! [`Client`](super::Client) blocks on pipes, but `acp-skills-eval` is asynchronous. To use the same protocol in both, this file
//! builds and reads all messages: the handshake, prompts, cancellation, permission requests, and the answer to requests that we
//! don't support.

use std::path::Path;

use serde_json::{Value, json};
use skills_core::json::{MAX_VALUES, has_more_values_than};

use super::ClientError;
use crate::permission::{PermissionDecision, PermissionOption, PermissionRequest};

/// The maximum number of characters of an invalid line in an error.
const MAX_LINE_CHARS: usize = 1_000;

/// Builds the messages that a client sends, and decodes the messages of an agent.
///
/// Messages stay JSON values instead of the types of the ACP SDK, because agents send fields that the schema doesn't have,
/// and a typed parse would drop them.
///
/// ```
/// use acp_skills::client::{Codec, Incoming};
///
/// let mut codec = Codec::default();
/// let request = codec.initialize();
/// assert_eq!(request.message["method"], "initialize");
///
/// let line = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#;
/// let Incoming::Response(response) = Incoming::from_message(Codec::decode(line)?) else { panic!("not a response") };
/// assert!(request.is_answered_by(&response));
/// assert_eq!(request.result(response)?["protocolVersion"], 1);
/// # Ok::<(), acp_skills::client::ClientError>(())
/// ```
#[derive(Debug, Default)]
pub struct Codec {
    last_id: u64,
}

/// A request to the agent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// The id that the response repeats.
    pub id: u64,
    /// The method.
    pub method: String,
    /// The whole message.
    pub message: Value,
}

/// A message from the agent.
#[derive(Debug)]
#[non_exhaustive]
pub enum Incoming {
    /// The [update](https://agentclientprotocol.com/protocol/v1/schema#sessionupdate) of a `session/update` notification.
    /// See [`Update`](super::Update) for reading it.
    Update(Value),
    /// A `session/request_permission` request, to be answered with [`PermissionCall::answer`].
    Permission(PermissionCall),
    /// Another request, and the error response to send: we support no other method.
    Unsupported {
        /// The response.
        answer: Value,
    },
    /// Another notification. It needs no answer.
    Notification(Value),
    /// A response to one of our requests.
    Response(Response),
}

/// A pending permission request.
#[derive(Debug)]
#[non_exhaustive]
pub struct PermissionCall {
    /// The tool call that the agent wants to make, and the options.
    pub request: PermissionRequest,
    id: Value,
}

/// A response of the agent.
#[derive(Debug)]
#[non_exhaustive]
pub struct Response {
    /// The id of the request, as the agent repeats it.
    pub id: Value,
    /// The result, or the JSON-RPC error object. The error is `null` if the agent sent neither.
    pub result: Result<Value, Value>,
}

impl Codec {
    /// Builds a request with the next id.
    pub fn request(&mut self, method: &str, params: &Value) -> Request {
        self.last_id += 1;
        let id = self.last_id;
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        Request { id, method: method.to_owned(), message }
    }

    /// Builds `initialize` for a client that can show text: it offers neither files nor terminals.
    pub fn initialize(&mut self) -> Request {
        self.request(
            "initialize",
            &json!({
                "protocolVersion": 1,
                "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
                "clientInfo": { "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") },
            }),
        )
    }

    /// Builds `session/new` for a session without MCP servers. `cwd` has to be absolute.
    pub fn new_session(&mut self, cwd: &Path) -> Request {
        self.request("session/new", &json!({ "cwd": cwd, "mcpServers": [] }))
    }

    /// Builds `session/prompt` with one text block.
    pub fn prompt(&mut self, session: &Value, text: &str) -> Request {
        self.request(
            "session/prompt",
            &json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }),
        )
    }

    /// Builds the notification that cancels the turn of a session. The agent still answers the prompt.
    pub fn cancel(session: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } })
    }

    /// Parses a line.
    ///
    /// # Errors
    /// - [`ClientError::NotAMessage`] if the line is not JSON.
    /// - [`ClientError::TooManyValues`] if the line has more than 262,144 values, because each of them needs up to 300 bytes of memory.
    pub fn decode(line: &str) -> Result<Value, ClientError> {
        if has_more_values_than(line.as_bytes(), MAX_VALUES) {
            return Err(ClientError::TooManyValues);
        }
        serde_json::from_str(line).map_err(|source| ClientError::NotAMessage {
            line: line.chars().take(MAX_LINE_CHARS).collect(),
            source,
        })
    }
}

impl Incoming {
    /// Sorts a message by its kind.
    pub fn from_message(mut message: Value) -> Self {
        let Some(method) = message.get("method") else {
            let mut take = |key: &str| message.get_mut(key).map(Value::take);
            let result = match take("result") {
                Some(result) => Ok(result),
                None => Err(take("error").unwrap_or_default()),
            };
            return Self::Response(Response { id: take("id").unwrap_or_default(), result });
        };
        match (method.as_str().unwrap_or_default(), message.get("id")) {
            ("session/update", _) => {
                Self::Update(message.pointer_mut("/params/update").map(Value::take).unwrap_or_default())
            }
            ("session/request_permission", _) => {
                let request = PermissionRequest::from_params(&message["params"]);
                Self::Permission(PermissionCall { request, id: message["id"].clone() })
            }
            (method, Some(id)) => {
                let error = json!({ "code": -32601, "message": format!("no method `{method}`") });
                Self::Unsupported { answer: json!({ "jsonrpc": "2.0", "id": id, "error": error }) }
            }
            (_, None) => Self::Notification(message),
        }
    }
}

impl PermissionCall {
    /// Builds the answer to the request. Returns it with the option that `decision` selects, or `None` if the request is
    /// answered as cancelled.
    pub fn answer(&self, decision: &PermissionDecision) -> (Value, Option<&PermissionOption>) {
        let chosen = self.request.choose(decision);
        let outcome = match chosen {
            Some(option) => json!({ "outcome": "selected", "optionId": option.id }),
            None => json!({ "outcome": "cancelled" }),
        };
        (json!({ "jsonrpc": "2.0", "id": self.id, "result": { "outcome": outcome } }), chosen)
    }
}

impl Request {
    /// Returns true if `response` belongs to this request.
    pub fn is_answered_by(&self, response: &Response) -> bool {
        response.id == self.id
    }

    /// Returns the result of the request.
    ///
    /// # Errors
    /// Returns [`ClientError::Refused`] if the agent answered with an error.
    pub fn result(self, response: Response) -> Result<Value, ClientError> {
        response.result.map_err(|error| ClientError::Refused { method: self.method, error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_sorted_by_kind() {
        for (message, expected) in [
            (json!({ "method": "session/update", "params": { "update": { "x": 1 } } }), "Update"),
            (json!({ "method": "session/update" }), "Update"),
            (json!({ "method": "session/update", "params": [1] }), "Update"),
            (json!({ "id": 1, "method": "session/request_permission", "params": {} }), "Permission"),
            (json!({ "id": 1, "method": "fs/read_text_file" }), "Unsupported"),
            (json!({ "method": "something/new" }), "Notification"),
            (json!({ "id": 1, "result": {} }), "Response"),
            (json!({ "id": 1, "error": { "code": 1 } }), "Response"),
            (json!({ "id": 1 }), "Response"),
            (json!(5), "Response"),
        ] {
            let found = match Incoming::from_message(message.clone()) {
                Incoming::Update(_) => "Update",
                Incoming::Permission(_) => "Permission",
                Incoming::Unsupported { .. } => "Unsupported",
                Incoming::Notification(_) => "Notification",
                Incoming::Response(_) => "Response",
            };
            assert_eq!(found, expected, "{message}");
        }
    }

    #[test]
    fn a_line_with_too_many_values_is_not_parsed() {
        let line = |values: usize| format!(r#"{{"method":"x","params":[0{}]}}"#, ",0".repeat(values));
        assert!(Codec::decode(&line(MAX_VALUES / 2)).is_ok());
        assert!(matches!(Codec::decode(&line(MAX_VALUES)), Err(ClientError::TooManyValues)));
    }

    #[test]
    fn a_request_without_support_is_answered_with_an_error() {
        let message = json!({ "id": "x", "method": "fs/read_text_file" });
        let Incoming::Unsupported { answer } = Incoming::from_message(message) else {
            panic!("it has an answer")
        };
        assert_eq!(
            answer,
            json!({ "jsonrpc": "2.0", "id": "x", "error": { "code": -32601, "message": "no method `fs/read_text_file`" } })
        );
    }

    #[test]
    fn a_permission_request_is_answered_with_its_id() {
        let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }]);
        let message =
            json!({ "id": 7, "method": "session/request_permission", "params": { "options": options } });
        let Incoming::Permission(call) = Incoming::from_message(message) else { panic!("it is a request") };
        let (answer, chosen) = call.answer(&PermissionDecision::AllowOnce);
        assert_eq!(chosen.map(|option| option.id.as_str()), Some("yes"));
        let outcome = json!({ "outcome": "selected", "optionId": "yes" });
        assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 7, "result": { "outcome": outcome } }));
        let (answer, chosen) = call.answer(&PermissionDecision::Refuse);
        assert!(chosen.is_none());
        assert_eq!(answer["result"], json!({ "outcome": { "outcome": "cancelled" } }));
    }
}
