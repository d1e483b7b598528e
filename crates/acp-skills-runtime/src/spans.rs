//! [`Spans`]: the `tracing` spans of sessions and turns, so that the log of one session can be followed.
//!
//! Spans have the level `DEBUG`. A tool call, a script and a fetch have spans of their own, inside the current turn. There are no
//! spans for single messages, because most of them are updates that must pass quickly.

use std::{collections::HashMap, sync::Arc};

use acp_skills_intercept::SessionKey;
use parking_lot::Mutex;
use tokio::task::{JoinHandle, spawn_blocking};
use tracing::{Span, debug_span, field::Empty};

/// The spans of all sessions. Cheap to clone; all clones share their state.
#[derive(Clone, Default)]
pub(crate) struct Spans {
    /// Guards the map. No other lock is taken while it is held.
    sessions: Arc<Mutex<HashMap<SessionKey, SessionSpans>>>,
}

struct SessionSpans {
    session: Span,
    turn: Option<Span>,
}

impl Spans {
    /// Creates the span of a session, unless it exists.
    pub(crate) fn open(&self, session: SessionKey) {
        self.sessions.lock().entry(session).or_insert_with(|| SessionSpans {
            session: debug_span!(parent: None, "session", key = session.0, id = Empty),
            turn: None,
        });
    }

    /// Adds the agent's id to the span of a session.
    pub(crate) fn set_id(&self, session: SessionKey, id: &str) {
        if let Some(spans) = self.sessions.lock().get(&session) {
            spans.session.record("id", id);
        }
    }

    /// Starts the span of a turn. `request` is the id of the client's request. If the session has a turn already, the new one
    /// replaces it.
    pub(crate) fn start_turn(&self, session: SessionKey, request: &str) {
        if let Some(spans) = self.sessions.lock().get_mut(&session) {
            let turn = debug_span!(parent: &spans.session, "turn", %request);
            tracing::debug!(parent: &turn, "turn started");
            spans.turn = Some(turn);
        }
    }

    /// Ends the span of the current turn.
    pub(crate) fn end_turn(&self, session: SessionKey) {
        if let Some(spans) = self.sessions.lock().get_mut(&session)
            && let Some(turn) = spans.turn.take()
        {
            tracing::debug!(parent: &turn, "turn ended");
        }
    }

    /// Removes the spans of a session.
    pub(crate) fn close(&self, session: SessionKey) {
        self.sessions.lock().remove(&session);
    }

    /// Returns the span for an event of a session: the span of the current turn, or the span of the session if there is
    /// no turn. If the session has none, returns a disabled span.
    pub(crate) fn current(&self, session: SessionKey) -> Span {
        match self.sessions.lock().get(&session) {
            Some(SessionSpans { turn: Some(turn), .. }) => turn.clone(),
            Some(SessionSpans { session, turn: None }) => session.clone(),
            None => Span::none(),
        }
    }
}

/// Runs `work`, which may block, on another thread, within the current span.
pub(crate) fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let span = Span::current();
    spawn_blocking(move || span.in_scope(work))
}
