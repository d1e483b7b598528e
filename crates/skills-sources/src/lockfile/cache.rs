//! Keeps files about each lock file in the cache directory: a copy of the last readable version, the path of the original, and the
//! file lock that a process must hold to change the original.

use std::{
    collections::HashSet,
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use skills_core::skill::Sha256;

use super::{LockError, LockFile, Pinned};
use crate::disk::{Resolved, without_links};

/// The time for which a deleted lock file is remembered after its last use.
const REMEMBERED: Duration = Duration::from_hours(24 * 30);
/// The precision of the time of the last use.
const PRECISION: Duration = Duration::from_hours(1);

/// The extension of the file that contains the path of the original.
const ORIGIN: &str = "path";

impl LockFile {
    /// Reads a lock file. If that fails, returns the last readable version, or an empty one, with the error.
    pub(crate) fn read_or_last(path: &Path, cache: &Path) -> (Self, Option<LockError>) {
        match Self::read(path) {
            Ok(lock) => {
                lock.keep(path, cache);
                (lock, None)
            }
            Err(error) => (Self::read(&copy(path, cache)).unwrap_or_default(), Some(error)),
        }
    }

    /// Returns true if [`read_or_last`](Self::read_or_last) has a version to fall back to.
    pub(crate) fn has_last(path: &Path, cache: &Path) -> bool {
        let copy = copy(path, cache);
        copy.exists() && Self::read(&copy).is_ok()
    }

    /// Saves `self` as the last readable version.
    pub(super) fn keep(&self, path: &Path, cache: &Path) {
        let copy = copy(path, cache);
        let Ok(text) = self.text() else { return };
        if fs::read(&copy).ok().as_deref() != Some(text.as_bytes()) {
            // If this fails, we just can't serve any skills while the lock file is broken.
            let _ = Resolved::new(&copy).and_then(|copy| copy.write(&text));
        } else if age(&copy).is_none_or(|age| age > PRECISION) {
            // Update the modification time of the copy, which is used as the time of its last use.
            let _ =
                File::options().write(true).open(&copy).and_then(|copy| copy.set_modified(SystemTime::now()));
        }
        // We need the path of the original to ignore the copy once the original is gone.
        let origin = copy.with_extension(ORIGIN);
        if let Ok(path) = std::path::absolute(path)
            && !origin.exists()
        {
            let _ = fs::write(origin, path.as_os_str().as_encoded_bytes());
        }
    }
}

/// Returns the path of the [file lock](crate::disk::FileLock) that guards changes of the file at `path`.
pub(crate) fn lock_path(path: &Path, cache: &Path) -> PathBuf {
    // A change of a link changes its target, so all paths of a file have the same lock.
    cache.join("locks").join(format!("{}.lock", key(&without_links(path))))
}

/// Returns the path of the copy.
fn copy(path: &Path, cache: &Path) -> PathBuf {
    cache.join("locks").join(format!("{}.json", key(path)))
}

/// Returns the time since the last use of the lock file with this copy. `None` if the clock was set back.
fn age(copy: &Path) -> Option<Duration> {
    fs::metadata(copy).and_then(|metadata| metadata.modified()).ok()?.elapsed().ok()
}

/// Returns true if the lock file at `origin` was deleted and will not come back: its directory is there, so its disk is mounted, and
/// it was not used for a long time.
fn is_gone(origin: &Path, copy: &Path) -> bool {
    let has_directory = origin.parent().is_some_and(Path::is_dir);
    has_directory && !origin.exists() && age(copy).is_some_and(|age| age >= REMEMBERED)
}

/// Returns the commits and index checksums in all lock files that were read with this cache. Copies are removed if their original is
/// [gone](is_gone).
pub(crate) fn references(cache: &Path) -> HashSet<String> {
    let mut references = HashSet::new();
    for entry in fs::read_dir(cache.join("locks")).into_iter().flatten().flatten() {
        let copy = entry.path();
        if copy.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let file = copy.with_extension(ORIGIN);
        let origin = fs::read_to_string(&file).ok().map(PathBuf::from);
        if origin.as_ref().is_some_and(|origin| is_gone(origin, &copy)) {
            let _ = fs::remove_file(&copy);
            let _ = fs::remove_file(&file);
            continue;
        }
        // Include the references of both the original and the copy, because we may serve the copy while the original is
        // broken.
        for path in origin.iter().chain([&copy]) {
            let lock = LockFile::read(path).unwrap_or_default();
            references.extend(lock.sources.into_values().flat_map(Pinned::into_versions));
        }
    }
    references
}

/// Returns the base name of the cache files about `path`.
fn key(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Sha256::of(path.as_os_str().as_encoded_bytes()).to_string()[..32].to_owned()
}
