//! Accepting connections: the loop that both listeners share, with limits for connections that have not sent a token yet.

use std::{io, time::Duration};

use super::{
    Servers,
    unauthenticated::{Admission, Unauthenticated},
};

/// The delay after a connection could not be accepted.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// A listener for connections.
pub(super) trait Accept: Send + 'static {
    /// A connection.
    type Stream: Send + 'static;

    /// Waits for the next connection.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// Accepts connections and serves each of them in its own task, until the last clone of `servers` is dropped or the returned
/// future is dropped. Must run within a tokio runtime.
pub(super) fn run<L, F>(
    mut listener: L,
    servers: &Servers,
    serve: fn(L::Stream, Admission, Servers) -> F,
) -> impl Future<Output = ()> + Send + use<L, F>
where
    L: Accept,
    F: Future<Output = ()> + Send + 'static,
{
    let end = servers.end();
    let servers = servers.downgrade();
    let unauthenticated = Unauthenticated::default();
    async move {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = end.cancelled() => return,
            };
            match accepted {
                Ok(stream) => {
                    let admission = tokio::select! {
                        admission = unauthenticated.admit() => admission,
                        () = end.cancelled() => return,
                    };
                    let Some(servers) = servers.upgrade() else { return };
                    tokio::spawn(serve(stream, admission, Servers(servers)));
                }
                Err(error) => {
                    // We get here if there are no file descriptors left, so wait for other connections to be closed.
                    tracing::warn!(%error, "cannot accept MCP connection");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }
}
