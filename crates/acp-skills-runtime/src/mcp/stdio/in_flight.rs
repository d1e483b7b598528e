//! [`Limited`]: the transport of a bridge, with a limit for requests in flight.
//!
//! The MCP server starts each request as soon as it is received. Without a limit, an agent that sends requests faster
//! than they are answered would make the server start an unlimited number of them. At the limit, this connection
//! receives nothing more until a request has ended. Other connections are not affected. Subscriptions don't end by themselves, so
//! they have a limit of their own, and further ones get an error.

use std::{collections::HashMap, sync::Arc};

use rmcp::{
    RoleServer,
    model::{
        ClientJsonRpcMessage, ClientNotification, ClientRequest, CustomRequest, GetExtensions,
        JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, RequestId, ServerJsonRpcMessage,
    },
    transport::Transport,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::DropGuard;

use crate::mcp::{MAX_SUBSCRIPTIONS, TOO_MANY_SUBSCRIPTIONS, connection_end::ConnectionEnd};

/// The maximum number of requests in flight on one connection. A model calls only a few tools at once.
pub(super) const MAX_IN_FLIGHT: usize = 64;

/// The permit for a request in flight. It is released when the request was handled, and the answer was either written
/// or cancelled.
type Permit = Arc<OwnedSemaphorePermit>;

/// A transport with a limit for requests in flight.
pub(super) struct Limited<T> {
    inner: T,
    free: Arc<Semaphore>,
    free_subscriptions: Arc<Semaphore>,
    /// A message that was received at the limit. It is kept here because `receive` can be cancelled and called again.
    held: Option<Box<ClientJsonRpcMessage>>,
    /// The requests that have no answer yet.
    unanswered: HashMap<RequestId, Permit>,
    /// An extension of each request. The connection has ended once the guard is dropped.
    end: ConnectionEnd,
    connection: Option<DropGuard>,
}

impl<T> Limited<T> {
    pub(super) fn new(inner: T) -> Self {
        let free = Arc::new(Semaphore::new(MAX_IN_FLIGHT));
        let free_subscriptions = Arc::new(Semaphore::new(MAX_SUBSCRIPTIONS));
        let (end, connection) = ConnectionEnd::new();
        let unanswered = HashMap::new();
        Self { inner, free, free_subscriptions, held: None, unanswered, end, connection: Some(connection) }
    }

    /// Returns the permit of a subscription. A request for one that exceeds the limit is replaced by another request, which gets an
    /// error.
    fn subscribe(&self, request: &mut ClientRequest) -> Option<OwnedSemaphorePermit> {
        if !matches!(request, ClientRequest::SubscriptionsListenRequest(_)) {
            return None;
        }
        let permit = Arc::clone(&self.free_subscriptions).try_acquire_owned().ok();
        if permit.is_none() {
            *request = CustomRequest::new(TOO_MANY_SUBSCRIPTIONS, None).into();
        }
        permit
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Limited<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let permit = answered.and_then(|id| self.unanswered.remove(id));
        let sends = self.inner.send(message);
        async move {
            let sent = sends.await;
            drop(permit);
            sent
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        if self.held.is_none() {
            let Some(message) = self.inner.receive().await else {
                self.connection = None;
                return None;
            };
            self.held = Some(Box::new(message));
        }
        let mut held = self.held.take();
        let subscription = match held.as_deref_mut() {
            Some(JsonRpcMessage::Request(request)) => self.subscribe(&mut request.request),
            _ => None,
        };
        self.held = held;
        let permit = match self.held.as_deref() {
            Some(JsonRpcMessage::Request(_)) if subscription.is_some() => subscription,
            // This should never fail, because the semaphore is never closed.
            Some(JsonRpcMessage::Request(_)) => Arc::clone(&self.free).acquire_owned().await.ok(),
            _ => None,
        };
        let mut message = *self.held.take()?;
        match (&mut message, permit) {
            (JsonRpcMessage::Request(JsonRpcRequest { id, request, .. }), Some(permit)) => {
                let permit = Permit::new(permit);
                // Put the permit into the extensions, so that it's dropped with the request after it was handled.
                request.extensions_mut().insert(Permit::clone(&permit));
                request.extensions_mut().insert(self.end.clone());
                self.unanswered.insert(id.clone(), permit);
            }
            (
                JsonRpcMessage::Notification(JsonRpcNotification {
                    notification: ClientNotification::CancelledNotification(cancelled),
                    ..
                }),
                _,
            ) => {
                // If a request is cancelled, we won't send an answer to it.
                if let Some(id) = &cancelled.params.request_id {
                    self.unanswered.remove(id);
                }
            }
            _ => {}
        }
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}
