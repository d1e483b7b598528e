//! Limits of an updater, and the upkeep of lock files and the cache.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{super::prune, LockError, LockFile, Updater};

impl Updater {
    /// Sets the maximum number of bytes to receive from a repository, as in [`Options::max_fetch_bytes`](crate::Options::max_fetch_bytes).
    #[must_use]
    pub fn with_max_fetch_bytes(self, max_bytes: Option<u64>) -> Self {
        Self { store: self.store.with_max_bytes(max_bytes), ..self }
    }

    /// Resolves a merge conflict in the lock file: keeps the sources of both sides. If a source has different versions, ours is kept.
    /// Returns the addresses of these sources, or `None` if the file has no conflict markers.
    ///
    /// # Errors
    /// Returns [`LockError::Unresolvable`] if the markers are incomplete or a side is invalid, and other errors if the file can't be read,
    /// locked or written.
    pub fn resolve_conflict(&self, lock: &Path) -> Result<Option<Vec<String>>, LockError> {
        LockFile::resolve(lock, self.store.dir())
    }

    /// Removes versions from the cache that no known lock file refers to and that were last used at least `unused` ago. Versions that
    /// a process is using are kept. Returns the removed directories and files.
    pub fn prune(&self, unused: Duration) -> Vec<PathBuf> {
        prune::prune(self.store.dir(), unused)
    }
}
