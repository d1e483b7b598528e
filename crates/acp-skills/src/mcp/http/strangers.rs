//! [`Strangers`]: connections that have not shown a token yet.
//!
//! Any program on this machine can connect. Until its first request with the token of a session it is a stranger: there is
//! room for a few of them, and little time.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;

/// How many strangers there may be at once. Agents open one or two connections a session, one after another.
pub(super) const MAX_STRANGERS: usize = 32;
/// How long a stranger has until its first authorised request.
pub(super) const INTRODUCTION_TIME: Duration = Duration::from_secs(10);
/// How often people are told that strangers are turned away.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// How many there are. All clones are the same.
#[derive(Clone, Default)]
pub(super) struct Strangers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    count: AtomicUsize,
    /// Guards when people were told last.
    told: Mutex<Option<Instant>>,
}

/// One connection; a stranger until it is introduced.
pub(super) struct Visitor {
    strangers: Strangers,
    is_known: std::sync::atomic::AtomicBool,
    introduced: Notify,
}

impl Strangers {
    /// Lets another one in; nothing when there are too many.
    pub(super) fn admit(&self) -> Option<Arc<Visitor>> {
        let room = |count| (count < MAX_STRANGERS).then_some(count + 1);
        if self.0.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, room).is_err() {
            self.warn();
            return None;
        }
        Some(Arc::new(Visitor { strangers: self.clone(), is_known: false.into(), introduced: Notify::new() }))
    }

    fn warn(&self) {
        let mut told = self.0.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL) {
            *told = Some(Instant::now());
            tracing::warn!(
                "another program on this machine keeps connecting to the skills server without its token; it is turned away"
            );
        }
    }

    fn leave(&self) {
        self.0.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Visitor {
    /// It has shown the token of a session.
    pub(super) fn introduce(&self) {
        if !self.is_known.swap(true, Ordering::AcqRel) {
            self.strangers.leave();
            self.introduced.notify_one();
        }
    }

    /// Returns when a stranger has had its time; never for one that was introduced.
    pub(super) async fn overstays(&self) {
        tokio::select! {
            () = self.introduced.notified() => std::future::pending().await,
            () = tokio::time::sleep(INTRODUCTION_TIME) => {}
        }
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        if !*self.is_known.get_mut() {
            self.strangers.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_a_few() {
        let strangers = Strangers::default();
        let mut visitors: Vec<_> = (0..MAX_STRANGERS).map(|_| strangers.admit().expect("room")).collect();
        assert!(strangers.admit().is_none());
        // Whoever is known, or leaves, makes room for one.
        visitors[0].introduce();
        visitors[0].introduce();
        let another = strangers.admit().expect("room");
        assert!(strangers.admit().is_none());
        drop(visitors.pop());
        drop(visitors.remove(0));
        assert!(strangers.admit().is_some());
        drop((another, visitors));
        assert_eq!(strangers.0.count.load(Ordering::Acquire), 0);
    }
}
