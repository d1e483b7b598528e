//! A small ACP client that reads and writes lines, for the commands that play the editor.

use std::{
    io::{BufRead, BufReader, PipeReader, PipeWriter, Write},
    path::Path,
};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::one_shot::{Seen, Watch};

/// The client's end of a connection.
pub(crate) struct Client {
    reader: BufReader<PipeReader>,
    writer: PipeWriter,
    watch: Option<Watch>,
    next: u64,
    /// What the agent has said so far.
    pub(crate) text: String,
}

impl Client {
    pub(crate) fn new(reader: PipeReader, writer: PipeWriter, watch: Option<Watch>) -> Self {
        Self { reader: BufReader::new(reader), writer, watch, next: 0, text: String::new() }
    }

    /// Says what the client can do: nothing but show text.
    pub(crate) fn initialize(&mut self) -> anyhow::Result<Value> {
        self.ask("initialize", &json!({
            "protocolVersion": 1,
            "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
            "clientInfo": { "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") },
        }))
    }

    /// Opens a session; returns its id.
    pub(crate) fn new_session(&mut self, cwd: &Path) -> anyhow::Result<Value> {
        let mut session = self.ask("session/new", &json!({ "cwd": cwd, "mcpServers": [] }))?;
        Ok(session["sessionId"].take())
    }

    /// Sends a prompt; returns how the turn ended.
    pub(crate) fn prompt(&mut self, session: &Value, text: &str) -> anyhow::Result<Value> {
        self.ask(
            "session/prompt",
            &json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }),
        )
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
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
        writeln!(self.writer, "{message}").context("the agent is gone")
    }
}
