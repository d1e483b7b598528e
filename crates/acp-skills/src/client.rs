//! A small ACP client that reads and writes lines, for the commands that play the editor.

use std::{
    io::{BufRead, BufReader, PipeReader, PipeWriter, Write},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::one_shot::{Seen, Watch};

/// The client's end of a connection.
pub struct Client {
    reader: BufReader<PipeReader>,
    line: Line,
    watch: Option<Watch>,
    next: u64,
    /// What the agent has said so far.
    pub text: String,
}

/// What a client writes to. Clones are the same, so that somebody else can end what the client waits for.
#[derive(Debug, Clone, Default)]
pub struct Line(Arc<Mutex<Out>>);

#[derive(Debug, Default)]
struct Out {
    writer: Option<PipeWriter>,
    /// The session that has a turn to cancel.
    session: Option<Value>,
    is_closed: bool,
}

impl Line {
    fn out(&self) -> MutexGuard<'_, Out> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, writer: PipeWriter) {
        let mut out = self.out();
        out.writer = Some(writer).filter(|_| !out.is_closed);
    }

    fn write(&self, message: &Value) -> anyhow::Result<()> {
        let mut out = self.out();
        let writer = out.writer.as_mut().context("the conversation was given up")?;
        writeln!(writer, "{message}").context("the agent is gone")
    }

    /// Cancels the turn, and leaves.
    pub fn cancel(&self) {
        let session = self.out().session.take();
        if let Some(session) = session {
            let params = json!({ "sessionId": session });
            // An agent that is gone has nothing to cancel.
            drop(self.write(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params })));
        }
        self.close();
    }

    fn close(&self) {
        let mut out = self.out();
        (out.writer, out.is_closed) = (None, true);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.line.close();
    }
}

impl Client {
    /// A client that reads and writes these; `watch` is shown what the agent says.
    pub fn new(reader: PipeReader, writer: PipeWriter, line: Line, watch: Option<Watch>) -> Self {
        line.open(writer);
        Self { reader: BufReader::new(reader), line, watch, next: 0, text: String::new() }
    }

    /// Says what the client can do: nothing but show text.
    pub fn initialize(&mut self) -> anyhow::Result<Value> {
        self.ask("initialize", &json!({
            "protocolVersion": 1,
            "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
            "clientInfo": { "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") },
        }))
    }

    /// Opens a session; returns its id.
    pub fn new_session(&mut self, cwd: &Path) -> anyhow::Result<Value> {
        let mut session = self.ask("session/new", &json!({ "cwd": cwd, "mcpServers": [] }))?;
        Ok(session["sessionId"].take())
    }

    /// Sends a prompt; returns how the turn ended.
    pub fn prompt(&mut self, session: &Value, text: &str) -> anyhow::Result<Value> {
        self.line.out().session = Some(session.clone());
        let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        let end = self.ask("session/prompt", &prompt);
        self.line.out().session = None;
        end
    }

    /// Sends a request and waits for its answer.
    pub fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.next += 1;
        let id = self.next;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                bail!("the agent is gone before it answered `{method}`");
            }
            let message: Value =
                serde_json::from_str(&line).with_context(|| format!("no message: {line}"))?;
            match (message.get("method"), message["id"] == id) {
                (Some(_), _) => self.hear(&message)?,
                (None, true) => {
                    return message
                        .get("result")
                        .cloned()
                        .with_context(|| format!("the agent refuses `{method}`: {}", message["error"]));
                }
                (None, false) => {}
            }
        }
    }

    fn hear(&mut self, message: &Value) -> anyhow::Result<()> {
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "session/update" => {
                let update = &params["update"];
                if update["sessionUpdate"] == "agent_message_chunk" {
                    self.text += update["content"]["text"].as_str().unwrap_or_default();
                }
                if let Some(watch) = &self.watch {
                    watch(Seen::Update(update));
                }
                Ok(())
            }
            // Nobody is there to ask: only this once, and only what was offered for it.
            "session/request_permission" => {
                let options = params["options"].as_array().into_iter().flatten();
                let allow = options.into_iter().find(|option| option["kind"] == "allow_once");
                let outcome = match allow {
                    Some(option) => json!({ "outcome": "selected", "optionId": option["optionId"] }),
                    None => json!({ "outcome": "cancelled" }),
                };
                self.write(
                    &json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "outcome": outcome } }),
                )
            }
            method if message.get("id").is_some() => {
                let error = json!({ "code": -32601, "message": format!("no method `{method}`") });
                self.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }))
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, message: &Value) -> anyhow::Result<()> {
        self.line.write(message)
    }
}
