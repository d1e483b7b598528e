//! Accepting connections: the loop that both listeners share, with limits for connections that have not sent a token yet.

use std::{io, time::Duration};

use tokio_util::sync::CancellationToken;

use super::unauthenticated::{Admission, Unauthenticated};

/// The delay after a connection could not be accepted.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// A listener for connections.
pub(crate) trait Accept: Send + 'static {
    /// A connection.
    type Stream: Send + 'static;

    /// Waits for the next connection.
    fn accept(&mut self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// Accepts connections and serves each of them in its own task, until `end` is cancelled, `server` returns `None`, or the returned
/// future is dropped. `server` returns the value that each call of `serve` gets. Must run within a tokio runtime.
pub(crate) fn run<L, S, F>(
    mut listener: L,
    end: CancellationToken,
    server: Box<dyn Fn() -> Option<S> + Send>,
    serve: fn(L::Stream, Admission, S) -> F,
) -> impl Future<Output = ()> + Send
where
    L: Accept,
    S: Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
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
                    let Some(server) = server() else { return };
                    tokio::spawn(serve(stream, admission, server));
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
