//! The client's side of one run: the handshake, one prompt, and everything that the agent says and asks for meanwhile.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use skills_core::toolbox;
use tokio::{
    sync::watch,
    time::{self, timeout},
};

use super::{
    connection::{Connection, Received},
    end::End,
    permission::{self, Allow, PermissionRequest},
    transcript::{ToolUse, Transcript},
};
use acp_skills_intercept::SERVER_NAME;

/// How long an agent has to end a turn that is cancelled. Its process is ended afterwards.
const AFTER_CANCEL: Duration = Duration::from_secs(2);

/// What a conversation is for.
pub(super) struct Script<'a> {
    /// The working directory of the session, canonical.
    pub(super) directory: &'a Path,
    pub(super) prompt: &'a str,
    pub(super) timeout: Duration,
    pub(super) allow: Allow,
    /// The skill whose loading ends the turn, as does work without it.
    pub(super) stop_when_loaded: Option<&'a str>,
    /// The files with the instructions of skills, which agents may read by themselves.
    pub(super) instructions: &'a [(PathBuf, String)],
    /// Where every message is written to.
    pub(super) record: Option<&'a Path>,
}

/// What was said and done.
pub(super) struct Conversation {
    pub(super) end: End,
    pub(super) transcript: Transcript,
    /// The skills whose instructions the model was given, in that order, each once.
    pub(super) loaded: Vec<String>,
    pub(super) permissions: Vec<PermissionRequest>,
    /// What the agent is, as it says: name and version.
    pub(super) agent: Option<String>,
    pub(super) model: Option<String>,
    /// What the agent wrote to stderr, once it has ended.
    pub(super) stderr: String,
    /// Of the turn alone.
    pub(super) duration: Duration,
}

impl Conversation {
    /// One in which nothing was said, with this end.
    pub(super) fn new(end: End) -> Self {
        Self {
            end,
            transcript: Transcript::default(),
            loaded: Vec::new(),
            permissions: Vec::new(),
            agent: None,
            model: None,
            stderr: String::new(),
            duration: Duration::ZERO,
        }
    }
}

/// Has a conversation. `stop` turns true when somebody ends the evaluation.
pub(super) async fn converse(
    connection: &mut Connection,
    script: &Script<'_>,
    stop: watch::Receiver<bool>,
) -> Conversation {
    let record = script.record.and_then(|path| File::create(path).ok()).map(BufWriter::new);
    let conversation = Conversation::new(End::Interrupted);
    let deadline = time::Instant::now() + script.timeout;
    let mut client =
        Client { connection, script, stop, deadline, record, next: 0, begun: None, conversation };
    let end = client.talk().await;
    let mut conversation = client.conversation;
    conversation.duration = client.begun.map(|begun| begun.elapsed()).unwrap_or_default();
    conversation.end = match end {
        Ok(end) | Err(end) => end,
    };
    if let Some(problem) = conversation.end.problem() {
        conversation.transcript.note(problem);
    }
    conversation
}

struct Client<'a> {
    connection: &'a mut Connection,
    script: &'a Script<'a>,
    stop: watch::Receiver<bool>,
    deadline: time::Instant,
    record: Option<BufWriter<File>>,
    next: u64,
    /// When the prompt was sent.
    begun: Option<Instant>,
    conversation: Conversation,
}

impl Client<'_> {
    /// The whole conversation; an end before the turn's own is an error.
    async fn talk(&mut self) -> Result<End, End> {
        let hello = json!({
            "protocolVersion": 1,
            "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
            "clientInfo": { "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") },
        });
        let hello = self.ask("initialize", &hello).await?;
        let info = &hello["agentInfo"];
        let words = [&info["name"], &info["version"]];
        let words: Vec<_> = words.into_iter().filter_map(Value::as_str).collect();
        self.conversation.agent = (!words.is_empty()).then(|| words.join(" "));
        let session = json!({ "cwd": self.script.directory, "mcpServers": [] });
        let session = self.ask("session/new", &session).await?;
        self.conversation.model = session["models"]["currentModelId"].as_str().map(str::to_owned);
        let session = &session["sessionId"];
        self.begun = Some(Instant::now());
        self.conversation.transcript.user(self.script.prompt);
        let blocks = json!([{ "type": "text", "text": self.script.prompt }]);
        let ended = self.ask("session/prompt", &json!({ "sessionId": session, "prompt": blocks })).await;
        match ended {
            Ok(result) => {
                self.conversation.transcript.end(&result);
                let stop_reason = result["stopReason"].as_str().unwrap_or("nothing").to_owned();
                Ok(End::Finished { stop_reason })
            }
            Err(end) => {
                if !matches!(end, End::Crashed { .. } | End::Refused { .. }) {
                    self.cancel(session).await;
                }
                Err(end)
            }
        }
    }

    /// Ends the turn, and hears what the agent still has to say of it: what it cost, for example.
    async fn cancel(&mut self, session: &Value) {
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
        self.send(&cancel);
        let id = self.next;
        let last_words = async {
            loop {
                match self.connection.receive().await {
                    Received::Closed => return None,
                    Received::Loaded(_) => {}
                    Received::Line(line) => {
                        let Some(message) = self.read(&line) else { continue };
                        if message.get("method").is_none() && message["id"] == id {
                            return Some(message);
                        }
                        if message["method"] == "session/request_permission" {
                            self.request_permission(&message);
                        }
                    }
                }
            }
        };
        if let Ok(Some(message)) = timeout(AFTER_CANCEL, last_words).await {
            self.conversation.transcript.end(&message["result"]);
        }
    }

    /// Sends a request and waits for its answer.
    async fn ask(&mut self, method: &str, params: &Value) -> Result<Value, End> {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let received = tokio::select! {
                received = self.connection.receive() => received,
                () = time::sleep_until(self.deadline) => {
                    return Err(End::TimedOut { silent: self.conversation.transcript.is_silent() });
                }
                // Whoever could stop the evaluation is gone: nobody will.
                Ok(_) = self.stop.wait_for(|stop| *stop) => return Err(End::Interrupted),
            };
            let line = match received {
                Received::Line(line) => line,
                Received::Loaded(skill) => {
                    self.loaded(&skill)?;
                    continue;
                }
                Received::Closed => return Err(End::Crashed { why: String::new() }),
            };
            let Some(message) = self.read(&line) else { continue };
            match (message["method"].as_str(), message["id"] == id) {
                (Some("session/update"), _) => self.update(&message["params"]["update"])?,
                (Some("session/request_permission"), _) => {
                    if let Some(end) = self.request_permission(&message) {
                        return Err(end);
                    }
                }
                (Some(other), _) if message.get("id").is_some() => {
                    let error = json!({ "code": -32601, "message": format!("no method `{other}`") });
                    self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }));
                }
                (None, true) => {
                    return match message.get("result") {
                        Some(result) => Ok(result.clone()),
                        None => Err(End::Refused { why: format!("`{method}`: {}", error_text(&message)) }),
                    };
                }
                _ => {}
            }
        }
    }

    fn send(&mut self, message: &Value) {
        self.keep("client", message);
        self.connection.say(&message.to_string());
    }

    /// A line as a message; agents that print something else to stdout are told of in the transcript.
    fn read(&mut self, line: &str) -> Option<Value> {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            if !line.trim().is_empty() {
                let what = super::transcript::shortened(line, 200);
                self.conversation.transcript.note(format!("the agent wrote what is no message: {what}"));
            }
            return None;
        };
        self.keep("agent", &message);
        Some(message)
    }

    fn keep(&mut self, dir: &str, message: &Value) {
        if let Some(record) = &mut self.record {
            // The record is for people; a full disk is noticed where results are written.
            drop(writeln!(record, "{}", json!({ "dir": dir, "msg": message })));
        }
    }

    /// A skill's instructions were given to the model.
    fn loaded(&mut self, skill: &str) -> Result<(), End> {
        if !self.conversation.loaded.iter().any(|known| known == skill) {
            self.conversation.loaded.push(skill.to_owned());
            self.conversation.transcript.note(format!("the skill `{skill}` was loaded"));
        }
        // Before the prompt there is nothing to end.
        match self.script.stop_when_loaded {
            Some(wanted) if wanted == skill && self.begun.is_some() => Err(End::Triggered),
            _ => Ok(()),
        }
    }

    fn update(&mut self, update: &Value) -> Result<(), End> {
        let Some(call) = self.conversation.transcript.update(update).cloned() else { return Ok(()) };
        if call.status == "completed"
            && let Some(skill) = self.reads_instructions(&call)
        {
            self.loaded(&skill)?;
        }
        if self.script.stop_when_loaded.is_some()
            && is_work(&call)
            && self.reads_instructions(&call).is_none()
        {
            let title = if call.title.is_empty() { call.name() } else { &call.title };
            return Err(End::WorkedWithout { call: title.to_owned() });
        }
        Ok(())
    }

    /// The skill whose file a call names, other than to change it.
    fn reads_instructions(&self, call: &ToolUse) -> Option<String> {
        if matches!(call.kind.as_str(), "edit" | "delete" | "move") {
            return None;
        }
        let names = |path: &Path| {
            let path = path.to_string_lossy();
            mentions(&call.input, &path) || mentions(&call.locations, &path) || call.title.contains(&*path)
        };
        let found = self.script.instructions.iter().find(|(path, _)| names(path));
        found.map(|(_, skill)| skill.clone())
    }

    /// Answers a request for permission. When it is for work that the skill should have been loaded for, that is the end.
    fn request_permission(&mut self, message: &Value) -> Option<End> {
        let params = &message["params"];
        let request = permission::decide(params, self.script.directory, self.script.allow);
        self.conversation.transcript.permission(&request);
        let answer = permission::answer(params, request.granted);
        self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer }));
        let call = ToolUse {
            title: request.title.clone(),
            kind: request.kind.clone(),
            status: "in_progress".to_owned(),
            input: params["toolCall"]["rawInput"].clone(),
            locations: params["toolCall"]["locations"].clone(),
            ..ToolUse::default()
        };
        let end = (self.script.stop_when_loaded.is_some()
            && is_work(&call)
            && self.reads_instructions(&call).is_none())
        .then(|| End::WorkedWithout { call: request.title.clone() });
        self.conversation.permissions.push(request);
        end
    }
}

/// Whether a call is an edit or a command, and not one of ours: some agents call every tool of an MCP server a command.
fn is_work(call: &ToolUse) -> bool {
    let is_kind = matches!(call.kind.as_str(), "edit" | "delete" | "move" | "execute");
    let has_begun = call.status != "pending" && !call.status.is_empty()
        || !call.input.is_null() && call.input != json!({})
        || call.locations.as_array().is_some_and(|places| !places.is_empty());
    let is_ours = [SERVER_NAME]
        .into_iter()
        .chain(toolbox::BUILT_IN_TOOLS)
        .any(|name| call.title.contains(name) || call.name().contains(name) || mentions(&call.input, name));
    is_kind && has_begun && !is_ours
}

/// Whether a text is somewhere in a value.
fn mentions(value: &Value, text: &str) -> bool {
    match value {
        Value::String(said) => said.contains(text),
        Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        Value::Object(members) => members.values().any(|member| mentions(member, text)),
        _ => false,
    }
}

fn error_text(message: &Value) -> String {
    let error = &message["error"];
    match error["message"].as_str() {
        Some(text) if error["data"].is_null() => text.to_owned(),
        Some(text) => format!("{text} {}", error["data"]),
        None => error.to_string(),
    }
}
