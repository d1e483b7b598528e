//! MCP over the ACP connection (unstable): `mcp/message` requests of the agent.
//!
//! The agent sends `{serverId, requestId, method, params}`. The result of its request is either `{result}` or
//! `{error}` of the inner MCP request ([RFD](https://agentclientprotocol.com/rfds/mcp-over-acp)). Each session has
//! one internal connection of newline-delimited MCP to the server, where we use new request ids. Notifications that
//! the server sends on a subscription are forwarded to the agent with the id of the request that opened the
//! subscription.

use std::{collections::HashMap, sync::Arc};

use acp_skills_wire::{INTERNAL_ERROR, INVALID_PARAMS, Message, build};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, WriteHalf},
    sync::{
        Mutex as AsyncMutex,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::handler::Handler;

/// The size of the buffer between the connection and the server, in bytes.
const PIPE_BYTES: usize = 64 * 1024;

/// The internal connection of one session. It opens with the first request.
#[derive(Default)]
pub(super) struct Connection(AsyncMutex<Option<Inner>>);

struct Inner {
    writer: WriteHalf<DuplexStream>,
    pending: Pending,
    last_id: u64,
    /// Ends the server when the connection is dropped. Otherwise, both tasks would wait for each other forever.
    _end: DropGuard,
}

/// The receivers of messages from the server, by request id. A receiver gets the notifications of a subscription and
/// then the answer. No other lock is taken while the lock of the map is held.
type Pending = Arc<Mutex<HashMap<u64, UnboundedSender<Value>>>>;

/// The member of a notification that names the request it belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

impl Connection {
    /// Answers one `mcp/message` request. `send` is called with the lines for the agent.
    pub(super) async fn answer(
        &self,
        handler: &Handler,
        end: &CancellationToken,
        line: &[u8],
        send: &mut (dyn FnMut(Vec<u8>) + Send),
    ) {
        let Some(message) = Message::parse(line) else { return };
        let Some(id) = message.id() else { return };
        let request = message.params.and_then(|params| serde_json::from_slice::<Value>(params.raw()).ok());
        let Some(method) = request.as_ref().and_then(|request| request["method"].as_str()) else {
            return send(build::error(&id, INVALID_PARAMS, "`mcp/message` has no `method`"));
        };
        let params = request.as_ref().map_or(Value::Null, |request| request["params"].clone());
        let mut messages = self.request(handler, end, method, params).await;
        let last = loop {
            match next(&mut messages).await {
                Some(message) if message["id"].is_null() => send(notification(request.as_ref(), message)),
                last => break last,
            }
        };
        send(match last {
            Some(mut answer) => {
                // If the inner request fails, we send the error in the result of the outer one.
                let outcome = match answer.get_mut("error") {
                    Some(error) => json!({ "error": error.take() }),
                    None => json!({ "result": answer["result"].take() }),
                };
                build::result(&id, &outcome)
            }
            None => build::error(&id, INTERNAL_ERROR, "skills server for the session is closed"),
        });
    }

    /// Sends a request to the server. Returns the receiver of its messages, or `None` if the server is closed.
    async fn request(
        &self,
        handler: &Handler,
        end: &CancellationToken,
        method: &str,
        params: Value,
    ) -> Option<UnboundedReceiver<Value>> {
        let mut connection = self.0.lock().await;
        let inner = connection.get_or_insert_with(|| Inner::open(handler.clone(), end.child_token()));
        inner.last_id += 1;
        let mut request = json!({ "jsonrpc": "2.0", "id": inner.last_id, "method": method });
        if !params.is_null() {
            request["params"] = params;
        }
        let (sender, messages) = unbounded_channel();
        inner.pending.lock().insert(inner.last_id, sender);
        let mut line = request.to_string();
        line.push('\n');
        inner.writer.write_all(line.as_bytes()).await.ok()?;
        Some(messages)
    }
}

/// Returns the server's next message, or `None` if there are no more.
async fn next(messages: &mut Option<UnboundedReceiver<Value>>) -> Option<Value> {
    messages.as_mut()?.recv().await
}

/// Builds a notification for the agent, on the subscription that `request` opened.
fn notification(request: Option<&Value>, mut message: Value) -> Vec<u8> {
    let id = |key: &str| request.map_or(Value::Null, |request| request[key].clone());
    let mut params = message["params"].take();
    params["_meta"][SUBSCRIPTION] = id("requestId");
    let params = json!({
        "serverId": id("serverId"),
        "requestId": id("requestId"),
        "method": message["method"],
        "params": params,
    });
    build::notification("mcp/message", &params)
}

impl Inner {
    fn open(handler: Handler, end: CancellationToken) -> Self {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let guard = end.clone().drop_guard();
        tokio::spawn(async move {
            // If we can't start the server, all requests will be answered with an error below.
            if let Ok(running) =
                rmcp::service::serve_server_with_ct(handler, tokio::io::split(theirs), end).await
            {
                let _ = running.waiting().await;
            }
        });
        let (reader, writer) = tokio::io::split(ours);
        let pending = Pending::default();
        let answers = Arc::clone(&pending);
        tokio::spawn(async move {
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
                let subscription = message["params"]["_meta"][SUBSCRIPTION].as_u64();
                let sender = match (message["id"].as_u64(), subscription) {
                    (Some(id), _) => answers.lock().remove(&id),
                    (None, Some(id)) => answers.lock().get(&id).cloned(),
                    (None, None) => None,
                };
                if let Some(sender) = sender {
                    // This can fail if the request is cancelled.
                    let _ = sender.send(message);
                }
            }
            // Drop the senders to answer the remaining requests with an error.
            answers.lock().clear();
        });
        Self { writer, pending, last_id: 0, _end: guard }
    }
}
