//! What of the cache is removed, and how whoever uses it keeps it.
//!
//! A directory or an index is used as long as a process has its mark locked; the mark's time says when that was last. What a
//! lock refers to stays, however long nobody used it: a repository may be gone, and what was approved goes on.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{lockfile, store};
use crate::disk::FileLock;

/// The name of the mark, beside what it is about.
const MARK: &str = "used";

/// Somebody uses something of the cache, until this is dropped.
#[derive(Debug)]
pub(super) struct InUse {
    /// The lock of the operating system is its own until it is closed.
    _mark: File,
}

impl InUse {
    /// Says that the directory `dir` of the cache is used; nothing where that cannot be said, as in a cache that is
    /// read-only.
    pub(super) fn of(dir: &Path) -> Option<Self> {
        let path = dir.join(MARK);
        let mark = File::options().create(true).truncate(false).write(true).open(&path).ok()?;
        mark.lock_shared().ok()?;
        // Whoever had it may have removed the directory.
        path.exists().then_some(())?;
        mark.set_modified(SystemTime::now()).ok()?;
        Some(Self { _mark: mark })
    }
}

/// Removes what no lock refers to, nobody uses, and nobody has used for `unused`. Returns what is gone.
pub(super) fn prune(cache: &Path, unused: Duration) -> Vec<PathBuf> {
    let references = lockfile::references(cache);
    let mut removed = Vec::new();
    for place in entries(&cache.join("git")).into_iter().chain(entries(&cache.join("web"))) {
        // Whoever fetches there has it.
        let Some(_lock) = FileLock::try_acquire(&place.join(store::LOCK)) else { continue };
        store::remove_leftovers(&place, unused.min(store::OLD));
        for path in entries(&place) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let is_ours = name.len() >= 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !is_ours || references.contains(&*name) {
                continue;
            }
            if let Some(unused) = Unused::of(&path, unused)
                && unused.remove(&place)
            {
                removed.push(path);
            }
        }
    }
    removed.sort_unstable();
    removed
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// What nobody uses, nor begins to use while it is removed.
struct Unused<'a> {
    path: &'a Path,
    mark: Option<File>,
}

impl<'a> Unused<'a> {
    fn of(path: &'a Path, unused: Duration) -> Option<Self> {
        let mark = path.join(MARK);
        let has_mark = path.is_dir() && mark.exists();
        let dated = if has_mark { &mark } else { path };
        // A lock that cannot be had is somebody's.
        let mark = if has_mark {
            let mark = File::options().write(true).open(&mark).ok()?;
            mark.try_lock().ok()?;
            Some(mark)
        } else {
            None
        };
        let modified = fs::metadata(dated).and_then(|metadata| metadata.modified()).ok()?;
        modified.elapsed().is_ok_and(|age| age >= unused).then_some(Self { path, mark })
    }

    /// Takes it away at once, so that nobody finds half of it, and removes it then.
    fn remove(self, place: &Path) -> bool {
        let Self { path, mut mark } = self;
        if path.is_file() {
            return fs::remove_file(path).is_ok();
        }
        let Ok(aside) = tempfile::Builder::new().prefix(".new-").tempdir_in(place) else { return false };
        if cfg!(windows) {
            // There, no directory is renamed with an open file in it.
            drop(mark.take());
        }
        // What is left of it goes with the directory, or as any leftover.
        let is_gone = fs::rename(path, aside.path().join("old")).is_ok();
        drop(mark);
        is_gone
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Instant};

    use super::*;
    use crate::{LockFile, Pinned, PinnedGit};

    const MONTH: Duration = Duration::from_hours(24 * 30);

    /// Prunes until these are removed: what this process starts meanwhile has our locks until it executes its program.
    fn removes(cache: &Path, unused: Duration, expected: &[&Path]) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut removed = Vec::new();
        while removed != expected {
            assert!(Instant::now() < deadline, "{removed:?} were removed, not {expected:?}");
            removed.extend(prune(cache, unused));
            removed.sort();
        }
    }

    fn commit(digit: char) -> String {
        digit.to_string().repeat(40)
    }

    /// A checkout that was used so long ago.
    fn checkout(cache: &Path, digit: char, age: Duration) -> PathBuf {
        let dir = cache.join("git/place").join(commit(digit));
        fs::create_dir_all(dir.join("name/skill")).unwrap();
        fs::write(dir.join("name/skill/SKILL.md"), "x").unwrap();
        drop(InUse::of(&dir).unwrap());
        let mark = File::options().write(true).open(dir.join(MARK)).unwrap();
        mark.set_modified(SystemTime::now() - age).unwrap();
        dir
    }

    fn refer(lock: &Path, cache: &Path, digit: char) {
        let pinned =
            Pinned::Git(PinnedGit { commit: commit(digit), skills: std::collections::BTreeMap::new() });
        LockFile::change(lock, cache, |lock| lock.set("github:a/b", pinned)).unwrap();
    }

    #[test]
    fn what_goes_and_what_stays() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache");
        let (lock, dead) = (dir.path().join("skills.lock"), dir.path().join("dead/skills.lock"));
        let old = MONTH * 2;
        let referred = checkout(&cache, 'a', old);
        let used = checkout(&cache, 'b', old);
        let recent = checkout(&cache, 'c', Duration::ZERO);
        let unused = checkout(&cache, 'd', old);
        let of_dead = checkout(&cache, 'e', old);
        let strange = cache.join("git/place/notes");
        fs::create_dir(&strange).unwrap();
        refer(&lock, &cache, 'a');
        refer(&dead, &cache, 'e');
        fs::remove_dir_all(dead.parent().unwrap()).unwrap();
        let in_use = InUse::of(&used).unwrap();
        File::options()
            .write(true)
            .open(used.join(MARK))
            .unwrap()
            .set_modified(SystemTime::now() - old)
            .unwrap();
        // Of a fetch that was killed.
        let leftover = cache.join("git/place/.new-x");
        fs::create_dir_all(leftover.join("tree")).unwrap();
        removes(&cache, MONTH, &[&unused, &of_dead]);
        assert!(leftover.exists());
        for (path, stays) in [
            (&referred, true),
            (&used, true),
            (&recent, true),
            (&unused, false),
            (&of_dead, false),
            (&strange, true),
        ] {
            assert_eq!(path.exists(), stays, "{}", path.display());
        }
        drop(in_use);
        removes(&cache, MONTH, &[&used]);
        // A lock that is broken for a while refers to what it did.
        fs::write(&lock, "<<<<<<< HEAD").unwrap();
        removes(&cache, Duration::ZERO, &[&recent]);
        assert!(referred.exists() && !leftover.exists());
        assert!(prune(&dir.path().join("none"), Duration::ZERO).is_empty());
    }

    /// Between the look and the removal somebody begins to use it.
    #[test]
    fn whoever_comes_meanwhile_has_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let checkout = checkout(dir.path(), 'a', MONTH);
        let deadline = Instant::now() + Duration::from_secs(30);
        let unused = loop {
            match Unused::of(&checkout, MONTH) {
                Some(unused) => break unused,
                None => assert!(Instant::now() < deadline, "somebody uses it"),
            }
        };
        thread::scope(|scope| {
            let user = scope.spawn(|| InUse::of(&checkout).is_some());
            let is_gone = unused.remove(checkout.parent().unwrap());
            // Never both.
            assert!(is_gone && !user.join().unwrap());
        });
        assert!(!checkout.exists());
    }

    #[test]
    fn nothing_where_somebody_fetches() {
        let dir = tempfile::tempdir().unwrap();
        let checkout = checkout(dir.path(), 'a', MONTH);
        let fetching = FileLock::acquire(&dir.path().join("git/place").join(store::LOCK)).unwrap();
        assert!(prune(dir.path(), Duration::ZERO).is_empty());
        drop(fetching);
        removes(dir.path(), Duration::ZERO, &[&checkout]);
    }
}
