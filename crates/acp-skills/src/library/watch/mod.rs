//! Notices that skills have changed, and has them loaded again.
//!
//! | file | owns |
//! |---|---|
//! | `coverage` | which directories count, and what an event in one of them means |
//! | `watcher` | the watches of the operating system |
//! | `debounce` | changes until they have settled |
//!
//! One thread waits for changes, has the library look again, and brings the watches in line with what is there now.
//! What was not watched until now may have changed just before, so it is looked at once more: nothing falls in between.

mod coverage;
mod debounce;
mod watcher;

use std::{
    sync::{Arc, Weak},
    thread,
};

use self::watcher::Watches;
pub(super) use self::{coverage::Coverage, debounce::Debounce};
use super::{WhenReloaded, snapshots::Snapshots};

/// Watches for as long as the library lives.
pub(super) fn start(library: Weak<Snapshots>, debounce: Arc<Debounce>, changed: WhenReloaded) {
    let work = move || watch(&library, &debounce, &changed);
    if let Err(error) = thread::Builder::new().name("watch".to_owned()).spawn(work) {
        cannot_watch(&error);
    }
}

fn cannot_watch(why: &dyn std::error::Error) {
    tracing::warn!("cannot watch for changes of skills: {why}; `/skills reload` finds them");
}

fn watch(library: &Weak<Snapshots>, debounce: &Arc<Debounce>, changed: &WhenReloaded) {
    let sink = Arc::clone(debounce);
    let watcher = match notify::recommended_watcher(move |event| sink.put(event)) {
        Ok(watcher) => watcher,
        Err(error) => return cannot_watch(&error),
    };
    let mut watches = Watches::new(Box::new(watcher));
    loop {
        let Some(here) = library.upgrade() else { return };
        let coverage = here.coverage();
        let mut changes = watches.update(&coverage);
        debounce.expect(coverage);
        if changes.is_empty() {
            // Whoever drops the library closes the debounce.
            drop(here);
            match debounce.settled() {
                Some(settled) => changes = settled,
                None => return,
            }
        } else {
            drop(here);
        }
        watches.forget(&changes);
        let Some(here) = library.upgrade() else { return };
        if let Some(reloaded) = here.look_again(&changes) {
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
