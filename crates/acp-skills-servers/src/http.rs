//! The transport of servers with streamable HTTP. Each message is a request of its own, on a thread, because the HTTP client blocks.
//!
//! [MCP: streamable HTTP](https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http)

mod events;

use std::{io::Read, sync::Arc, thread, time::Duration};

use parking_lot::Mutex;
use skills_core::fetch::{self, Exchange, FetchError, Host, Interrupt, Request};
use tokio::{
    runtime::Handle,
    sync::{Semaphore, mpsc::Receiver, oneshot},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use self::events::Position;
use super::{
    ServerError,
    messages::{MAX_CALLS, Outgoing, Rpc},
    values::Resolved,
};

/// The maximum length of a message in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The maximum number of requests at the same time.
const MAX_REQUESTS: usize = 16;
/// The time limit for telling the server that a session has ended.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// The time after which the stream for messages of the server is opened again.
const STREAM_TIMEOUT: Duration = Duration::from_hours(1);
/// The time before a stream is opened again, unless the server asks for another one. It doubles with each failure.
const RETRY: Duration = Duration::from_secs(1);
/// The minimum of the time that a server can ask for.
const MIN_RETRY: Duration = Duration::from_millis(100);
/// The maximum number of times that the time doubles.
const MAX_DOUBLINGS: u32 = 8;

/// The address of a server, and what is known of the session.
struct Endpoint {
    url: String,
    headers: Resolved,
    /// Guards the id of the MCP session. No other lock is taken while it is held.
    session: Mutex<Option<String>>,
}

/// The end of a stream of events.
enum StreamEnd {
    /// The stream was open. True if there was at least one message.
    Read(bool),
    /// The stream could not be opened, but it may be possible later.
    Failed,
    /// The server does not offer this stream.
    NotOffered,
}

/// Connects `rpc` with a server.
pub(super) fn connect(rpc: &Rpc, mut outgoing: Receiver<Outgoing>, url: &str, headers: Resolved) {
    let endpoint = Arc::new(Endpoint { url: url.to_owned(), headers, session: Mutex::default() });
    let rpc = rpc.clone();
    tokio::spawn(async move {
        let room = Arc::new(Semaphore::new(MAX_REQUESTS));
        let sending = async {
            let mut has_stream = false;
            while let Some(message) = outgoing.recv().await {
                let is_request = message.request.is_some();
                let end = message.end.clone();
                let posting = Arc::clone(&endpoint).deliver(rpc.clone(), message);
                // Requests run at the same time, but all come after the notifications before them.
                if is_request {
                    tokio::spawn(within(Arc::clone(&room), end, posting));
                    continue;
                }
                posting.await;
                if !has_stream && endpoint.session.lock().is_some() {
                    has_stream = true;
                    let end = rpc.end_token().clone();
                    tokio::spawn(Arc::clone(&endpoint).listen(rpc.clone(), end, None, STREAM_TIMEOUT));
                }
            }
        };
        tokio::select! {
            () = rpc.ended() => {}
            () = sending => {}
        }
        rpc.end();
        drop(on_thread(move || endpoint.delete(&rpc)));
    });
}

/// Sends a request when there is room for it, unless it has ended before.
async fn within(room: Arc<Semaphore>, end: CancellationToken, posting: impl Future<Output = ()>) {
    tokio::select! {
        permit = room.acquire() => {
            posting.await;
            drop(permit);
        }
        () = end.cancelled() => {}
    }
}

/// Interrupts a request when it is dropped.
struct InterruptOnDrop(Interrupt);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.interrupt();
    }
}

/// Runs `work` on a thread of its own, until `end` is cancelled. Returns `None` then, or if there is no thread. `work` gets the
/// interrupt of its request. The request is interrupted at the end, or if the returned future is dropped, so that the thread ends.
async fn until<T: Send + 'static>(
    end: &CancellationToken,
    work: impl FnOnce(&Interrupt) -> T + Send + 'static,
) -> Option<T> {
    let interrupt = Interrupt::default();
    let _guard = InterruptOnDrop(interrupt.clone());
    tokio::select! {
        result = on_thread(move || work(&interrupt)) => result.ok(),
        () = end.cancelled() => None,
    }
}

/// Runs `work` on a thread of its own. The threads of the runtime would delay the end of the proxy. The receiver fails if there is
/// no thread.
fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
    let (done, result) = oneshot::channel();
    let runtime = Handle::current();
    let work = move || {
        // A message of the server can start a task.
        let _runtime = runtime.enter();
        // This fails if the caller no longer needs the result.
        let _ = done.send(work());
    };
    if let Err(error) = thread::Builder::new().name("tool-server".to_owned()).spawn(work) {
        tracing::warn!("cannot start a thread for an MCP server: {error}");
    }
    result
}

impl Endpoint {
    fn send(
        &self,
        rpc: &Rpc,
        method: &'static str,
        (message, more): (&[u8], &[(String, String)]),
        last_id: Option<&str>,
        (timeout, interrupt): (Duration, &Interrupt),
    ) -> Result<Exchange, FetchError> {
        let mut headers = self.headers.values.clone();
        headers.extend_from_slice(more);
        let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        add("Accept", "application/json, text/event-stream");
        add("Content-Type", "application/json");
        if let Some(session) = &*self.session.lock() {
            add("Mcp-Session-Id", session);
        }
        if let Some(revision) = rpc.revision() {
            add("MCP-Protocol-Version", revision);
        }
        if let Some(id) = last_id {
            add("Last-Event-ID", id);
        }
        let request = Request {
            method,
            url: &self.url,
            host: Host::Checked,
            authorities: None,
            headers: &headers,
            body: message,
            timeout,
            answer: None,
        };
        fetch::exchange(&request, interrupt)
    }

    /// Sends a message and passes the answer on. If the stream with the answer ends early, continues it.
    async fn deliver(self: Arc<Self>, rpc: Rpc, message: Outgoing) {
        let request = message.request;
        let limit = message.limit.saturating_mul(if request.is_some() { MAX_CALLS } else { 1 });
        let endpoint = Arc::clone(&self);
        let through = rpc.clone();
        let end = message.end.clone();
        let post = move |interrupt: &Interrupt| endpoint.post(&through, &message, (limit, interrupt));
        let posted = until(&end, post).await.flatten();
        let Some(request) = request else { return };
        if let Some(position) = posted.filter(|position| position.last_id.is_some()) {
            self.listen(rpc.clone(), end, Some(position), limit).await;
        }
        // This has no effect if there was an answer.
        rpc.answered(request, Err(ServerError::Http("server sent no answer".to_owned())));
    }

    /// Sends a message, and passes the answer on. If the answer is a stream that can be continued, returns its position.
    fn post(&self, rpc: &Rpc, message: &Outgoing, limits: (Duration, &Interrupt)) -> Option<Position> {
        let failed = |why: String| {
            if let Some(id) = message.request {
                rpc.answered(id, Err(ServerError::Http(why)));
            }
            None
        };
        let answer = match self.send(rpc, "POST", (&message.line, &message.headers), None, limits) {
            Ok(answer) => answer,
            Err(error) => return failed(reason(&error)),
        };
        if !(200..300).contains(&answer.status) {
            self.check_session(rpc, &answer);
            return failed(format!("server returned status {}", answer.status));
        }
        if let Some(session) = answer.header("Mcp-Session-Id") {
            self.session.lock().get_or_insert_with(|| session.to_owned());
        }
        let kind = answer.header("Content-Type").unwrap_or_default().to_ascii_lowercase();
        if kind.starts_with("text/event-stream") {
            let mut position = Position::default();
            position.read(answer.into_reader(), |data| rpc.receive(data));
            return Some(position);
        }
        let mut body = Vec::new();
        match answer.into_reader().take(MAX_BYTES + 1).read_to_end(&mut body) {
            Ok(_) if body.len() as u64 <= MAX_BYTES => rpc.receive(&body),
            Ok(_) => return failed("answer is too long".to_owned()),
            Err(error) => return failed(error.to_string()),
        }
        None
    }

    /// Receives events until `end` is cancelled, which is the end of a request or, for the messages that the server sends by itself,
    /// of the connection. `ended` is the position of a stream that has ended. Otherwise, a new stream is opened.
    async fn listen(
        self: Arc<Self>,
        rpc: Rpc,
        end: CancellationToken,
        ended: Option<Position>,
        limit: Duration,
    ) {
        let mut is_new = ended.is_none();
        let mut position = ended.unwrap_or_default();
        let mut failures = 0;
        loop {
            let delay = position.retry.unwrap_or(RETRY).max(MIN_RETRY);
            let delay = delay.saturating_mul(1 << failures.min(MAX_DOUBLINGS));
            tokio::select! {
                () = end.cancelled() => return,
                () = sleep(delay), if !is_new => {}
                () = std::future::ready(()), if is_new => {}
            }
            is_new = false;
            let endpoint = Arc::clone(&self);
            let through = rpc.clone();
            let opened = until(&end, move |interrupt| {
                let end = endpoint.open(&through, &mut position, (limit, interrupt));
                (end, position)
            });
            let Some((stream, now)) = opened.await else { return };
            position = now;
            match stream {
                StreamEnd::Read(has_messages) if has_messages || position.retry.is_some() => failures = 0,
                StreamEnd::Read(_) | StreamEnd::Failed => failures += 1,
                StreamEnd::NotOffered => return,
            }
        }
    }

    /// Opens a stream of events, and reads it to its end.
    fn open(&self, rpc: &Rpc, position: &mut Position, limits: (Duration, &Interrupt)) -> StreamEnd {
        match self.send(rpc, "GET", (&[], &[]), position.last_id.as_deref(), limits) {
            Ok(answer) if answer.status == 200 => {
                StreamEnd::Read(position.read(answer.into_reader(), |data| rpc.receive(data)))
            }
            Ok(answer) if answer.status == 429 || answer.status >= 500 => StreamEnd::Failed,
            Err(FetchError::Transport { .. }) => StreamEnd::Failed,
            Ok(answer) => {
                self.check_session(rpc, &answer);
                StreamEnd::NotOffered
            }
            Err(_) => StreamEnd::NotOffered,
        }
    }

    /// Ends the connection if the server has forgotten the session, so that it is initialized again.
    fn check_session(&self, rpc: &Rpc, answer: &Exchange) {
        if answer.status == 404 && self.session.lock().is_some() {
            rpc.end();
        }
    }

    /// Ends the session of the server.
    fn delete(&self, rpc: &Rpc) {
        if self.session.lock().is_some() {
            // The session ends by itself if this fails.
            let _ = self.send(rpc, "DELETE", (&[], &[]), None, (END_TIMEOUT, &Interrupt::default()));
        }
    }
}

/// Describes an error without the URL, which could contain a secret.
fn reason(error: &FetchError) -> String {
    match error {
        FetchError::Redirect { .. } => "redirects are not followed".to_owned(),
        FetchError::ThisMachine { .. } => "the host is this machine; use `localhost` for it".to_owned(),
        error => error.cause().unwrap_or_else(|| "the URL is not allowed".to_owned()),
    }
}
