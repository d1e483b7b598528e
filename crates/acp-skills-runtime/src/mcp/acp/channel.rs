//! [`Channel`]: the transport between the internal connection of a session and the server.

use std::{convert::Infallible, future};

use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::Transport,
};
use serde_json::Value;
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Pending, Reply, SUBSCRIPTION};

/// A transport that gets messages from a channel, and passes the answers to the requests that wait for them. When it is dropped,
/// these requests get no answer any more.
pub(super) struct Channel {
    messages: UnboundedReceiver<ClientJsonRpcMessage>,
    pending: Pending,
}

impl Channel {
    pub(super) fn new(messages: UnboundedReceiver<ClientJsonRpcMessage>, pending: Pending) -> Self {
        Self { messages, pending }
    }

    /// Passes a message of the server to the request that it belongs to.
    fn pass(&self, message: Value) {
        let subscription = &message["params"]["_meta"][SUBSCRIPTION];
        let (replies, reply) = match (message["id"].as_i64(), subscription.as_i64()) {
            (Some(id), _) => {
                (self.pending.lock().remove(&id).map(|request| request.replies), Reply::Answer(message))
            }
            (None, Some(id)) => {
                let replies = self.pending.lock().get(&id).map(|request| request.replies.clone());
                (replies, Reply::Notification(message))
            }
            (None, None) => return,
        };
        if let Some(replies) = replies {
            // This can fail if the request is cancelled.
            let _ = replies.send(reply);
        }
    }
}

impl Transport<RoleServer> for Channel {
    type Error = Infallible;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        // The types of the server can always be serialized.
        if let Ok(message) = serde_json::to_value(message) {
            self.pass(message);
        }
        future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // After this, no request can be added that would never be answered.
        self.messages.close();
        self.pending.lock().clear();
    }
}
