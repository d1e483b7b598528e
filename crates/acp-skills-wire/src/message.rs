//! Parses the envelope of a JSON-RPC message: its members, their spans, and the kind of message.

use std::borrow::Cow;

use serde_json::Value;

use crate::json::Node;

/// The id of a request. Numbers are compared by their text, because they can be larger than any integer type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    /// A string, decoded.
    Text(String),
    /// A number or any other JSON value, as it was written.
    Raw(String),
}

impl Id {
    /// Reads an id. Returns `None` when given `null`, because a request with this id can't be answered.
    pub fn of(node: Node<'_>) -> Option<Self> {
        if node.is_null() {
            return None;
        }
        Some(match node.as_str() {
            Some(text) => Self::Text(text.into_owned()),
            None => Self::Raw(String::from_utf8_lossy(node.raw()).into_owned()),
        })
    }

    /// Returns the id as JSON. Returns `null` if the id is not valid JSON, as JSON-RPC requires in a response to a request whose
    /// id can't be read.
    pub fn to_json(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Value::from(text.as_str()).to_string().into(),
            Self::Raw(raw) if serde_json::from_str::<Value>(raw).is_ok() => raw.as_str().into(),
            Self::Raw(_) => "null".into(),
        }
    }
}

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A message with a method and an id.
    Request,
    /// A message with a method, but no id (or the id `null`).
    Notification,
    /// A message without a method.
    Response,
}

/// The envelope of one message.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    /// The whole line, including the line break.
    pub line: &'a [u8],
    /// The whole object.
    pub root: Node<'a>,
    /// The member `id`, even if it is `null`.
    pub id: Option<Node<'a>>,
    pub(crate) method: Option<Node<'a>>,
    /// The member `params`.
    pub params: Option<Node<'a>>,
    /// The member `result`; `None` if it is `null` and the message has an error.
    pub result: Option<Node<'a>>,
    /// The member `error`, unless it is `null`.
    pub error: Option<Node<'a>>,
}

impl<'a> Message<'a> {
    /// Parses a line. Returns `None` if the line is not a JSON object.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let mut id = None;
        let mut method = None;
        let mut params = None;
        let mut result = None;
        let mut error = None;
        let root = Node::object(line, |name, value| {
            let slot = match name.raw() {
                br#""id""# => &mut id,
                br#""method""# => &mut method,
                br#""params""# => &mut params,
                br#""result""# => &mut result,
                br#""error""# => &mut error,
                _ => return,
            };
            // If there are several members with the same name, we use the last one, like most JSON parsers.
            *slot = Some(value);
        })?;
        // Some programs always write all members, and use `null` for the ones they don't need.
        let is_set = |node: &Node<'_>| !node.is_null();
        let method = method.filter(is_set);
        let error = error.filter(is_set);
        let result = result.filter(|result| error.is_none() || is_set(result));
        Some(Self { line, root, id, method, params, result, error })
    }

    /// Returns the kind of the message. A message whose id is `null` is a notification, because it can't be answered.
    pub fn kind(&self) -> Kind {
        match (self.method, self.id.filter(|id| !id.is_null())) {
            (None, _) => Kind::Response,
            (Some(_), None) => Kind::Notification,
            (Some(_), Some(_)) => Kind::Request,
        }
    }

    /// Returns the method, or an empty string for a response.
    pub fn method(&self) -> Cow<'a, str> {
        self.method.and_then(|method| method.as_str()).unwrap_or_default()
    }

    /// Returns the id, unless it is missing or `null`.
    pub fn id(&self) -> Option<Id> {
        self.id.and_then(Id::of)
    }

    /// Returns the value at a path below `params`.
    pub fn param(&self, path: &[&str]) -> Option<Node<'a>> {
        self.params?.at(path)
    }

    /// Returns `params.sessionId`.
    pub fn session_id(&self) -> Option<Cow<'a, str>> {
        self.param(&["sessionId"])?.as_str()
    }
}

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

    #[test]
    fn members_that_are_null() {
        for (line, kind, result, error) in [
            (r#"{"id":1,"method":null,"result":{},"error":null}"#, Kind::Response, Some("{}"), None),
            (r#"{"id":1,"result":null,"error":{"code":1}}"#, Kind::Response, None, Some(r#"{"code":1}"#)),
            (r#"{"id":1,"result":null,"error":null}"#, Kind::Response, Some("null"), None),
            (r#"{"id":null,"method":"x","params":{}}"#, Kind::Notification, None, None),
            (r#"{"id":null,"result":null,"error":{}}"#, Kind::Response, None, Some("{}")),
        ] {
            let message = Message::parse(line.as_bytes()).unwrap();
            let raw =
                |node: Option<Node<'_>>| node.map(|node| String::from_utf8(node.raw().to_vec()).unwrap());
            let found = (message.kind(), raw(message.result), raw(message.error));
            assert_eq!(found, (kind, result.map(str::to_owned), error.map(str::to_owned)), "{line}");
        }
    }

    #[test]
    fn a_broken_id_becomes_null() {
        for (id, expected) in [
            ("7", "7"),
            ("-1.50", "-1.50"),
            (r#""\u0061""#, r#""a""#),
            ("[1]", "[1]"),
            ("1(", "null"),
            ("nul", "null"),
            ("[1}", "null"),
        ] {
            let line = format!(r#"{{"id":{id},"method":"x"}}"#);
            let message = Message::parse(line.as_bytes()).unwrap();
            assert_eq!(message.id().unwrap().to_json(), expected, "{id}");
        }
    }
}
