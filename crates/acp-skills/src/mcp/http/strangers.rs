//! [`Strangers`]: connections that have not shown a token yet.
//!
//! Any program on this machine can connect. Until its first request with the token of a session it is a stranger: there is
//! room for a few of them, and little time. When there are too many, the one that has been here longest has to go, because
//! agents show their token at once.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use crate::lock::lock;

/// How many strangers there may be at once. Agents open one or two connections a session, one after another.
pub(super) const MAX_STRANGERS: usize = 32;
/// How long a stranger has until its first authorised request.
pub(super) const INTRODUCTION_TIME: Duration = Duration::from_secs(10);
/// How often people are told that strangers are turned away.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// Those that are here. All clones are the same.
#[derive(Clone, Default)]
pub(super) struct Strangers(Arc<Mutex<State>>);

/// Guarded by the only lock of this file; nothing waits while it is held.
#[derive(Default)]
struct State {
    /// In the order in which they came.
    waiting: VecDeque<Arc<Stranger>>,
    warned_at: Option<Instant>,
}

#[derive(Default)]
struct Stranger {
    introduced: Notify,
    /// Somebody else needs the room.
    dismissed: Notify,
}

/// One connection; a stranger until it is introduced.
pub(super) struct Visitor {
    stranger: Arc<Stranger>,
    strangers: Strangers,
}

impl Strangers {
    /// Lets another one in.
    pub(super) fn admit(&self) -> Visitor {
        let stranger = Arc::<Stranger>::default();
        let mut state = self.state();
        state.waiting.push_back(Arc::clone(&stranger));
        if state.waiting.len() > MAX_STRANGERS
            && let Some(oldest) = state.waiting.pop_front()
        {
            oldest.dismissed.notify_one();
            state.warn();
        }
        drop(state);
        Visitor { stranger, strangers: self.clone() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
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

impl Visitor {
    /// It has shown the token of a session.
    pub(super) fn introduce(&self) {
        if self.leave() {
            self.stranger.introduced.notify_one();
        }
    }

    /// Returns when a stranger has had its time, or others need the room; never for one that was introduced.
    pub(super) async fn overstays(&self) {
        tokio::select! {
            () = self.stranger.introduced.notified() => std::future::pending().await,
            () = self.stranger.dismissed.notified() => {}
            () = tokio::time::sleep(INTRODUCTION_TIME) => {}
        }
    }

    /// It is no stranger any more. Returns whether it was one.
    fn leave(&self) -> bool {
        let mut state = self.strangers.state();
        let index = state.waiting.iter().position(|other| Arc::ptr_eq(other, &self.stranger));
        index.is_some_and(|index| state.waiting.remove(index).is_some())
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn there_is_room_for_a_few() {
        let strangers = Strangers::default();
        let known = strangers.admit();
        known.introduce();
        known.introduce();
        let visitors: Vec<_> = (0..MAX_STRANGERS).map(|_| strangers.admit()).collect();
        let begun = tokio::time::Instant::now();
        // The one that was here first has to go, at once.
        let newest = strangers.admit();
        visitors[0].overstays().await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert_eq!(strangers.count(), MAX_STRANGERS);
        // The others have their time.
        newest.overstays().await;
        assert_eq!(begun.elapsed(), INTRODUCTION_TIME);
        // Whoever leaves makes room.
        drop(visitors);
        assert_eq!(strangers.count(), 1);
        let forever = tokio::time::timeout(Duration::from_hours(1), known.overstays()).await;
        assert!(forever.is_err(), "who is known may stay");
    }
}
