//! Removes unused versions of sources from the cache.
//!
//! A version is in use while a process holds a lock on its mark file, or on that of its source, which protects all versions of the source.
//! The modification time of a version's mark is the time when the version was last used. If a lock file refers to a version, it is always kept, because its repository may be gone. This includes lock files on
//! disks that are not mounted, and lock files that were deleted after they were used in the last 30 days.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

use skills_core::order;

use super::{
    lockfile,
    store::{self, MARK},
    temporary::{self, Temporary},
};
use crate::disk::{FileLock, private};

/// The timeout for locking a mark.
const MARK_TIMEOUT: Duration = Duration::from_millis(100);
/// The pause between two attempts to lock a mark.
const MARK_PAUSE: Duration = Duration::from_millis(5);

/// Marks versions of a source as in use until it is dropped.
#[derive(Debug)]
pub(super) struct InUse {
    versions: Vec<PathBuf>,
    /// The file holds a shared lock of the operating system until it is closed.
    _mark: File,
}

impl InUse {
    /// Marks versions of the same source, which are given by their directories, as in use. Returns `None` if there are none, or if that is
    /// not possible, for example in a read-only cache.
    ///
    /// Several versions share the mark of the source, because a lock needs an open file, and a web site can have thousands of archives.
    pub(super) fn of(versions: Vec<PathBuf>) -> Option<Self> {
        let dir = match &versions[..] {
            [] => return None,
            [version] => version,
            [version, ..] => version.parent()?,
        };
        let path = dir.join(MARK);
        let mark = open(dir)?;
        lock_shared(&mark, &path)?;
        // Another process may have removed the directory while we were waiting for the lock.
        path.exists().then_some(())?;
        for version in &versions {
            open(version).and_then(|mark| mark.set_modified(SystemTime::now()).ok());
        }
        Some(Self { versions, _mark: mark })
    }

    /// Returns the directories of the versions.
    pub(super) fn versions(&self) -> &[PathBuf] {
        &self.versions
    }
}

/// Opens the mark in `dir`, and creates it if it doesn't exist.
fn open(dir: &Path) -> Option<File> {
    // Only the user can open a new mark, because opening a file is enough to lock it.
    let mark = private::lockable(&dir.join(MARK)).ok()?;
    // The mark may have been created by another program with other permissions. We ignore errors, because the cache may belong to
    // another user.
    let _ = private::tighten(&mark);
    Some(mark)
}

/// Locks a mark. A process that removes the version holds the lock for a moment. Any other process could hold it forever, so this gives
/// up soon, and the version is used without a mark.
fn lock_shared(mark: &File, path: &Path) -> Option<()> {
    let started = Instant::now();
    loop {
        match mark.try_lock_shared() {
            Ok(()) => return Some(()),
            Err(TryLockError::WouldBlock) if started.elapsed() < MARK_TIMEOUT => thread::sleep(MARK_PAUSE),
            Err(TryLockError::WouldBlock) => {
                tracing::warn!("another process holds {}; using the skills without it", path.display());
                return None;
            }
            Err(TryLockError::Error(_)) => return None,
        }
    }
}

/// Removes versions that no lock file refers to, that no process uses, and that were last used at least `unused` ago. Returns the
/// removed paths.
pub(super) fn prune(cache: &Path, unused: Duration) -> Vec<PathBuf> {
    let references = lockfile::references(cache);
    let mut removed = Vec::new();
    for place in entries(&cache.join("git")).into_iter().chain(entries(&cache.join("web"))) {
        // If we can't take the lock, another process is using it to fetch this source.
        let Some(_lock) = FileLock::try_acquire(&place.join(store::LOCK)) else { continue };
        temporary::remove_leftovers(&place, unused.min(store::OLD));
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
    order::sort(&mut removed);
    removed
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// A version that is not in use. Its exclusive locks keep other processes from using it while it is removed.
pub(super) struct Unused<'a> {
    path: &'a Path,
    mark: Option<File>,
    /// The mark of the source.
    _of_source: File,
}

impl<'a> Unused<'a> {
    pub(super) fn of(path: &'a Path, unused: Duration) -> Option<Self> {
        // Create the mark of the source if it doesn't exist, so that no other process can lock it from now on.
        let of_source = open(path.parent()?)?;
        of_source.try_lock().ok()?;
        let mark = path.join(MARK);
        let has_mark = path.is_dir() && mark.exists();
        let dated = if has_mark { &mark } else { path };
        // If another process holds the lock, the version is in use.
        let mark = if has_mark {
            let mark = File::options().write(true).open(&mark).ok()?;
            mark.try_lock().ok()?;
            Some(mark)
        } else {
            None
        };
        let modified = fs::metadata(dated).and_then(|metadata| metadata.modified()).ok()?;
        modified.elapsed().is_ok_and(|age| age >= unused).then_some(Self {
            path,
            mark,
            _of_source: of_source,
        })
    }

    /// Renames the directory first, so that no process finds a part of it, and then removes it. Returns true on success.
    fn remove(self, place: &Path) -> bool {
        if self.path.is_file() {
            return fs::remove_file(self.path).is_ok();
        }
        self.aside(place).is_some()
    }

    /// Moves the directory to a temporary directory, unless a process uses it.
    pub(super) fn aside(self, place: &Path) -> Option<Aside> {
        let Self { path, mut mark, _of_source } = self;
        let has_mark = mark.is_some();
        let aside = Temporary::create_in(place).ok()?;
        if cfg!(windows) {
            // Windows can't rename a directory that contains an open file.
            drop(mark.take());
        }
        // When we drop `aside`, the temporary directory is removed. If that fails, we will remove it later as a leftover.
        let aside = Aside(aside);
        let old = aside.path();
        fs::rename(path, &old).ok()?;
        if has_mark && mark.is_none() {
            // A process may have locked the mark before the directory was renamed. Give the version back to it.
            let is_unused =
                File::options().write(true).open(old.join(MARK)).is_ok_and(|mark| mark.try_lock().is_ok());
            if !is_unused {
                // If this fails, the version will be fetched again.
                let _ = fs::rename(&old, path);
                return None;
            }
        }
        drop(mark);
        Some(aside)
    }
}

/// A version that was moved aside. Dropping it removes the version.
pub(super) struct Aside(Temporary);

impl Aside {
    /// Returns the directory of the version.
    pub(super) fn path(&self) -> PathBuf {
        self.0.path().join("old")
    }
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Instant};

    use super::*;
    use crate::{LockFile, Pinned, PinnedGit};

    const MONTH: Duration = Duration::from_hours(24 * 30);

    /// Prunes until the expected paths are removed. Child processes of other tests inherit our locks until they execute a program.
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

    /// Creates a version that was last used `age` ago.
    fn checkout(cache: &Path, digit: char, age: Duration) -> PathBuf {
        let dir = cache.join("git/place").join(commit(digit));
        fs::create_dir_all(dir.join("name/skill")).unwrap();
        fs::write(dir.join("name/skill/SKILL.md"), "x").unwrap();
        drop(InUse::of(vec![dir.clone()]).unwrap());
        let mark = File::options().write(true).open(dir.join(MARK)).unwrap();
        mark.set_modified(SystemTime::now() - age).unwrap();
        dir
    }

    /// Returns the copies of lock files.
    fn copies(cache: &Path) -> Vec<PathBuf> {
        let is_copy = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
        entries(&cache.join("locks")).into_iter().filter(is_copy).collect()
    }

    fn refer(lock: &Path, cache: &Path, digit: char) {
        let pinned = Pinned::Git(PinnedGit::new(commit(digit), std::collections::BTreeMap::new()));
        LockFile::change(lock, cache, |lock| lock.set("github:a/b", pinned)).unwrap();
    }

    #[test]
    fn only_unused_versions_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache");
        let lock = dir.path().join("skills.lock");
        let deleted = dir.path().join("deleted/skills.lock");
        let just_deleted = dir.path().join("just-deleted/skills.lock");
        let unmounted = dir.path().join("unmounted/skills.lock");
        let old = MONTH * 2;
        let referred = checkout(&cache, 'a', old);
        let used = checkout(&cache, 'b', old);
        let recent = checkout(&cache, 'c', Duration::ZERO);
        let unused = checkout(&cache, 'd', old);
        let of_deleted = checkout(&cache, 'e', old);
        let of_just_deleted = checkout(&cache, 'f', old);
        let of_unmounted = checkout(&cache, '1', old);
        let strange = cache.join("git/place/notes");
        fs::create_dir(&strange).unwrap();
        refer(&lock, &cache, 'a');
        for (lock, digit) in [(&deleted, 'e'), (&just_deleted, 'f'), (&unmounted, '1')] {
            let existing = copies(&cache);
            refer(lock, &cache, digit);
            if lock == &unmounted {
                fs::remove_dir_all(lock.parent().unwrap()).unwrap();
            } else {
                fs::remove_file(lock).unwrap();
            }
            if lock != &just_deleted {
                let copy = copies(&cache).into_iter().find(|copy| !existing.contains(copy)).unwrap();
                File::options()
                    .write(true)
                    .open(copy)
                    .unwrap()
                    .set_modified(SystemTime::now() - old)
                    .unwrap();
            }
        }
        let in_use = InUse::of(vec![used.clone()]).unwrap();
        File::options()
            .write(true)
            .open(used.join(MARK))
            .unwrap()
            .set_modified(SystemTime::now() - old)
            .unwrap();
        // This is left over from a fetch that was killed.
        let leftover = cache.join("git/place/.new-x");
        fs::create_dir_all(leftover.join("tree")).unwrap();
        removes(&cache, MONTH, &[&unused, &of_deleted]);
        assert!(leftover.exists());
        for (path, stays) in [
            (&referred, true),
            (&used, true),
            (&recent, true),
            (&unused, false),
            (&of_deleted, false),
            (&of_just_deleted, true),
            (&of_unmounted, true),
            (&strange, true),
        ] {
            assert_eq!(path.exists(), stays, "{}", path.display());
        }
        drop(in_use);
        removes(&cache, MONTH, &[&used]);
        // While a lock file is broken, we should keep the versions from its last readable content.
        fs::write(&lock, "<<<<<<< HEAD").unwrap();
        removes(&cache, Duration::ZERO, &[&recent]);
        assert!(referred.exists() && !leftover.exists());
        assert!(prune(&dir.path().join("none"), Duration::ZERO).is_empty());
    }

    /// A process can use thousands of versions, and it has a limited number of open files.
    #[test]
    fn several_versions_of_a_source_share_a_lock() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path();
        let [first, second, other] = ['a', 'b', 'c'].map(|digit| checkout(cache, digit, MONTH * 2));
        let in_use = InUse::of(vec![first.clone(), second.clone()]).unwrap();
        assert!(prune(cache, Duration::ZERO).is_empty());
        for (version, is_used) in [(&first, true), (&second, true), (&other, false)] {
            let mark = File::options().write(true).open(version.join(MARK)).unwrap();
            assert_eq!(mark.metadata().unwrap().modified().unwrap().elapsed().unwrap() < MONTH, is_used);
            // The lock of the source is the only one.
            mark.try_lock().unwrap();
        }
        drop(in_use);
        removes(cache, MONTH, &[&other]);
        removes(cache, Duration::ZERO, &[&first, &second]);
    }

    /// If a process starts to use a version while another one removes it, only one of the two succeeds.
    #[test]
    fn a_version_is_either_used_or_removed() {
        let dir = tempfile::tempdir().unwrap();
        let checkout = checkout(dir.path(), 'a', MONTH);
        let deadline = Instant::now() + Duration::from_secs(30);
        let unused = loop {
            match Unused::of(&checkout, MONTH) {
                Some(unused) => break unused,
                None => assert!(Instant::now() < deadline, "it is in use"),
            }
        };
        thread::scope(|scope| {
            let user = scope.spawn(|| InUse::of(vec![checkout.clone()]).is_some());
            let is_gone = unused.remove(checkout.parent().unwrap());
            let is_used = user.join().unwrap();
            assert!(!(is_gone && is_used), "the version was removed while it is used");
            // On Windows, the lock is released before the directory is renamed, so the user can win.
            assert!(is_gone || cfg!(windows));
            assert_eq!(checkout.exists(), !is_gone);
        });
    }

    #[test]
    fn nothing_is_removed_during_a_fetch() {
        let dir = tempfile::tempdir().unwrap();
        let checkout = checkout(dir.path(), 'a', MONTH);
        let fetching = FileLock::acquire(&dir.path().join("git/place").join(store::LOCK)).unwrap();
        assert!(prune(dir.path(), Duration::ZERO).is_empty());
        drop(fetching);
        removes(dir.path(), Duration::ZERO, &[&checkout]);
    }

    /// Another user, or a script in a sandbox, could lock a mark forever.
    #[test]
    fn a_locked_mark_does_not_block_a_start() {
        let dir = tempfile::tempdir().unwrap();
        let held = private::lockable(&dir.path().join(MARK)).unwrap();
        held.lock().unwrap();
        assert!(InUse::of(vec![dir.path().to_owned()]).is_none());
        drop(held);
        assert!(InUse::of(vec![dir.path().to_owned()]).is_some());
    }
}
