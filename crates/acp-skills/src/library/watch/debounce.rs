//! [`Debounce`]: changes on their way, until they have settled.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use skills_core::discovery::Changes;

use super::coverage::Coverage;

/// Whoever saves does several things in a row; so long nothing more must have happened.
pub(super) const QUIET: Duration = Duration::from_millis(200);
/// Where something happens all the time, so long after the first.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// More paths than this are not kept: everything is looked at instead.
pub(super) const MAX_PATHS: usize = 4_096;

/// Where changes arrive, from a thread of the watcher's, and wait until they have settled.
#[derive(Default)]
pub(in crate::library) struct Debounce {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    coverage: Coverage,
    pending: Pending,
    /// There are coverage that nobody watches yet.
    recheck: bool,
    closed: bool,
}

/// What has changed, and when that has settled.
#[derive(Debug, Default)]
pub(super) struct Pending {
    changes: Changes,
    /// When the first and the last of them happened.
    times: Option<(Instant, Instant)>,
}

impl Pending {
    /// Adds a change that happened at `now`.
    pub(super) fn add(&mut self, changes: Changes, now: Instant) {
        if changes.is_empty() {
            return;
        }
        self.times = Some((self.times.map_or(now, |(first, _)| first), now));
        if !self.changes.everything {
            self.changes.extend(changes);
        }
        if self.changes.directories.len() + self.changes.trees.len() > MAX_PATHS {
            self.changes = Changes::everything();
        }
    }

    /// When all this will have settled, if nothing more happens.
    pub(super) fn due(&self) -> Option<Instant> {
        self.times.map(|(first, last)| (last + QUIET).min(first + PATIENCE))
    }

    /// Takes all of it when it has settled at `now`.
    pub(super) fn take_settled(&mut self, now: Instant) -> Option<Changes> {
        self.due().filter(|due| *due <= now)?;
        Some(std::mem::take(self).changes)
    }
}

impl Debounce {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what the operating system says.
    pub(super) fn put(&self, event: notify::Result<notify::Event>) {
        let mut state = self.state();
        let changes = match event {
            Ok(event) => state.coverage.changes(&event),
            Err(error) => {
                tracing::debug!(%error, "from the watcher");
                return;
            }
        };
        if !changes.is_empty() {
            state.pending.add(changes, Instant::now());
            self.changed.notify_one();
        }
    }

    /// Goes by these coverage from now on.
    pub(super) fn expect(&self, coverage: Coverage) {
        self.state().coverage = coverage;
    }

    /// Says that there are new coverage to watch.
    pub(in crate::library) fn recheck(&self) {
        self.state().recheck = true;
        self.changed.notify_one();
    }

    /// Nobody needs to know any more.
    pub(in crate::library) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_one();
    }

    /// Waits for changes that have settled, or, with none, for new coverage; `None` when nobody needs to know any more.
    pub(super) fn settled(&self) -> Option<Changes> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            let now = Instant::now();
            if let Some(changes) = state.pending.take_settled(now) {
                return Some(changes);
            }
            if std::mem::take(&mut state.recheck) {
                return Some(Changes::default());
            }
            state = match state.pending.due() {
                Some(due) => {
                    let waited = self.changed.wait_timeout(state, due.saturating_duration_since(now));
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str) -> Changes {
        Changes { directories: [name.into()].into(), ..Changes::default() }
    }

    #[test]
    fn changes_settle_when_it_is_quiet() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut pending = Pending::default();
        assert_eq!((pending.due(), pending.take_settled(at(0))), (None, None));
        pending.add(Changes::default(), at(0));
        assert_eq!(pending.due(), None);
        pending.add(change("a"), at(0));
        pending.add(change("b"), at(150));
        assert_eq!(pending.take_settled(at(349)), None);
        assert_eq!(pending.take_settled(at(350)).unwrap().directories.len(), 2);
        assert_eq!((pending.due(), pending.take_settled(at(9_000))), (None, None));
    }

    #[test]
    fn a_storm_settles_now_and_then_and_stays_small() {
        let start = Instant::now();
        let mut pending = Pending::default();
        let (mut reloads, mut most) = (Vec::new(), 0);
        // Something happens each millisecond, for ten seconds.
        for millis in 0..10_000 {
            let now = start + Duration::from_millis(millis);
            pending.add(change(&millis.to_string()), now);
            most = most.max(pending.changes.directories.len());
            reloads.extend(pending.take_settled(now).map(|_| millis));
        }
        assert_eq!(reloads, [2_000, 4_001, 6_002, 8_003]);
        assert!(most <= 2_001, "{most}");
        // More than can be kept in that time.
        for number in 0..100_000 {
            pending.add(change(&format!("x{number}")), start);
            assert!(pending.changes.directories.len() <= MAX_PATHS);
        }
        assert_eq!(pending.changes, Changes::everything());
    }
}
