//! MCP servers behind skills that speak streamable HTTP.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    editor::{DEADLINE, Proxy},
    fixture::{Fixture, MCP_2025, entry},
    skills::Skills,
};

crate::trials!(
    calls_over_http,
    the_trace_of_the_agent_is_passed_on,
    redirects_are_refused,
    failing_servers_cost_an_error_only,
    a_forgotten_session_is_started_again,
    a_server_that_hangs_ends_with_its_session,
    calls_that_hang_leave_room_for_others,
    a_server_asks_the_user,
    an_answer_is_continued,
    the_stream_of_a_server_is_opened_again,
);

/// A request that the server received: its method, its headers in lower case, and its body.
#[derive(Clone, Debug)]
struct Seen {
    method: String,
    headers: String,
    body: Value,
}

/// The method of a call that hung until its connection was closed.
const CLOSED: &str = "closed";

/// A scripted server. Its answers depend on `mode`.
struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    fn start(mode: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let all = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let all = Arc::clone(&all);
                thread::spawn(move || serve(stream.expect("a connection"), mode, &all));
            }
        });
        Self { url, seen }
    }

    fn seen(&self, method: &str) -> Vec<Seen> {
        let seen = self.seen.lock().expect("no panic");
        seen.iter().filter(|seen| seen.method == method || seen.body["method"] == method).cloned().collect()
    }

    fn wait_for(&self, method: &str) {
        self.wait_for_all(method, 1);
    }

    fn wait_for_all(&self, method: &str, count: usize) {
        let deadline = Instant::now() + DEADLINE;
        while self.seen(method).len() < count {
            assert!(Instant::now() < deadline, "{} of {count} {method}", self.seen(method).len());
            thread::yield_now();
        }
    }

    /// Opens a session with a skill that has this server.
    fn open(&self, skills: &Skills) -> (Fixture, crate::fixture::Connection) {
        self.open_with(skills, &json!(20))
    }

    /// Like `open`, with a time limit for calls in seconds.
    fn open_with(&self, skills: &Skills, timeout: &Value) -> (Fixture, crate::fixture::Connection) {
        let server = json!({
            "url": self.url, "headers": { "Authorization": "Bearer ${TOKEN}" }, "ask": "never", "timeout": timeout,
        });
        let skill = json!({ "name": "web", "description": "Has tools.", "mcp": server });
        let config = skills.write("skills.yaml", &json!({ "skills": [skill] }).to_string());
        let mut fixture = Fixture::over_http(Proxy::new().flag("--config", config).env("TOKEN", "t0ken"));
        let params = fixture.new_session("s");
        let connection = fixture.connect(&entry(&params), MCP_2025);
        (fixture, connection)
    }
}

/// Answers the requests of one connection.
fn serve(stream: TcpStream, mode: &str, all: &Mutex<Vec<Seen>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let mut writer = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let headers = head.to_ascii_lowercase();
        let length = headers.split_once("content-length: ").and_then(|(_, rest)| rest.lines().next());
        let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
        reader.read_exact(&mut body).expect("a body");
        let method = head.split(' ').next().expect("a method").to_owned();
        let seen = Seen { method, headers, body: serde_json::from_slice(&body).unwrap_or_default() };
        all.lock().expect("no panic").push(seen.clone());
        if mode == "hangs"
            && seen.body["method"] == "tools/call"
            && seen.body["params"]["arguments"]["works"].is_null()
        {
            // This ends when the proxy closes the connection.
            let _ = reader.read_to_end(&mut Vec::new());
            all.lock().expect("no panic").push(Seen { method: CLOSED.to_owned(), ..seen });
            return;
        }
        let number = all.lock().expect("no panic").len();
        let answer = answer(&seen, mode, number);
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn response(status: &str, kind: &str, more: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{more}\r\n{body}", body.len())
}

fn answer(seen: &Seen, mode: &str, number: usize) -> String {
    let reply =
        |result: Value| json!({ "jsonrpc": "2.0", "id": seen.body["id"], "result": result }).to_string();
    let as_json = |result: Value, more: &str| response("200 OK", "application/json", more, &reply(result));
    let events = |events: &str| response("200 OK", "text/event-stream", "", events);
    if seen.method == "GET" {
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        if mode == "resumes" && seen.headers.contains("last-event-id: c-") {
            let id = seen.headers.split_once("last-event-id: c-").and_then(|(_, rest)| rest.lines().next());
            let id: u64 = id.expect("an id").parse().expect("a number");
            let result = json!({ "content": [{ "type": "text", "text": "said later" }] });
            let line = json!({ "jsonrpc": "2.0", "id": id, "result": result });
            return events(&format!("data: {line}\n\n"));
        }
        if mode == "listens" {
            return events(&format!("data: {notification}\n\n"));
        }
        if mode == "listens again" {
            return events(&format!("id: {number}\nretry: 20\ndata: {notification}\n\n"));
        }
        return response("405 Method Not Allowed", "text/plain", "", "");
    }
    if mode == "moved" {
        return response("307 Temporary Redirect", "text/plain", "Location: /elsewhere\r\n", "");
    }
    match seen.body["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let session = format!("Mcp-Session-Id: session-{number}\r\n");
            as_json(json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} } }), &session)
        }
        "tools/list" => {
            let tools = json!([{ "name": "say", "inputSchema": { "type": "object" } }]);
            let events = format!(
                ": a comment\r\nevent: message\r\ndata: {}\r\n\r\n",
                reply(json!({ "tools": tools }))
            );
            response("200 OK", "text/event-stream; charset=utf-8", "", &events)
        }
        "tools/call" if mode == "forgets" && seen.headers.contains("session-1\r") => {
            response("404 Not Found", "text/plain", "", "")
        }
        "tools/call" if mode == "asks" => {
            let asks = json!({
                "jsonrpc": "2.0", "id": "question", "method": "elicitation/create",
                "params": { "message": "Which?", "requestedSchema": { "type": "object", "properties": {} } },
            });
            let result = reply(json!({ "content": [{ "type": "text", "text": "said" }] }));
            events(&format!("data: {asks}\n\ndata: {result}\n\n"))
        }
        "tools/call" if mode == "resumes" => {
            events(&format!("id: c-{}\nretry: 20\ndata:\n\n", seen.body["id"]))
        }
        "tools/call" if mode == "fails" => response("500 Oh No", "text/plain", "", "secret details"),
        "tools/call" if mode == "empty" => response("200 OK", "application/json", "", ""),
        "tools/call" if mode == "garbage" => response("200 OK", "text/event-stream", "", "data: {]\n\ndata"),
        "tools/call" => {
            let token = &seen.body["params"]["_meta"]["progressToken"];
            let progress = json!({
                "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": token, "progress": 1 },
            });
            let result = reply(json!({ "content": [{ "type": "text", "text": "said" }] }));
            let events = format!("data: {progress}\n\ndata: {result}\n\n");
            response("200 OK", "text/event-stream", "", &events)
        }
        _ => response("202 Accepted", "text/plain", "", ""),
    }
}

fn calls_over_http() {
    let skills = Skills::new();
    let server = Server::start("");
    let (mut fixture, connection) = server.open(&skills);
    assert!(server.seen("POST").is_empty(), "nothing is sent before the skill is used");
    let text = fixture.call(&connection, "activate_skill", json!({ "name": "web" })).0;
    assert!(text.contains("<tool name=\"say\">") && !text.contains("t0ken"), "{text}");
    let arguments = json!({ "skill": "web", "tool": "say", "input": { "a": 1 } });
    assert_eq!(fixture.call(&connection, "call_skill_tool", arguments), ("said".to_owned(), false));
    let call = server.seen("tools/call").remove(0);
    assert_eq!(call.body["params"]["arguments"], json!({ "a": 1 }));
    for header in
        ["authorization: bearer t0ken\r", "mcp-session-id: session-1\r", "mcp-protocol-version: 2025-06-18\r"]
    {
        assert!(call.headers.contains(header), "{header} is not in {}", call.headers);
    }
    let order: Vec<_> = server.seen("POST").iter().map(|seen| seen.body["method"].clone()).collect();
    assert_eq!(order, ["initialize", "notifications/initialized", "tools/list", "tools/call"]);
    fixture.exchange("session/close", json!({ "sessionId": "s" }), json!({ "result": {} }));
    server.wait_for("DELETE");
    fixture.finish();
}

fn the_trace_of_the_agent_is_passed_on() {
    let skills = Skills::new();
    let server = Server::start("");
    let (mut fixture, connection) = server.open(&skills);
    let trace = "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01";
    let arguments = json!({ "skill": "web", "tool": "say", "input": {} });
    let params = json!({ "connection": connection.number, "tool": "call_skill_tool", "arguments": arguments, "traceparent": trace });
    fixture.order("call", params).expect("a result");
    fixture.call(&connection, "call_skill_tool", arguments);
    let calls = server.seen("tools/call");
    let metas: Vec<_> = calls.iter().map(|call| &call.body["params"]["_meta"]).collect();
    assert_eq!(metas[0]["traceparent"], trace);
    assert!(metas[0]["progressToken"].is_u64() && metas[1]["traceparent"].is_null(), "{metas:?}");
    fixture.finish();
}

fn redirects_are_refused() {
    let skills = Skills::new();
    let server = Server::start("moved");
    let (mut fixture, connection) = server.open(&skills);
    let text = fixture.call(&connection, "activate_skill", json!({ "name": "web" })).0;
    assert!(text.contains("request to server failed: redirects are not followed"), "{text}");
    assert!(server.seen("POST").len() == 1 && server.seen("GET").is_empty());
    fixture.finish();
}

fn failing_servers_cost_an_error_only() {
    let skills = Skills::new();
    for (mode, words) in [
        ("fails", "server returned status 500"),
        ("empty", "server sent no answer"),
        ("garbage", "server sent no answer"),
    ] {
        let server = Server::start(mode);
        let (mut fixture, connection) = server.open(&skills);
        let arguments = json!({ "skill": "web", "tool": "say" });
        let (text, failed) = fixture.call(&connection, "call_skill_tool", arguments);
        assert!(failed && text.contains(words) && !text.contains("secret"), "{mode}: {text}");
        fixture.finish();
    }
}

fn a_forgotten_session_is_started_again() {
    let skills = Skills::new();
    let server = Server::start("forgets");
    let (mut fixture, connection) = server.open(&skills);
    let arguments = json!({ "skill": "web", "tool": "say" });
    assert!(fixture.call(&connection, "call_skill_tool", arguments.clone()).1);
    assert_eq!(fixture.call(&connection, "call_skill_tool", arguments), ("said".to_owned(), false));
    assert_eq!(server.seen("initialize").len(), 2);
    fixture.finish();
}

fn a_server_that_hangs_ends_with_its_session() {
    let skills = Skills::new();
    let server = Server::start("hangs");
    let (mut fixture, connection) = server.open(&skills);
    let arguments = json!({ "skill": "web", "tool": "say" });
    // There are more calls than requests at the same time.
    for _ in 0..20 {
        fixture.begin(&connection, &arguments);
    }
    server.wait_for_all("tools/call", 16);
    fixture.exchange("session/close", json!({ "sessionId": "s" }), json!({ "result": {} }));
    server.wait_for("DELETE");
    server.wait_for_all(CLOSED, 16);
    fixture.editor.unread();
    fixture.editor.finish();
}

fn calls_that_hang_leave_room_for_others() {
    let skills = Skills::new();
    let server = Server::start("hangs");
    let (mut fixture, connection) = server.open_with(&skills, &json!(5));
    let hangs = json!({ "skill": "web", "tool": "say" });
    let orders: Vec<_> = (0..16).map(|_| fixture.begin(&connection, &hangs)).collect();
    for order in orders {
        let result = fixture.editor.answer(&order)["result"].clone();
        assert_eq!(result["isError"], true, "{result}");
    }
    let works = json!({ "skill": "web", "tool": "say", "input": { "works": true } });
    assert_eq!(fixture.call(&connection, "call_skill_tool", works), ("said".to_owned(), false));
    server.wait_for_all(CLOSED, 16);
    fixture.finish();
}

fn a_server_asks_the_user() {
    let skills = Skills::new();
    let server = Server::start("asks");
    let (mut fixture, connection) = server.open(&skills);
    let arguments = json!({ "skill": "web", "tool": "say" });
    assert_eq!(fixture.call(&connection, "call_skill_tool", arguments), ("said".to_owned(), false));
    let deadline = Instant::now() + DEADLINE;
    // This editor shows no forms.
    while !server.seen("POST").iter().any(|seen| seen.body["result"]["action"] == "decline") {
        assert!(Instant::now() < deadline, "the question has no answer");
        thread::yield_now();
    }
    fixture.finish();
}

fn an_answer_is_continued() {
    let skills = Skills::new();
    let server = Server::start("resumes");
    let (mut fixture, connection) = server.open(&skills);
    let arguments = json!({ "skill": "web", "tool": "say" });
    assert_eq!(fixture.call(&connection, "call_skill_tool", arguments), ("said later".to_owned(), false));
    fixture.finish();
}

fn the_stream_of_a_server_is_opened_again() {
    let skills = Skills::new();
    let arguments = json!({ "skill": "web", "tool": "say" });
    // Without `retry`, it is opened again at most every second.
    let server = Server::start("listens");
    let start = Instant::now();
    let (mut fixture, connection) = server.open(&skills);
    for _ in 0..30 {
        assert!(!fixture.call(&connection, "call_skill_tool", arguments.clone()).1);
    }
    let opened = server.seen("GET").len() as u64;
    assert!((1..=start.elapsed().as_secs() + 2).contains(&opened), "opened {opened} times");
    fixture.finish();
    let server = Server::start("listens again");
    let (mut fixture, connection) = server.open(&skills);
    assert!(!fixture.call(&connection, "call_skill_tool", arguments).1);
    let deadline = Instant::now() + DEADLINE;
    while server.seen("GET").len() < 3 {
        assert!(Instant::now() < deadline, "the stream is not opened again");
        thread::yield_now();
    }
    let opened = server.seen("GET");
    assert!(!opened[0].headers.contains("last-event-id"), "{}", opened[0].headers);
    assert!(opened[2].headers.contains("last-event-id: "), "{}", opened[2].headers);
    fixture.finish();
}
