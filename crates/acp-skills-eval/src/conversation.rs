//! The client's side of a run: the handshake, one prompt, and the answers to the agent's requests.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use acp_skills::client::{ClientError, Codec, Incoming, PermissionCall, Request, describe_error};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{self, timeout},
};

use super::{
    calls::{is_work, mentions},
    connection::{Connection, Received},
    end::End,
    models,
    permission::{Allow, PermissionAnswer},
    transcript::{ToolUse, Transcript, shortened},
    workspace,
};

/// The time that an agent has to end a cancelled turn. After it, the agent's process is ended.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum length of a stop reason, a name or a title that is kept, in characters.
const MAX_NAME_CHARS: usize = 100;

/// The maximum size of a message log. Later messages are left out.
const MAX_LOG_BYTES: usize = 8 * 1024 * 1024;

/// The plan of a conversation.
pub(super) struct Script<'a> {
    /// The session's working directory. It has to be canonical.
    pub(super) directory: &'a Path,
    /// The prompts, one for each turn. Never empty.
    pub(super) prompts: &'a [&'a str],
    /// The model to set, or `None` for the agent's own choice.
    pub(super) model: Option<&'a str>,
    /// The timeout, from the start of the conversation.
    pub(super) timeout: Duration,
    pub(super) allow: Allow,
    /// The evaluated skill of a query. The turn is cancelled if the model loads it, or starts to work without it.
    pub(super) stop_when_loaded: Option<&'a str>,
    /// The instruction files of the skills with the names of the skills, because agents can read the files themselves.
    pub(super) instructions: &'a [(PathBuf, String)],
    /// The file to which each message is written, one JSON object per line.
    pub(super) message_log: Option<&'a Path>,
}

/// A finished conversation.
pub(super) struct Conversation {
    pub(super) end: End,
    pub(super) transcript: Transcript,
    /// The names of the loaded skills in the order of their first load, without duplicates.
    pub(super) loaded: Vec<String>,
    pub(super) permissions: Vec<PermissionAnswer>,
    /// The name and version of the agent, if it sends them.
    pub(super) agent: Option<String>,
    pub(super) model: Option<String>,
    /// The agent's standard error output. It is empty until the agent has ended.
    pub(super) stderr: String,
    /// True if the prompt was sent.
    pub(super) prompted: bool,
    /// The duration of all turns, without the handshake.
    pub(super) duration: Duration,
    /// The time from the first prompt to the agent's first message or tool call.
    pub(super) latency: Option<Duration>,
}

impl Conversation {
    /// Creates a conversation without messages.
    pub(super) fn new(end: End) -> Self {
        Self {
            end,
            transcript: Transcript::default(),
            loaded: Vec::new(),
            permissions: Vec::new(),
            agent: None,
            model: None,
            stderr: String::new(),
            prompted: false,
            duration: Duration::ZERO,
            latency: None,
        }
    }
}

/// Runs a conversation. It ends early with [`End::Interrupted`] if `stop` becomes true.
pub(super) async fn converse(
    connection: &mut Connection,
    script: &Script<'_>,
    stop: watch::Receiver<bool>,
) -> Conversation {
    let log = script.message_log.and_then(|path| workspace::create(path).ok()).map(BufWriter::new);
    let mut client = Driver {
        connection,
        script,
        stop,
        deadline: time::Instant::now() + script.timeout,
        log,
        logged: 0,
        codec: Codec::default(),
        begun: None,
        conversation: Conversation::new(End::Interrupted),
    };
    let end = client.run().await;
    let mut conversation = client.conversation;
    conversation.prompted = client.begun.is_some();
    conversation.duration = client.begun.map(|begun| begun.elapsed()).unwrap_or_default();
    conversation.end = match end {
        Ok(end) | Err(end) => end,
    };
    // For a crash, the note is added when the process has ended and the reason is known.
    if let Some(problem) = conversation.end.problem().filter(|_| !conversation.end.is_crash()) {
        conversation.transcript.note(problem);
    }
    conversation
}

/// Drives the [`Codec`] over a [`Connection`], with a deadline.
struct Driver<'a> {
    connection: &'a mut Connection,
    script: &'a Script<'a>,
    stop: watch::Receiver<bool>,
    deadline: time::Instant,
    log: Option<BufWriter<File>>,
    /// The number of bytes in the log.
    logged: usize,
    codec: Codec,
    /// The time at which the prompt was sent.
    begun: Option<Instant>,
    conversation: Conversation,
}

impl Driver<'_> {
    /// Runs the whole conversation. Returns an error if it ends before the agent has answered the prompt.
    async fn run(&mut self) -> Result<End, End> {
        let request = self.codec.initialize();
        let capabilities = self.ask(request).await?;
        let info = &capabilities["agentInfo"];
        let words = [&info["name"], &info["version"]];
        let words: Vec<_> = words.into_iter().filter_map(Value::as_str).collect();
        self.conversation.agent = (!words.is_empty()).then(|| shortened(&words.join(" "), MAX_NAME_CHARS));
        let request = self.codec.new_session(self.script.directory);
        let created = self.ask(request).await?;
        let session = &created["sessionId"];
        let model = match self.script.model {
            Some(wanted) => Some(self.set_model(session, &created, wanted).await?),
            None => models::current(&created).map(|model| shortened(&model, MAX_NAME_CHARS)),
        };
        self.conversation.model = model;
        self.begun = Some(Instant::now());
        let mut end = String::new();
        for prompt in self.script.prompts {
            end = self.turn(session, prompt).await?;
            if end != "end_turn" {
                break;
            }
        }
        Ok(End::Finished { stop_reason: shortened(&end, MAX_NAME_CHARS) })
    }

    /// Sets the session's model by the options that the agent offers. Returns its identifier.
    async fn set_model(&mut self, session: &Value, created: &Value, wanted: &str) -> Result<String, End> {
        let choice =
            models::choose(created, wanted).map_err(|error| End::NotStarted { why: error.to_string() })?;
        let request = self.codec.request(choice.method(), &choice.params(session));
        self.ask(request).await?;
        Ok(choice.model)
    }

    /// Makes a turn. Returns the agent's stop reason.
    async fn turn(&mut self, session: &Value, prompt: &str) -> Result<String, End> {
        self.conversation.transcript.user(prompt);
        let request = self.codec.prompt(session, prompt);
        match self.ask(request.clone()).await {
            Ok(result) => {
                self.conversation.transcript.end(&result);
                Ok(result["stopReason"].as_str().unwrap_or("nothing").to_owned())
            }
            Err(end) => {
                if !matches!(end, End::Crashed { .. } | End::Refused { .. }) {
                    self.cancel(session, &request).await;
                }
                Err(end)
            }
        }
    }

    /// Cancels the turn and waits for the response to `prompt`, because agents report the used tokens in it.
    async fn cancel(&mut self, session: &Value, prompt: &Request) {
        self.send(&Codec::cancel(session));
        let response = async {
            loop {
                let line = match self.connection.receive().await {
                    Received::Closed | Received::TooLong(_) => return None,
                    Received::Loaded(_) => continue,
                    Received::Line(line) => line,
                };
                match self.read(&line).ok()? {
                    Some(Incoming::Response(response)) if prompt.is_answered_by(&response) => {
                        return response.result.ok();
                    }
                    Some(Incoming::Permission(call)) => {
                        self.answer_permission(&call);
                        if self.conversation.transcript.is_full() {
                            return None;
                        }
                    }
                    Some(Incoming::Unsupported { answer }) => self.send(&answer),
                    _ => {}
                }
            }
        };
        if let Ok(Some(result)) = timeout(CANCEL_TIMEOUT, response).await {
            self.conversation.transcript.end(&result);
        }
    }

    /// Sends a request and waits for its result. Until then, requests and updates of the agent are handled.
    async fn ask(&mut self, request: Request) -> Result<Value, End> {
        self.send(&request.message);
        loop {
            let received = tokio::select! {
                received = self.connection.receive() => received,
                () = time::sleep_until(self.deadline) => {
                    return Err(End::TimedOut { silent: self.conversation.transcript.is_silent() });
                }
                // This returns an error if the sender is dropped, and in that case we never stop early.
                Ok(_) = self.stop.wait_for(|stop| *stop) => return Err(End::Interrupted),
            };
            let line = match received {
                Received::Line(line) => line,
                Received::Loaded(skill) => {
                    self.loaded(&skill)?;
                    continue;
                }
                Received::TooLong(max) => return Err(End::too_long(max)),
                Received::Closed => return Err(End::Crashed { why: String::new() }),
            };
            match self.read(&line)? {
                Some(Incoming::Response(response)) if request.is_answered_by(&response) => {
                    return request.result(response).map_err(refused);
                }
                Some(Incoming::Update(update)) => self.update(&update)?,
                Some(Incoming::Permission(call)) => {
                    if let Some(end) = self.answer_permission(&call) {
                        return Err(end);
                    }
                }
                Some(Incoming::Unsupported { answer }) => self.send(&answer),
                _ => {}
            }
            if self.conversation.transcript.is_full() {
                return Err(End::too_many_calls());
            }
        }
    }

    fn send(&mut self, message: &Value) {
        self.log("client", message);
        self.connection.send(&message.to_string());
    }

    /// Parses a line. Returns `None` for a line that is not a message, and notes it in the transcript, because some agents
    /// print other text to their standard output.
    ///
    /// # Errors
    /// Returns [`End::Crashed`] if the message has too many values.
    fn read(&mut self, line: &str) -> Result<Option<Incoming>, End> {
        match Codec::decode(line) {
            Ok(message) => {
                self.log("agent", &message);
                return Ok(Some(Incoming::from_message(message)));
            }
            Err(ClientError::TooManyValues) => return Err(End::too_many_values()),
            Err(_) => {}
        }
        if !line.trim().is_empty() {
            let text = shortened(line, 200);
            self.conversation.transcript.note(format!("ignored invalid message from agent: {text}"));
        }
        Ok(None)
    }

    fn log(&mut self, dir: &str, message: &Value) {
        let Some(log) = &mut self.log else { return };
        let line = json!({ "dir": dir, "msg": message }).to_string();
        self.logged += line.len() + 1;
        // It's fine to ignore errors here: the log is only for users to read, and if the disk is full, we also
        // get an error when we write the results.
        if self.logged > MAX_LOG_BYTES {
            let _ = writeln!(log, "{}", json!({ "truncated": true, "max_bytes": MAX_LOG_BYTES }));
            let _ = log.flush();
            self.log = None;
            return;
        }
        let _ = writeln!(log, "{line}");
    }

    /// Records that the model received the instructions of a skill. Returns an error if this ends the turn.
    fn loaded(&mut self, skill: &str) -> Result<(), End> {
        if !self.conversation.loaded.iter().any(|known| known == skill) {
            self.conversation.loaded.push(skill.to_owned());
            self.conversation.transcript.note(format!("loaded skill `{skill}`"));
        }
        match self.script.stop_when_loaded {
            Some(wanted) if wanted == skill && self.begun.is_some() => Err(End::Triggered),
            _ => Ok(()),
        }
    }

    fn update(&mut self, update: &Value) -> Result<(), End> {
        let call = self.conversation.transcript.update(update).cloned();
        if let Some(begun) = self.begun
            && self.conversation.latency.is_none()
            && !self.conversation.transcript.is_silent()
        {
            self.conversation.latency = Some(begun.elapsed());
        }
        let Some(call) = call else { return Ok(()) };
        if call.status == "completed"
            && let Some(skill) = self.read_instructions(&call)
        {
            self.loaded(&skill)?;
        }
        if self.works_without_skill(&call) {
            return Err(End::WorkedWithout { call: shortened(call.title_or_name(), MAX_NAME_CHARS) });
        }
        Ok(())
    }

    /// Returns the skill whose instruction file the call reads.
    fn read_instructions(&self, call: &ToolUse) -> Option<String> {
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

    /// Returns true if the turn of a query ends with this call, because the agent works without loading the skill first.
    fn works_without_skill(&self, call: &ToolUse) -> bool {
        self.script.stop_when_loaded.is_some() && is_work(call) && self.read_instructions(call).is_none()
    }

    /// Answers a permission request. Returns an end if the request shows that the agent works without the skill.
    fn answer_permission(&mut self, call: &PermissionCall) -> Option<End> {
        let answer = PermissionAnswer::to(&call.request, self.script.directory, self.script.allow);
        self.conversation.transcript.permission(&answer);
        let (message, _) = call.answer(&answer.decision());
        self.send(&message);
        let tool_call = &call.request.raw["toolCall"];
        let tool_use = ToolUse {
            title: answer.title.clone(),
            kind: answer.kind.clone(),
            status: "in_progress".to_owned(),
            input: tool_call["rawInput"].clone(),
            locations: tool_call["locations"].clone(),
            ..ToolUse::default()
        };
        let end = self
            .works_without_skill(&tool_use)
            .then(|| End::WorkedWithout { call: shortened(&answer.title, MAX_NAME_CHARS) });
        self.conversation.permissions.push(answer);
        end
    }
}

fn refused(error: ClientError) -> End {
    let why = match &error {
        ClientError::Refused { method, error } => format!("`{method}`: {}", describe_error(error)),
        error => error.to_string(),
    };
    End::Refused { why }
}
