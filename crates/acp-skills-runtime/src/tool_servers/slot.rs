//! [`Slot`]: the place of one running server. It is never started twice at the same time.

use std::sync::Arc;

use tokio::sync::Mutex;

use super::{ServerError, connection::Connection};

/// The number of times that a server may end by itself before only an activation starts it again.
const MAX_ENDS: u32 = 1;

/// The place of one running server.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Guards the connection. It is held while the server starts, so that other callers wait for it.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: Option<Arc<Connection>>,
    /// The number of times that the server has ended by itself since the last activation.
    ends: u32,
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
    /// Returns the running server. If there is none, starts it with `start`.
    pub(super) async fn get<F>(
        &self,
        usage: Use,
        start: impl FnOnce() -> F,
    ) -> Result<Arc<Connection>, ServerError>
    where
        F: Future<Output = Result<Connection, ServerError>>,
    {
        let mut state = self.state.lock().await;
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
        let connection = Arc::new(start().await?);
        state.running = Some(Arc::clone(&connection));
        Ok(connection)
    }
}
