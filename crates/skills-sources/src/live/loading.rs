//! Loads the approved versions of several sources from the store at the same time, because all of their files are hashed.

use std::{
    num::NonZero,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use skills_core::SkillSet;

use super::{
    super::{
        load::{self, Wanted},
        lockfile::Pinned,
        store::Store,
    },
    Sources,
};

/// The maximum number of threads.
const MAX_THREADS: usize = 8;

impl Sources {
    /// Loads the approved version of a source. Returns `None` if it has to be fetched first. With `partly`, skills that stay at another
    /// version can be missing.
    pub(super) fn load(
        &self,
        number: usize,
        pinned: &Pinned,
        store: &Store,
        partly: bool,
    ) -> Option<SkillSet> {
        let spec = &self.0.specs[number];
        let wanted =
            Wanted { filters: &spec.filters, max_skills: self.0.options.max_skills, nested: spec.nested };
        load::load(&spec.address, pinned, store, &wanted, partly)
    }

    /// Loads the approved versions of sources, which are given by their index. Sources that have to be fetched first are left out.
    pub(super) fn load_all(&self, pinned: &[(usize, Pinned)]) -> Vec<(usize, SkillSet)> {
        let Some(store) = &self.0.store else { return Vec::new() };
        let next = AtomicUsize::new(0);
        let work = || {
            let mut loaded = Vec::new();
            while let Some((number, pinned)) = pinned.get(next.fetch_add(1, Ordering::Relaxed)) {
                loaded.extend(self.load(*number, pinned, store, false).map(|skills| (*number, skills)));
            }
            loaded
        };
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let helpers = cores.min(pinned.len()).min(MAX_THREADS).saturating_sub(1);
        thread::scope(|scope| {
            // If a thread can't be started, the others load its share.
            let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
            let helping: Vec<_> = (0..helpers).filter_map(start).collect();
            let mut loaded = work();
            loaded.extend(helping.into_iter().filter_map(|helper| helper.join().ok()).flatten());
            loaded
        })
    }
}
