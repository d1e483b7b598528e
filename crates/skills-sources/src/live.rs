//! [`Sources`]: the skills of all sources of a configuration, while sessions use them.
//!
//! What was approved and is on this disk is served at once. What is not here is fetched in the background, each source by
//! a thread of its own, and joins when it has come. No source holds anybody up, and none is more than a warning.

mod fetch;

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use parking_lot::{Mutex, MutexGuard};

use skills_core::{
    Diagnostic, SkillSet,
    discovery::Filter,
    exec::ProcessObserver,
    set::{SOURCE_FETCHING, Skipped},
};

use super::{
    SourceError,
    address::{Address, Place},
    load::{self, Wanted},
    lockfile::{LockError, LockFile, Pinned},
    prune::InUse,
    store::Store,
};

/// A source of a configuration.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Where it is.
    pub address: Address,
    /// Its skills have to pass all of these.
    pub filters: Vec<Filter>,
    /// Where it is written what was approved.
    pub lock: PathBuf,
}

/// How sources are served.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where they are kept; `None` where there is no such place.
    pub cache: Option<PathBuf>,
    /// How many skills of each.
    pub max_skills: usize,
    /// Fetches nothing of which nothing was approved.
    pub locked: bool,
    /// Where git registers.
    pub observer: Option<Arc<dyn ProcessObserver>>,
}

/// Called when there are other skills than before.
pub type Notify = Arc<dyn Fn() + Send + Sync>;

/// The skills of sources. All clones are the same; the default has none.
#[derive(Clone)]
pub struct Sources(Arc<Inner>);

struct Inner {
    specs: Vec<Spec>,
    store: Option<Store>,
    options: Options,
    /// Guards what is served, and is held while the disk is read; never while something is fetched. Taken alone.
    state: Mutex<Option<State>>,
    /// Who is told of what comes. Taken alone, for a moment.
    notify: Mutex<Option<Notify>>,
}

struct State {
    statuses: Vec<Status>,
    /// What is kept from being removed, by source.
    in_use: HashMap<usize, (String, InUse)>,
    /// What was approved and could not be written.
    unsaved: HashMap<usize, Pinned>,
    skills: SkillSet,
}

#[derive(Clone)]
enum Status {
    Here(SkillSet),
    Absent,
    Fetching,
    Failed(Diagnostic),
}

impl Default for Sources {
    fn default() -> Self {
        Self::start(Vec::new(), Options::default())
    }
}

impl Sources {
    /// Begins to read what is on this disk.
    pub fn start(specs: Vec<Spec>, options: Options) -> Self {
        let store = options.cache.clone().map(Store::new);
        let inner = Inner { specs, store, options, state: Mutex::default(), notify: Mutex::default() };
        let sources = Self(Arc::new(inner));
        if !sources.is_empty() {
            let ahead = sources.clone();
            // Without the thread, whoever asks first does the work.
            drop(thread::Builder::new().name("sources".to_owned()).spawn(move || drop(ahead.state())));
        }
        sources
    }

    /// Returns true if there is no source.
    pub fn is_empty(&self) -> bool {
        self.0.specs.is_empty()
    }

    /// The skills that are here now, and what is the matter with the others.
    pub fn get(&self) -> SkillSet {
        if self.is_empty() {
            return SkillSet::default();
        }
        self.with_state(|state| state.skills.clone())
    }

    /// The files that say what was approved.
    pub fn lock_files(&self) -> BTreeSet<&Path> {
        self.0.specs.iter().map(|spec| spec.lock.as_path()).collect()
    }

    /// Reads everything again; fetches what is missing, where somebody waits for it.
    pub fn reload(&self) {
        if self.is_empty() {
            return;
        }
        let mut state = self.0.state.lock();
        *state = Some(self.read(state.take()));
        drop(state);
        let notify = self.0.notify.lock().clone();
        if let Some(notify) = notify {
            self.fetch_in_background(&notify);
        }
    }

    /// Fetches what is missing, in the background, now and after each reload, and tells `notify` when it is here.
    pub fn watch(&self, notify: Notify) {
        *self.0.notify.lock() = Some(Arc::clone(&notify));
        self.fetch_in_background(&notify);
    }

    /// Fetches what is missing, and waits for it. Returns why sources cannot be had, each with what to do about it.
    pub fn fetch(&self) -> Vec<String> {
        thread::scope(|scope| {
            let mut failed = Vec::new();
            let mut fetching = Vec::new();
            for number in self.take_missing() {
                match thread::Builder::new().spawn_scoped(scope, move || self.fetch_one(number)) {
                    Ok(thread) => fetching.push(thread),
                    // There can be no more threads.
                    Err(_) => failed.extend(self.fetch_one(number)),
                }
            }
            failed.extend(fetching.into_iter().filter_map(|thread| thread.join().ok().flatten()));
            failed
        })
    }

    fn fetch_in_background(&self, notify: &Notify) {
        for number in self.take_missing() {
            let address = &self.0.specs[number].address;
            // A warning, so that somebody who waits for skills sees why.
            tracing::warn!(
                "fetching {address}, which is not in the cache yet; its skills join when they are here"
            );
            let (sources, notify) = (self.clone(), Arc::clone(notify));
            let work = move || {
                if let Some(why) = sources.fetch_one(number) {
                    tracing::warn!("{why}");
                }
                notify();
            };
            if let Err(error) = thread::Builder::new().name("fetch".to_owned()).spawn(work) {
                let error = SourceError::system(address, error);
                self.with_state(|state| self.failed(state, number, &error));
            }
        }
    }

    /// The sources that have to be fetched and that nobody fetches yet. From now on somebody does.
    fn take_missing(&self) -> Vec<usize> {
        if self.is_empty() {
            return Vec::new();
        }
        self.with_state(|state| {
            let is_missing = |status: &Status| matches!(status, Status::Absent | Status::Failed(_));
            let missing: Vec<_> =
                (0..state.statuses.len()).filter(|it| is_missing(&state.statuses[*it])).collect();
            for number in &missing {
                state.statuses[*number] = Status::Fetching;
            }
            self.assemble(state);
            missing
        })
    }

    /// Fetches a source, and serves what has come. Returns why it cannot be had.
    fn fetch_one(&self, number: usize) -> Option<String> {
        let store = self.0.store.as_ref().ok_or(SourceError::NoCache);
        let fetched = store.and_then(|store| fetch::fetch(&self.0.specs[number], store, &self.0.options));
        let why = fetched.as_ref().err().map(|error| format!("{error}; {}", error.hint()));
        self.with_state(|state| match fetched {
            Ok(pinned) => {
                self.hold(&mut state.in_use, number, &pinned.0);
                let here = self.0.store.as_ref().and_then(|store| self.load(number, &pinned.0, store));
                state.statuses[number] = here.map_or(Status::Absent, Status::Here);
                if !pinned.1 {
                    state.unsaved.insert(number, pinned.0);
                }
                self.assemble(state);
            }
            Err(error) => self.failed(state, number, &error),
        });
        why
    }

    /// Keeps why a source is not there, for wherever its skills are listed.
    fn failed(&self, state: &mut State, number: usize, error: &SourceError) {
        state.statuses[number] =
            Status::Failed(Diagnostic::error("source-unavailable", error.to_string()).help(error.hint()));
        self.assemble(state);
    }

    fn state(&self) -> MutexGuard<'_, Option<State>> {
        let mut state = self.0.state.lock();
        if state.is_none() {
            *state = Some(self.read(None));
        }
        state
    }

    fn with_state<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let mut own = state.take().unwrap_or_else(|| self.read(None));
        let done = work(&mut own);
        *state = Some(own);
        done
    }

    fn load(&self, number: usize, pinned: &Pinned, store: &Store) -> Option<SkillSet> {
        let spec = &self.0.specs[number];
        let wanted = Wanted { filters: &spec.filters, max_skills: self.0.options.max_skills };
        load::load(&spec.address, pinned, store, &wanted)
    }

    /// Keeps what is served from being removed, for as long as it is.
    fn hold(&self, in_use: &mut HashMap<usize, (String, InUse)>, number: usize, pinned: &Pinned) {
        let (Place::Git(place), Pinned::Git(git)) = (self.0.specs[number].address.place(), pinned) else {
            return;
        };
        let Some(store) = &self.0.store else { return };
        if in_use.get(&number).is_some_and(|(commit, _)| *commit == git.commit) {
            return;
        }
        let root = store.root(place, &git.commit);
        if let Some(mark) = root.parent().and_then(InUse::of) {
            in_use.insert(number, (git.commit.clone(), mark));
        }
    }

    /// Reads locks and store. What is being fetched, or has failed, stays so unless it is here now.
    fn read(&self, before: Option<State>) -> State {
        let (before, unsaved, mut in_use) =
            before.map(|state| (state.statuses, state.unsaved, state.in_use)).unwrap_or_default();
        let mut locks: HashMap<&Path, (LockFile, Option<LockError>)> = HashMap::new();
        let mut statuses = Vec::new();
        for (number, spec) in self.0.specs.iter().enumerate() {
            let store = self.0.store.as_ref();
            let here = store.and_then(|store| {
                let (lock_file, _) = locks
                    .entry(&spec.lock)
                    .or_insert_with(|| LockFile::read_or_last(&spec.lock, store.dir()));
                let pinned = lock_file.get(spec.address.as_str()).or_else(|| unsaved.get(&number))?;
                // Before it is read: what is being used is not removed.
                self.hold(&mut in_use, number, pinned);
                self.load(number, pinned, store)
            });
            let old = before.get(number).filter(|old| !matches!(old, Status::Here(_))).cloned();
            statuses.push(here.map(Status::Here).or(old).unwrap_or(Status::Absent));
        }
        for error in locks.into_values().filter_map(|(_, error)| error) {
            tracing::warn!("{error}; the last good one is used; {}", error.hint());
        }
        let mut state = State { statuses, in_use, unsaved, skills: SkillSet::default() };
        self.assemble(&mut state);
        state
    }

    fn assemble(&self, state: &mut State) {
        let mut skills = SkillSet::builder();
        for (spec, status) in self.0.specs.iter().zip(&state.statuses) {
            let why = match status {
                Status::Here(set) => {
                    skills.extend(set);
                    continue;
                }
                Status::Absent => {
                    Diagnostic::warning("source-absent", format!("{} is not in the cache", spec.address))
                        .help(format!("`acp-skills-proxy update '{}'` fetches it", spec.address))
                }
                Status::Fetching => Diagnostic::warning(
                    SOURCE_FETCHING,
                    format!("{} is being fetched; its skills join when they are here", spec.address),
                ),
                Status::Failed(why) => why.clone(),
            };
            skills.skip(Skipped::new(spec.address.as_str(), vec![why]));
        }
        state.skills = skills.build();
    }
}
