//! [`ConnectionEnd`]: notices that the connection of a call has ended, so that the call doesn't have to start any more, or that its
//! session has ended, so that the call is cancelled.

use hyper::http::request::Parts;
use rmcp::{RoleServer, model::Extensions, service::RequestContext};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The end of the connection that a request came from, and of its session. It is one of the extensions of the request.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionEnd {
    /// Never cancelled if the end of the connection can't be noticed.
    connection: CancellationToken,
    /// Never cancelled if the server ends together with its session.
    session: CancellationToken,
}

impl ConnectionEnd {
    /// Creates the value for one request. The connection has ended when the guard is dropped.
    pub(super) fn new() -> (Self, DropGuard) {
        let end = Self::default();
        let guard = end.connection.clone().drop_guard();
        (end, guard)
    }

    /// Returns the value for a request of a session that ends when `session` is cancelled.
    pub(super) fn or_of(self, session: CancellationToken) -> Self {
        Self { session, ..self }
    }

    /// Returns the end of the connection of a request with these extensions. Over HTTP, they contain those of the HTTP request.
    pub(super) fn of(extensions: &Extensions) -> Self {
        let over_http = || extensions.get::<Parts>()?.extensions.get::<Self>();
        extensions.get::<Self>().or_else(over_http).cloned().unwrap_or_default()
    }

    /// Waits for the end of the connection. Never returns if it can't be noticed.
    pub(super) async fn wait(self) {
        self.connection.cancelled().await;
    }
}

/// Waits until a request is cancelled, by the client or because its session ends.
pub(super) async fn cancelled(context: &RequestContext<RoleServer>) {
    let end = ConnectionEnd::of(&context.extensions);
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = end.session.cancelled() => {}
    }
}
