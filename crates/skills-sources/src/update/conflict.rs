//! Resolves merge conflicts in lock files.

use std::path::Path;

use super::{LockError, LockFile, Updater};

impl Updater {
    /// Resolves a merge conflict in the lock file: keeps the sources of both sides. If a source has different versions, ours is kept.
    /// Returns the addresses of these sources, or `None` if the file has no conflict markers.
    ///
    /// # Errors
    /// Returns [`LockError::Broken`] if the markers are incomplete or a side is invalid, and other errors if the file can't be read,
    /// locked or written.
    pub fn resolve_conflict(&self, lock: &Path) -> Result<Option<Vec<String>>, LockError> {
        LockFile::resolve(lock, self.store.dir())
    }
}
