//! Tests of the watch loop with a simulated operating system.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use notify::{
    Config, Event, EventHandler, EventKind, NullWatcher, RecursiveMode, WatcherKind,
    event::{CreateKind, ModifyKind, RemoveKind},
};
use parking_lot::Mutex;
use skills_core::{
    SkillSet,
    discovery::{Discovery, DiscoveryCache, Root},
};

use super::*;

/// A watcher that records the watches that are added.
#[derive(Clone, Default)]
struct System {
    watched: Arc<Mutex<HashMap<PathBuf, RecursiveMode>>>,
    attempts: Arc<AtomicUsize>,
}

impl Watcher for System {
    fn new<F: EventHandler>(_: F, _: Config) -> notify::Result<Self> {
        Ok(Self::default())
    }

    fn watch(&mut self, path: &Path, mode: RecursiveMode) -> notify::Result<()> {
        self.attempts.fetch_add(1, Ordering::Relaxed);
        self.watched.lock().insert(path.to_owned(), mode);
        Ok(())
    }

    fn unwatch(&mut self, path: &Path) -> notify::Result<()> {
        let known = self.watched.lock().remove(path);
        known.map(drop).ok_or_else(notify::Error::watch_not_found)
    }

    fn kind() -> WatcherKind {
        NullWatcher::kind()
    }
}

/// A directory of skills, and a named skill in another one. Each time the loop asks for the coverage, the next event
/// happens. After the last event, the watch is closed.
struct Skills {
    root: PathBuf,
    named: PathBuf,
    /// A file with decisions, from the second round on.
    decisions: Option<PathBuf>,
    debounce: Arc<Debounce>,
    events: Mutex<Vec<Event>>,
    rescans: Mutex<Vec<Changes>>,
}

impl Watched for Skills {
    fn coverage(&self) -> Coverage {
        match self.events.lock().pop() {
            // Note that the event is still compared to the coverage of the previous round.
            Some(event) => self.debounce.add_event(Ok(event)),
            None => self.debounce.close(),
        }
        self.current_coverage()
    }

    fn rescan(&self, changes: &Changes) -> Option<Reloaded> {
        let mut rescans = self.rescans.lock();
        rescans.push(changes.clone());
        assert!(rescans.len() < 10, "the loop does not end: {rescans:#?}");
        None
    }
}

impl Skills {
    fn current_coverage(&self) -> Coverage {
        let discovery = Discovery::new([Root::scanned(&self.root)]);
        let mut cache = DiscoveryCache::default();
        discovery.run_incremental(&mut cache, &Changes::default(), &mut SkillSet::builder());
        let mut coverage = Coverage::default();
        coverage.add_search(&discovery, &cache);
        coverage.add_named(&self.named);
        if let Some(file) = self.decisions.clone().filter(|_| !self.rescans.lock().is_empty()) {
            coverage.add_decisions(file);
        }
        coverage
    }
}

/// Runs the loop while `events` happen one after another. Returns the searches and the watcher.
fn run(platform: Platform, events: impl Fn(&Path) -> Vec<Event>) -> (Vec<Changes>, System, PathBuf) {
    run_with(platform, None, events)
}

/// The same with a file of decisions, which is of interest from the second round on.
fn run_with(
    platform: Platform,
    decisions: Option<&str>,
    events: impl Fn(&Path) -> Vec<Event>,
) -> (Vec<Changes>, System, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let base = dunce::canonicalize(directory.path()).unwrap();
    for dir in ["root/a", "root/deep/b", "elsewhere/named"] {
        std::fs::create_dir_all(base.join(dir)).unwrap();
        let name = dir.rsplit('/').next().unwrap();
        std::fs::write(base.join(dir).join("SKILL.md"), format!("---\nname: {name}\ndescription: x\n---\n"))
            .unwrap();
    }
    let debounce = Arc::new(Debounce::default());
    let mut events = events(&base);
    events.reverse();
    // Nothing is watched in the first round, so start with an event that has no effect.
    events.push(Event::new(EventKind::Other));
    let library = Arc::new(Skills {
        root: base.join("root"),
        named: base.join("elsewhere/named"),
        decisions: decisions.map(|file| base.join(file)),
        debounce: Arc::clone(&debounce),
        events: Mutex::new(events),
        rescans: Mutex::default(),
    });
    let system = System::default();
    let changed: WhenReloaded = Box::new(|_| {});
    watch(&Arc::downgrade(&library), Box::new(system.clone()), platform, &debounce, &changed);
    let rescans = std::mem::take(&mut *library.rescans.lock());
    (rescans, system, base)
}

#[test]
fn a_newly_watched_directory_is_searched_once() {
    for (platform, watches) in [(Platform::LINUX, 5), (Platform::MACOS, 2), (Platform::WINDOWS, 4)] {
        let (rescans, system, _) = run(platform, |_| Vec::new());
        assert_eq!(rescans.len(), 1, "{platform:?}: {rescans:#?}");
        assert_eq!(system.attempts.load(Ordering::Relaxed), watches, "{platform:?}");
    }
}

/// The file could have changed before the loop knew about it, although its directory was watched.
#[test]
fn a_new_file_with_decisions_is_read_once() {
    let written = |path: PathBuf| Event::new(EventKind::Create(CreateKind::File)).add_path(path);
    let (rescans, _, base) = run_with(Platform::LINUX, Some("elsewhere/named/trust.json"), |base| {
        vec![written(base.join("elsewhere/named/trust.json"))]
    });
    let expected = Changes { trees: [base.join("elsewhere/named/trust.json")].into(), ..Changes::default() };
    assert_eq!(rescans[1..], [expected]);
}

#[test]
fn a_replaced_tree_is_watched_again() {
    let gone = |path: PathBuf| Event::new(EventKind::Remove(RemoveKind::Folder)).add_path(path);
    for platform in [Platform::LINUX, Platform::MACOS, Platform::WINDOWS] {
        let (rescans, system, base) = run(platform, |base| vec![gone(base.join("root"))]);
        // We expect one search for the first watches, one for the event, and one for the new watch.
        assert_eq!(rescans.len(), 3, "{platform:?}: {rescans:#?}");
        assert!(rescans[1].trees.contains(&base.join("root")), "{platform:?}: {rescans:#?}");
        assert!(system.watched.lock().contains_key(&base.join("root")), "{platform:?}");
    }
}

#[test]
fn windows_notices_a_removed_directory_in_its_parent() {
    let gone = |path: PathBuf| Event::new(EventKind::Remove(RemoveKind::Any)).add_path(path);
    let (rescans, system, base) = run(Platform::WINDOWS, |base| vec![gone(base.join("elsewhere/named"))]);
    let expected = [
        ("", RecursiveMode::NonRecursive),
        ("elsewhere", RecursiveMode::NonRecursive),
        ("elsewhere/named", RecursiveMode::NonRecursive),
        ("root", RecursiveMode::Recursive),
    ];
    assert_eq!(*system.watched.lock(), expected.map(|(dir, mode)| (base.join(dir), mode)).into());
    assert_eq!(rescans[1].trees, [base.join("elsewhere/named")].into());
}

/// On Windows, there is a change event for a directory when an entry is added or removed. In this case, the watch
/// should be kept.
#[test]
fn a_modified_directory_keeps_its_watch() {
    let written = |path: PathBuf| Event::new(EventKind::Modify(ModifyKind::Any)).add_path(path);
    let (rescans, system, base) = run(Platform::WINDOWS, |base| vec![written(base.join("root"))]);
    assert_eq!(rescans[1..], [Changes { directories: [base.join("root")].into(), ..Changes::default() }]);
    assert_eq!(system.attempts.load(Ordering::Relaxed), 4);
}
