//! What the cache knows of a lock: the last one that could be read, whose copy that is, and the file lock of whoever
//! changes it.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use skills_core::remote::Sha256;

use super::{LockError, LockFile, Pinned};

/// What ends the name of the file that says whose copy another one is.
const ORIGIN: &str = "path";

impl LockFile {
    /// Reads a lock, or the last one that could be read, with what is wrong with the one that is there.
    pub(crate) fn read_or_last(path: &Path, cache: &Path) -> (Self, Option<LockError>) {
        match Self::read(path) {
            Ok(lock) => {
                lock.keep(path, cache);
                (lock, None)
            }
            Err(error) => (Self::read(&copy(path, cache)).unwrap_or_default(), Some(error)),
        }
    }

    /// Keeps this as the last one that could be read.
    pub(super) fn keep(&self, path: &Path, cache: &Path) {
        let copy = copy(path, cache);
        if Self::read(&copy).ok().as_ref() != Some(self) {
            // Without it, a broken lock serves nothing.
            drop(self.write(&copy));
        }
        // Says whose copy it is: a lock that is gone refers to nothing.
        let (origin, path) = (copy.with_extension(ORIGIN), std::path::absolute(path));
        if let Ok(path) = path
            && !origin.exists()
        {
            drop(fs::write(origin, path.as_os_str().as_encoded_bytes()));
        }
    }
}

/// The path of the [file lock](crate::disk::FileLock) of whoever changes the file at `path`.
pub(crate) fn lock_path(path: &Path, cache: &Path) -> PathBuf {
    cache.join("locks").join(format!("{}.lock", key(path)))
}

/// Where the last lock is that could be read.
fn copy(path: &Path, cache: &Path) -> PathBuf {
    cache.join("locks").join(format!("{}.json", key(path)))
}

/// Everything that the locks refer to which were read with this cache: commits, and digests of indexes. Of a lock that is
/// gone, the copy goes as well.
pub(crate) fn references(cache: &Path) -> HashSet<String> {
    let mut references = HashSet::new();
    for entry in fs::read_dir(cache.join("locks")).into_iter().flatten().flatten() {
        let copy = entry.path();
        if copy.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let file = copy.with_extension(ORIGIN);
        let origin = fs::read_to_string(&file).ok().map(PathBuf::from);
        if origin.as_ref().is_some_and(|origin| !origin.exists()) {
            drop(fs::remove_file(&copy));
            drop(fs::remove_file(&file));
            continue;
        }
        // The copy counts also where the lock itself is another by now: whoever has that one broken goes on with it.
        for path in origin.iter().chain([&copy]) {
            let lock = LockFile::read(path).unwrap_or_default();
            references.extend(lock.sources.into_values().map(|pinned| match pinned {
                Pinned::Git(git) => git.commit,
                Pinned::Web(web) => web.index,
            }));
        }
    }
    references
}

/// The name of a file about another one.
fn key(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Sha256::of(path.as_os_str().as_encoded_bytes()).to_string()[..32].to_owned()
}
