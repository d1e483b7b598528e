//! [`Scan`]: what is found below directories, once for all who ask, and found again where something has changed.

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

/// What a scan finds. It runs while the agent starts; the first to ask waits for it.
#[derive(Clone)]
pub struct Scan {
    pub(super) discovery: Discovery,
    /// Guards the result of the scan, and is held while the disk is read. Taken after the `finder` of the snapshots.
    search: Arc<LazyLock<Mutex<Search>, FirstSearch>>,
    /// Somebody has asked for it.
    is_used: Arc<AtomicBool>,
}

type FirstSearch = Box<dyn FnOnce() -> Mutex<Search> + Send>;

/// What a search found last, and what it keeps for the next time.
#[derive(Default)]
pub(super) struct Search {
    pub(super) skills: SkillSet,
    pub(super) visits: DiscoveryCache,
}

impl Search {
    /// Searches everything.
    pub(super) fn run(discovery: &Discovery) -> Self {
        let mut search = Self::default();
        search.rescan(discovery, &Changes::default());
        search
    }

    /// Searches where something has changed. When the result is the same, so is the set.
    pub(super) fn rescan(&mut self, discovery: &Discovery, changes: &Changes) {
        let mut skills = SkillSet::builder();
        discovery.run_incremental(&mut self.visits, changes, &mut skills);
        let skills = skills.build();
        if !is_alike(&self.skills, &skills) {
            self.skills = skills;
        }
    }
}

impl Scan {
    /// One that nobody may ever need.
    pub fn later(discovery: Discovery) -> Self {
        let first = discovery.clone();
        let find: FirstSearch = Box::new(move || Mutex::new(Search::run(&first)));
        Self { discovery, search: Arc::new(LazyLock::new(find)), is_used: Arc::default() }
    }

    /// Creates a scan and starts it on a thread of its own.
    pub fn start(discovery: Discovery) -> Self {
        let scan = Self::later(discovery);
        if !scan.discovery.roots.is_empty() {
            let ahead = scan.clone();
            // Without the thread, whoever asks first does the work.
            drop(thread::Builder::new().name("discovery".to_owned()).spawn(move || drop(ahead.get())));
        }
        scan
    }

    /// Whether anybody has needed it.
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

/// Whether nobody can tell two sets apart: they have the same skills, and the same diagnostics.
pub(super) fn is_alike(old: &SkillSet, new: &SkillSet) -> bool {
    let pairs = || old.entries().iter().zip(new.entries());
    old.ptr_eq(new)
        || old.len() == new.len()
            && pairs().all(|(a, b)| {
                a.diagnostics == b.diagnostics
                    && (Arc::ptr_eq(&a.skill, &b.skill) || a.skill.is_same_as(&b.skill))
            })
            && old.skipped() == new.skipped()
            && old.unapproved() == new.unapproved()
            && old.shadowed() == new.shadowed()
}
