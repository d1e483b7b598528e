//! Notices that skills on disk have changed, and reloads them.
//!
//! | file | owns |
//! |---|---|
//! | `platform` | the capabilities of watches on each operating system |
//! | `coverage` | the directories of interest, and the meaning of events in them |
//! | `watcher` | the watches of the operating system |
//! | `debounce` | collecting changes until they have settled |
//!
//! A thread waits for changes, starts a new search, and updates the watches. If a directory changes just before we
//! start to watch it, there is no event. To avoid missing this change, each newly watched directory is searched
//! again, and each new file with decisions of the user is read again.

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
use skills_core::exec::probe_threads;

use self::{
    platform::{Platform, max_watches},
    watcher::Watches,
};
use super::{Reloaded, WhenReloaded};

pub(super) use self::{coverage::Coverage, debounce::Debounce};

/// The time after which we try again if no watch could be added.
const RETRY: Duration = Duration::from_mins(1);

/// The number of threads that should be available for the watcher. Only one is used, but the proxy also starts other
/// threads at the same time.
const SPARE_THREADS: usize = 4;

/// Skills on disk that can be searched again.
pub(super) trait Watched: Send + Sync {
    /// Returns all directories and files that have to be watched so that no change is missed.
    fn coverage(&self) -> Coverage;

    /// Searches again in the changed directories. Returns `None` if there are no changes to skills.
    fn rescan(&self, changes: &Changes) -> Option<Reloaded>;
}

/// Watches the skills on another thread as long as the library lives.
pub(super) fn start(library: Weak<impl Watched + 'static>, debounce: Arc<Debounce>, changed: WhenReloaded) {
    let work = move || {
        let sink = Arc::clone(&debounce);
        // Make sure that we can start threads. If `notify` can't start one, it doesn't return an error, but panics
        // later when we use it.
        if let Err(error) = probe_threads(SPARE_THREADS) {
            return cannot_watch(&error);
        }
        match notify::recommended_watcher(move |event| sink.add_event(event)) {
            Ok(watcher) => watch(&library, Box::new(watcher), Platform::HERE, &debounce, &changed),
            Err(error) => cannot_watch(&error),
        }
    };
    if let Err(error) = thread::Builder::new().name("watch".to_owned()).spawn(work) {
        cannot_watch(&error);
    }
}

fn cannot_watch(why: &dyn std::error::Error) {
    tracing::warn!("cannot watch skills for changes: {why}; use `/skills reload` after a change");
}

fn watch(
    library: &Weak<impl Watched>,
    watcher: Box<dyn Watcher>,
    platform: Platform,
    debounce: &Debounce,
    changed: &WhenReloaded,
) {
    let mut watches = Watches::new(watcher, platform, max_watches());
    let next_full_search = || platform.search_all_after.map(|time| Instant::now() + time);
    let mut search_all_at = next_full_search();
    loop {
        let Some(here) = library.upgrade() else { return };
        let mut coverage = here.coverage();
        if !platform.sees_own_directory {
            coverage.add_parents(platform.one_level);
        }
        let mut changes = watches.update(&coverage);
        changes.extend(debounce.set_coverage(coverage));
        // Make sure not to hold the library while we wait, so that it can be dropped. This will close the debounce
        // and end the loop.
        drop(here);
        // Changes at this point come from new watches, so we just need to search these directories. If we also
        // removed the watches here, they would be added back and the loop would never end.
        if changes.is_empty() {
            let retry = watches.are_lost().then(|| Instant::now() + RETRY);
            match debounce.settled(search_all_at.or(retry)) {
                Some(settled) => changes = settled,
                None => return,
            }
            if changes.is_empty() {
                // Go back to the start to watch new directories.
                continue;
            }
            if changes.everything {
                search_all_at = next_full_search();
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
