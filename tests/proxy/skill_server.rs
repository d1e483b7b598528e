//! A scripted MCP server that offers skills.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard},
    thread,
    time::Instant,
};

use serde_json::{Value, json};
use skills_core::skill::Sha256;

use crate::{
    editor::{DEADLINE, Proxy},
    fixture::{self, Connection, Fixture, MCP_2025, entry},
    skills::Skills,
};

/// A scripted server with streamable HTTP.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) state: Arc<Mutex<State>>,
}

#[derive(Default)]
pub(crate) struct State {
    /// The pages of the list.
    pub(crate) pages: Vec<Vec<Value>>,
    /// The content of resources, by URI.
    pub(crate) resources: Vec<(String, String)>,
    /// The way in which the server misbehaves.
    pub(crate) mode: &'static str,
    /// The methods of the requests so far. For a resource, its URI.
    pub(crate) seen: Vec<String>,
    /// The open streams for notifications.
    pub(crate) streams: Vec<TcpStream>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(stream.expect("a connection"), &state));
            }
        });
        Self { url, state }
    }

    /// Starts a server with one skill, `refunds`.
    pub(crate) fn with_refunds() -> Self {
        let server = Self::start();
        server.offer(&[("acme/refunds", "Refunds customers.", "Refund it. ZQ-body")]);
        server
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    pub(crate) fn mode(&self, mode: &'static str) {
        self.state().mode = mode;
    }

    /// Offers these skills on one page each. A skill has a path, a description and a body.
    pub(crate) fn offer(&self, skills: &[(&str, &str, &str)]) {
        let mut state = self.state();
        state.pages.clear();
        state.resources.clear();
        for (path, description, body) in skills {
            let name = path.rsplit('/').next().expect("a name");
            let text = format!(
                "---\nname: {name}\ndescription: {}\nallowed-tools: Bash(*)\n---\n{body}\n",
                json!(description)
            );
            let guide = format!("The guide of {name}.");
            let files = [("SKILL.md", text), ("references/guide.md", guide)];
            let mut resources = Vec::new();
            for (file, content) in files {
                let uri = format!("skill://{path}/{file}");
                resources.push(json!({ "uri": uri, "digest": digest(&content), "size": content.len() }));
                state.resources.push((uri, content));
            }
            let frontmatter = json!({ "name": name, "description": description, "allowed-tools": "Bash(*)" });
            let uri = format!("skill://{path}/SKILL.md");
            state.pages.push(vec![json!({ "uri": uri, "frontmatter": frontmatter, "resources": resources })]);
        }
    }

    /// Tells all clients that the skills have changed.
    pub(crate) fn announce(&self) {
        let event = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}\n\n";
        let mut state = self.state();
        for stream in &mut state.streams {
            // The client may have left.
            let _ = stream.write_all(event.as_bytes());
        }
    }

    pub(crate) fn seen(&self, method: &str) -> usize {
        self.state().seen.iter().filter(|seen| *seen == method).count()
    }

    pub(crate) fn wait_for(&self, what: &str, has_come: impl Fn(&State) -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !has_come(&self.state()) {
            assert!(Instant::now() < deadline, "{what}: {:?}", self.state().seen);
            thread::yield_now();
        }
    }

    /// Returns the entry of the server in `mcpServers`.
    pub(crate) fn entry(&self, name: &str) -> Value {
        json!({ "type": "http", "name": name, "url": self.url, "headers": [] })
    }
}

pub(crate) fn digest(content: &str) -> String {
    format!("sha256:{}", Sha256::of(content.as_bytes()))
}

/// Answers the requests of one connection.
pub(crate) fn serve(stream: TcpStream, state: &Mutex<State>) {
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
        if head.starts_with("GET ") {
            let start = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            writer.write_all(start.as_bytes()).expect("a client");
            state.lock().expect("no panic").streams.push(writer);
            return;
        }
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let method = request["method"].as_str().unwrap_or_default();
        let mode = {
            let mut state = state.lock().expect("no panic");
            let seen = if method == "resources/read" { request["params"]["uri"].as_str() } else { None };
            state.seen.push(seen.unwrap_or(method).to_owned());
            state.mode
        };
        // The end of an older session has no method.
        if mode == "stateless" && !["", "initialize"].contains(&method) {
            let name = request["params"]["uri"].as_str().filter(|_| method == "resources/read");
            let name = name.map_or_else(String::new, |name| format!("mcp-name: {}\r\n", name.to_lowercase()));
            for header in
                ["mcp-protocol-version: 2026-07-28\r\n", &format!("mcp-method: {method}\r\n"), &name]
            {
                assert!(headers.contains(header), "{header}: {headers}");
            }
            let meta = &request["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        }
        if method == "subscriptions/listen" {
            let start = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            writer.write_all(start.as_bytes()).expect("a client");
            state.lock().expect("no panic").streams.push(writer);
            return;
        }
        if mode == format!("hangs at {method}") {
            // This ends when the proxy closes the connection.
            let _ = reader.read_to_end(&mut Vec::new());
            return;
        }
        let answer = match answer(&state.lock().expect("no panic"), &request) {
            Some(Ok(result)) => {
                json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }).to_string()
            }
            Some(Err(message)) => {
                let error = json!({ "code": -32602, "message": message });
                json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }).to_string()
            }
            None => String::new(),
        };
        let is_down = mode == "down" || (mode == "is back after initialize" && method == "initialize");
        let status = if is_down { "503 Unavailable" } else { "200 OK" };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nMcp-Session-Id: s1\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        if writer.write_all(format!("{head}{answer}").as_bytes()).is_err() {
            return;
        }
    }
}

/// Returns the result of a request, or the message of its error. `None` for notifications.
pub(crate) fn answer(state: &State, request: &Value) -> Option<Result<Value, &'static str>> {
    let params = &request["params"];
    Some(Ok(match request["method"].as_str()? {
        "initialize" if state.mode == "stateless" => return Some(Err("unknown method")),
        "server/discover" if state.mode == "stateless" => json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "resources": {}, "extensions": { "io.modelcontextprotocol/skills": {} } },
        }),
        "initialize" => {
            let extensions = if state.mode == "plain" {
                json!({})
            } else {
                json!({ "io.modelcontextprotocol/skills": {} })
            };
            json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": { "resources": {}, "extensions": extensions },
                "serverInfo": { "name": "a lie", "version": "1" },
            })
        }
        "skills/list" => match state.mode {
            "refuses" => return Some(Err("not now <b>")),
            "nonsense" => json!({ "skills": { "a": 1 } }),
            "endless" => {
                let next = params["cursor"].as_str().map_or(0, |cursor| cursor.parse::<u32>().expect("ours"));
                let first = state.pages[0].clone();
                json!({ "skills": first, "nextCursor": (next + 1).to_string() })
            }
            "repeats" => json!({ "skills": state.pages[0], "nextCursor": "again" }),
            _ => {
                let page = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().expect("ours"));
                let mut result = json!({ "skills": state.pages.get(page).cloned().unwrap_or_default() });
                if page + 1 < state.pages.len() {
                    result["nextCursor"] = (page + 1).to_string().into();
                }
                result
            }
        },
        "skills/get" => {
            let found = state.pages.iter().flatten().find(|entry| entry["uri"] == params["uri"]);
            match found {
                Some(entry) => json!({ "skill": entry }),
                None => return Some(Err("no such skill")),
            }
        }
        "resources/read" => {
            let uri = params["uri"].as_str()?;
            if state.mode == "refuses files" {
                return Some(Err("ZQ-unapproved"));
            }
            match state.resources.iter().find(|(known, _)| known == uri) {
                Some((uri, text)) => json!({ "contents": [{ "uri": uri, "text": text }] }),
                None => return Some(Err("no such resource")),
            }
        }
        method if method.starts_with("notifications/") => return None,
        _ => json!({}),
    }))
}

pub(crate) fn proxy(skills: &Skills) -> Proxy {
    Proxy::new().flag("--state", skills.dir("state"))
}

/// Opens the session `s` with these servers of the editor, and connects the agent to our server.
pub(crate) fn open(proxy: Proxy, servers: &[Value]) -> (Fixture, Connection) {
    let mut fixture = Fixture::over_http(proxy);
    let params = json!({ "cwd": fixture::cwd(), "mcpServers": servers });
    let (mut received, _) =
        fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
    let params = received["params"].take();
    let kept =
        servers.iter().all(|server| params["mcpServers"].as_array().expect("servers").contains(server));
    assert!(kept, "the agent gets the servers as well: {params}");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    (fixture, connection)
}

/// Repeats a command until the answer contains these words. Returns the answer.
pub(crate) fn ask_until(fixture: &mut Fixture, command: &str, words: &str) -> String {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let said = fixture.ask(command);
        if said.contains(words) {
            return said;
        }
        assert!(Instant::now() < deadline, "no {words:?} in {said}");
    }
}

pub(crate) fn trust_all(fixture: &mut Fixture) {
    ask_until(fixture, "/skills", "Waiting for your trust");
    let said = fixture.ask("/skills trust");
    assert!(said.contains("trusted until the next change."), "{said}");
    fixture.editor.unread();
}

pub(crate) fn activate(fixture: &mut Fixture, connection: &Connection, name: &str) -> (String, bool) {
    fixture.call(connection, "activate_skill", json!({ "name": name }))
}
