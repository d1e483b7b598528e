//! Access control of the HTTP listener on the loopback interface.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use serde_json::{Value, json};

use crate::{
    editor::DEADLINE,
    fixture::{Fixture, entry},
    skills::Skills,
};

crate::trials!(
    the_token_grants_access,
    a_wrong_token_is_refused,
    other_hosts_and_browsers_are_refused,
    unknown_paths,
    tokens_are_for_one_session,
    a_client_without_version_headers,
    a_stateless_client,
    endpoints_close_with_their_session,
    a_bridge_without_its_environment,
    a_bridge_with_a_wrong_token,
    idle_connections_do_not_block_clients,
    many_clients_connect_at_once,
);

/// An endpoint: `127.0.0.1:PORT`, `/PATH` and the token.
pub(crate) struct Endpoint {
    pub(crate) address: String,
    path: String,
    token: String,
}

impl Endpoint {
    pub(crate) fn of(entry: &Value) -> Self {
        let url = entry["url"].as_str().expect("text").strip_prefix("http://").expect("plain HTTP");
        let (address, path) = url.split_once('/').expect("a path");
        let header = entry["headers"][0]["value"].as_str().expect("text");
        let token = header.strip_prefix("Bearer ").expect("a Bearer token");
        Self { address: address.to_owned(), path: format!("/{path}"), token: token.to_owned() }
    }

    /// Returns the headers that a well-behaved client sends.
    pub(crate) fn headers(&self) -> Vec<(&str, String)> {
        vec![
            ("Host", self.address.clone()),
            ("Authorization", format!("Bearer {}", self.token)),
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
        ]
    }

    /// Sends a request with these headers and returns the status code and the whole response.
    fn send(&self, line: &str, headers: &[(&str, String)], body: &str) -> (u16, String) {
        let mut stream = self.open(line, headers, body);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the proxy answers");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        (status.unwrap_or_else(|| panic!("no HTTP: {answer}")), answer)
    }

    /// Sends a request and returns the connection, without reading the response.
    fn open(&self, line: &str, headers: &[(&str, String)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("the proxy listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        let headers: String =
            headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat()).collect();
        let request = format!(
            "{line} HTTP/1.1\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("the proxy reads");
        stream
    }

    /// Posts a message and returns the connection, without reading the response.
    pub(crate) fn post_without_reading(&self, headers: &[(&str, String)], body: &Value) -> TcpStream {
        self.open(&format!("POST {}", self.path), headers, &body.to_string())
    }

    pub(crate) fn post(&self, headers: &[(&str, String)], body: &Value) -> (u16, String) {
        self.send(&format!("POST {}", self.path), headers, &body.to_string())
    }

    /// Sends `initialize` with these headers and returns the status code.
    pub(crate) fn initialize_status(&self, headers: &[(&str, String)]) -> u16 {
        self.post(headers, &initialize("2025-06-18")).0
    }
}

pub(crate) fn initialize(revision: &str) -> Value {
    let info = json!({ "name": "raw", "version": "1" });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": { "protocolVersion": revision, "capabilities": {}, "clientInfo": info } })
}

/// Opens a session and returns the endpoint.
fn endpoint(skills: &Skills) -> (Fixture, Endpoint) {
    let mut fixture = Fixture::over_http(skills.proxy());
    let params = fixture.new_session("s");
    (fixture, Endpoint::of(&entry(&params)))
}

/// Returns `headers` with another value for the header `name`, or without it if `value` is `None`.
pub(crate) fn with<'h>(
    headers: &[(&'h str, String)],
    name: &'h str,
    value: Option<&str>,
) -> Vec<(&'h str, String)> {
    let mut headers: Vec<_> = headers.iter().filter(|(other, _)| *other != name).cloned().collect();
    headers.extend(value.map(|value| (name, value.to_owned())));
    headers
}

fn the_token_grants_access() {
    let skills = Skills::review();
    let (fixture, access) = endpoint(&skills);
    let headers = access.headers();
    assert_eq!(access.initialize_status(&headers), 200);
    let bearer = format!("bearer {}", access.token);
    assert_eq!(
        access.initialize_status(&with(&headers, "Authorization", Some(&bearer))),
        200,
        "the scheme is case-insensitive"
    );
    let localhost = access.address.replace("127.0.0.1", "localhost");
    assert_eq!(access.initialize_status(&with(&headers, "Host", Some(&localhost))), 200);
    assert!(
        access.token.len() >= 32 && access.path.len() >= 32,
        "path and token are too short to be secret: {} {}",
        access.path,
        access.token
    );
    fixture.finish();
}

fn a_wrong_token_is_refused() {
    let skills = Skills::review();
    let (fixture, access) = endpoint(&skills);
    let headers = access.headers();
    let token = &access.token;
    let other = format!("Bearer {}", "0".repeat(token.len()));
    for value in [
        None,
        Some(""),
        Some("Bearer"),
        Some("Bearer "),
        Some(token.as_str()),
        Some(&format!("Basic {token}")),
        Some(&format!("Bearer {token}0")),
        Some(&format!("Bearer {}", &token[1..])),
        Some(&format!("Bearer  {token}")),
        Some(&other),
    ] {
        let headers = with(&headers, "Authorization", value);
        let (status, answer) = access.post(&headers, &initialize("2025-06-18"));
        assert_eq!(status, 401, "{value:?}: {answer}");
        assert!(answer.to_lowercase().contains("www-authenticate: bearer"), "{answer}");
        assert!(!answer.contains(token.as_str()), "{answer}");
        for method in ["GET", "DELETE"] {
            assert_eq!(access.send(&format!("{method} {}", access.path), &headers, "").0, 401);
        }
    }
    fixture.finish();
}

fn other_hosts_and_browsers_are_refused() {
    let skills = Skills::review();
    let (fixture, access) = endpoint(&skills);
    let headers = access.headers();
    for host in
        [Some("evil.example"), Some("evil.example:80"), Some("127.0.0.1.evil.example"), Some(""), None]
    {
        let status = access.initialize_status(&with(&headers, "Host", host));
        // If there is no `Host`, we may also get a 400, because HTTP/1.1 doesn't allow this.
        assert!(status == 403 || (host.is_none() && status == 400), "{host:?}: {status}");
    }
    let own = format!("http://{}", access.address);
    for origin in ["http://evil.example", "null", "http://localhost", own.as_str()] {
        let headers = with(&headers, "Origin", Some(origin));
        assert_eq!(access.initialize_status(&headers), 403, "{origin}");
        // We have to check the origin ourselves, because the MCP library only does this for `/mcp`.
        let other = format!("GET {}/other", access.path.trim_end_matches("/mcp"));
        assert_eq!(access.send(&other, &headers, "").0, 403, "{origin}");
    }
    fixture.finish();
}

fn unknown_paths() {
    let skills = Skills::review();
    let (fixture, access) = endpoint(&skills);
    let headers = access.headers();
    let session = access.path.trim_end_matches("/mcp");
    let elsewhere = format!("/{}/mcp", "0".repeat(session.len() - 1));
    for path in [
        "/",
        "/mcp",
        &elsewhere,
        session,
        &format!("{session}/other"),
        &format!("{session}/bridge"),
        &format!("{session}/mcp/more"),
    ] {
        assert_eq!(access.send(&format!("POST {path}"), &headers, "{}").0, 404, "{path}");
    }
    fixture.finish();
}

fn tokens_are_for_one_session() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy());
    let params_a = fixture.new_session("a");
    let params_b = fixture.new_session("b");
    let a = Endpoint::of(&entry(&params_a));
    let b = Endpoint::of(&entry(&params_b));
    assert!(a.address == b.address && a.path != b.path && a.token != b.token);
    assert_eq!((a.initialize_status(&a.headers()), b.initialize_status(&b.headers())), (200, 200));
    assert_eq!((a.initialize_status(&b.headers()), b.initialize_status(&a.headers())), (401, 401));
    fixture.finish();
}

/// Gemini behaves like this: it sends no `MCP-Protocol-Version` after `initialize`, only the session's id.
fn a_client_without_version_headers() {
    let skills = Skills::review();
    let (fixture, access) = endpoint(&skills);
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let (status, answer) = access.post(&access.headers(), &initialize(revision));
        assert_eq!(status, 200, "{answer}");
        assert!(answer.contains(&format!(r#""protocolVersion":"{revision}""#)), "{answer}");
        let session = answer
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
        let headers = with(&access.headers(), "Mcp-Session-Id", Some(&session.expect("a session")));
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(access.post(&headers, &ready).0, 202);
        let (status, answer) =
            access.post(&headers, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
        assert!(status == 200 && answer.contains("activate_skill"), "{revision}: {answer}");
        assert!((200..300).contains(&access.send(&format!("DELETE {}", access.path), &headers, "").0));
    }
    fixture.finish();
}

fn a_stateless_client() {
    let skills = Skills::review();
    let (fixture, access) = endpoint(&skills);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut headers = with(&access.headers(), "MCP-Protocol-Version", Some("2026-07-28"));
    for (method, params, name, words) in [
        ("server/discover", json!({}), None, "2026-07-28"),
        ("tools/list", json!({}), None, "activate_skill"),
        (
            "tools/call",
            json!({ "name": "activate_skill", "arguments": { "name": "review" } }),
            Some("activate_skill"),
            "# Review",
        ),
    ] {
        headers = with(&with(&headers, "Mcp-Method", Some(method)), "Mcp-Name", name);
        let mut params = params;
        params["_meta"] = meta.clone();
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let (status, answer) = access.post(&headers, &body);
        assert!(status == 200 && answer.contains(words), "{method}: {answer}");
        assert!(!answer.to_lowercase().contains("mcp-session-id"), "{answer}");
    }
    fixture.finish();
}

fn endpoints_close_with_their_session() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy());
    let endpoints = ["a", "b"].map(|id| Endpoint::of(&entry(&fixture.new_session(id))));
    for (method, access) in ["session/close", "session/delete"].into_iter().zip(&endpoints) {
        assert_eq!(access.initialize_status(&access.headers()), 200);
        let session = if method == "session/close" { "a" } else { "b" };
        fixture.exchange(method, json!({ "sessionId": session }), json!({ "result": {} }));
        assert_eq!(access.initialize_status(&access.headers()), 404, "after {method}");
    }
    fixture.finish();
}

fn a_bridge_without_its_environment() {
    let ended = crate::editor::Proxy::new().arg("mcp-bridge").start().ended();
    assert_eq!(ended.code(), Some(125));
    assert!(ended.log.join("\n").contains("should only be started by agents"), "{:?}", ended.log);
}

fn a_bridge_with_a_wrong_token() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy().flag("--mcp", "stdio"));
    let ours = entry(&fixture.new_session("s"));
    let mut bridge = crate::editor::Proxy::new().arg("mcp-bridge");
    for pair in ours["env"].as_array().expect("a list") {
        let name = pair["name"].as_str().expect("text");
        let value = pair["value"].as_str().expect("text");
        let wrong = "0".repeat(value.len());
        bridge = bridge.env(name, if name.ends_with("TOKEN") { &wrong } else { value });
    }
    let ended = bridge.start().ended();
    assert_eq!(ended.code(), Some(125));
    assert!(ended.log.join("\n").contains("session token is wrong"), "{:?}", ended.log);
    fixture.finish();
}

/// Clients with the token are served, even if many other clients connect and send nothing.
fn idle_connections_do_not_block_clients() {
    let skills = Skills::review();
    let (fixture, access) = endpoint(&skills);
    let idle: Vec<_> = (0..300).map(|_| TcpStream::connect(&access.address).expect("a connection")).collect();
    assert_eq!(access.initialize_status(&access.headers()), 200);
    // We should have closed the oldest idle connections to make room for this. It's fine to keep the newer ones for a while.
    let mut first = &idle[0];
    first.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    let end = first.read(&mut [0]);
    assert!(
        matches!(end, Ok(0)) || end.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
    );
    fixture.finish();
}

/// An agent with many sessions may connect to all of them at once. Each client sends its token immediately, but the proxy can
/// accept all of the connections before it reads from the first one.
fn many_clients_connect_at_once() {
    let skills = Skills::review();
    let (fixture, access) = endpoint(&skills);
    let headers = access.headers();
    let body = initialize("2025-06-18");
    let streams: Vec<_> = (0..100).map(|_| access.post_without_reading(&headers, &body)).collect();
    for mut stream in streams {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the proxy answers");
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }
    let ended = fixture.finish();
    assert!(!ended.log.iter().any(|line| line.contains("without the token")), "{:#?}", ended.log);
}
