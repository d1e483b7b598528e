//! [`Unauthenticated`]: connections that have not shown a token yet.
//!
//! Any program on this machine can connect. Until its first request with the token of a session there is room for a few such
//! connections, and little time. When there are too many, the oldest is closed, because agents show their token at once.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};

use tokio::sync::Notify;

/// How many there may be at once. Agents open one or two connections a session, one after another.
pub(super) const MAX_UNAUTHENTICATED: usize = 32;
/// How long each has until its first authorised request.
pub(super) const AUTHENTICATION_TIME: Duration = Duration::from_secs(10);
/// How often people are told that some are turned away.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// The connections without a token. All clones are the same.
#[derive(Clone, Default)]
pub(super) struct Unauthenticated(Arc<Mutex<State>>);

/// Guarded by the only lock of this file; nothing waits while it is held.
#[derive(Default)]
struct State {
    /// In the order in which they came.
    waiting: VecDeque<Arc<Waiting>>,
    warned_at: Option<Instant>,
}

#[derive(Default)]
struct Waiting {
    authenticated: Notify,
    /// Others need the room.
    evicted: Notify,
}

/// One connection, from when it is accepted until it is closed.
pub(super) struct Admission {
    waiting: Arc<Waiting>,
    all: Unauthenticated,
}

impl Unauthenticated {
    /// Accepts another one.
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

    /// How many there are.
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
                "another program on this machine keeps connecting to the skills server without its token; it is \
                 turned away"
            );
        }
    }
}

impl Admission {
    /// It has shown the token of a session.
    pub(super) fn authenticated(&self) {
        if self.leave() {
            self.waiting.authenticated.notify_one();
        }
    }

    /// Returns when its time is over, or others need the room; never once it is authenticated.
    pub(super) async fn expires(&self) {
        tokio::select! {
            () = self.waiting.authenticated.notified() => std::future::pending().await,
            () = self.waiting.evicted.notified() => {}
            () = tokio::time::sleep(AUTHENTICATION_TIME) => {}
        }
    }

    /// It waits no more. Returns whether it did.
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
    async fn there_is_room_for_a_few() {
        let all = Unauthenticated::default();
        let known = all.admit();
        known.authenticated();
        known.authenticated();
        let admitted: Vec<_> = (0..MAX_UNAUTHENTICATED).map(|_| all.admit()).collect();
        let begun = tokio::time::Instant::now();
        // The one that was here first has to go, at once.
        let newest = all.admit();
        admitted[0].expires().await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert_eq!(all.count(), MAX_UNAUTHENTICATED);
        // The others have their time.
        newest.expires().await;
        assert_eq!(begun.elapsed(), AUTHENTICATION_TIME);
        // One that is closed makes room.
        drop(admitted);
        assert_eq!(all.count(), 1);
        let forever = tokio::time::timeout(Duration::from_hours(1), known.expires()).await;
        assert!(forever.is_err(), "who is known may stay");
    }
}
