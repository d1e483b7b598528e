//! [`Unauthenticated`]: connections that have not sent a token yet.
//!
//! Any program on this machine can connect. Until a connection has sent a request with the token of a session, it
//! counts as unauthenticated. Only a few such connections are allowed, for a short time. If there are too many, the
//! oldest one is closed, because real agents send their token at once.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// The maximum number of unauthenticated connections. Agents open one or two connections per session, one after
/// another.
pub(super) const MAX_UNAUTHENTICATED: usize = 32;
/// The timeout for the first authorized request on a connection.
pub(super) const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(10);
/// The minimum time between two warnings about rejected connections.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// The unauthenticated connections. Cheap to clone; all clones share their state.
#[derive(Clone, Default)]
pub(super) struct Unauthenticated(Arc<Mutex<State>>);

/// The state behind the only lock of this file. No thread blocks while it is held.
#[derive(Default)]
struct State {
    /// The waiting connections, oldest first.
    waiting: VecDeque<Arc<Waiting>>,
    warned_at: Option<Instant>,
}

#[derive(Default)]
struct Waiting {
    authenticated: Notify,
    /// Notified if the connection has to make room for a newer one.
    evicted: Notify,
}

/// A connection, from its acceptance until it is closed.
pub(super) struct Admission {
    waiting: Arc<Waiting>,
    all: Unauthenticated,
}

impl Unauthenticated {
    /// Adds a connection. If there are too many, evicts the oldest one.
    pub(super) fn admit(&self) -> Admission {
        let waiting = Arc::<Waiting>::default();
        let mut state = self.state();
        state.waiting.push_back(Arc::clone(&waiting));
        if state.waiting.len() > MAX_UNAUTHENTICATED
            && let Some(oldest) = state.waiting.pop_front()
        {
            oldest.evicted.notify_one();
            state.warn();
        }
        drop(state);
        Admission { waiting, all: self.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Returns the number of unauthenticated connections.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.state().waiting.len()
    }
}

impl State {
    fn warn(&mut self) {
        if self.warned_at.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL) {
            self.warned_at = Some(Instant::now());
            tracing::warn!(
                "rejecting connections to the skills server: another program on this machine keeps connecting without \
                 the token"
            );
        }
    }
}

impl Admission {
    /// Records that the connection has sent the token of a session.
    pub(super) fn authenticated(&self) {
        if self.leave() {
            self.waiting.authenticated.notify_one();
        }
    }

    /// Returns when the connection should be closed, either because it timed out or because it was evicted. If the
    /// connection is authenticated, this never returns.
    pub(super) async fn expires(&self) {
        tokio::select! {
            () = self.waiting.authenticated.notified() => std::future::pending().await,
            () = self.waiting.evicted.notified() => {}
            () = tokio::time::sleep(AUTHENTICATION_TIMEOUT) => {}
        }
    }

    /// Removes the connection from the waiting ones. Returns true if it was waiting.
    fn leave(&self) -> bool {
        let mut state = self.all.state();
        let index = state.waiting.iter().position(|other| Arc::ptr_eq(other, &self.waiting));
        index.is_some_and(|index| state.waiting.remove(index).is_some())
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_oldest_connection_is_evicted() {
        let all = Unauthenticated::default();
        let known = all.admit();
        known.authenticated();
        known.authenticated();
        let admitted: Vec<_> = (0..MAX_UNAUTHENTICATED).map(|_| all.admit()).collect();
        let begun = tokio::time::Instant::now();
        // The oldest connection should be closed immediately.
        let newest = all.admit();
        admitted[0].expires().await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert_eq!(all.count(), MAX_UNAUTHENTICATED);
        // All other connections should stay open until the timeout.
        newest.expires().await;
        assert_eq!(begun.elapsed(), AUTHENTICATION_TIMEOUT);
        // If we close these connections, there should be room for new ones.
        drop(admitted);
        assert_eq!(all.count(), 1);
        let forever = tokio::time::timeout(Duration::from_hours(1), known.expires()).await;
        assert!(forever.is_err(), "an authenticated connection may stay");
    }
}
