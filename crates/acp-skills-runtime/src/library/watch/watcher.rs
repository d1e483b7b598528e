//! [`Watches`]: the watches of the operating system.
//!
//! If a watch cannot be added, a warning is logged once, and the proxy continues without it.

use std::{
    collections::{HashMap, HashSet},
    mem,
    path::Path,
    sync::Arc,
};

use notify::{ErrorKind, RecursiveMode, Watcher};
use skills_core::{discovery::Changes, order};

use super::{coverage::Coverage, platform::Platform};

/// The watches that are currently active.
pub(super) struct Watches {
    watcher: Box<dyn Watcher>,
    platform: Platform,
    /// The maximum number of watches.
    max: usize,
    watched: HashMap<Arc<Path>, RecursiveMode>,
    /// Existing directories that could not be watched at the last attempt.
    refused: HashSet<Arc<Path>>,
    /// True if watches were removed since the last update.
    has_removed: bool,
    has_warned: bool,
}

impl Watches {
    /// Creates an empty set of watches.
    pub(super) fn new(watcher: Box<dyn Watcher>, platform: Platform, max: usize) -> Self {
        Self {
            watcher,
            platform,
            max,
            watched: HashMap::new(),
            refused: HashSet::new(),
            has_removed: false,
            has_warned: false,
        }
    }

    /// Adds and removes watches to match `coverage`. Returns the directories where changes could be missed.
    pub(super) fn update(&mut self, coverage: &Coverage) -> Changes {
        let wanted = coverage.watches(self.platform.one_level);
        let is_stale = |(path, mode): &(&Arc<Path>, &RecursiveMode)| wanted.get(path) != Some(mode);
        let stale: Vec<_> = self.watched.iter().filter(is_stale).map(|(path, _)| Arc::clone(path)).collect();
        self.remove(&stale);
        let added = self.add(coverage, wanted);
        let has_changed = mem::take(&mut self.has_removed) || !added.is_empty();
        if has_changed && self.platform.one_stream {
            return Changes::everything();
        }
        added
    }

    /// Removes the watches of trees that were replaced, because their paths may lead to other directories now. If
    /// everything may have changed, removes all watches.
    pub(super) fn forget(&mut self, changes: &Changes) {
        let is_forgotten = |path: &&Arc<Path>| changes.replaces(path);
        let forgotten: Vec<_> = self.watched.keys().filter(is_forgotten).cloned().collect();
        self.remove(&forgotten);
        // From now on, the system may accept directories that it refused to watch before.
        self.refused.clear();
    }

    /// Returns true if watches are needed but none could be added.
    pub(super) fn are_lost(&self) -> bool {
        self.watched.is_empty() && !self.refused.is_empty()
    }

    fn remove(&mut self, paths: &[Arc<Path>]) {
        if paths.is_empty() {
            return;
        }
        self.has_removed = true;
        let mut batch = self.watcher.paths_mut();
        for path in paths {
            self.watched.remove(path);
            // This fails if the directory was removed, but in that case the watch is not needed.
            let _ = batch.remove(path);
        }
        if let Err(error) = batch.commit() {
            self.lose_all(&error);
        }
    }

    /// Adds the missing watches. Returns the directories that are newly watched.
    fn add(&mut self, coverage: &Coverage, wanted: HashMap<&Arc<Path>, RecursiveMode>) -> Changes {
        // On some systems, each attempt interrupts all watches, so only try directories that exist and were not
        // refused before.
        let is_vain =
            |path: &Arc<Path>| self.platform.one_stream && (self.refused.contains(path) || !path.exists());
        let is_new = |(path, _): &(&Arc<Path>, _)| !self.watched.contains_key(*path) && !is_vain(path);
        let mut new: Vec<_> = wanted.into_iter().filter(is_new).collect();
        order::sort_by_key(&mut new, |(path, _)| coverage.order(path));
        let mut added = Changes::default();
        if new.is_empty() {
            return added;
        }
        let mut batch = self.watcher.paths_mut();
        let mut failure = None;
        for (path, mode) in new {
            let is_full = self.watched.len() >= self.max;
            let result = if is_full {
                Err(notify::Error::new(ErrorKind::MaxFilesWatch))
            } else {
                batch.add(path, mode)
            };
            match result {
                Ok(()) => {
                    self.watched.insert(Arc::clone(path), mode);
                    match mode {
                        RecursiveMode::NonRecursive => added.directories.insert(path.to_path_buf()),
                        RecursiveMode::Recursive => added.trees.insert(path.to_path_buf()),
                    };
                }
                // The directory was just removed, so there is nothing to watch.
                Err(_) if !path.exists() => {}
                Err(error) => {
                    self.refused.insert(Arc::clone(path));
                    // Stop at the system's limit. The next ten thousand attempts would fail as well, and take a long
                    // time.
                    let is_limit = matches!(error.kind, ErrorKind::MaxFilesWatch);
                    failure.get_or_insert(error);
                    if is_limit {
                        break;
                    }
                }
            }
        }
        let committed = batch.commit();
        if let Some(error) = failure {
            self.warn(&error);
        }
        if let Err(error) = committed {
            self.lose_all(&error);
            return Changes::default();
        }
        if !added.is_empty() {
            tracing::debug!(directories = self.watched.len(), "watching directories");
        }
        added
    }

    /// Handles the loss of all watches.
    fn lose_all(&mut self, error: &notify::Error) {
        self.refused.extend(mem::take(&mut self.watched).into_keys());
        self.warn(error);
    }

    fn warn(&mut self, error: &notify::Error) {
        if mem::replace(&mut self.has_warned, true) {
            return;
        }
        let hint = match error.kind {
            ErrorKind::MaxFilesWatch => " (limited by the sysctl `fs.inotify.max_user_watches`)",
            _ => "",
        };
        tracing::warn!(
            "cannot watch some skill directories: {error}{hint}; use `/skills reload` after a change"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, sync::Mutex};

    use notify::{Config, Error, EventHandler, NullWatcher, WatcherKind};
    use skills_core::{
        SkillSet,
        discovery::{Discovery, DiscoveryCache, Root},
    };

    use super::*;

    /// An operating system with a maximum number of watches.
    #[derive(Default)]
    struct System {
        watched: HashSet<PathBuf>,
        limit: usize,
        asked: usize,
    }

    struct Limited(Arc<Mutex<System>>);

    impl Watcher for Limited {
        fn new<F: EventHandler>(_: F, _: Config) -> notify::Result<Self> {
            Ok(Self(Arc::default()))
        }

        fn watch(&mut self, path: &Path, _: RecursiveMode) -> notify::Result<()> {
            let mut system = self.0.lock().unwrap();
            system.asked += 1;
            if system.watched.len() >= system.limit {
                return Err(Error::new(ErrorKind::MaxFilesWatch));
            }
            system.watched.insert(path.to_owned());
            Ok(())
        }

        fn unwatch(&mut self, path: &Path) -> notify::Result<()> {
            let known = self.0.lock().unwrap().watched.remove(path);
            if known { Ok(()) } else { Err(Error::watch_not_found()) }
        }

        fn kind() -> WatcherKind {
            NullWatcher::kind()
        }
    }

    /// Returns the coverage of a root with ten skills, two of them in a subdirectory.
    fn coverage(base: &Path) -> Coverage {
        for number in 0..10 {
            let dir = base.join(if number < 8 { format!("s{number}") } else { format!("deep/s{number}") });
            std::fs::create_dir_all(&dir).unwrap();
            let text = format!("---\nname: s{number}\ndescription: x\n---\n");
            std::fs::write(dir.join("SKILL.md"), text).unwrap();
        }
        let discovery = Discovery::new([Root::scanned(base)]);
        let mut cache = DiscoveryCache::default();
        discovery.run_incremental(&mut cache, &Changes::default(), &mut SkillSet::builder());
        let mut coverage = Coverage::default();
        coverage.add_search(&discovery, &cache);
        coverage
    }

    fn limited(limit: usize, platform: Platform) -> (Watches, Arc<Mutex<System>>) {
        let system = Arc::new(Mutex::new(System { limit, ..System::default() }));
        (Watches::new(Box::new(Limited(Arc::clone(&system))), platform, usize::MAX), system)
    }

    #[test]
    fn new_directories_are_searched_once() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        let (mut watches, system) = limited(100, Platform::LINUX);
        assert_eq!(watches.update(&coverage(&base)).directories.len(), 12);
        assert!(watches.update(&coverage(&base)).is_empty());
        // If a directory is replaced, we need to watch it again.
        watches.forget(&Changes { trees: [base.join("deep")].into(), ..Changes::default() });
        assert_eq!(system.lock().unwrap().watched.len(), 9);
        assert_eq!(watches.update(&coverage(&base)).directories.len(), 3);
        std::fs::remove_dir_all(base.join("s0")).unwrap();
        let fewer = {
            let discovery = Discovery::new([Root::scanned(&base)]);
            let mut cache = DiscoveryCache::default();
            discovery.run_incremental(&mut cache, &Changes::default(), &mut SkillSet::builder());
            let mut coverage = Coverage::default();
            coverage.add_search(&discovery, &cache);
            coverage
        };
        assert!(watches.update(&fewer).is_empty());
        assert!(!system.lock().unwrap().watched.contains(&base.join("s0")));
    }

    #[test]
    fn all_watches_are_replaced_after_lost_events() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        for (platform, count) in [(Platform::LINUX, 12), (Platform::MACOS, 1), (Platform::WINDOWS, 1)] {
            let (mut watches, system) = limited(100, platform);
            watches.update(&coverage(&base));
            watches.forget(&Changes::everything());
            assert!(system.lock().unwrap().watched.is_empty());
            assert!(!watches.update(&coverage(&base)).is_empty());
            assert_eq!(system.lock().unwrap().watched.len(), count, "{platform:?}");
        }
    }

    #[test]
    fn the_limit_of_watches_causes_one_warning() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        let (mut watches, system) = limited(5, Platform::LINUX);
        assert_eq!(watches.update(&coverage(&base)).directories.len(), 5);
        assert!(watches.has_warned);
        // At the limit, each update should only try one watch, and should not search the same directories again.
        for asked in [6, 7, 8] {
            assert_eq!(system.lock().unwrap().asked, asked);
            assert!(watches.update(&coverage(&base)).is_empty());
        }
        system.lock().unwrap().limit = 100;
        assert_eq!(watches.update(&coverage(&base)).directories.len(), 7);
    }

    /// A project can have any number of directories.
    #[test]
    fn the_first_directories_are_watched() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        let system = Arc::new(Mutex::new(System { limit: 100, ..System::default() }));
        let mut watches = Watches::new(Box::new(Limited(Arc::clone(&system))), Platform::LINUX, 3);
        let mut all = Coverage::default();
        all.add_decisions(base.join("trust/x.json"));
        all.add_named(&base.join("missing/named"));
        for dir in ["a", "b", "c", "d"] {
            std::fs::create_dir(base.join(dir)).unwrap();
            all.add_tree(base.join(dir));
        }
        assert_eq!(watches.update(&all).directories.len(), 3);
        assert_eq!(system.lock().unwrap().watched, [base.clone(), base.join("a"), base.join("b")].into());
        assert!(watches.has_warned);
        assert!(watches.update(&all).is_empty());
        assert_eq!(system.lock().unwrap().asked, 3);
    }

    #[test]
    fn restarting_the_stream_searches_everything() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        let coverage = coverage(&base);
        let (mut watches, system) = limited(100, Platform::MACOS);
        assert_eq!(watches.update(&coverage), Changes::everything());
        assert!(watches.update(&coverage).is_empty());
        // Note that removing a watch restarts the stream as well.
        watches.forget(&Changes { trees: [base.clone()].into(), ..Changes::default() });
        std::fs::remove_dir_all(&base).unwrap();
        assert_eq!(watches.update(&coverage), Changes::everything());
        assert!(watches.update(&coverage).is_empty());
        assert!(system.lock().unwrap().watched.is_empty());
    }

    #[test]
    fn refused_directories_do_not_restart_the_stream() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        let coverage = coverage(&base);
        let (mut watches, system) = limited(0, Platform::MACOS);
        for _ in 0..3 {
            assert!(watches.update(&coverage).is_empty());
        }
        assert!(watches.are_lost());
        assert_eq!(system.lock().unwrap().asked, 1);
        // If events were lost, we should try to watch the directory again.
        system.lock().unwrap().limit = 1;
        watches.forget(&Changes::everything());
        assert_eq!(watches.update(&coverage), Changes::everything());
        assert!(!watches.are_lost());
    }

    #[test]
    fn a_recursive_watch_covers_a_tree() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        let coverage = coverage(&base);
        assert_eq!(coverage.watches(true).len(), 12);
        let base: Arc<Path> = base.into();
        assert_eq!(coverage.watches(false), [(&base, RecursiveMode::Recursive)].into());
    }
}
