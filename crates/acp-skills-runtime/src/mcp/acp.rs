//! MCP over the ACP connection (unstable): `mcp/message` of the agent.
//!
//! The agent sends `{serverId, requestId, method, params}`. The result of its request is either `{result}` or
//! `{error}` of the inner MCP request ([RFD](https://agentclientprotocol.com/rfds/mcp-over-acp)). Each session has
//! one internal connection to the server, where we use new request ids. Notifications that the server sends on a
//! subscription are forwarded to the agent with the id of the request that opened the subscription.
//!
//! Each request is answered. The messages are passed to the server as values of its types, so a message that the server cannot
//! read is refused here.

mod channel;

use std::{collections::HashMap, sync::Arc};

use acp_skills_wire::{INTERNAL_ERROR, INVALID_PARAMS, Id, Message, REQUEST_CANCELLED, build};
use parking_lot::Mutex;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    ClientRequest, GetExtensions, RequestId,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use skills_core::json::{MAX_VALUES, has_more_values_than};
use tokio::sync::{
    OwnedSemaphorePermit,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::channel::Channel;
use super::{
    MAX_SUBSCRIPTIONS,
    handler::Handler,
    responder::{self, AnyTransport, Responder},
};

/// The notification that cancels a request.
const CANCELLED: &str = "notifications/cancelled";

/// The member of a notification that names the request it belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The error of a request whose session has been closed.
const CLOSED: &str = "skills server for the session is closed";

/// The maximum size of an id, in bytes.
const MAX_ID_BYTES: usize = 1024;

/// The maximum size of a message that opens a subscription, in bytes. It is in memory for as long as the subscription is open.
const MAX_SUBSCRIPTION_BYTES: usize = 64 * 1024;

/// The internal connection of one session. It opens with the first request. No other lock except that of [`Pending`] is taken while
/// it is locked.
#[derive(Default)]
pub(super) struct Connection(Mutex<Option<Inner>>);

struct Inner {
    to_server: UnboundedSender<ClientJsonRpcMessage>,
    pending: Pending,
    last_id: i64,
    /// True if the agent has sent `initialize`. The server expects notifications only after that.
    is_initialized: bool,
    /// Ends the server when the connection is dropped. Otherwise, it would wait forever.
    _end: DropGuard,
}

/// The requests without an answer, by request id. No other lock is taken while the lock of the map is held.
type Pending = Arc<Mutex<HashMap<i64, PendingRequest>>>;

/// A request without an answer.
struct PendingRequest {
    replies: UnboundedSender<Reply>,
    /// The agent's id of the inner request.
    inner: Value,
    /// The id of the `mcp/message` request.
    outer: Id,
    is_subscription: bool,
}

/// A message for a request that waits.
enum Reply {
    /// A notification of the server.
    Notification(Value),
    /// The answer of the server.
    Answer(Value),
    /// The agent has cancelled the request, so the server sends no answer.
    Cancelled,
}

/// The reasons to refuse a message.
#[derive(Debug, thiserror::Error)]
enum Invalid {
    #[error("`params` of `mcp/message` cannot be read: {0}")]
    Unreadable(serde_json::Error),
    #[error("`mcp/message` contains too many values")]
    Values,
    #[error("`mcp/message` has no `method`")]
    NoMethod,
    #[error("`params` of an MCP message must be an object")]
    Params,
    #[error("`_meta` of an MCP message must be an object")]
    Meta,
    #[error("not an MCP message: {0}")]
    NotMcp(serde_json::Error),
    #[error("`serverId` and `requestId` must be strings of at most {MAX_ID_BYTES} bytes, or numbers")]
    Id,
    #[error("too many open subscriptions")]
    Subscriptions,
    #[error("`subscriptions/listen` exceeds {MAX_SUBSCRIPTION_BYTES} bytes")]
    Subscription,
}

/// Returns the answer to a request after the session of its server was closed.
pub(super) fn closed(request: &Id) -> Vec<u8> {
    build::error(request, INTERNAL_ERROR, CLOSED)
}

impl Connection {
    /// Returns the answer to an `mcp/message` request. `send` is called with the notifications before it. A subscription releases
    /// `permit` when it has been acknowledged.
    pub(super) async fn answer(
        &self,
        (handler, end): (&Handler, &CancellationToken),
        (id, line): (&Id, &[u8]),
        permit: &mut Option<OwnedSemaphorePermit>,
        send: &mut (dyn FnMut(Vec<u8>) + Send),
    ) -> Vec<u8> {
        let started = outer(line).and_then(|mut message| {
            let request = inner::<ClientRequest>(&mut message)?;
            let is_subscription = matches!(request, ClientRequest::SubscriptionsListenRequest(_));
            if is_subscription && line.len() > MAX_SUBSCRIPTION_BYTES {
                return Err(Invalid::Subscription);
            }
            let address = ReturnAddress::of(message)?;
            let replies = self.request(handler, end, id, &address, request)?;
            Ok((address, replies))
        });
        let (address, mut replies) = match started {
            Ok(started) => started,
            Err(error) => return build::error(id, INVALID_PARAMS, &error.to_string()),
        };
        loop {
            match replies.recv().await {
                Some(Reply::Notification(inner)) => {
                    *permit = None;
                    send(address.notification(inner));
                }
                Some(Reply::Answer(mut answer)) => {
                    // If the inner request fails, we send the error in the result of the outer one.
                    let outcome = match answer.get_mut("error") {
                        Some(error) => json!({ "error": error.take() }),
                        None => json!({ "result": answer["result"].take() }),
                    };
                    return build::result(id, &outcome);
                }
                Some(Reply::Cancelled) => return build::error(id, REQUEST_CANCELLED, "cancelled"),
                None => return closed(id),
            }
        }
    }

    /// Passes an `mcp/message` notification to the server, or cancels the request that it names. `permit` is released when the server
    /// has handled it, because the queue of the server has no limit of its own.
    pub(super) fn notify(&self, line: &[u8], permit: Option<OwnedSemaphorePermit>) {
        let notified = outer(line).and_then(|mut message| {
            if message["method"] == CANCELLED {
                let request = &message["params"]["requestId"];
                self.cancel_if(|pending| pending.inner == *request);
                return Ok(());
            }
            let mut notification = inner::<ClientNotification>(&mut message)?;
            notification.extensions_mut().insert(permit.map(Arc::new));
            if let Some(open) = self.0.lock().as_ref().filter(|open| open.is_initialized) {
                // This fails if the server has ended.
                let _ = open.to_server.send(ClientJsonRpcMessage::notification(notification));
            }
            Ok(())
        });
        if let Err(error) = notified {
            tracing::debug!("dropped a notification of the agent to the skills server: {error}");
        }
    }

    /// Cancels the `mcp/message` request with this id.
    pub(super) fn cancel(&self, request: &Id) {
        self.cancel_if(|pending| pending.outer == *request);
    }

    /// Cancels the latest request that is the right one.
    fn cancel_if(&self, is_right: impl Fn(&PendingRequest) -> bool) {
        let connection = self.0.lock();
        let Some(open) = connection.as_ref() else { return };
        let mut pending = open.pending.lock();
        let ids = pending.iter().filter(|(_, request)| is_right(request)).map(|(id, _)| *id);
        let Some((id, request)) = ids.max().and_then(|id| pending.remove_entry(&id)) else { return };
        drop(pending);
        let params = CancelledNotificationParam::new(Some(RequestId::Number(id)), None);
        let notification = ClientNotification::from(CancelledNotification::new(params));
        // Both fail if the server or the request has ended.
        let _ = open.to_server.send(ClientJsonRpcMessage::notification(notification));
        let _ = request.replies.send(Reply::Cancelled);
    }

    /// Sends a request to the server. Returns the receiver of the replies, which ends without an answer if the server ends.
    fn request(
        &self,
        handler: &Handler,
        end: &CancellationToken,
        outer: &Id,
        address: &ReturnAddress,
        request: ClientRequest,
    ) -> Result<UnboundedReceiver<Reply>, Invalid> {
        let mut connection = self.0.lock();
        // The server also ends if it refuses the agent's `initialize`. The agent may try again.
        let open = match &mut *connection {
            Some(open) if !open.to_server.is_closed() => open,
            ended => ended.insert(Inner::open(handler.clone(), end.child_token())),
        };
        let is_subscription = matches!(request, ClientRequest::SubscriptionsListenRequest(_));
        let mut pending = open.pending.lock();
        let subscriptions = pending.values().filter(|request| request.is_subscription);
        if is_subscription && subscriptions.count() >= MAX_SUBSCRIPTIONS {
            return Err(Invalid::Subscriptions);
        }
        open.is_initialized |= matches!(request, ClientRequest::InitializeRequest(_));
        open.last_id += 1;
        let inner = match &address.request {
            Value::Null => serde_json::from_str(&outer.to_json()).unwrap_or_default(),
            inner => inner.clone(),
        };
        let (replies, receiver) = unbounded_channel();
        pending
            .insert(open.last_id, PendingRequest { replies, inner, outer: outer.clone(), is_subscription });
        let request = ClientJsonRpcMessage::request(request, RequestId::Number(open.last_id));
        if open.to_server.send(request).is_err() {
            pending.remove(&open.last_id);
        }
        Ok(receiver)
    }
}

/// Reads the params of `mcp/message`.
fn outer(line: &[u8]) -> Result<Value, Invalid> {
    if has_more_values_than(line, MAX_VALUES) {
        return Err(Invalid::Values);
    }
    let params = Message::parse(line).and_then(|message| message.params);
    let params = params.map(|params| serde_json::from_slice(params.raw()));
    params.unwrap_or(Ok(Value::Null)).map_err(Invalid::Unreadable)
}

/// Returns the inner message. Its params are moved out of `message`.
fn inner<T: DeserializeOwned>(message: &mut Value) -> Result<T, Invalid> {
    let method = message["method"].as_str().ok_or(Invalid::NoMethod)?;
    let mut inner = json!({ "method": method });
    match message.get_mut("params").map(Value::take) {
        None | Some(Value::Null) => {}
        Some(Value::Object(params)) => {
            if params.get("_meta").is_some_and(|meta| !meta.is_object() && !meta.is_null()) {
                return Err(Invalid::Meta);
            }
            inner["params"] = params.into();
        }
        Some(_) => return Err(Invalid::Params),
    }
    serde_json::from_value(inner).map_err(Invalid::NotMcp)
}

/// The members of an `mcp/message` request that its notifications repeat.
struct ReturnAddress {
    server: Value,
    request: Value,
}

impl ReturnAddress {
    /// Keeps the two members of `message`. The rest of it is dropped, because a subscription can be open for as long as the session.
    fn of(mut message: Value) -> Result<Self, Invalid> {
        let address = Self { server: message["serverId"].take(), request: message["requestId"].take() };
        if is_id(&address.server) && is_id(&address.request) { Ok(address) } else { Err(Invalid::Id) }
    }

    /// Builds a notification for the agent, on the subscription that the request opened.
    fn notification(&self, mut message: Value) -> Vec<u8> {
        let mut params = message["params"].take();
        params["_meta"][SUBSCRIPTION] = self.request.clone();
        let params = json!({
            "serverId": self.server,
            "requestId": self.request,
            "method": message["method"],
            "params": params,
        });
        build::notification("mcp/message", &params)
    }
}

/// Returns true if a value can be an id, or if there is none.
fn is_id(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= MAX_ID_BYTES,
        other => other.is_number() || other.is_null(),
    }
}

impl Inner {
    fn open(handler: Handler, end: CancellationToken) -> Self {
        let guard = end.clone().drop_guard();
        let pending = Pending::default();
        let (to_server, messages) = unbounded_channel();
        let channel = Channel::new(messages, Arc::clone(&pending));
        tokio::spawn(async move {
            // If we can't start the server, the channel is dropped, and all requests are answered with an error.
            let _ = responder::serve(Responder::Session(handler), AnyTransport::new(channel), end).await;
        });
        Self { to_server, pending, last_id: 0, is_initialized: false, _end: guard }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{sync::Semaphore, time::timeout};

    use super::*;
    use crate::mcp::fixture::{REVISION, handler, skill};

    fn message(id: Option<u64>, method: &str, params: &Value) -> Vec<u8> {
        let params = json!({ "serverId": "x", "method": method, "params": params });
        let mut message = json!({ "jsonrpc": "2.0", "method": "mcp/message", "params": params });
        if let Some(id) = id {
            message["id"] = id.into();
        }
        message.to_string().into_bytes()
    }

    fn with_request_id(id: &Value) -> Vec<u8> {
        let mut line: Value = serde_json::from_slice(&message(Some(1), "tools/list", &json!({}))).unwrap();
        line["params"]["requestId"] = id.clone();
        line.to_string().into_bytes()
    }

    /// The server handles notifications in tasks of their own, so an agent that sends them faster has to wait for these tasks.
    #[tokio::test]
    async fn a_notification_has_its_permit_until_it_was_handled() {
        let connection = Connection::default();
        let handler = handler(skill("review"));
        let end = CancellationToken::new();
        let info = json!({ "name": "x", "version": "1" });
        let params = json!({ "protocolVersion": REVISION, "capabilities": {}, "clientInfo": info });
        let hello = message(Some(1), "initialize", &params);
        let id = Message::parse(&hello).and_then(|message| message.id()).unwrap();
        connection.answer((&handler, &end), (&id, &hello), &mut None, &mut |_| {}).await;
        let room = Arc::new(Semaphore::new(64));
        let notification = message(None, "notifications/initialized", &json!({}));
        while let Ok(permit) = Arc::clone(&room).try_acquire_owned() {
            connection.notify(&notification, Some(permit));
        }
        assert_eq!(room.available_permits(), 0, "the server had no time yet");
        timeout(Duration::from_mins(1), room.acquire_many(64)).await.unwrap().unwrap().forget();
    }

    #[tokio::test]
    async fn large_messages_are_refused() {
        let long = "x".repeat(MAX_ID_BYTES + 1);
        let junk = json!({ "notifications": {}, "_meta": { "junk": "x".repeat(MAX_SUBSCRIPTION_BYTES) } });
        let cases = [
            (message(Some(1), "tools/list", &json!({ "a": vec![1; MAX_VALUES] })), "too many values"),
            (message(Some(1), "subscriptions/listen", &junk), "exceeds 65536 bytes"),
            (with_request_id(&json!(long)), "must be strings of at most 1024 bytes, or numbers"),
            (with_request_id(&json!([1])), "must be strings of at most 1024 bytes, or numbers"),
        ];
        for (line, problem) in cases {
            let connection = Connection::default();
            let id = Message::parse(&line).and_then(|message| message.id()).unwrap();
            let context = (&handler(skill("review")), &CancellationToken::new());
            let answer = connection.answer(context, (&id, &line), &mut None, &mut |_| {}).await;
            let answer = String::from_utf8(answer).unwrap();
            assert!(answer.contains(problem), "{answer}");
        }
    }
}
