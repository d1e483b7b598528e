//! [`Sources`]: serves the skills of all sources of a configuration to sessions.
//!
//! Approved skills on the local disk are served immediately. Missing sources are fetched in the background, several at the same
//! time, and are served once they have arrived. A source never delays a session, and a failure is only a warning.

mod background;
mod checks;
mod fetch;
mod loading;

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use parking_lot::{Mutex, MutexGuard};
use skills_core::{Diagnostic, SkillSet, discovery::Filter, exec::ProcessObserver, order};

pub(crate) use self::checks::Checks;
use self::loading::Loaded;
use super::{
    SourceError,
    access::Credentials,
    address::{Address, Place},
    approved,
    lockfile::{LockError, LockFile, Pinned},
    policy::Policy,
    prune::InUse,
    store::Store,
};

/// A source in a configuration.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The address of the source.
    pub address: Address,
    /// Filters by name. A skill is served only if it passes all of them; an empty list passes every skill.
    pub filters: Vec<Filter>,
    /// The path of the lock file with the approved version. It need not exist.
    pub lock: PathBuf,
    /// True if a `SKILL.md` within the directory of another skill is a skill too.
    pub nested: bool,
    /// True if the user named the source explicitly, for example with a flag. Its first version is then approved, once. If false,
    /// a source that is not in the lock file waits until it is approved with an [`Updater`](crate::Updater).
    pub is_named: bool,
}

/// Options of [`Sources`].
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The cache directory. Without one, sources can't be fetched.
    pub cache: Option<PathBuf>,
    /// The maximum number of skills of each source.
    pub max_skills: usize,
    /// The maximum number of bytes to receive from a repository. The number of files and the length of their paths are limited in
    /// proportion. The default is 256 MiB.
    pub max_fetch_bytes: Option<u64>,
    /// If true, sources that are not in the lock file are not fetched. The default is false.
    pub locked: bool,
    /// If true, [`Sources::watch`] looks for new versions once a day, in the background. The default is false.
    pub check_updates: bool,
    /// The rules of an administrator about the skills of sources, if there are any. The caller has to leave out sources that are refused.
    pub policy: Option<Arc<Policy>>,
    /// The user's settings for the servers of sources. Without them, requests have the credentials of `.netrc` and `.npmrc`.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// The observer that is notified when git starts and exits, so that it can be stopped with the program.
    pub observer: Option<Arc<dyn ProcessObserver>>,
}

/// A callback for changed skills. It is called on the thread that fetched them.
pub type Notify = Arc<dyn Fn() + Send + Sync>;

/// The skills of all sources of a configuration. Clones share their state. The default has no sources.
#[derive(Clone)]
pub struct Sources(Arc<Inner>);

struct Inner {
    specs: Vec<Spec>,
    store: Option<Store>,
    options: Options,
    /// Guards the skills that are served. Held while the disk is read, never during a fetch, and never while we wait for another
    /// process that changes a lock file. `read` takes file locks while it holds this one: that of a lock file, then that of a place,
    /// then the mark of a version. Code that holds one of those never takes this one.
    state: Mutex<Option<State>>,
    /// The callback for fetched skills. Never held together with another lock.
    notify: Mutex<Option<Notify>>,
}

struct State {
    statuses: Vec<Status>,
    /// The skills that are available of sources that have to be fetched, by index of the source.
    partly: HashMap<usize, SkillSet>,
    /// Marks that protect the served versions from pruning, by index of the source. `None` if that is not possible.
    in_use: HashMap<usize, Option<InUse>>,
    /// Approved versions that could not be written to the lock file, by index of the source.
    unsaved: HashMap<usize, Pinned>,
    /// Sentences about new versions.
    notices: Vec<String>,
    skills: SkillSet,
}

#[derive(Clone)]
enum Status {
    Here(SkillSet),
    Absent,
    Fetching,
    /// Not approved.
    Unapproved,
    Failed(Diagnostic),
}

impl Default for Sources {
    fn default() -> Self {
        Self::start(Vec::new(), Options::default())
    }
}

impl Sources {
    /// Starts to read the store on a background thread.
    pub fn start(specs: Vec<Spec>, options: Options) -> Self {
        let store = options.store();
        let inner = Inner { specs, store, options, state: Mutex::default(), notify: Mutex::default() };
        let sources = Self(Arc::new(inner));
        if !sources.is_empty() {
            let ahead = sources.clone();
            // If we can't start a thread, the first caller of `get` will read the store.
            let _ = thread::Builder::new().name("sources".to_owned()).spawn(move || drop(ahead.state()));
        }
        sources
    }

    /// Returns true if there is no source.
    pub fn is_empty(&self) -> bool {
        self.0.specs.is_empty()
    }

    /// Returns the address of the source that the fetched file or directory at `path` belongs to.
    pub fn address_of(&self, path: &Path) -> Option<&Address> {
        let store = self.0.store.as_ref()?;
        self.0.specs.iter().map(|spec| &spec.address).find(|address| store.holds(address.place(), path))
    }

    /// Returns the skills that are available now, and diagnostics for sources and skills that are not. May read the disk.
    pub fn get(&self) -> SkillSet {
        if self.is_empty() {
            return SkillSet::default();
        }
        self.with_state(|state| state.skills.clone())
    }

    /// Returns the paths of the lock files.
    pub fn lock_files(&self) -> BTreeSet<&Path> {
        order::set(self.0.specs.iter().map(|spec| spec.lock.as_path()))
    }

    /// Reads lock files and store again. Fetches missing sources in the background if [`watch`](Self::watch) was called before.
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

    /// Fetches missing sources in the background, now and after each reload, and calls `notify` after each fetch.
    pub fn watch(&self, notify: Notify) {
        *self.0.notify.lock() = Some(Arc::clone(&notify));
        self.fetch_in_background(&notify);
        if self.0.options.check_updates && !self.is_empty() {
            self.check_in_background(&notify);
        }
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

    /// Protects the served versions of a source from pruning.
    fn hold(&self, in_use: &mut HashMap<usize, Option<InUse>>, number: usize, pinned: &Pinned) {
        let Some(store) = &self.0.store else { return };
        let place = self.0.specs[number].address.place();
        let versions = order::set(pinned.clone().into_versions());
        // Of the versions of a web site, only archives have a directory.
        let versions = versions.iter().map(|version| store.version(place, version));
        let versions: Vec<_> = versions.filter(|version| version.is_dir()).collect();
        let held = in_use.entry(number).or_default();
        if held.as_ref().is_some_and(|held| held.versions() == versions) {
            return;
        }
        if let (Place::Git(place), Pinned::Git(git)) = (place, pinned) {
            git.parts().iter().for_each(|part| approved::reduce(store, place, part));
        }
        *held = InUse::of(versions);
    }

    /// Reads lock files and store. A source that is being fetched or has failed keeps its status, unless it is available now.
    fn read(&self, before: Option<State>) -> State {
        let (before, unsaved, mut in_use) =
            before.map(|state| (state.statuses, state.unsaved, state.in_use)).unwrap_or_default();
        let mut locks: HashMap<&Path, (LockFile, Option<LockError>)> = HashMap::new();
        let mut statuses = Vec::new();
        let mut notices = Vec::new();
        let mut stored = Vec::new();
        let checks = self.0.store.as_ref().map(|store| Checks::read(store.dir())).unwrap_or_default();
        for (number, spec) in self.0.specs.iter().enumerate() {
            let old = before
                .get(number)
                .filter(|old| matches!(old, Status::Fetching | Status::Failed(_)))
                .cloned()
                .unwrap_or(Status::Absent);
            let Some(store) = &self.0.store else {
                statuses.push(old);
                continue;
            };
            let (lock_file, broken) =
                locks.entry(&spec.lock).or_insert_with(|| self.0.options.lock_file(&spec.lock, store));
            let Some(pinned) = lock_file.get(spec.address.as_str()).or_else(|| unsaved.get(&number)) else {
                // If this process has used the source, its approval was taken back since.
                let is_lost = || in_use.contains_key(&number) || fetch::waits_now(spec, store);
                let options = &self.0.options;
                let waits = broken.is_none() && (options.is_governed() || !options.locked && is_lost());
                statuses.push(if waits { Status::Unapproved } else { old });
                continue;
            };
            // Mark the version as used before we read it, so that it isn't removed in between.
            self.hold(&mut in_use, number, pinned);
            notices.extend(checks.notice(&spec.address, pinned));
            statuses.push(old);
            stored.push((number, pinned.clone()));
        }
        let mut partly = HashMap::new();
        for Loaded { number, skills, is_whole } in self.load_all(&stored) {
            if is_whole {
                statuses[number] = Status::Here(skills);
            } else {
                partly.insert(number, skills);
            }
        }
        for (path, error) in locks.into_iter().filter_map(|(path, (_, error))| Some((path, error?))) {
            let has_last = self.0.store.as_ref().is_some_and(|store| LockFile::has_last(path, store.dir()));
            let meanwhile = if has_last && !self.0.options.is_governed() {
                "using the last readable version"
            } else {
                "its sources are ignored until it is repaired"
            };
            tracing::warn!("{error}; {meanwhile}; {}", error.hint());
        }
        let mut state = State { statuses, partly, in_use, unsaved, notices, skills: SkillSet::default() };
        self.assemble(&mut state);
        state
    }
}

fn message(error: &SourceError) -> String {
    format!("{error}; {}", error.hint())
}
