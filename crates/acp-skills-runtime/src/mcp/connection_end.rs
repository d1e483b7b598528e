//! [`ConnectionEnd`]: notices that the connection of a call has ended, so that the call doesn't have to start any more.

use std::future::pending;

use hyper::http::request::Parts;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The end of the connection that a request came from. It is one of the extensions of the request.
#[derive(Debug, Clone, Default)]
pub(super) struct ConnectionEnd(Option<CancellationToken>);

impl ConnectionEnd {
    /// Creates the value for one request. The connection has ended when the guard is dropped.
    pub(super) fn new() -> (Self, DropGuard) {
        let token = CancellationToken::new();
        (Self(Some(token.clone())), token.drop_guard())
    }

    /// Returns the end of the connection of a request with these extensions. Over HTTP, they contain those of the HTTP request.
    pub(super) fn of(extensions: &rmcp::model::Extensions) -> Self {
        let over_http = || extensions.get::<Parts>()?.extensions.get::<Self>();
        extensions.get::<Self>().or_else(over_http).cloned().unwrap_or_default()
    }

    /// Waits for the end of the connection. Never returns if it can't be noticed.
    pub(super) async fn wait(self) {
        match self.0 {
            Some(token) => token.cancelled().await,
            None => pending().await,
        }
    }
}
