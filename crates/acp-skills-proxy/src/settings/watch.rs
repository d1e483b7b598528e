//! Notices that skills have changed, and has them loaded again.
//!
//! | file | owns |
//! |---|---|
//! | `places` | which directories count, and what an event in one of them means |
//! | `eyes` | the watches of the operating system |
//! | `inbox` | changes until they have settled |
//!
//! One thread waits for changes, has the library look again, and brings the watches in line with what is there now.
//! What was not watched until now may have changed just before, so it is looked at once more: nothing falls in between.

mod eyes;
mod inbox;
mod places;

use std::{
    sync::{Arc, Weak},
    thread,
};

use self::eyes::Eyes;
pub(super) use self::{inbox::Inbox, places::Places};
use super::library::Remembering;
use crate::mcp::WhenReloaded;

/// Watches for as long as the library lives.
pub(super) fn start(library: Weak<Remembering>, inbox: Arc<Inbox>, changed: WhenReloaded) {
    let work = move || watch(&library, &inbox, &changed);
    if let Err(error) = thread::Builder::new().name("watch".to_owned()).spawn(work) {
        cannot_watch(&error);
    }
}

fn cannot_watch(why: &dyn std::error::Error) {
    tracing::warn!("cannot watch for changes of skills: {why}; `/skills reload` finds them");
}

fn watch(library: &Weak<Remembering>, inbox: &Arc<Inbox>, changed: &WhenReloaded) {
    let sink = Arc::clone(inbox);
    let watcher = match notify::recommended_watcher(move |event| sink.put(event)) {
        Ok(watcher) => watcher,
        Err(error) => return cannot_watch(&error),
    };
    let mut eyes = Eyes::new(Box::new(watcher));
    loop {
        let Some(here) = library.upgrade() else { return };
        let places = here.places();
        let mut changes = eyes.turn_to(&places);
        inbox.expect(places);
        if changes.is_empty() {
            // Whoever drops the library closes the inbox.
            drop(here);
            match inbox.settled() {
                Some(settled) => changes = settled,
                None => return,
            }
        } else {
            drop(here);
        }
        eyes.forget(&changes);
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
