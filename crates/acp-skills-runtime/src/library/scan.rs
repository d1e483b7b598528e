//! [`Scan`]: the result of a search below directories. All sessions share it, and it is updated after a change.

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use parking_lot::{Mutex, MutexGuard};
use skills_core::{
    SkillSet,
    discovery::{Changes, Discovery, DiscoveryCache},
};

/// The result of a search, which runs while the agent starts. The first caller waits for it.
#[derive(Clone)]
pub struct Scan {
    pub(super) discovery: Discovery,
    /// Guards the result. It is held while the disk is read, and taken after the `finder` of the snapshots.
    search: Arc<LazyLock<Mutex<Search>, FirstSearch>>,
    /// True if the result was requested.
    is_used: Arc<AtomicBool>,
}

type FirstSearch = Box<dyn FnOnce() -> Mutex<Search> + Send>;

/// The latest result of a search, and the state that makes the next search faster.
#[derive(Default)]
pub(super) struct Search {
    pub(super) skills: SkillSet,
    pub(super) visits: DiscoveryCache,
}

impl Search {
    /// Searches everything.
    fn run(discovery: &Discovery) -> Self {
        let mut search = Self::default();
        search.rescan(discovery, &Changes::default());
        search
    }

    /// Searches again in the changed directories. If the result is the same, the old set is kept.
    pub(super) fn rescan(&mut self, discovery: &Discovery, changes: &Changes) {
        let mut skills = SkillSet::builder();
        discovery.run_incremental(&mut self.visits, changes, &mut skills);
        let skills = skills.build();
        if !self.skills.is_alike(&skills) {
            self.skills = skills;
        }
    }
}

impl Scan {
    /// Creates a scan that starts when its result is first requested.
    pub fn later(discovery: Discovery) -> Self {
        let first = discovery.clone();
        let find: FirstSearch = Box::new(move || Mutex::new(Search::run(&first)));
        Self { discovery, search: Arc::new(LazyLock::new(find)), is_used: Arc::default() }
    }

    /// Creates a scan and starts it on another thread.
    pub fn start(discovery: Discovery) -> Self {
        let scan = Self::later(discovery);
        if !scan.discovery.roots.is_empty() {
            let ahead = scan.clone();
            // If we can't start the thread, the first caller will run the search instead.
            let _ = thread::Builder::new().name("discovery".to_owned()).spawn(move || {
                ahead.get();
            });
        }
        scan
    }

    /// Returns true if the result was requested.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    pub(super) fn search(&self) -> MutexGuard<'_, Search> {
        self.is_used.store(true, Ordering::Relaxed);
        self.search.lock()
    }

    pub(super) fn get(&self) -> SkillSet {
        self.search().skills.clone()
    }
}
