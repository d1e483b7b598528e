//! The scripted agent. This binary is the agent if its arguments are [`ARGUMENT`] and a directory.
//!
//! The first word of the prompt decides what the agent does:
//!
//! | word | action |
//! |---|---|
//! | `review` | calls `activate_skill`, as a model does |
//! | `delete` | asks for permission, and reports the answer |
//! | `wait` | waits until the turn is cancelled |
//! | any other | reports what it received: the skill, the user's words and the context |
//!
//! The agent stores each conversation in its directory, so that a new process can load it. It also writes all messages to
//! `wire.jsonl` there, in the format of `tests/recordings`.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, Command, ExitCode, Stdio},
};

use serde_json::{Value, json};

pub(crate) const ARGUMENT: &str = "scripted-agent";
/// The file with all messages, in the agent's directory.
pub(crate) const WIRE: &str = "wire.jsonl";
/// The agent's name. It reports calls as this agent does, so the proxy can recognize calls of our tools.
const CLAUDE: &str = "@agentclientprotocol/claude-agent-acp";
/// The start of a text that the proxy adds to a prompt.
const OURS: &str = "<acp-skills-proxy:";

/// Runs the agent until its stdin ends.
pub(crate) fn run(dir: &str) -> ExitCode {
    let dir = PathBuf::from(dir);
    let wire = OpenOptions::new().create(true).append(true).open(dir.join(WIRE)).expect("a file");
    let mut agent = Agent { dir, wire, server: None, next: 0 };
    while let Some(message) = agent.read() {
        agent.handle(&message);
    }
    ExitCode::SUCCESS
}

struct Agent {
    dir: PathBuf,
    wire: File,
    server: Option<Server>,
    next: u64,
}

impl Agent {
    fn handle(&mut self, message: &Value) {
        let id = &message["id"];
        let params = &message["params"];
        match message["method"].as_str() {
            Some("initialize") => self.answer(
                id,
                &json!({
                    "protocolVersion": 1,
                    "agentCapabilities": {
                        "loadSession": true,
                        "promptCapabilities": { "embeddedContext": true },
                        "sessionCapabilities": { "list": {} },
                    },
                    "agentInfo": { "name": CLAUDE, "title": "Scripted", "version": "1.0" },
                    "authMethods": [],
                }),
            ),
            Some("session/new") => {
                let session = format!("session-{}", self.sessions().len() + 1);
                fs::write(self.history(&session), "").expect("a file");
                self.server = Server::start(params);
                self.answer(id, &json!({ "sessionId": session }));
                let own = [("compact", "Forget what was long ago"), ("model", "Choose a model")];
                let own = own.map(|(name, description)| json!({ "name": name, "description": description }));
                self.update(
                    &session,
                    &json!({ "sessionUpdate": "available_commands_update", "availableCommands": own }),
                );
            }
            Some("session/load") => {
                let session = params["sessionId"].as_str().expect("an id");
                self.server = Server::start(params);
                for line in fs::read_to_string(self.history(session)).unwrap_or_default().lines() {
                    self.update(session, &serde_json::from_str(line).expect("an update"));
                }
                self.answer(id, &json!({}));
            }
            Some("session/list") => {
                let sessions = self.sessions().into_iter();
                let sessions: Vec<_> = sessions
                    .map(|id| json!({ "sessionId": id, "cwd": params["cwd"], "title": format!("The {id}"), "updatedAt": "2026-11-22T12:00:00Z" }))
                    .collect();
                self.answer(id, &json!({ "sessions": sessions }));
            }
            Some("session/prompt") => {
                let reason = self.prompt(params);
                self.answer(id, &json!({ "stopReason": reason }));
            }
            Some(method) if !id.is_null() => {
                let error = json!({ "code": -32601, "message": format!("no method `{method}`") });
                self.write(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            _ => {}
        }
    }

    /// Runs a turn and returns the stop reason.
    fn prompt(&mut self, params: &Value) -> &'static str {
        let session = params["sessionId"].as_str().expect("an id").to_owned();
        let blocks = params["prompt"].as_array().expect("blocks");
        for block in blocks {
            self.keep(&session, &json!({ "sessionUpdate": "user_message_chunk", "content": block }));
        }
        let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        let (added, users): (Vec<_>, Vec<_>) = texts.into_iter().partition(|text| text.starts_with(OURS));
        let typed = typed_by_the_user(&users).trim();
        let answer = match typed.split_whitespace().next() {
            Some("review") => self.activate(&session),
            Some("delete") => self.ask(&session, typed),
            Some("wait") => return self.wait(&session),
            _ => report(blocks, &added, typed),
        };
        self.say(&session, &answer);
        "end_turn"
    }

    fn activate(&mut self, session: &str) -> String {
        let Some(mut server) = self.server.take() else { return "There is no skills server.".to_owned() };
        let arguments = json!({ "name": "code-review" });
        self.update(
            session,
            &json!({
                "sessionUpdate": "tool_call", "toolCallId": "call-1", "title": "mcp__acp-skills__activate_skill",
                "kind": "other", "status": "pending", "rawInput": arguments,
                "_meta": { "claudeCode": { "toolName": "mcp__acp-skills__activate_skill" } },
            }),
        );
        let text = server.call("activate_skill", &arguments);
        self.server = Some(server);
        self.update(
            session,
            &json!({
                "sessionUpdate": "tool_call_update", "toolCallId": "call-1", "status": "completed",
                "content": [{ "type": "content", "content": { "type": "text", "text": text } }],
            }),
        );
        let heading = text.lines().find(|line| line.starts_with("# ")).unwrap_or("nothing").to_owned();
        format!("I loaded the skill, which begins: {heading}")
    }

    fn ask(&mut self, session: &str, typed: &str) -> String {
        self.next += 1;
        let call = format!("delete-{}", self.next);
        self.update(
            session,
            &json!({ "sessionUpdate": "tool_call", "toolCallId": call, "title": typed, "kind": "execute", "status": "pending" }),
        );
        let id = json!(format!("ask-{}", self.next));
        let options = [("yes", "Allow", "allow_once"), ("no", "Reject", "reject_once")];
        let options =
            options.map(|(option, name, kind)| json!({ "optionId": option, "name": name, "kind": kind }));
        let params = json!({
            "sessionId": session,
            "toolCall": { "toolCallId": call, "title": typed, "kind": "execute", "status": "pending" },
            "options": options,
        });
        self.write(
            &json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params }),
        );
        let outcome = loop {
            let Some(message) = self.read() else { return String::new() };
            if message["id"] == id {
                break message["result"]["outcome"].clone();
            }
        };
        let allowed = outcome["optionId"] == "yes";
        let status = if allowed { "completed" } else { "failed" };
        self.update(
            session,
            &json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "status": status }),
        );
        if allowed { "It is deleted." } else { "It is still there." }.to_owned()
    }

    fn wait(&mut self, session: &str) -> &'static str {
        self.say(session, "I wait until somebody stops me.");
        while let Some(message) = self.read() {
            if message["method"] == "session/cancel" {
                return "cancelled";
            }
        }
        "end_turn"
    }

    /// Sends a message, and stores it in the history of the session.
    fn say(&mut self, session: &str, text: &str) {
        let content = json!({ "type": "text", "text": text });
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        self.keep(session, &update);
        self.update(session, &update);
    }

    fn keep(&self, session: &str, update: &Value) {
        let history = OpenOptions::new().create(true).append(true).open(self.history(session));
        writeln!(history.expect("a file"), "{update}").expect("there is space");
    }

    fn history(&self, session: &str) -> PathBuf {
        self.dir.join(format!("{session}.history"))
    }

    fn sessions(&self) -> Vec<String> {
        let files = fs::read_dir(&self.dir).expect("a directory").map(|file| file.expect("a file").path());
        let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "history"));
        let mut ids: Vec<_> =
            files.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
        ids.sort();
        ids
    }

    fn update(&mut self, session: &str, update: &Value) {
        let params = json!({ "sessionId": session, "update": update });
        self.write(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }

    fn answer(&mut self, id: &Value, result: &Value) {
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        if io::stdin().lock().read_line(&mut line).expect("stdin can be read") == 0 {
            return None;
        }
        self.record("client", line.trim_end());
        Some(serde_json::from_str(&line).expect("JSON"))
    }

    fn write(&mut self, message: &Value) {
        let line = message.to_string();
        self.record("agent", &line);
        let mut stdout = io::stdout().lock();
        // If this fails, the client has exited, and we'll see the end of stdin when we try to read the next line.
        let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    }

    fn record(&mut self, side: &str, line: &str) {
        writeln!(self.wire, r#"{{"dir":"{side}","msg":{line}}}"#).expect("there is space");
    }
}

/// Returns the user's message, without the texts that some editors add.
fn typed_by_the_user<'t>(texts: &[&'t str]) -> &'t str {
    // avante repeats earlier messages, and begins with the new one.
    const REPEATED: (&str, &str) = ("<previous_user_message>", "</previous_user_message>");
    if let Some(first) = texts.first().filter(|_| texts.iter().any(|text| text.starts_with(REPEATED.0))) {
        let message = first.strip_prefix(REPEATED.0).and_then(|text| text.strip_suffix(REPEATED.1));
        return message.unwrap_or(first);
    }
    // Jupyter AI puts a note before the first message.
    let last = texts.last().copied().unwrap_or_default();
    let noted = last.strip_prefix("System note: ").and_then(|text| text.split_once("\n\n"));
    noted.map_or(last, |(_, text)| text)
}

/// Describes the prompt: the skill, the user's words and the context.
fn report(blocks: &[Value], added: &[&str], typed: &str) -> String {
    let skill = added.iter().find_map(|text| {
        let (_, rest) = text.split_once("<skill_content name=\"")?;
        Some(rest.split_once('"')?.0)
    });
    let begun = match skill {
        Some(skill) => format!("I follow the skill {skill}"),
        None => "I have no skill".to_owned(),
    };
    // We only use the file names here, since the directories could be different in each run.
    let names =
        typed.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word).trim_matches('`'));
    let names = names.collect::<Vec<_>>().join(" ");
    let words = if names.is_empty() { "no words".to_owned() } else { format!("the words “{names}”") };
    let context = blocks.iter().filter_map(|block| {
        let path = match block["type"].as_str()? {
            "resource_link" => block["uri"].as_str()?,
            "resource" => block["resource"]["uri"].as_str()?,
            // CodeCompanion doesn't use a link for this, but sends some text instead.
            _ => block["text"].as_str()?.strip_prefix("Sharing the following file as context: ")?,
        };
        Some(format!(", and {}", path.rsplit('/').next()?))
    });
    format!("{begun}, with {words}{}.", context.collect::<String>())
}

/// A connection to our MCP server, through the bridge from the session's entry.
struct Server {
    bridge: Child,
    answers: BufReader<std::process::ChildStdout>,
    next: u64,
}

impl Server {
    /// Connects to our server in the params of a session. Returns `None` if they don't have it.
    fn start(params: &Value) -> Option<Self> {
        let entry = params["mcpServers"].as_array()?.iter().find(|entry| entry["name"] == "acp-skills")?;
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let mut command = Command::new(text(&entry["command"]));
        command.args(entry["args"].as_array().expect("arguments").iter().map(text));
        for pair in entry["env"].as_array().expect("variables") {
            command.env(text(&pair["name"]), text(&pair["value"]));
        }
        let mut bridge = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a bridge");
        let answers = BufReader::new(bridge.stdout.take().expect("a pipe"));
        let mut server = Self { bridge, answers, next: 0 };
        let client = json!({ "name": "scripted", "version": "1.0" });
        server.request(
            "initialize",
            &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client }),
        );
        server.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server.request("tools/list", &json!({}));
        Some(server)
    }

    /// Calls a tool and returns the text.
    fn call(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }));
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {result}")).to_owned()
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let mut line = String::new();
            let count = self.answers.read_line(&mut line).expect("the bridge can be read");
            assert!(count > 0, "the bridge ended before it answered `{method}`");
            let mut answer: Value = serde_json::from_str(&line).expect("JSON");
            if answer["id"] == id {
                return answer["result"].take();
            }
        }
    }

    fn write(&mut self, message: &Value) {
        let stdin = self.bridge.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{message}").and_then(|()| stdin.flush()).expect("the bridge listens");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.bridge.stdin.take());
        let _ = self.bridge.wait();
    }
}
