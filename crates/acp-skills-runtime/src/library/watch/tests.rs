//! The loop over a system that is played: how often it searches, and what it asks to be watched.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;

use notify::{
    Config, Event, EventHandler, EventKind, NullWatcher, RecursiveMode, WatcherKind,
    event::{ModifyKind, RemoveKind},
};
use skills_core::{
    SkillSet,
    discovery::{Discovery, DiscoveryCache, Root},
};

use super::*;

/// Notes what it is asked for.
#[derive(Clone, Default)]
struct System {
    watched: Arc<Mutex<HashMap<PathBuf, RecursiveMode>>>,
    asked: Arc<AtomicUsize>,
}

impl Watcher for System {
    fn new<F: EventHandler>(_: F, _: Config) -> notify::Result<Self> {
        Ok(Self::default())
    }

    fn watch(&mut self, path: &Path, mode: RecursiveMode) -> notify::Result<()> {
        self.asked.fetch_add(1, Ordering::Relaxed);
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

/// A directory of skills, and a named skill elsewhere. Each time that the loop asks what to watch, the next event happens;
/// after the last one nobody needs to hear of changes any more.
struct Skills {
    root: PathBuf,
    named: PathBuf,
    debounce: Arc<Debounce>,
    events: Mutex<Vec<Event>>,
    rescans: Mutex<Vec<Changes>>,
}

impl Watched for Skills {
    fn coverage(&self) -> Coverage {
        match self.events.lock().pop() {
            // It is judged by what was watched before.
            Some(event) => self.debounce.put(Ok(event)),
            None => self.debounce.close(),
        }
        self.covered()
    }

    fn rescan(&self, changes: &Changes) -> Option<Reloaded> {
        let mut rescans = self.rescans.lock();
        rescans.push(changes.clone());
        assert!(rescans.len() < 10, "it searches for ever: {rescans:#?}");
        None
    }
}

impl Skills {
    fn covered(&self) -> Coverage {
        let (discovery, mut visits) =
            (Discovery::new([Root::scanned(&self.root)]), DiscoveryCache::default());
        discovery.run_incremental(&mut visits, &Changes::default(), &mut SkillSet::builder());
        let mut coverage = Coverage::default();
        coverage.add_search(&discovery, &visits);
        coverage.add_named(&self.named);
        coverage
    }
}

/// Runs the loop while `events` happen, one after the other. Returns what was searched, and how many watches were asked for.
fn run(platform: Platform, events: impl Fn(&Path) -> Vec<Event>) -> (Vec<Changes>, System, PathBuf) {
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
    // Nothing is watched when the loop asks first.
    events.push(Event::new(EventKind::Other));
    let library = Arc::new(Skills {
        root: base.join("root"),
        named: base.join("elsewhere/named"),
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
fn a_new_watch_is_searched_once() {
    for (platform, watches) in [(Platform::LINUX, 5), (Platform::MACOS, 2), (Platform::WINDOWS, 4)] {
        let (rescans, system, _) = run(platform, |_| Vec::new());
        assert_eq!(rescans.len(), 1, "{platform:?}: {rescans:#?}");
        assert_eq!(system.asked.load(Ordering::Relaxed), watches, "{platform:?}");
    }
}

#[test]
fn a_tree_that_was_replaced_is_watched_anew() {
    let gone = |path: PathBuf| Event::new(EventKind::Remove(RemoveKind::Folder)).add_path(path);
    for platform in [Platform::LINUX, Platform::MACOS, Platform::WINDOWS] {
        let (rescans, system, base) = run(platform, |base| vec![gone(base.join("root"))]);
        // The first watches, what happened, and the new watch.
        assert_eq!(rescans.len(), 3, "{platform:?}: {rescans:#?}");
        assert!(rescans[1].trees.contains(&base.join("root")), "{platform:?}: {rescans:#?}");
        assert!(system.watched.lock().contains_key(&base.join("root")), "{platform:?}");
    }
}

#[test]
fn windows_sees_a_directory_go_from_above() {
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

/// What Windows says of a directory each time that something in it comes or goes is no reason to watch it anew.
#[test]
fn a_directory_that_is_written_to_keeps_its_watch() {
    let written = |path: PathBuf| Event::new(EventKind::Modify(ModifyKind::Any)).add_path(path);
    let (rescans, system, base) = run(Platform::WINDOWS, |base| vec![written(base.join("root"))]);
    assert_eq!(rescans[1..], [Changes { directories: [base.join("root")].into(), ..Changes::default() }]);
    assert_eq!(system.asked.load(Ordering::Relaxed), 4);
}
