//! The envelope of one message: which members a JSON-RPC object has, where they lie, and what kind of message that makes.

use std::borrow::Cow;

use serde_json::Value;

use crate::json::Node;

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

    /// The id as JSON; `null` for one that is none, as JSON-RPC wants it in an answer to what cannot be read.
    pub fn to_json(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Value::from(text.as_str()).to_string().into(),
            Self::Raw(raw) if serde_json::from_str::<Value>(raw).is_ok() => raw.as_str().into(),
            Self::Raw(_) => "null".into(),
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
    pub(crate) method: Option<Node<'a>>,
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
        // Some programs write every member that a message can have.
        let is_there = |node: &Node<'_>| !node.is_null();
        let method = method.filter(is_there);
        let error = error.filter(is_there);
        let result = result.filter(|result| error.is_none() || is_there(result));
        Some(Self { line, root, id, method, params, result, error })
    }

    /// What kind of message it is. Nobody can answer what has `null` for its id.
    pub fn kind(&self) -> Kind {
        match (self.method, self.id.filter(|id| !id.is_null())) {
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
    fn members_that_say_nothing() {
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
    fn an_answer_is_json_whatever_was_asked() {
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
