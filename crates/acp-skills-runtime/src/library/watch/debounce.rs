//! [`Debounce`]: collects changes until they have settled.

use std::{
    mem,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use skills_core::discovery::Changes;

use super::coverage::Coverage;

/// Changes are considered settled if there were no others for this time. For example, saving a file may result in
/// several changes.
pub(super) const QUIET: Duration = Duration::from_millis(200);
/// Changes are always considered settled after this time, even if there are more.
pub(super) const MAX_DELAY: Duration = Duration::from_secs(2);
/// The maximum number of changed paths that are kept. If there are more, everything is searched.
pub(super) const MAX_PATHS: usize = 4_096;

/// A queue of changes. The thread of the watcher adds them, and [`settled`](Self::settled) waits until they have
/// settled.
#[derive(Default)]
pub(in crate::library) struct Debounce {
    /// Guards the queue. No other lock is taken while it is held.
    state: Mutex<State>,
    /// Notified when [`settled`](Self::settled) has to look at the state again.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    coverage: Coverage,
    pending: Pending,
    /// True if there are directories without a watch.
    recheck: bool,
    is_closed: bool,
}

/// Changes that have not settled yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    changes: Changes,
    /// The times of the first and the last change.
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

    /// Returns the time at which the changes settle if there are no new ones.
    pub(super) fn due(&self) -> Option<Instant> {
        self.times.map(|(first, last)| (last + QUIET).min(first + MAX_DELAY))
    }

    /// Takes all changes if they have settled at `now`.
    pub(super) fn take_settled(&mut self, now: Instant) -> Option<Changes> {
        self.due().filter(|due| *due <= now)?;
        Some(mem::take(self).changes)
    }
}

impl Debounce {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Adds an event of the operating system.
    pub(super) fn add_event(&self, event: notify::Result<notify::Event>) {
        let mut state = self.state();
        let changes = match event {
            Ok(event) => state.coverage.changes(&event),
            Err(error) => {
                // Anything could have changed, so search all directories.
                tracing::debug!(%error, "watcher failed; searching all directories");
                Changes::everything()
            }
        };
        if !changes.is_empty() {
            state.pending.add(changes, Instant::now());
            self.changed.notify_one();
        }
    }

    /// Sets the coverage by which new events are judged. Returns the files with decisions that it adds, because earlier events about
    /// them were ignored.
    pub(super) fn set_coverage(&self, coverage: Coverage) -> Changes {
        let mut state = self.state();
        let before = mem::replace(&mut state.coverage, coverage);
        state.coverage.new_decisions(&before)
    }

    /// Records that there are new directories to watch.
    pub(in crate::library) fn recheck(&self) {
        self.state().recheck = true;
        self.changed.notify_one();
    }

    /// Ends the watch.
    pub(in crate::library) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits for changes that have settled. Returns an empty value if there are new directories to watch, everything
    /// after `search_all_at`, and `None` after [`close`](Self::close).
    pub(super) fn settled(&self, search_all_at: Option<Instant>) -> Option<Changes> {
        let mut state = self.state();
        loop {
            if state.is_closed {
                return None;
            }
            let now = Instant::now();
            if let Some(changes) = state.pending.take_settled(now) {
                return Some(changes);
            }
            if search_all_at.is_some_and(|end| end <= now) {
                state.pending = Pending::default();
                return Some(Changes::everything());
            }
            if mem::take(&mut state.recheck) {
                return Some(Changes::default());
            }
            let next = state.pending.due().into_iter().chain(search_all_at).min();
            match next {
                Some(next) => {
                    self.changed.wait_until(&mut state, next);
                }
                None => self.changed.wait(&mut state),
            }
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
    fn changes_settle_after_a_quiet_time() {
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
    fn continuous_changes_settle_regularly_and_stay_bounded() {
        let start = Instant::now();
        let mut pending = Pending::default();
        let mut reloads = Vec::new();
        let mut most = 0;
        // Add a change every millisecond for ten seconds.
        for millis in 0..10_000 {
            let now = start + Duration::from_millis(millis);
            pending.add(change(&millis.to_string()), now);
            most = most.max(pending.changes.directories.len());
            reloads.extend(pending.take_settled(now).map(|_| millis));
        }
        assert_eq!(reloads, [2_000, 4_001, 6_002, 8_003]);
        assert!(most <= 2_001, "{most}");
        // Add more changes than we're allowed to keep.
        for number in 0..100_000 {
            pending.add(change(&format!("x{number}")), start);
            assert!(pending.changes.directories.len() <= MAX_PATHS);
        }
        assert_eq!(pending.changes, Changes::everything());
    }

    #[test]
    fn lost_events_change_everything() {
        let debounce = Debounce::default();
        let settled = || debounce.settled(None);
        debounce.add_event(Err(notify::Error::generic("no more events")));
        assert_eq!(settled(), Some(Changes::everything()));
        debounce.add_event(Ok(
            notify::Event::new(notify::EventKind::Other).set_flag(notify::event::Flag::Rescan)
        ));
        assert_eq!(settled(), Some(Changes::everything()));
        // At `search_all_at` we search all directories, so the pending changes are included.
        debounce.add_event(Err(notify::Error::generic("no more events")));
        assert_eq!(debounce.settled(Some(Instant::now())), Some(Changes::everything()));
        debounce.recheck();
        assert_eq!(settled(), Some(Changes::default()));
        debounce.close();
        assert_eq!(debounce.settled(Some(Instant::now())), None);
    }
}
