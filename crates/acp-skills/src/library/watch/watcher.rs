//! [`Watches`]: the watches of the operating system.
//!
//! Linux watches one directory at a time and lets a user have so many of them; elsewhere one watch sees everything below
//! it. A watch that cannot be had is a warning, once: the proxy works without.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    sync::Arc,
};

use notify::{ErrorKind, RecursiveMode, Watcher};
use skills_core::discovery::Changes;

use super::coverage::Coverage;

/// Whether a watch sees only what is directly in its directory.
const SEES_ONE_LEVEL: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// Watches, and whom they belong to.
pub(super) struct Watches {
    watcher: Box<dyn Watcher>,
    watched: HashMap<Arc<Path>, RecursiveMode>,
    one_level: bool,
    has_warned: bool,
}

impl Watches {
    /// None yet.
    pub(super) fn new(watcher: Box<dyn Watcher>) -> Self {
        Self { watcher, watched: HashMap::new(), one_level: SEES_ONE_LEVEL, has_warned: false }
    }

    /// Watches what `coverage` has and nothing else. Returns what was not watched until now, and may have changed just before.
    pub(super) fn update(&mut self, coverage: &Coverage) -> Changes {
        let wanted = watches(coverage, self.one_level);
        let (watcher, mut gone) = (&mut self.watcher, Vec::new());
        self.watched.retain(|path, mode| {
            let stays = wanted.get(path) == Some(mode);
            if !stays {
                gone.push(Arc::clone(path));
            }
            stays
        });
        for path in gone {
            // It may be gone by itself.
            drop(watcher.unwatch(&path));
        }
        let mut changes = Changes::default();
        let mut missing = 0;
        for (path, mode) in wanted {
            if self.watched.contains_key(path) {
                continue;
            }
            match self.watcher.watch(path, mode) {
                Ok(()) => {
                    self.watched.insert(Arc::clone(path), mode);
                    match mode {
                        RecursiveMode::NonRecursive => changes.directories.insert(path.to_path_buf()),
                        RecursiveMode::Recursive => changes.trees.insert(path.to_path_buf()),
                    };
                }
                Err(error) if is_gone(&error) => {}
                Err(error) => {
                    missing += 1;
                    if missing == 1 && !self.has_warned {
                        self.has_warned = true;
                        warn(&error);
                    }
                    // The next ones cannot be had either, and asking for ten thousand takes its time.
                    if matches!(error.kind, ErrorKind::MaxFilesWatch) {
                        break;
                    }
                }
            }
        }
        if !changes.is_empty() {
            tracing::debug!(directories = self.watched.len(), "watching");
        }
        changes
    }

    /// Drops the watches in trees that came or went: a path may be another directory now.
    pub(super) fn forget(&mut self, changes: &Changes) {
        if changes.trees.is_empty() {
            return;
        }
        let (watcher, trees) = (&mut self.watcher, &changes.trees);
        self.watched.retain(|path, _| {
            let is_in = path.ancestors().any(|dir| trees.contains(dir));
            if is_in {
                // It may be gone by itself.
                drop(watcher.unwatch(path));
            }
            !is_in
        });
    }
}

/// The watches that see all of it.
fn watches(coverage: &Coverage, one_level: bool) -> HashMap<&Arc<Path>, RecursiveMode> {
    if one_level {
        return coverage.iter().map(|(dir, _)| (dir, RecursiveMode::NonRecursive)).collect();
    }
    let searched: HashSet<&Path> =
        coverage.iter().filter(|(_, interest)| interest.directories).map(|(dir, _)| &**dir).collect();
    let is_seen = |dir: &Path| dir.ancestors().skip(1).any(|above| searched.contains(above));
    let others = coverage.iter().filter(|(dir, _)| !is_seen(dir));
    let mode = |dir: &Path| {
        if searched.contains(dir) { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive }
    };
    others.map(|(dir, _)| (dir, mode(dir))).collect()
}

fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

fn warn(error: &notify::Error) {
    let hint = match error.kind {
        ErrorKind::MaxFilesWatch => {
            " (fs.inotify.max_user_watches says how many directories a user may watch)"
        }
        _ => "",
    };
    tracing::warn!(
        "cannot watch all directories with skills: {error}{hint}; `/skills reload` finds what changes in the others"
    );
}

#[cfg(test)]
mod tests {
    use std::{path::PathBuf, sync::Mutex};

    use notify::{Config, Error, EventHandler, NullWatcher, WatcherKind};
    use skills_core::{
        SkillSet,
        discovery::{Discovery, Root, Visits},
    };

    use super::*;

    /// A system that lets us watch so many directories.
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

    /// Coverage over a root with ten skills, two of them deeper.
    fn coverage(base: &Path) -> Coverage {
        for number in 0..10 {
            let dir = base.join(if number < 8 { format!("s{number}") } else { format!("deep/s{number}") });
            std::fs::create_dir_all(&dir).unwrap();
            let text = format!("---\nname: s{number}\ndescription: x\n---\n");
            std::fs::write(dir.join("SKILL.md"), text).unwrap();
        }
        let (how, mut visits) = (Discovery::new([Root::scanned(base)]), Visits::default());
        how.run_again(&mut visits, &Changes::default(), &mut SkillSet::builder());
        let mut coverage = Coverage::default();
        coverage.add_search(&how, &visits);
        coverage
    }

    fn limited(limit: usize) -> (Watches, Arc<Mutex<System>>) {
        let system = Arc::new(Mutex::new(System { limit, ..System::default() }));
        let mut watches = Watches::new(Box::new(Limited(Arc::clone(&system))));
        watches.one_level = true;
        (watches, system)
    }

    #[test]
    fn what_is_new_is_looked_at_once_more() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        let (mut watches, system) = limited(100);
        assert_eq!(watches.update(&coverage(&base)).directories.len(), 12);
        assert!(watches.update(&coverage(&base)).is_empty());
        // A directory that was replaced is another one.
        watches.forget(&Changes { trees: [base.join("deep")].into(), ..Changes::default() });
        assert_eq!(system.lock().unwrap().watched.len(), 9);
        assert_eq!(watches.update(&coverage(&base)).directories.len(), 3);
        std::fs::remove_dir_all(base.join("s0")).unwrap();
        let fewer = {
            let (how, mut visits) = (Discovery::new([Root::scanned(&base)]), Visits::default());
            how.run_again(&mut visits, &Changes::default(), &mut SkillSet::builder());
            let mut coverage = Coverage::default();
            coverage.add_search(&how, &visits);
            coverage
        };
        assert!(watches.update(&fewer).is_empty());
        assert!(!system.lock().unwrap().watched.contains(&base.join("s0")));
    }

    #[test]
    fn falling_short_is_no_outage() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        let (mut watches, system) = limited(5);
        assert_eq!(watches.update(&coverage(&base)).directories.len(), 5);
        assert!(watches.has_warned);
        // It does not go on asking for all of them, nor look at the same ones again and again.
        for asked in [6, 7, 8] {
            assert_eq!(system.lock().unwrap().asked, asked);
            assert!(watches.update(&coverage(&base)).is_empty());
        }
        system.lock().unwrap().limit = 100;
        assert_eq!(watches.update(&coverage(&base)).directories.len(), 7);
    }

    #[test]
    fn one_watch_for_a_tree_where_that_is_possible() {
        let base = tempfile::tempdir().unwrap();
        let base = dunce::canonicalize(base.path()).unwrap();
        let coverage = coverage(&base);
        assert_eq!(watches(&coverage, true).len(), 12);
        let base: Arc<Path> = base.into();
        assert_eq!(watches(&coverage, false), [(&base, RecursiveMode::Recursive)].into());
    }
}
