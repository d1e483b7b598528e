//! [`Client`]: a small ACP client, for one prompt and for the commands that play the editor.
//!
//! It can do nothing but show text: no files, no terminal. What the agent wants to be permitted is refused, unless somebody
//! decides otherwise.

mod error;

use std::{
    io::{BufRead, BufReader, PipeReader, PipeWriter, Write},
    mem,
    path::Path,
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};

use serde_json::{Value, json};

pub use self::error::ClientError;
use crate::{
    permission::{self, PermissionDecision, PermissionHandler, PermissionRequest},
    trace::{Trace, Tracer},
};

/// The client's end of a connection.
pub struct Client {
    reader: BufReader<PipeReader>,
    writer: ClientWriter,
    tracer: Option<Tracer>,
    on_permission: Option<PermissionHandler>,
    next_id: u64,
    text: String,
}

/// What a client writes to. Clones are the same, so that somebody else can end what the client waits for.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientWriter {
    /// Guards the pipe and what there is to cancel. Held while a message is written.
    state: Arc<Mutex<WriterState>>,
}

#[derive(Debug, Default)]
struct WriterState {
    pipe: Option<PipeWriter>,
    /// The session that has a turn to cancel.
    prompted: Option<Value>,
    is_closed: bool,
}

impl ClientWriter {
    fn state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock()
    }

    fn open(&self, pipe: PipeWriter) {
        let mut state = self.state();
        state.pipe = Some(pipe).filter(|_| !state.is_closed);
    }

    fn write(&self, message: &Value) -> Result<(), ClientError> {
        let mut state = self.state();
        let pipe = state.pipe.as_mut().ok_or(ClientError::Cancelled)?;
        writeln!(pipe, "{message}").map_err(ClientError::Write)
    }

    /// Cancels the turn that is under way, and closes the connection.
    pub(crate) fn cancel(&self) {
        let session = self.state().prompted.take();
        if let Some(session) = session {
            let params = json!({ "sessionId": session });
            // An agent that is gone has nothing to cancel.
            drop(self.write(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params })));
        }
        self.close();
    }

    fn close(&self) {
        let mut state = self.state();
        (state.pipe, state.is_closed) = (None, true);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.writer.close();
    }
}

impl Client {
    /// A client over two pipes. `tracer` is called with what the agent says, `on_permission` decides what it may do.
    pub(crate) fn new(
        reader: PipeReader,
        pipe: PipeWriter,
        writer: ClientWriter,
        tracer: Option<Tracer>,
        on_permission: Option<PermissionHandler>,
    ) -> Self {
        writer.open(pipe);
        let reader = BufReader::new(reader);
        Self { reader, writer, tracer, on_permission, next_id: 0, text: String::new() }
    }

    /// Sends `initialize`; returns the agent's answer.
    ///
    /// # Errors
    /// As for [`request`](Self::request).
    pub fn initialize(&mut self) -> Result<Value, ClientError> {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
            "clientInfo": { "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") },
        });
        self.request("initialize", &params)
    }

    /// Opens a session; returns its id.
    ///
    /// # Errors
    /// As for [`request`](Self::request).
    pub fn new_session(&mut self, cwd: &Path) -> Result<Value, ClientError> {
        let mut session = self.request("session/new", &json!({ "cwd": cwd, "mcpServers": [] }))?;
        Ok(session["sessionId"].take())
    }

    /// Sends a prompt and waits for the end of the turn; returns how it ended.
    ///
    /// # Errors
    /// As for [`request`](Self::request).
    pub fn prompt(&mut self, session: &Value, text: &str) -> Result<Value, ClientError> {
        self.writer.state().prompted = Some(session.clone());
        let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        let end = self.request("session/prompt", &prompt);
        self.writer.state().prompted = None;
        end
    }

    /// Sends a request and waits for its result; whatever else the agent says meanwhile is dealt with.
    ///
    /// # Errors
    /// The agent is gone, answers with an error, or says something that is no message.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<Value, ClientError> {
        self.next_id += 1;
        let id = self.next_id;
        self.writer.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line).map_err(ClientError::Read)? == 0 {
                return Err(ClientError::Unanswered { method: method.to_owned() });
            }
            let mut message: Value = match serde_json::from_str(&line) {
                Ok(message) => message,
                Err(source) => return Err(ClientError::NotAMessage { line, source }),
            };
            if message.get("method").is_some() {
                self.handle(&message)?;
            } else if message["id"] == id {
                if let Some(result) = message.get_mut("result") {
                    return Ok(result.take());
                }
                let (method, error) = (method.to_owned(), message["error"].take());
                return Err(ClientError::Refused { method, error });
            }
        }
    }

    /// Takes what the agent has said in messages to the user since this was called last.
    pub fn take_text(&mut self) -> String {
        mem::take(&mut self.text)
    }

    /// Deals with a request or a notification of the agent's.
    fn handle(&mut self, message: &Value) -> Result<(), ClientError> {
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "session/update" => {
                let update = &params["update"];
                if update["sessionUpdate"] == "agent_message_chunk" {
                    self.text += update["content"]["text"].as_str().unwrap_or_default();
                }
                self.trace(Trace::Update(update));
                Ok(())
            }
            "session/request_permission" => {
                let request = PermissionRequest::from_params(params);
                let decision = match &self.on_permission {
                    Some(decide) => decide(&request),
                    // Nobody was asked.
                    None => PermissionDecision::Refuse,
                };
                let chosen = request.choose(&decision);
                self.trace(Trace::Permission(&request, chosen));
                let result = permission::result(chosen);
                self.writer.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
            }
            method if message.get("id").is_some() => {
                let error = json!({ "code": -32601, "message": format!("no method `{method}`") });
                self.writer.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }))
            }
            _ => Ok(()),
        }
    }

    fn trace(&self, trace: Trace<'_>) {
        if let Some(tracer) = &self.tracer {
            tracer(trace);
        }
    }
}
