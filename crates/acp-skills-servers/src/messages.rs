//! [`Rpc`]: JSON-RPC with an MCP server over any transport. It matches answers with requests, and answers requests of the server.
//!
//! rmcp's client would add 580 kB to the program, because it parses all messages of MCP into types. Here, content stays JSON, so
//! the model receives exactly what the server has sent.
//!
//! [MCP: base protocol](https://modelcontextprotocol.io/specification/2025-11-25/basic)

mod progress;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use acp_skills_wire::{INVALID_PARAMS, Kind, Skim};
use parking_lot::Mutex;
use serde_json::{Value, json};
use skills_core::json::{self, MAX_VALUES, has_more_values_than};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{Instant, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::progress::{Progress, progress_channel};
use super::ServerError;

/// The maximum number of messages that wait to be sent. A server that does not read gets no further answers.
const MAX_QUEUE: usize = 64;
/// The maximum length of the id of a request of the server, in bytes. Answers repeat the id, so they would fill the memory if a server
/// sent long ids and did not read. Requests with longer ids get no answer.
const MAX_ID: usize = 1024;
/// The time limit for sending a message that has no answer.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(30);
/// The time limit for a call of a tool that reports progress, as a multiple of the limit without progress.
pub(super) const MAX_CALLS: u32 = 10;
/// The error code of JSON-RPC for a method that is not supported.
const METHOD_NOT_FOUND: i64 = -32601;

/// The receiver of what a server sends by itself.
pub(super) trait Listener: Send + Sync {
    /// Answers a request. Returns `None` if the method is not supported, or an answer that is sent later.
    fn asked(&self, method: &str, params: Value) -> Option<Answer>;

    /// Handles a notification.
    fn notified(&self, method: &str);
}

/// The answer to a request of a server.
pub(super) enum Answer {
    /// The result.
    Now(Value),
    /// The result follows.
    Later(oneshot::Receiver<Value>),
    /// The params are not acceptable, for this reason.
    Refused(&'static str),
}

/// The messages between us and one server. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub(super) struct Rpc(Arc<Shared>);

struct Shared {
    outgoing: mpsc::Sender<Outgoing>,
    /// Guards the requests without an answer. No other lock is taken while it is held.
    open: Mutex<Open>,
    /// The revision of MCP that the server has chosen.
    revision: OnceLock<String>,
    /// The metadata of each request, if the revision has no sessions.
    envelope: OnceLock<Value>,
    /// Cancelled when the connection has ended.
    end: CancellationToken,
    listener: Box<dyn Listener>,
}

/// A message for the server.
pub(super) struct Outgoing {
    /// The id, if this is a request of ours.
    pub(super) request: Option<u64>,
    pub(super) line: Vec<u8>,
    /// Additional headers for HTTP.
    pub(super) headers: Vec<(String, String)>,
    /// The time limit for sending this message and, if it is a request, for the first sign of an answer.
    pub(super) limit: Duration,
    /// Cancelled when the message is no longer needed: when the request is no longer open, or when the connection has ended.
    pub(super) end: CancellationToken,
}

#[derive(Default)]
struct Open {
    last: u64,
    requests: HashMap<u64, Request>,
}

/// A request without an answer.
struct Request {
    answer: oneshot::Sender<Result<Value, ServerError>>,
    progress: Option<mpsc::Sender<Progress>>,
    /// Notified when the server reports progress. `None` if the request has no token for progress.
    alive: Option<Arc<Notify>>,
    /// Cancels [`Outgoing::end`].
    _end: DropGuard,
}

/// A request to a server.
pub(super) struct Ask<'a> {
    pub(super) method: &'a str,
    pub(super) params: Value,
    /// The time limit. For a call of a tool, it is counted from the last progress, and the limit of the whole call is [`MAX_CALLS`] times
    /// as long.
    pub(super) limit: Duration,
    /// The action for the error if there is no answer in time, such as `start`.
    pub(super) what: &'static str,
    /// The receiver of progress.
    pub(super) progress: Option<mpsc::Sender<Progress>>,
}

impl fmt::Debug for Rpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rpc").field("has_ended", &self.has_ended()).finish_non_exhaustive()
    }
}

impl Rpc {
    /// Creates the state. The transport has to send what it receives from the channel, and to call [`Self::end`] if `end` is
    /// cancelled.
    pub(super) fn new(
        listener: Box<dyn Listener>,
        end: CancellationToken,
    ) -> (Self, mpsc::Receiver<Outgoing>) {
        let (outgoing, receiver) = mpsc::channel(MAX_QUEUE);
        let revision = OnceLock::new();
        let envelope = OnceLock::new();
        let shared = Shared { outgoing, open: Mutex::default(), revision, envelope, end, listener };
        (Self(Arc::new(shared)), receiver)
    }

    /// Returns true if the connection has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.0.end.is_cancelled()
    }

    /// Remembers the revision of MCP that the server has chosen.
    pub(super) fn set_revision(&self, revision: &str) {
        // It is chosen only once.
        let _ = self.0.revision.set(revision.to_owned());
    }

    /// Uses a revision of MCP without sessions: each request has the metadata that is sent only once otherwise.
    pub(super) fn set_stateless(&self, revision: &str, envelope: Value) {
        self.set_revision(revision);
        // It is set only once.
        let _ = self.0.envelope.set(envelope);
    }

    /// Returns true if the revision has no sessions.
    pub(super) fn is_stateless(&self) -> bool {
        self.0.envelope.get().is_some()
    }

    /// Returns the revision of MCP that the server has chosen.
    pub(super) fn revision(&self) -> Option<&str> {
        self.0.revision.get().map(String::as_str)
    }

    /// Returns the token that is cancelled when the connection has ended.
    pub(super) fn end_token(&self) -> &CancellationToken {
        &self.0.end
    }

    /// Waits for the end of the connection.
    pub(super) async fn ended(&self) {
        self.0.end.cancelled().await;
    }

    /// Ends the connection: all requests fail.
    pub(super) fn end(&self) {
        self.0.end.cancel();
        for (_, request) in self.0.open.lock().requests.drain() {
            // This fails if the caller has left.
            let _ = request.answer.send(Err(ServerError::Ended));
        }
    }

    /// Sends a request and waits for the answer. If the returned future is dropped, the request is cancelled.
    pub(super) async fn ask(&self, ask: Ask<'_>) -> Result<Value, ServerError> {
        let (answer, mut answered) = oneshot::channel();
        let has_token = ask.method == "tools/call";
        let alive = Arc::new(Notify::new());
        let started = Instant::now();
        let end = CancellationToken::new();
        let id = {
            let mut open = self.0.open.lock();
            open.last += 1;
            let alive = has_token.then(|| Arc::clone(&alive));
            let request = Request { answer, progress: ask.progress, alive, _end: end.clone().drop_guard() };
            let id = open.last;
            open.requests.insert(id, request);
            id
        };
        let mut cancel = CancelOnDrop { rpc: self, id, is_cancellable: ask.method != "initialize" };
        let mut params = ask.params;
        if has_token {
            params["_meta"]["progressToken"] = id.into();
        }
        let mut headers = Vec::new();
        if let Some(envelope) = self.0.envelope.get() {
            params["_meta"] = envelope.clone();
            headers.push(("Mcp-Method".to_owned(), ask.method.to_owned()));
            let name = params["uri"].as_str().filter(|_| ask.method == "resources/read");
            headers.extend(name.map(|name| ("Mcp-Name".to_owned(), name.to_owned())));
        }
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": ask.method, "params": params });
        let line = line.to_string().into_bytes();
        let outgoing = Outgoing { request: Some(id), line, headers, limit: ask.limit, end };
        let ended = || timeout(ask.limit, self.0.outgoing.send(outgoing));
        let expired = ServerError::Timeout { what: ask.what, limit: ask.limit };
        match ended().await {
            Ok(Ok(())) if !self.has_ended() => {}
            Ok(_) => return Err(ServerError::Ended),
            Err(_) => return Err(expired),
        }
        loop {
            tokio::select! {
                answer = &mut answered => {
                    cancel.is_cancellable = false;
                    return answer.unwrap_or(Err(ServerError::Ended));
                }
                () = alive.notified(), if started.elapsed() < ask.limit.saturating_mul(MAX_CALLS - 1) => {}
                () = tokio::time::sleep(ask.limit) => return Err(expired),
            }
        }
    }

    /// Sends a notification, unless the server does not read.
    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn send(&self, message: &Value) {
        let line = message.to_string().into_bytes();
        // If the queue is full, the server does not read what it asks for.
        let end = self.0.end.clone();
        let headers = Vec::new();
        let message = Outgoing { request: None, line, headers, limit: NOTIFY_TIMEOUT, end };
        let _ = self.0.outgoing.try_send(message);
    }

    /// Handles a message of the server. Lines that are not messages are ignored. Blocks for a while if the message is longer than
    /// [`MAX_SHORT_BYTES`](json::MAX_SHORT_BYTES).
    pub(super) fn receive(&self, line: &[u8]) {
        if has_more_values_than(line, MAX_VALUES) {
            let mut skim = Skim::default();
            skim.read(line);
            return self.refuse(&skim, "it contains too many values");
        }
        let message = {
            let _guard = json::parsing_lock(line);
            serde_json::from_slice::<Value>(line)
        };
        let Ok(mut message) = message else {
            // The message may be nested too deeply.
            let mut skim = Skim::default();
            skim.read(line);
            return self.refuse(&skim, "it is not valid JSON");
        };
        let id = message["id"].clone();
        match message["method"].as_str().map(str::to_owned) {
            Some(method) if id.is_null() => self.notified(&method, &message["params"]),
            Some(method) => self.asked(&method, id, message["params"].take()),
            None => {
                let Some(id) = id.as_u64() else { return };
                let answer = match message.get_mut("error") {
                    Some(error) if !error.is_null() => Err(ServerError::Refused {
                        code: error["code"].as_i64().unwrap_or_default(),
                        message: error["message"].as_str().unwrap_or("no message").to_owned(),
                    }),
                    _ => Ok(message["result"].take()),
                };
                self.answered(id, answer);
            }
        }
    }

    /// Receives a message like [`receive`](Self::receive), on another thread, because a long message takes a while, in which the runtime
    /// could do nothing else.
    pub(super) async fn receive_long(&self, line: Vec<u8>) {
        let rpc = self.clone();
        // This fails only if the runtime ends.
        let _ = tokio::task::spawn_blocking(move || rpc.receive(&line)).await;
    }

    /// Fails the request that a message answers. The message could not be read for this reason.
    pub(super) fn refuse(&self, message: &Skim, why: &'static str) {
        let answered = message.addressee().filter(|(_, kind)| *kind == Kind::Response);
        if let Some(id) = answered.and_then(|(id, _)| id.to_json().parse().ok()) {
            self.answered(id, Err(ServerError::Invalid(why)));
        }
    }

    /// Completes a request.
    pub(super) fn answered(&self, id: u64, answer: Result<Value, ServerError>) {
        if let Some(request) = self.0.open.lock().requests.remove(&id) {
            // This fails if the caller has left.
            let _ = request.answer.send(answer);
        }
    }

    fn notified(&self, method: &str, params: &Value) {
        if method != "notifications/progress" {
            return self.0.listener.notified(method);
        }
        let open = self.0.open.lock();
        let Some(request) = params["progressToken"].as_u64().and_then(|id| open.requests.get(&id)) else {
            return;
        };
        let Some(alive) = &request.alive else { return };
        alive.notify_one();
        if let (Some(receiver), Some(progress)) = (&request.progress, Progress::read(params)) {
            // This fails if the caller has left, or passes it on too slowly.
            let _ = receiver.try_send(progress);
        }
    }

    fn asked(&self, method: &str, id: Value, params: Value) {
        if !is_id(&id) {
            return tracing::debug!(
                "ignored a request of an MCP server, because its id is invalid or too long"
            );
        }
        match self.0.listener.asked(method, params) {
            Some(Answer::Now(result)) => {
                self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            }
            Some(Answer::Later(result)) => {
                let rpc = self.clone();
                tokio::spawn(async move {
                    if let Ok(result) = result.await {
                        rpc.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
                    }
                });
            }
            Some(Answer::Refused(why)) => self.send_error(&id, INVALID_PARAMS, why),
            None => self.send_error(&id, METHOD_NOT_FOUND, "not supported"),
        }
    }

    fn send_error(&self, id: &Value, code: i64, message: &str) {
        let error = json!({ "code": code, "message": message });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }
}

/// Returns true if a value can be the id of a request.
fn is_id(id: &Value) -> bool {
    match id {
        Value::String(text) => text.len() <= MAX_ID,
        other => other.is_number(),
    }
}

/// Removes a request, and tells the server that its answer is no longer needed, unless there was an answer.
struct CancelOnDrop<'a> {
    rpc: &'a Rpc,
    id: u64,
    is_cancellable: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let is_open = self.rpc.0.open.lock().requests.remove(&self.id).is_some();
        if is_open && self.is_cancellable {
            self.rpc.notify("notifications/cancelled", &json!({ "requestId": self.id }));
        }
    }
}

/// A listener that ignores everything.
#[cfg(test)]
pub(super) struct Ignored;

#[cfg(test)]
impl Listener for Ignored {
    fn asked(&self, _: &str, _: Value) -> Option<Answer> {
        None
    }

    fn notified(&self, _: &str) {}
}

#[cfg(test)]
mod tests;
