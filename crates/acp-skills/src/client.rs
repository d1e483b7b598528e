//! A small ACP client, for one prompt and for programs that act as the editor.
//!
//! It offers the agent neither files nor terminals. Permission requests are refused unless a
//! [handler](crate::one_shot::OneShot::on_permission) allows them.
//!
//! - [`Client`] blocks on pipes. [`OneShot::converse`](crate::one_shot::OneShot::converse) provides a connected client.
//! - [`Codec`] has the same protocol without I/O, for programs that need deadlines or an async runtime.

mod codec;
mod error;
mod update;

use std::{
    io::{BufRead, BufReader, PipeReader, PipeWriter, Write},
    mem,
    path::Path,
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

pub use self::{
    codec::{Codec, Incoming, PermissionCall, Request, Response},
    error::{ClientError, describe_error},
    update::Update,
};
pub use crate::permission::{PermissionDecision, PermissionHandler, PermissionOption, PermissionRequest};
use crate::trace::{Trace, Tracer};

/// The maximum size of the agent's text that is kept until [`Client::take_text`] is called, in bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;

/// The client's end of a connection. Its methods block.
pub struct Client {
    reader: BufReader<PipeReader>,
    writer: ClientWriter,
    tracer: Option<Tracer>,
    on_permission: Option<PermissionHandler>,
    codec: Codec,
    text: String,
    /// False if the agent's text is only traced.
    pub(crate) keeps_text: bool,
}

/// The writing half of a client. Clones share it, so that another thread can cancel the turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientWriter {
    /// Guards the pipe and the session whose turn can be cancelled. It is held while a message is written.
    state: Arc<Mutex<WriterState>>,
}

#[derive(Debug, Default)]
struct WriterState {
    pipe: Option<PipeWriter>,
    /// The session with a turn in progress.
    prompted: Option<Value>,
    is_closed: bool,
}

impl ClientWriter {
    fn state(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock()
    }

    /// Starts writing to `pipe`, unless the writer was closed before the connection was made.
    fn open(&self, pipe: PipeWriter) {
        let mut state = self.state();
        state.pipe = Some(pipe).filter(|_| !state.is_closed);
    }

    fn write(&self, message: &Value) -> Result<(), ClientError> {
        let mut state = self.state();
        let pipe = state.pipe.as_mut().ok_or(ClientError::Cancelled)?;
        writeln!(pipe, "{message}").map_err(ClientError::Write)
    }

    /// Cancels the turn in progress, if any, and closes the connection.
    pub(crate) fn cancel(&self) {
        let session = self.state().prompted.take();
        if let Some(session) = session {
            // If this fails, the agent has already ended, so there is no turn to cancel.
            let _ = self.write(&Codec::cancel(&session));
        }
        self.close();
    }

    fn close(&self) {
        let mut state = self.state();
        state.pipe = None;
        state.is_closed = true;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.writer.close();
    }
}

impl Client {
    /// Creates a client over two pipes. `tracer` is called with updates and answered permission requests.
    pub(crate) fn new(
        reader: PipeReader,
        pipe: PipeWriter,
        writer: ClientWriter,
        tracer: Option<Tracer>,
        on_permission: Option<PermissionHandler>,
    ) -> Self {
        writer.open(pipe);
        let reader = BufReader::new(reader);
        Self {
            reader,
            writer,
            tracer,
            on_permission,
            codec: Codec::default(),
            text: String::new(),
            keeps_text: true,
        }
    }

    /// Sends `initialize` and returns the agent's response.
    ///
    /// # Errors
    /// See [`request`](Self::request).
    pub fn initialize(&mut self) -> Result<Value, ClientError> {
        let request = self.codec.initialize();
        self.send(request)
    }

    /// Opens a session and returns its id. `cwd` has to be absolute.
    ///
    /// # Errors
    /// See [`request`](Self::request).
    pub fn new_session(&mut self, cwd: &Path) -> Result<Value, ClientError> {
        let request = self.codec.new_session(cwd);
        // The agent may answer with anything, and `IndexMut` panics if this is not an object.
        Ok(self.send(request)?.get_mut("sessionId").map(Value::take).unwrap_or_default())
    }

    /// Sends a prompt, waits for the end of the turn and returns the agent's response.
    ///
    /// # Errors
    /// See [`request`](Self::request).
    pub fn prompt(&mut self, session: &Value, text: &str) -> Result<Value, ClientError> {
        self.writer.state().prompted = Some(session.clone());
        let request = self.codec.prompt(session, text);
        let end = self.send(request);
        self.writer.state().prompted = None;
        end
    }

    /// Sends a request and waits for its result. Until then, requests and notifications of the agent are handled.
    ///
    /// # Errors
    /// - [`ClientError::Cancelled`] if the turn was cancelled.
    /// - [`ClientError::Write`] or [`ClientError::Read`] if the connection fails.
    /// - [`ClientError::Unanswered`] if the agent closes the connection first.
    /// - [`ClientError::Refused`] if the agent answers with an error.
    /// - [`ClientError::TooLong`] if the agent sends more than 64 MiB of text before [`take_text`](Self::take_text) is called.
    /// - [`ClientError::NotAMessage`] if the agent sends a line that is not JSON.
    /// - [`ClientError::TooManyValues`] if the agent sends a message with more than 262,144 values.
    pub fn request(&mut self, method: &str, params: &Value) -> Result<Value, ClientError> {
        let request = self.codec.request(method, params);
        self.send(request)
    }

    fn send(&mut self, request: Request) -> Result<Value, ClientError> {
        self.writer.write(&request.message)?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line).map_err(ClientError::Read)? == 0 {
                return Err(ClientError::Unanswered { method: request.method });
            }
            match Incoming::from_message(Codec::decode(&line)?) {
                Incoming::Response(response) if request.is_answered_by(&response) => {
                    return request.result(response);
                }
                incoming => self.handle(&incoming)?,
            }
        }
    }

    /// Returns the text of the agent's messages since the last call, and clears it.
    pub fn take_text(&mut self) -> String {
        mem::take(&mut self.text)
    }

    fn handle(&mut self, incoming: &Incoming) -> Result<(), ClientError> {
        match incoming {
            Incoming::Update(update) => {
                if let Update::Message(text) = Update::read(update)
                    && self.keeps_text
                {
                    if self.text.len() + text.len() > MAX_TEXT_BYTES {
                        return Err(ClientError::TooLong);
                    }
                    self.text += text;
                }
                self.trace(Trace::Update(update));
            }
            Incoming::Permission(call) => {
                let decision = match &self.on_permission {
                    Some(decide) => decide(&call.request),
                    None => PermissionDecision::Refuse,
                };
                let (answer, chosen) = call.answer(&decision);
                self.trace(Trace::Permission(&call.request, chosen));
                self.writer.write(&answer)?;
            }
            Incoming::Unsupported { answer } => self.writer.write(answer)?,
            Incoming::Notification(_) | Incoming::Response(_) => {}
        }
        Ok(())
    }

    fn trace(&self, trace: Trace<'_>) {
        if let Some(tracer) = &self.tracer {
            tracer(trace);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{io, thread};

    use serde_json::json;

    use super::*;

    /// Connects a client with an agent that sends `line` until the client closes the connection.
    fn flooded(line: String) -> ClientError {
        let (reader, mut to_client) = io::pipe().unwrap();
        let (from_client, pipe) = io::pipe().unwrap();
        let mut client = Client::new(reader, pipe, ClientWriter::default(), None, None);
        let agent = thread::spawn(move || while writeln!(to_client, "{line}").is_ok() {});
        let error = client.request("x", &json!({})).unwrap_err();
        drop(client);
        drop(from_client);
        agent.join().unwrap();
        error
    }

    #[test]
    fn an_agent_cannot_fill_the_memory() {
        let text = "x".repeat(4 * 1024 * 1024);
        let content = json!({ "type": "text", "text": text });
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        let params = json!({ "sessionId": "s", "update": update });
        let error =
            flooded(json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string());
        assert!(matches!(error, ClientError::TooLong), "{error}");
        // An error does not contain a whole line.
        let error = flooded(text).to_string();
        assert!(error.starts_with("agent sent invalid JSON: xxx") && error.len() < 1_100, "{}", error.len());
    }
}
