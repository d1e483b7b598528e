//! A message on the wire: one line of JSON-RPC, looked at where it lies, forwarded as its own bytes, edited in place.
//!
//! ACP over stdio is newline-delimited JSON-RPC 2.0
//! ([transports](https://agentclientprotocol.com/protocol/v1/transports)). A typed parse would lose what real peers
//! send beyond the schema, so nothing here knows ACP's types: [`Message`] finds the envelope's members, [`Edit`]
//! changes spans, and a line that nobody edits is never copied. Batches (arrays) are messages that we do not look into.

mod edit;
mod glance;
pub mod json;
pub mod successor;

use std::borrow::Cow;

use serde_json::Value;

pub use self::{
    edit::Edit,
    glance::{Glance, Glancer},
    json::Node,
};

/// The id of a request. Numbers are compared by their text, because they may be larger than any number type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// A string, decoded.
    Text(String),
    /// A number (or whatever else was sent), as its text.
    Raw(String),
}

impl Id {
    /// The id that `node` is; `None` for `null`, which answers nothing.
    pub fn of(node: Node<'_>) -> Option<Self> {
        if node.is_null() {
            return None;
        }
        Some(match node.as_str() {
            Some(text) => Self::Text(text.into_owned()),
            None => Self::Raw(String::from_utf8_lossy(node.raw()).into_owned()),
        })
    }

    /// The id as JSON.
    pub fn to_json(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Value::from(text.as_str()).to_string().into(),
            Self::Raw(raw) => raw.as_str().into(),
        }
    }
}

/// What kind of message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Has a method and an id.
    Request,
    /// Has a method and no id.
    Notification,
    /// Has no method.
    Response,
}

/// The envelope of one message.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    /// The whole line, with its line break.
    pub line: &'a [u8],
    /// The object.
    pub root: Node<'a>,
    /// `id`, also when it is `null`.
    pub id: Option<Node<'a>>,
    method: Option<Node<'a>>,
    /// `params`.
    pub params: Option<Node<'a>>,
    /// `result`.
    pub result: Option<Node<'a>>,
    /// `error`.
    pub error: Option<Node<'a>>,
}

impl<'a> Message<'a> {
    /// The message in `line`; `None` when the line is no JSON object.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let (mut id, mut method, mut params, mut result, mut error) = (None, None, None, None, None);
        let root = Node::object(line, |name, value| {
            let slot = match name.raw() {
                br#""id""# => &mut id,
                br#""method""# => &mut method,
                br#""params""# => &mut params,
                br#""result""# => &mut result,
                br#""error""# => &mut error,
                _ => return,
            };
            // The last one counts, as in most JSON parsers.
            *slot = Some(value);
        })?;
        Some(Self { line, root, id, method, params, result, error })
    }

    /// What kind of message it is.
    pub fn kind(&self) -> Kind {
        match (self.method, self.id) {
            (None, _) => Kind::Response,
            (Some(_), None) => Kind::Notification,
            (Some(_), Some(_)) => Kind::Request,
        }
    }

    /// The method; empty for a response.
    pub fn method(&self) -> Cow<'a, str> {
        self.method.and_then(|method| method.as_str()).unwrap_or_default()
    }

    /// The id, when there is one that can be answered.
    pub fn id(&self) -> Option<Id> {
        self.id.and_then(Id::of)
    }

    /// The value at a path below `params`.
    pub fn param(&self, path: &[&str]) -> Option<Node<'a>> {
        self.params?.at(path)
    }

    /// `params.sessionId`.
    pub fn session_id(&self) -> Option<Cow<'a, str>> {
        self.param(&["sessionId"])?.as_str()
    }
}

/// Builds the lines that the proxy itself says.
pub mod say {
    use serde_json::{Value, json};

    use super::Id;

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
        format!("{{\"jsonrpc\":\"2.0\",\"method\":{},\"params\":{params}}}\n", Value::from(method))
            .into_bytes()
    }
}

/// JSON-RPC: an internal error.
pub const INTERNAL_ERROR: i64 = -32603;
/// JSON-RPC: no valid request, or not now.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: invalid parameters.
pub const INVALID_PARAMS: i64 = -32602;
/// ACP: the request was cancelled by `$/cancel_request`.
pub const REQUEST_CANCELLED: i64 = -32800;
/// ACP: the client must authenticate first.
pub const AUTH_REQUIRED: i64 = -32000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_envelopes() {
        let message = Message::parse(br#"{"id":"a\u0062","method":"x","params":{"sessionId":"s"}}"#).unwrap();
        assert_eq!((message.kind(), message.method().as_ref()), (Kind::Request, "x"));
        assert_eq!(message.id(), Some(Id::Text("ab".into())));
        assert_eq!(message.session_id().as_deref(), Some("s"));
        let message = Message::parse(br#"{"id":-99999999999999999999,"result":null}"#).unwrap();
        assert_eq!(message.kind(), Kind::Response);
        assert_eq!(message.id().unwrap().to_json(), "-99999999999999999999");
        assert!(message.result.unwrap().is_null());
        assert_eq!(Message::parse(br#"{"id":null,"error":{}}"#).unwrap().id(), None);
        assert!(Message::parse(b"[1]").is_none());
    }
}
