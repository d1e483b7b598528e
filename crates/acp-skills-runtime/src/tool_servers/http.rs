//! The transport of servers with streamable HTTP. Each message is a request of its own, on a thread, because the HTTP client blocks.
//!
//! [MCP: streamable HTTP](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http)

use std::{
    io::{BufRead, BufReader, Read},
    sync::Arc,
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use skills_core::fetch::{self, Exchange, FetchError, Request};
use tokio::{
    sync::{Semaphore, mpsc::Receiver, oneshot},
    task::spawn_blocking,
};

use super::{
    Limits, ServerError,
    messages::{Outgoing, Rpc},
    values::{Resolved, Secrets},
};

/// The maximum length of a message in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The maximum number of requests at the same time.
const MAX_REQUESTS: usize = 16;
/// The time limit for a request, as a multiple of the limit of a call, because progress extends the limit of a call.
const MAX_CALLS: u32 = 10;
/// The time limit for telling the server that a session has ended.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// The time after which the stream for messages of the server is opened again.
const STREAM_TIMEOUT: Duration = Duration::from_hours(1);

/// The address of a server, and what is known of the session.
struct Endpoint {
    url: String,
    headers: Resolved,
    timeout: Duration,
    /// Guards the id of the MCP session. No other lock is taken while it is held.
    session: Mutex<Option<String>>,
}

/// Connects `rpc` with a server.
pub(super) async fn connect(
    rpc: &Rpc,
    mut outgoing: Receiver<Outgoing>,
    url: &str,
    headers: &[(String, String)],
    secrets: &Secrets,
    limits: Limits,
) -> Result<(), ServerError> {
    let (secrets, headers) = (secrets.clone(), headers.to_vec());
    let resolving = spawn_blocking(move || secrets.resolve(&headers));
    let endpoint = Arc::new(Endpoint {
        url: url.to_owned(),
        headers: resolving.await.map_err(|_| ServerError::Ended)??,
        timeout: limits.call.saturating_mul(MAX_CALLS),
        session: Mutex::default(),
    });
    let rpc = rpc.clone();
    tokio::spawn(async move {
        let room = Arc::new(Semaphore::new(MAX_REQUESTS));
        let mut has_stream = false;
        loop {
            let message = tokio::select! {
                () = rpc.ended() => break,
                message = outgoing.recv() => message,
            };
            let (Some(message), Ok(permit)) = (message, Arc::clone(&room).acquire_owned().await) else {
                break;
            };
            let is_request = message.request.is_some();
            let (done, sent) = oneshot::channel::<()>();
            let (post_to, through) = (Arc::clone(&endpoint), rpc.clone());
            on_thread(move || {
                post_to.post(&through, &message);
                drop(permit);
                drop(done);
            });
            // Requests run at the same time, but all come after the notifications before them.
            if !is_request {
                let _ = sent.await;
                if !has_stream && endpoint.session.lock().is_some() {
                    has_stream = true;
                    let (endpoint, rpc) = (Arc::clone(&endpoint), rpc.clone());
                    on_thread(move || endpoint.listen(&rpc));
                }
            }
        }
        on_thread(move || endpoint.delete(&rpc));
    });
    Ok(())
}

/// Runs `work` on a thread of its own. The threads of the runtime would delay the end of the proxy.
fn on_thread(work: impl FnOnce() + Send + 'static) {
    if let Err(error) = thread::Builder::new().name("tool-server".to_owned()).spawn(work) {
        tracing::warn!("cannot start a thread for an MCP server: {error}");
    }
}

impl Endpoint {
    fn send(
        &self,
        rpc: &Rpc,
        method: &'static str,
        body: &[u8],
        timeout: Duration,
    ) -> Result<Exchange, FetchError> {
        let mut headers = self.headers.0.clone();
        headers.push(("Accept".to_owned(), "application/json, text/event-stream".to_owned()));
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        if let Some(session) = &*self.session.lock() {
            headers.push(("Mcp-Session-Id".to_owned(), session.clone()));
        }
        if let Some(revision) = rpc.revision() {
            headers.push(("MCP-Protocol-Version".to_owned(), revision.to_owned()));
        }
        fetch::exchange(&Request { method, url: &self.url, headers: &headers, body, timeout })
    }

    /// Sends a message, and passes the answer on.
    fn post(&self, rpc: &Rpc, message: &Outgoing) {
        let failed = |why: String| {
            if let Some(id) = message.request {
                rpc.answered(id, Err(ServerError::Http(why)));
            }
        };
        let answer = match self.send(rpc, "POST", &message.line, self.timeout) {
            Ok(answer) => answer,
            Err(error) => return failed(reason(&error)),
        };
        if !(200..300).contains(&answer.status) {
            // The server has forgotten the session, so it has to be initialized again.
            if answer.status == 404 && self.session.lock().is_some() {
                rpc.end();
            }
            return failed(format!("server returned status {}", answer.status));
        }
        if let Some(session) = answer.header("Mcp-Session-Id") {
            self.session.lock().get_or_insert_with(|| session.to_owned());
        }
        let kind = answer.header("Content-Type").unwrap_or_default().to_ascii_lowercase();
        if kind.starts_with("text/event-stream") {
            events(rpc, answer.into_reader());
        } else {
            let mut body = Vec::new();
            match answer.into_reader().take(MAX_BYTES + 1).read_to_end(&mut body) {
                Ok(_) if body.len() as u64 <= MAX_BYTES => rpc.receive(&body),
                Ok(_) => return failed("answer is too long".to_owned()),
                Err(error) => return failed(error.to_string()),
            }
        }
        // The request has an answer now, unless the server sent none.
        failed("server sent no answer".to_owned());
    }

    /// Receives what the server sends by itself, if it offers a stream for this.
    fn listen(&self, rpc: &Rpc) {
        while !rpc.has_ended() {
            match self.send(rpc, "GET", &[], STREAM_TIMEOUT) {
                Ok(answer) if answer.status == 200 => {
                    if !events(rpc, answer.into_reader()) {
                        return;
                    }
                }
                _ => return,
            }
        }
    }

    /// Ends the session of the server.
    fn delete(&self, rpc: &Rpc) {
        if self.session.lock().is_some() {
            // The session ends by itself if this fails.
            let _ = self.send(rpc, "DELETE", &[], END_TIMEOUT);
        }
    }
}

/// Reads events until the end of the stream. Returns true if there was at least one.
fn events(rpc: &Rpc, stream: impl Read) -> bool {
    let mut reader = BufReader::new(stream);
    let mut data = Vec::new();
    let mut line = Vec::new();
    let mut has_events = false;
    loop {
        line.clear();
        match (&mut reader).take(MAX_BYTES).read_until(b'\n', &mut line) {
            Ok(read) if read > 0 && (read as u64) < MAX_BYTES => {}
            _ => return has_events,
        }
        let text = line.trim_ascii_end();
        if text.is_empty() {
            if !data.is_empty() {
                rpc.receive(&data);
                has_events = true;
            }
            data.clear();
        } else if let Some(part) = text.strip_prefix(b"data:") {
            if data.len() as u64 + part.len() as u64 > MAX_BYTES {
                return has_events;
            }
            data.extend_from_slice(part.trim_ascii_start());
            data.push(b'\n');
        }
    }
}

/// Describes an error without the URL, which could contain a secret.
fn reason(error: &FetchError) -> String {
    match error {
        FetchError::Redirect { .. } => "redirects are not followed".to_owned(),
        FetchError::ThisMachine { .. } => "the host is this machine; use `localhost` for it".to_owned(),
        FetchError::Transport { source, .. } => source.to_string(),
        _ => "the URL is not allowed".to_owned(),
    }
}
