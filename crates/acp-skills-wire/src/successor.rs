//! Wraps and unwraps the messages of proxy chains, in which one connection to a conductor carries both sides of a proxy
//! ([RFD](https://agentclientprotocol.com/rfds/proxy-chains)).
//!
//! Messages from and to the client are plain. A message from or to the successor is wrapped in a `proxy/successor` request or
//! notification. Responses are plain, and their id shows which side they belong to. A message keeps its id when it passes from
//! one side to the other: the conductor numbers all requests to the proxy, so ids are unique, and a `$/cancel_request` is
//! valid on both sides.

use std::collections::HashSet;

use crate::{
    build,
    codes::{INVALID_PARAMS, INVALID_REQUEST},
    json::Node,
    message::{Id, Kind, Message},
};

/// The notification that cancels a request of this connection, on either side.
const CANCEL: &str = "$/cancel_request";

/// The spelling of the chain's methods that the conductor uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// `proxy/…`, as in the schema.
    Plain,
    /// `_proxy/…`, from the time before the schema had these methods: SDK 3 and older.
    Underscore,
}

impl Spelling {
    const ALL: [Self; 2] = [Self::Plain, Self::Underscore];

    fn initialize(self) -> &'static str {
        match self {
            Self::Plain => "proxy/initialize",
            Self::Underscore => "_proxy/initialize",
        }
    }

    fn successor(self) -> &'static str {
        match self {
            Self::Plain => "proxy/successor",
            Self::Underscore => "_proxy/successor",
        }
    }
}

/// The side of the proxy that a message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The client, or the previous proxy in the chain.
    Client,
    /// The agent, or the next proxy in the chain.
    Successor,
}

/// The result of sorting a line from the conductor.
#[derive(Debug, PartialEq, Eq)]
pub enum Sorted {
    /// A message from this side, without its envelope.
    From(Origin, Vec<u8>),
    /// The line cannot be forwarded. The value is the error response to send.
    Answer(Vec<u8>),
    /// The line cannot be forwarded and needs no response. The value is the reason, for the log.
    Dropped(String),
    /// There is no chain, because a client uses the proxy as an agent. The value is the error response to send.
    NoChain(Vec<u8>),
}

/// Sorts the lines from a conductor, and wraps the lines to it.
#[derive(Debug, Default)]
pub struct Switch {
    /// The spelling; `None` until the first message.
    spelling: Option<Spelling>,
    /// Pending requests to the client, from the successor or from the proxy. The client should answer both.
    asked: HashSet<Id>,
}

impl Switch {
    /// Returns true once the conductor has initialized the chain.
    pub fn has_begun(&self) -> bool {
        self.spelling.is_some()
    }

    /// Sorts a line from the conductor.
    pub fn sort(&mut self, line: &[u8]) -> Sorted {
        let Some(message) = Message::parse(line) else {
            let text = "line is not a JSON-RPC message (batches are not supported)";
            return if line.trim_ascii().is_empty() {
                Sorted::Dropped("an empty line".to_owned())
            } else {
                Sorted::Answer(build::error_without_id(INVALID_REQUEST, text))
            };
        };
        let method = message.method();
        let Some(spelling) = self.spelling.or_else(|| self.begin(&method)) else {
            return not_begun(&message);
        };
        match message.kind() {
            Kind::Response => {
                let is_clients = message.id().is_some_and(|id| self.asked.remove(&id));
                let origin = if is_clients { Origin::Client } else { Origin::Successor };
                Sorted::From(origin, line.to_vec())
            }
            Kind::Request if method == spelling.initialize() => {
                Sorted::From(Origin::Client, plain(&message, br#""initialize""#, message.params))
            }
            Kind::Request | Kind::Notification if method == spelling.successor() => self.unwrap(&message),
            Kind::Notification if method == CANCEL => Sorted::From(self.asked_by(&message), line.to_vec()),
            Kind::Request | Kind::Notification => Sorted::From(Origin::Client, line.to_vec()),
        }
    }

    /// Records a line that is sent to the client. If this is a request from the proxy, the response will also come from the client.
    pub fn to_client(&mut self, line: &[u8]) {
        if build::is_own_request(line) {
            self.asked.extend(Message::parse(line).and_then(|message| message.id()));
        }
    }

    /// Returns the line to send to the conductor for `line`, a message to the successor.
    pub fn to_successor(&mut self, line: &[u8]) -> Vec<u8> {
        let Some((message, spelling)) = Message::parse(line).zip(self.spelling) else {
            return line.to_vec();
        };
        if message.kind() == Kind::Response {
            if let Some(id) = message.id() {
                self.asked.remove(&id);
            }
            return line.to_vec();
        }
        match message.method {
            // We don't wrap a cancellation, because it belongs to the connection and not to the chain.
            Some(method) if !method.is_str(CANCEL) => {
                envelope(&message, spelling.successor(), method, message.params)
            }
            _ => line.to_vec(),
        }
    }

    fn begin(&mut self, method: &str) -> Option<Spelling> {
        self.spelling = Spelling::ALL.into_iter().find(|spelling| spelling.initialize() == method);
        self.spelling
    }

    fn unwrap(&mut self, message: &Message<'_>) -> Sorted {
        let inner = message.params.and_then(|params| Some((params.get("method")?, params.get("params"))));
        let refuse = |code, text: String| match message.id() {
            Some(id) => Sorted::Answer(build::error(&id, code, &text)),
            None => Sorted::Dropped(text),
        };
        let Some((method, params)) = inner.filter(|(method, _)| method.as_str().is_some()) else {
            let text = "envelope for a successor has no `method`";
            return refuse(INVALID_PARAMS, text.to_owned());
        };
        // Once the envelope is removed, the conductor would think that this message is from us, and a message for the client
        // would be sent back to the agent.
        let is_chains = |name: &&str| method.is_str(name);
        if let Some(name) = self
            .spelling
            .and_then(|chain| [chain.successor(), chain.initialize()].into_iter().find(is_chains))
        {
            return refuse(INVALID_REQUEST, format!("`{name}` is not allowed in an envelope"));
        }
        let line = plain(message, method.raw(), params);
        if method.is_str(CANCEL) {
            // A cancellation should not be wrapped. But if it is, we accept it, because the id belongs to this connection anyway.
            let origin = Message::parse(&line).map_or(Origin::Successor, |inner| self.asked_by(&inner));
            return Sorted::From(origin, line);
        }
        self.asked.extend(message.id());
        Sorted::From(Origin::Successor, line)
    }

    /// Returns the side whose request a cancellation refers to.
    fn asked_by(&self, cancel: &Message<'_>) -> Origin {
        let id = cancel.param(&["requestId"]).and_then(Id::of);
        if id.is_some_and(|id| self.asked.contains(&id)) { Origin::Successor } else { Origin::Client }
    }
}

/// Returns the response to a first message that doesn't initialize the chain.
fn not_begun(message: &Message<'_>) -> Sorted {
    let method = message.method();
    let Some(id) = message.id().filter(|_| message.kind() == Kind::Request) else {
        return Sorted::Dropped(format!("`{method}` arrived before `proxy/initialize`"));
    };
    if method == "initialize" {
        let text = "acp-skills-proxy has no agent to run: put the agent command after `--`, or run the proxy under \
                    an ACP conductor, which starts with `proxy/initialize`";
        return Sorted::NoChain(build::error(&id, INVALID_REQUEST, text));
    }
    let text = format!("expected `proxy/initialize`, got `{method}`");
    Sorted::Answer(build::error(&id, INVALID_REQUEST, &text))
}

/// Builds a plain message with this method, these params, and the id of `outer`.
fn plain(outer: &Message<'_>, method: &[u8], params: Option<Node<'_>>) -> Vec<u8> {
    let mut line = head(outer, method);
    if let Some(params) = params.filter(|params| !params.is_null()) {
        line.extend_from_slice(br#","params":"#);
        line.extend_from_slice(params.raw());
    }
    line.extend_from_slice(b"}\n");
    line
}

/// Builds the envelope `name` around this method and these params, with the id of `inner`.
fn envelope(inner: &Message<'_>, name: &str, method: Node<'_>, params: Option<Node<'_>>) -> Vec<u8> {
    let mut line = head(inner, format!("\"{name}\"").as_bytes());
    line.extend_from_slice(br#","params":{"method":"#);
    line.extend_from_slice(method.raw());
    if let Some(params) = params {
        line.extend_from_slice(br#","params":"#);
        line.extend_from_slice(params.raw());
    }
    line.extend_from_slice(b"}}\n");
    line
}

/// Builds the start of a message, up to the params.
fn head(message: &Message<'_>, method: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(message.line.len() + 96);
    line.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    if let Some(id) = message.id {
        line.extend_from_slice(br#","id":"#);
        line.extend_from_slice(id.raw());
    }
    line.extend_from_slice(br#","method":"#);
    line.extend_from_slice(method);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str =
        r#"{"jsonrpc":"2.0","id":0,"method":"proxy/initialize","params":{"protocolVersion":1}}"#;

    fn text(line: Vec<u8>) -> String {
        String::from_utf8(line).unwrap().trim_end().to_owned()
    }

    /// Sorts `line` and returns the result without its line break.
    fn sorted(switch: &mut Switch, line: &str) -> (Option<Origin>, String) {
        match switch.sort(line.as_bytes()) {
            Sorted::From(origin, line) => (Some(origin), text(line)),
            Sorted::Answer(line) | Sorted::NoChain(line) => (None, text(line)),
            Sorted::Dropped(why) => (None, why),
        }
    }

    fn begun() -> Switch {
        let mut switch = Switch::default();
        let initialize = BEGIN.replace("proxy/initialize", "initialize");
        assert_eq!(sorted(&mut switch, BEGIN), (Some(Origin::Client), initialize));
        switch
    }

    #[test]
    fn sorts_and_unwraps() {
        use Origin::{Client, Successor};
        let mut switch = begun();
        for (line, origin, expected) in [
            // A message from the client should not change.
            (r#"{"id":1,"method":"session/new","params":{"x":1e3}}"#, Some(Client), None),
            (r#"{"method":"session/cancel","params":{}}"#, Some(Client), None),
            // If the message is from the successor, we should return the inner message byte for byte, with the id from the
            // envelope and its own `_meta`.
            (
                r#"{"jsonrpc":"2.0","id":"é","method":"proxy/successor","params":{"_meta":{"outer":1},"params":{"_meta":{"b":1,"a":1.50}},"method":"fs/read"}}"#,
                Some(Successor),
                Some(r#"{"jsonrpc":"2.0","id":"é","method":"fs/read","params":{"_meta":{"b":1,"a":1.50}}}"#),
            ),
            (
                r#"{"method":"proxy/successor","params":{"method":"session/update","params":null}}"#,
                Some(Successor),
                Some(r#"{"jsonrpc":"2.0","method":"session/update"}"#),
            ),
            // The id tells us whose request this cancels.
            (r#"{"method":"$/cancel_request","params":{"requestId":"é"}}"#, Some(Successor), None),
            (r#"{"method":"$/cancel_request","params":{"requestId":1}}"#, Some(Client), None),
            (
                r#"{"method":"proxy/successor","params":{"method":"$/cancel_request","params":{"requestId":1}}}"#,
                Some(Client),
                Some(r#"{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}"#),
            ),
            // This chain uses the other spelling, so it's a message from the client.
            (r#"{"method":"_proxy/successor","params":{"method":"x"}}"#, Some(Client), None),
            // A response should belong to the side that the request was sent to.
            (r#"{"id":7,"result":{}}"#, Some(Successor), None),
            (r#"{"id":"é","result":{}}"#, Some(Client), None),
            (r#"{"id":"é","result":{}}"#, Some(Successor), None),
            (
                r#"{"id":4,"method":"proxy/successor","params":{"params":{}}}"#,
                None,
                Some(
                    r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"envelope for a successor has no `method`"}}"#,
                ),
            ),
            // The conductor would treat this as a message to the successor, so it would come right back to us.
            (
                r#"{"id":4,"method":"proxy/successor","params":{"method":"proxy/successor","params":{"method":"session/prompt"}}}"#,
                None,
                Some(
                    r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32600,"message":"`proxy/successor` is not allowed in an envelope"}}"#,
                ),
            ),
            (
                r#"{"method":"proxy/successor","params":{"method":"proxy/initialize"}}"#,
                None,
                Some("`proxy/initialize` is not allowed in an envelope"),
            ),
            (
                r#"[{"id":5,"method":"x"}]"#,
                None,
                Some(
                    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"line is not a JSON-RPC message (batches are not supported)"}}"#,
                ),
            ),
        ] {
            assert_eq!(sorted(&mut switch, line), (origin, expected.unwrap_or(line).to_owned()), "{line}");
        }
    }

    #[test]
    fn wraps() {
        for (line, expected) in [
            (
                r#"{"params":{"_meta":{"b":1}},"id":1,"jsonrpc":"2.0","method":"session/new"}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"proxy/successor","params":{"method":"session/new","params":{"_meta":{"b":1}}}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","method":"session/\u0063ancel"}"#,
                r#"{"jsonrpc":"2.0","method":"proxy/successor","params":{"method":"session/\u0063ancel"}}"#,
            ),
            (r#"{"id":1,"error":{}}"#, r#"{"id":1,"error":{}}"#),
            (
                r#"{"method":"$/cancel_request","params":{"requestId":1}}"#,
                r#"{"method":"$/cancel_request","params":{"requestId":1}}"#,
            ),
        ] {
            assert_eq!(text(begun().to_successor(line.as_bytes())), expected, "{line}");
        }
        let mut old = Switch::default();
        sorted(&mut old, &BEGIN.replace("proxy/", "_proxy/"));
        let line = text(old.to_successor(br#"{"method":"x","params":[]}"#));
        assert_eq!(
            line,
            r#"{"jsonrpc":"2.0","method":"_proxy/successor","params":{"method":"x","params":[]}}"#
        );
    }

    #[test]
    fn our_own_response_closes_a_request() {
        let mut switch = begun();
        sorted(&mut switch, r#"{"id":9,"method":"proxy/successor","params":{"method":"mcp/message"}}"#);
        switch.to_successor(br#"{"id":9,"result":{}}"#);
        // The same id can be used twice.
        assert_eq!(sorted(&mut switch, r#"{"id":9,"result":{}}"#).0, Some(Origin::Successor));
    }

    #[test]
    fn the_first_message_initializes_the_chain() {
        let mut switch = Switch::default();
        let (origin, answer) = sorted(&mut switch, r#"{"id":1,"method":"session/new"}"#);
        assert!(origin.is_none() && answer.contains("expected `proxy/initialize`"), "{answer}");
        assert_eq!(sorted(&mut switch, r#"{"method":"x"}"#).1, "`x` arrived before `proxy/initialize`");
        let plain = switch.sort(br#"{"id":1,"method":"initialize"}"#);
        assert!(
            matches!(&plain, Sorted::NoChain(answer) if text(answer.clone()).contains("no agent")),
            "{plain:?}"
        );
        assert_eq!(sorted(&mut switch, BEGIN).0, Some(Origin::Client));
    }
}
