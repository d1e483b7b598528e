//! [`Slot`]: the place of one running server. It is never started twice at the same time.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::{ServerError, connection::Connection};

/// The number of times that a server may end by itself before only an activation starts it again.
const MAX_ENDS: u32 = 1;

/// The place of one running server.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Guards the connection. It is held while the server starts, so that other callers wait for it.
    state: Mutex<State>,
    /// The number of times that the server could not be started.
    failures: AtomicU64,
    /// Cancelled when the session is closed, which ends the server.
    end: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    running: Option<Arc<Connection>>,
    /// The number of times that the server has ended by itself since the last activation.
    ends: u32,
    /// The reason why the server could not be started last time.
    failure: Option<ServerError>,
}

/// The reason for using a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// The skill is activated.
    Activation,
    /// A tool is called.
    Call,
}

impl Slot {
    /// Ends the server, also while it is being started. Requests to the server fail.
    pub(super) fn close(&self) {
        self.end.cancel();
    }

    /// Returns the running server. If there is none, starts it with `start`, which receives the token that ends the server. Callers
    /// that have waited for a start that has failed get its error, so that their waiting times don't add up.
    pub(super) async fn get<F>(
        &self,
        usage: Use,
        start: impl FnOnce(CancellationToken) -> F,
    ) -> Result<Arc<Connection>, ServerError>
    where
        F: Future<Output = Result<Connection, ServerError>>,
    {
        let ended = self.end.cancelled();
        let getting = self.running(usage, start);
        tokio::select! {
            biased;
            () = ended => Err(ServerError::Ended),
            running = getting => running,
        }
    }

    async fn running<F>(
        &self,
        usage: Use,
        start: impl FnOnce(CancellationToken) -> F,
    ) -> Result<Arc<Connection>, ServerError>
    where
        F: Future<Output = Result<Connection, ServerError>>,
    {
        let failures = self.failures.load(Ordering::Relaxed);
        let mut state = self.state.lock().await;
        if failures != self.failures.load(Ordering::Relaxed)
            && let Some(failure) = &state.failure
        {
            return Err(failure.clone());
        }
        if let Some(running) = &state.running {
            if !running.has_ended() {
                return Ok(Arc::clone(running));
            }
            state.running = None;
            state.ends += 1;
        }
        match usage {
            Use::Activation => state.ends = 0,
            Use::Call if state.ends > MAX_ENDS => return Err(ServerError::EndedTwice),
            Use::Call => {}
        }
        let started = start(self.end.child_token()).await.inspect_err(|error| {
            self.failures.fetch_add(1, Ordering::Relaxed);
            state.failure = Some(error.clone());
        });
        let connection = Arc::new(started?);
        state.running = Some(Arc::clone(&connection));
        Ok(connection)
    }
}
