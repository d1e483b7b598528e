//! Notices that skills have changed, and has them loaded again.
//!
//! | file | owns |
//! |---|---|
//! | `platform` | what watches can see, on each operating system |
//! | `coverage` | which directories count, and what an event in one of them means |
//! | `watcher` | the watches of the operating system |
//! | `debounce` | changes until they have settled |
//!
//! One thread waits for changes, has the library search again, and brings the watches in line with what is there now.
//! What was not watched until now may have changed just before, so it is searched once more: nothing falls in between.

mod coverage;
mod debounce;
mod platform;
mod watcher;

use std::{
    sync::{Arc, Weak},
    thread,
    time::{Duration, Instant},
};

use notify::Watcher;
use skills_core::discovery::Changes;

pub(super) use self::{coverage::Coverage, debounce::Debounce};
use self::{platform::Platform, watcher::Watches};
use super::{Reloaded, WhenReloaded};
use skills_core::exec::probe_threads;

/// When there is no watch at all, another is asked for after this time.
const RETRY: Duration = Duration::from_mins(1);

/// How many threads there must be room for: one is needed, and the proxy starts others in the same moments.
const SPARE_THREADS: usize = 4;

/// Skills on disk that can be searched again.
pub(super) trait Watched: Send + Sync {
    /// What has to be watched for [`rescan`](Self::rescan) to hear of every change.
    fn coverage(&self) -> Coverage;

    /// Searches where something has changed. Says what came of it, when that is anything.
    fn rescan(&self, changes: &Changes) -> Option<Reloaded>;
}

/// Watches for as long as the library lives.
pub(super) fn start(library: Weak<impl Watched + 'static>, debounce: Arc<Debounce>, changed: WhenReloaded) {
    let work = move || {
        let sink = Arc::clone(&debounce);
        // A watcher whose own thread cannot be started does not say so, and panics when it is used.
        if let Err(error) = probe_threads(SPARE_THREADS) {
            return cannot_watch(&error);
        }
        match notify::recommended_watcher(move |event| sink.put(event)) {
            Ok(watcher) => watch(&library, Box::new(watcher), Platform::HERE, &debounce, &changed),
            Err(error) => cannot_watch(&error),
        }
    };
    if let Err(error) = thread::Builder::new().name("watch".to_owned()).spawn(work) {
        cannot_watch(&error);
    }
}

fn cannot_watch(why: &dyn std::error::Error) {
    tracing::warn!("cannot watch for changes of skills: {why}; `/skills reload` finds them");
}

fn watch(
    library: &Weak<impl Watched>,
    watcher: Box<dyn Watcher>,
    platform: Platform,
    debounce: &Debounce,
    changed: &WhenReloaded,
) {
    let mut watches = Watches::new(watcher, platform);
    let trusted_from_now = || platform.trusted_for.map(|time| Instant::now() + time);
    let mut trusted_until = trusted_from_now();
    loop {
        let Some(here) = library.upgrade() else { return };
        let mut coverage = here.coverage();
        if !platform.sees_own_directory {
            coverage.add_parents(platform.one_level);
        }
        let mut changes = watches.update(&coverage);
        debounce.expect(coverage);
        // Whoever drops the library closes the debounce, so nobody may hold it while waiting.
        drop(here);
        // What is only searched because its watch is new has a good watch. To drop that would begin this again, for ever.
        if changes.is_empty() {
            let retry = watches.are_lost().then(|| Instant::now() + RETRY);
            match debounce.settled(trusted_until.or(retry)) {
                Some(settled) => changes = settled,
                None => return,
            }
            if changes.is_empty() {
                // There is more to watch.
                continue;
            }
            if changes.everything {
                trusted_until = trusted_from_now();
            }
            watches.forget(&changes);
        }
        let Some(here) = library.upgrade() else { return };
        if let Some(reloaded) = here.rescan(&changes) {
            drop(here);
            tracing::info!(
                added = reloaded.added,
                removed = reloaded.removed,
                changed = reloaded.changed,
                took = ?reloaded.took,
                "skills have changed"
            );
            changed(reloaded);
        }
    }
}

#[cfg(test)]
mod tests;
