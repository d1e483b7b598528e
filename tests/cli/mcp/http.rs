//! `mcp --listen`: the server over HTTP.

use std::{
    fmt::Write,
    fs,
    io::{self, BufRead, BufReader, Read},
    net::{TcpListener, TcpStream},
    process::{Child, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use super::{CATALOG, client::program};
use crate::fixture::Fixture;

pub(crate) const TOKEN: &str = "a-token-for-the-test";

/// A server that listens on a free port.
pub(crate) struct Listening {
    pub(crate) child: Child,
    address: String,
    port: u16,
    /// The other lines of stdout so far.
    line: String,
}

impl Listening {
    pub(crate) fn start(fixture: &Fixture, token: Option<&str>) -> Self {
        Self::start_at(fixture, "127.0.0.1", token, &[])
    }

    fn start_at(fixture: &Fixture, address: &str, token: Option<&str>, flags: &[&str]) -> Self {
        let listen = format!("{address}:0");
        let mut command = program(fixture, &["--skills", "skills", "--listen", &listen, "--log", "trace"]);
        command.args(flags);
        command.envs(token.map(|token| ("ACP_SKILLS_MCP_TOKEN", token)));
        let log = fs::File::create(fixture.dir.join("stderr")).unwrap();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut url = String::new();
        stdout.read_line(&mut url).unwrap();
        let port = url.trim().strip_prefix(&format!("Listening on http://{address}:")).unwrap();
        let port = port.strip_suffix("/mcp").unwrap().parse().unwrap();
        let mut line = String::new();
        if token.is_none() {
            stdout.read_line(&mut line).unwrap();
        }
        Self { child, address: address.to_owned(), port, line }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(format!("{}:{}", self.address, self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Opens a session. Returns the headers of its requests.
    fn session(&self, authorization: &str, capabilities: Value) -> [(&'static str, String); 3] {
        let mut request = initialize();
        request["params"]["capabilities"] = capabilities;
        let (_, answer) = self.post(&[("Authorization", authorization)], &request);
        let id = answer
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
        [
            ("Authorization", authorization.to_owned()),
            ("Mcp-Session-Id", id.unwrap()),
            ("MCP-Protocol-Version", "2025-06-18".to_owned()),
        ]
    }

    /// Sends a request. Returns the status and the rest of the answer, as far as it arrives before the connection is closed.
    fn post(&self, headers: &[(&str, &str)], body: &Value) -> (u16, String) {
        let mut stream = self.connect();
        let body = body.to_string();
        let mut request = format!(
            "POST /mcp HTTP/1.1\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        if !headers.iter().any(|(name, _)| *name == "Host") {
            write!(request, "Host: {}:{}\r\n", self.address, self.port).unwrap();
        }
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n").unwrap();
        }
        io::Write::write_all(&mut stream, format!("{request}\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // This fails if the server has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn initialize() -> Value {
    let info = json!({ "name": "claude-code", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

#[test]
fn only_local_programs_with_the_token_are_served_over_http() {
    let fixture = Fixture::new();
    let server = Listening::start(&fixture, Some(TOKEN));
    let right = format!("Bearer {TOKEN}");
    let own = format!("http://127.0.0.1:{}", server.port);
    for (headers, expected) in [
        (&[("Authorization", &*right)][..], 200),
        (&[("authorization", &*right), ("Host", "localhost")], 200),
        (&[("Authorization", &*right), ("Origin", &*own)], 200),
        (&[], 401),
        (&[("Authorization", "Bearer a-token-for-the-tesT")], 401),
        (&[("Authorization", TOKEN)], 401),
        (&[("Authorization", &*right), ("Host", "evil.example")], 403),
        (&[("Authorization", &*right), ("Host", "evil.example"), ("Origin", "http://evil.example")], 403),
        (&[("Authorization", &*right), ("Origin", "http://evil.example")], 403),
        (&[("Authorization", &*right), ("Origin", "null")], 403),
    ] {
        let (status, answer) = server.post(headers, &initialize());
        assert_eq!(status, expected, "{headers:?}: {answer}");
        assert_eq!(answer.contains(CATALOG), expected == 200, "{headers:?}: {answer}");
    }
    drop(server);
    let log = fs::read_to_string(fixture.dir.join("stderr")).unwrap();
    assert!(!log.contains(TOKEN), "{log}");
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn any_loopback_address_can_be_used() {
    let fixture = Fixture::new();
    for address in ["[::1]", "127.0.0.2"] {
        // Not all systems have these addresses.
        if TcpListener::bind(format!("{address}:0")).is_err() {
            eprintln!("skipped: no address {address}");
            continue;
        }
        let server = Listening::start_at(&fixture, address, Some(TOKEN), &[]);
        let right = format!("Bearer {TOKEN}");
        for (host, expected) in [
            (format!("{address}:{}", server.port), 200),
            (address.to_owned(), 200),
            ("[::2]".to_owned(), 403),
        ] {
            let headers = [("Authorization", &*right), ("Host", &host)];
            let (status, answer) = server.post(&headers, &initialize());
            assert_eq!(status, expected, "{host}: {answer}");
        }
    }
}

#[test]
fn two_clients_have_sessions_of_their_own() {
    let fixture = Fixture::new();
    let server = Listening::start(&fixture, None);
    // Without a token of the user, a random one is printed.
    let token = server.line.trim().strip_prefix("Authorization: ").unwrap().to_owned();
    assert_eq!(token.len(), "Bearer ".len() + 64);
    let [one, two] = [(); 2].map(|()| server.session(&token, json!({})));
    assert_ne!(one, two);
    for session in [&one, &two, &one] {
        let headers = session.each_ref().map(|(name, value)| (*name, &**value));
        let params = json!({ "name": "activate_skill", "arguments": { "name": "pdf" } });
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
        let (status, answer) = server.post(&headers, &call);
        assert!(status == 200 && answer.contains("Body"), "{answer}");
    }
}

/// A client with the token can be on another machine, while an answer would count for all programs of the user.
#[test]
fn clients_over_http_do_not_decide_about_trust() {
    let fixture = Fixture::new();
    let text = "---\nname: of-project\ndescription: Does it.\n---\nBody\n";
    fixture.write(".agents/skills/of-project/SKILL.md", text);
    let mut server =
        Listening::start_at(&fixture, "127.0.0.1", Some(TOKEN), &["--discover", "project", "--no-watch"]);
    let session = server.session(&format!("Bearer {TOKEN}"), json!({ "elicitation": {} }));
    let headers = session.each_ref().map(|(name, value)| (*name, &**value));
    let mut events = server.connect();
    let host = format!("Host: {}:{}", server.address, server.port);
    let lines: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let lines = lines.concat();
    let request = format!("GET /mcp HTTP/1.1\r\n{host}\r\nAccept: text/event-stream\r\n{lines}\r\n");
    io::Write::write_all(&mut events, request.as_bytes()).unwrap();
    server.post(&headers, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    for id in 2..5 {
        let (status, answer) =
            server.post(&headers, &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" }));
        assert!(status == 200 && !answer.contains("elicitation"), "{answer}");
    }
    server.child.kill().unwrap();
    let mut received = Vec::new();
    // This fails if the connection is reset.
    let _ = events.read_to_end(&mut received);
    let received = String::from_utf8_lossy(&received);
    assert!(received.starts_with("HTTP/1.1 200") && !received.contains("elicitation"), "{received}");
    let log = fs::read_to_string(fixture.dir.join("stderr")).unwrap();
    assert!(log.contains("`acp-skills-proxy trust of-project`"), "{log}");
}

#[test]
fn wrong_addresses_and_tokens_are_errors() {
    let fixture = Fixture::new();
    fixture.write("short", "secret");
    for (flags, expected) in [
        (&["--listen", "0.0.0.0:0"][..], "not an address of the loopback interface"),
        (&["--listen", "127.0.0.1:0", "--token-file", "short"], "is not valid"),
        (&["--listen", "127.0.0.1:0", "--token-file", "missing"], "cannot read the token"),
        (&["--token-file", "short"], "--listen"),
    ] {
        let output = program(&fixture, flags).stdin(Stdio::null()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(expected) && !stderr.contains("secret"), "{flags:?}: {stderr}");
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {stderr}");
    }
}
