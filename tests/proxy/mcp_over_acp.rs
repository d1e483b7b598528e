//! MCP over the ACP connection (`mcp/message`): each request is answered and can be cancelled, and the limits for requests and
//! subscriptions don't keep other messages of the agent waiting.

use serde_json::{Value, json};

use crate::{
    agent::LONG,
    editor::Proxy,
    fixture::{Fixture, entry},
    progress::{HELD, expect, listen_for_processes},
    scripts::{kit, request, with_long_timeout},
    skills::Skills,
};

crate::trials!(
    each_request_is_answered,
    long_messages_are_refused,
    subscriptions_are_limited,
    requests_in_flight_are_limited,
    a_call_is_cancelled_by_a_notification,
    a_call_is_cancelled_with_its_request,
    a_server_that_has_refused_the_handshake,
    a_request_at_the_end_of_its_session,
);

const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;
const REQUEST_CANCELLED: i64 = -32800;

/// A session `s` of an agent that supports MCP over ACP.
struct OverAcp {
    fixture: Fixture,
    server: Value,
}

impl OverAcp {
    fn new(proxy: Proxy) -> Self {
        let capabilities =
            json!({ "mcpCapabilities": { "acp": {} }, "sessionCapabilities": { "close": {} } });
        let mut fixture = Fixture::initialized(proxy, &capabilities);
        let server = entry(&fixture.new_session("s"))["serverId"].clone();
        Self { fixture, server }
    }

    /// Returns the params of `mcp/message`. `params` gets the metadata that each request needs.
    fn params(&self, request: &str, method: &str, mut params: Value) -> Value {
        params["_meta"] = meta();
        json!({ "serverId": self.server, "requestId": request, "method": method, "params": params })
    }

    /// Returns the line of an `mcp/message` request.
    fn line(&self, id: &str, method: &str, params: Value) -> String {
        let params = self.params(&format!("inner {id}"), method, params);
        json!({ "jsonrpc": "2.0", "id": id, "method": "mcp/message", "params": params }).to_string()
    }

    fn send(&mut self, id: &str, method: &str, params: Value) {
        let line = self.line(id, method, params);
        self.fixture.agent_writes(&[&line]);
    }

    /// Checks that `tools/list` is answered, and that the agent's updates reach the editor.
    fn works(&mut self) {
        let listing = self.line("works", "tools/list", json!({}));
        let update =
            json!({ "jsonrpc": "2.0", "method": "_update", "params": { "sessionId": "s" } }).to_string();
        self.fixture.agent_writes(&[&listing, &update]);
        let answer = self.fixture.agent_receives();
        assert_eq!(answer["id"], "works", "{answer}");
        assert!(answer["result"]["result"]["tools"].is_array(), "{answer}");
        self.fixture.editor.wait_for("the update", |message| message["method"] == "_update");
    }

    /// Starts a script that runs until it is cancelled. Returns its call.
    fn hold(&mut self, id: &str) -> std::sync::mpsc::Receiver<String> {
        let (address, seen) = listen_for_processes();
        let call = request(0, "hold", &[&address], None)["params"].take();
        self.send(id, "tools/call", call);
        expect(&seen, HELD);
        seen
    }
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "scripted", "version": "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// Sends odd inner requests to a server, each of them first to a new one and then to one that runs.
fn each_request_is_answered() {
    let skills = Skills::review();
    let deep = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let meta = meta();
    let odd = [
        r#""params":{}"#.to_owned(),
        r#""method":7"#.to_owned(),
        r#""method":"tools/list","params":"x""#.to_owned(),
        r#""method":"tools/list","params":7"#.to_owned(),
        r#""method":"tools/list","params":true"#.to_owned(),
        r#""method":"tools/list","params":[1]"#.to_owned(),
        r#""method":"tools/list","params":null"#.to_owned(),
        r#""method":"tools/list""#.to_owned(),
        format!(r#""method":"tools/list","params":{}"#, deep(100)),
        format!(r#""method":"tools/list","params":{{"_meta":{meta},"x":{}}}"#, deep(1000)),
        r#""method":"tools/list","params":{"_meta":7}"#.to_owned(),
        r#""method":"tools/list","params":{"_meta":null}"#.to_owned(),
        r#""method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":5}}"#
            .to_owned(),
        format!(r#""method":"tools/call","params":{{"_meta":{meta}}}"#),
        format!(r#""method":"tools/call","params":{{"_meta":{meta},"name":"\ud800"}}"#),
        format!(r#""method":"tools/call","params":{{"_meta":{meta},"name":"x","arguments":"y"}}"#),
        format!(r#""method":"resources/read","params":{{"_meta":{meta},"uri":5}}"#),
        format!(r#""method":"subscriptions/listen","params":{{"_meta":{meta},"notifications":5}}"#),
        format!(r#""method":"notifications/initialized","params":{{"_meta":{meta}}}"#),
        format!(r#""method":"notifications/cancelled","params":{{"_meta":{meta},"requestId":1}}"#),
        format!(r#""method":"","params":{{"_meta":{meta}}}"#),
        r#""method":"initialize","params":{}"#.to_owned(),
        r#""method":"ping""#.to_owned(),
    ];
    let mut session = OverAcp::new(skills.proxy());
    let sends = |session: &mut OverAcp, id: &str, rest: &str| {
        let server = &session.server;
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":"{id}","method":"mcp/message","params":{{"serverId":{server},"requestId":"r",{rest}}}}}"#
        );
        session.fixture.agent_writes(&[&line]);
        let answer = session.fixture.agent_receives();
        assert_eq!(answer["id"], id, "{rest}: {answer}");
        assert!(answer.get("error").or(answer.get("result")).is_some(), "{rest}: {answer}");
    };
    for (number, rest) in odd.iter().enumerate() {
        sends(&mut session, &format!("new {number}"), rest);
    }
    session.works();
    for (number, rest) in odd.iter().enumerate() {
        sends(&mut session, &format!("running {number}"), rest);
    }
    session.works();
    session.fixture.finish();
}

fn long_messages_are_refused() {
    let skills = Skills::review();
    let mut session = OverAcp::new(skills.proxy());
    // The scripted agent replaces each of these texts with 3 MiB. rmcp would discard the second line.
    for (id, count) in [("6 MiB", 2), ("18 MiB", 6)] {
        let long = vec![LONG; count];
        session.send(id, "tools/call", json!({ "name": "activate_skill", "arguments": { "name": long } }));
        let answer = session.fixture.agent_receives();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(id), &json!(INVALID_PARAMS)),
            "{answer}"
        );
        session.works();
    }
    // A message of 3 MiB is answered, also while a subscription is open.
    session.send("open", "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    session.fixture.agent_receives();
    session.send("3 MiB", "tools/list", json!({ "cursor": LONG }));
    assert_eq!(session.fixture.agent_receives()["id"], "3 MiB");
    session.works();
    session.fixture.finish();
}

fn subscriptions_are_limited() {
    const SUBSCRIPTIONS: usize = 2100;
    let skills = Skills::review();
    let mut session = OverAcp::new(skills.proxy());
    let wishes = json!({ "notifications": { "toolsListChanged": true } });
    let lines: Vec<_> = (0..SUBSCRIPTIONS)
        .map(|id| session.line(&id.to_string(), "subscriptions/listen", wishes.clone()))
        .collect();
    session.fixture.agent_writes(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let (mut open, mut refused) = (0, 0);
    for _ in 0..SUBSCRIPTIONS {
        let message = session.fixture.agent_receives();
        if let Some(code) = message["error"]["code"].as_i64() {
            assert_eq!(code, INVALID_PARAMS, "{message}");
            refused += 1;
        } else {
            let method = &message["params"]["method"];
            assert_eq!(method, "notifications/subscriptions/acknowledged", "{message}");
            open += 1;
        }
    }
    assert_eq!((open, refused), (64, SUBSCRIPTIONS - 64));
    session.works();
    // After a subscription was cancelled, there is room for another one.
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": "0" } });
    session.fixture.agent_sends(&cancel);
    let answer = session.fixture.agent_receives();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!("0"), &json!(REQUEST_CANCELLED)),
        "{answer}"
    );
    session.send("again", "subscriptions/listen", wishes);
    let opened = session.fixture.agent_receives();
    assert_eq!(opened["params"]["requestId"], "inner again", "{opened}");
    session.fixture.finish();
}

/// Two calls of 3 MiB that don't end take most of the memory for requests. The next one gets an error, and updates continue.
fn requests_in_flight_are_limited() {
    let skills = kit();
    let mut session = OverAcp::new(with_long_timeout(&skills));
    let (address, seen) = listen_for_processes();
    let mut call = request(0, "hold", &[&address], None)["params"].take();
    call["x"] = LONG.into();
    session.send("first", "tools/call", call);
    expect(&seen, HELD);
    let (address, other_seen) = listen_for_processes();
    let mut call = request(0, "hold", &[&address], None)["params"].take();
    call["x"] = LONG.into();
    session.send("second", "tools/call", call);
    expect(&other_seen, HELD);
    session.send("third", "tools/list", json!({ "x": LONG }));
    let answer = session.fixture.agent_receives();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!("third"), &json!(INTERNAL_ERROR)),
        "{answer}"
    );
    session.works();
    session.fixture.finish();
}

fn a_call_is_cancelled_by_a_notification() {
    let skills = kit();
    let mut session = OverAcp::new(with_long_timeout(&skills));
    let seen = session.hold("call");
    let params = session.params("x", "notifications/cancelled", json!({ "requestId": "inner call" }));
    session.fixture.agent_sends(&json!({ "jsonrpc": "2.0", "method": "mcp/message", "params": params }));
    expect(&seen, "gone");
    let answer = session.fixture.agent_receives();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!("call"), &json!(REQUEST_CANCELLED)),
        "{answer}"
    );
    session.works();
    // Other notifications don't reach the editor either, and the server ignores those that it doesn't know.
    for method in ["notifications/initialized", "notifications/cancelled", "notifications/odd", "tools/list"]
    {
        let params = session.params("x", method, json!({ "requestId": "unknown" }));
        session.fixture.agent_sends(&json!({ "jsonrpc": "2.0", "method": "mcp/message", "params": params }));
    }
    session.works();
    session.fixture.finish();
}

fn a_call_is_cancelled_with_its_request() {
    let skills = kit();
    let mut session = OverAcp::new(with_long_timeout(&skills));
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": "call" } });
    for _ in 0..2 {
        let seen = session.hold("call");
        session.fixture.agent_sends(&cancel);
        expect(&seen, "gone");
        let answer = session.fixture.agent_receives();
        let expected = (&json!("call"), &json!(REQUEST_CANCELLED));
        assert_eq!((&answer["id"], &answer["error"]["code"]), expected, "{answer}");
        session.works();
    }
    // The request has been answered, so this can only be for the editor.
    session.fixture.agent_sends(&cancel);
    assert_eq!(session.fixture.editor.wait_for("the rest", |message| message == &cancel), cancel);
    session.fixture.finish();
}

/// The server ends if its first message is a notification, or if it refuses the handshake.
fn a_server_that_has_refused_the_handshake() {
    let skills = Skills::review();
    let mut session = OverAcp::new(skills.proxy());
    session.send("ping", "ping", json!({}));
    assert_eq!(session.fixture.agent_receives()["id"], "ping");
    let params = session.params("x", "notifications/roots/list_changed", json!({}));
    session.fixture.agent_sends(&json!({ "jsonrpc": "2.0", "method": "mcp/message", "params": params }));
    session.works();
    session.fixture.finish();
}

fn a_request_at_the_end_of_its_session() {
    let skills = Skills::review();
    let mut session = OverAcp::new(skills.proxy());
    session.works();
    let id = session.fixture.editor.request("session/close", json!({ "sessionId": "s" }));
    let close = session.fixture.agent_receives();
    let listing = session.line("late", "tools/list", json!({}));
    let response = json!({ "jsonrpc": "2.0", "id": close["id"], "result": {} }).to_string();
    // The agent writes both lines at once.
    session.fixture.agent_writes(&[&format!("{listing}\n{response}")]);
    session.fixture.editor.answer(&id);
    let answer = session.fixture.agent_receives();
    assert_eq!(answer["id"], "late", "{answer}");
    session.fixture.finish();
}
