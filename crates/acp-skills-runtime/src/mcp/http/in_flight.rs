//! [`Limited`]: the transport of a bridge, with a limit for the requests that are under way.
//!
//! The MCP server behind it begins each request as soon as it is received, so an agent that asks faster than answers are made
//! would have it begin any number of them. At the limit nothing more is received on this connection until one has ended; all
//! others go on.

use std::{collections::HashMap, sync::Arc};

use rmcp::{
    RoleServer,
    model::{
        ClientJsonRpcMessage, ClientNotification, GetExtensions, JsonRpcMessage, JsonRpcNotification,
        JsonRpcRequest, RequestId, ServerJsonRpcMessage,
    },
    transport::Transport,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many requests of one connection may be under way: models call a handful of tools at once.
pub(super) const MAX_IN_FLIGHT: usize = 64;

/// A request that is under way: until it was worked on, and until its answer is written or nobody wants it any more.
type Permit = Arc<OwnedSemaphorePermit>;

/// A transport with a limit for the requests that are under way.
pub(super) struct Limited<T> {
    inner: T,
    free: Arc<Semaphore>,
    /// What was received at the limit. Receiving may be given up and begun again at any time.
    held: Option<Box<ClientJsonRpcMessage>>,
    /// Those whose answer is awaited.
    unanswered: HashMap<RequestId, Permit>,
}

impl<T> Limited<T> {
    pub(super) fn new(inner: T) -> Self {
        let free = Arc::new(Semaphore::new(MAX_IN_FLIGHT));
        Self { inner, free, held: None, unanswered: HashMap::new() }
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
            self.held = Some(Box::new(self.inner.receive().await?));
        }
        let permit = match self.held.as_deref() {
            // Never closed.
            Some(JsonRpcMessage::Request(_)) => Arc::clone(&self.free).acquire_owned().await.ok(),
            _ => None,
        };
        let mut message = *self.held.take()?;
        match (&mut message, permit) {
            (JsonRpcMessage::Request(JsonRpcRequest { id, request, .. }), Some(permit)) => {
                let permit = Permit::new(permit);
                // These go where the request goes, and end with the work on it.
                request.extensions_mut().insert(Permit::clone(&permit));
                self.unanswered.insert(id.clone(), permit);
            }
            (
                JsonRpcMessage::Notification(JsonRpcNotification {
                    notification: ClientNotification::CancelledNotification(cancelled),
                    ..
                }),
                _,
            ) => {
                // It gets no answer.
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
