//! Limits of an updater, and the upkeep of lock files and the cache.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{
    super::{
        access::Credentials,
        address::{Address, GitPlace, Place},
        approved, digest,
        error::SourceError,
        git::GitError,
        live::Checks,
        prune,
        versions::{self, LATEST, Range},
    },
    LockError, LockFile, Pinned, Updater,
};

impl Updater {
    /// Sets the maximum number of bytes to receive from a repository, as in [`Options::max_fetch_bytes`](crate::Options::max_fetch_bytes).
    #[must_use]
    pub fn with_max_fetch_bytes(self, max_bytes: Option<u64>) -> Self {
        Self { store: self.store.with_max_bytes(max_bytes), ..self }
    }

    /// Sets the user's settings for the servers of sources, as in [`Options::credentials`](crate::Options::credentials).
    #[must_use]
    pub fn with_credentials(self, credentials: Option<Arc<dyn Credentials>>) -> Self {
        Self { store: self.store.with_credentials(credentials), ..self }
    }

    /// Returns the newer version of a source that the last check in the background has found: its tag or its commit, or the checksum of
    /// its index. Reads only the cache.
    pub fn news(&self, address: &Address, pinned: &Pinned) -> Option<String> {
        Checks::read(self.store.dir()).news(address, pinned)
    }

    /// Returns an updater with other settings for the servers of sources.
    #[must_use]
    pub fn accessing(&self, credentials: Arc<dyn Credentials>) -> Self {
        self.clone().with_credentials(Some(credentials))
    }

    /// Returns an updater that accepts new versions only if git accepts the signature of their commit or tag.
    #[must_use]
    pub fn verifying(&self) -> Self {
        Self { store: self.store.clone().verifying(), ..self.clone() }
    }

    /// Resolves a merge conflict in the lock file: keeps the sources of both sides. If a source has different versions, ours is kept.
    /// Returns the addresses of these sources, or `None` if the file has no conflict markers.
    ///
    /// # Errors
    /// Returns [`LockError::Unresolvable`] if the markers are incomplete or a side is invalid, and other errors if the file can't be read,
    /// locked or written.
    pub fn resolve_conflict(&self, lock: &Path) -> Result<Option<Vec<String>>, LockError> {
        let has = |source: &str, version: &str, path: &str, digest: &str| {
            let is_inside = path.split('/').all(|part| part != "..") && !path.starts_with('/');
            match Address::parse(source).as_ref().map(Address::place) {
                Ok(Place::Git(place)) if is_inside => {
                    let dir = approved::at(&self.store.root(place, version), path);
                    digest::of_skill(&dir).is_ok_and(|found| found.to_string() == digest)
                }
                // Skills of a site are served by their checksums.
                Ok(Place::Web(_)) => true,
                _ => false,
            }
        };
        LockFile::resolve(lock, self.store.dir(), &has)
    }

    /// Returns the address with a range that contains the highest version of the source. Returns `None` if the range of the address
    /// contains this version, or if the address has no range. `approved` is the approved version, if any.
    ///
    /// # Errors
    /// Returns an error if the source can't be reached.
    pub fn beyond_range(
        &self,
        address: &Address,
        approved: Option<&Pinned>,
    ) -> Result<Option<Address>, SourceError> {
        let Place::Git(place) = address.place() else { return Ok(None) };
        let Some(reference) = place.reference.as_deref().filter(|name| Range::parse(name).is_some()) else {
            return Ok(None);
        };
        self.permit(address)?;
        let newest = GitPlace { reference: Some(LATEST.to_owned()), ..place.clone() };
        let store = self.store.for_newer_than(approved);
        let found = match store.find(&newest, self.options.observer.clone(), &self.store.limits()) {
            // The repository has no version at all.
            Err(GitError::NoReference(_)) => return Ok(None),
            found => found.map_err(|error| SourceError::git(address, error))?,
        };
        let tag = found.and_then(|found| found.tag);
        let range = tag.and_then(|tag| versions::moved(reference, &tag));
        Ok(range.and_then(|range| address.with_range(&range)))
    }

    /// Moves the approval of a source to another address in the lock file. An approval of the other address is replaced: it belongs to
    /// no source of the configuration, and its version was not shown.
    ///
    /// # Errors
    /// Returns the errors of [`LockFile::change`].
    pub fn rename(&self, lock: &Path, from: &str, to: &str) -> Result<(), LockError> {
        LockFile::change(lock, self.store.dir(), |lock| {
            if let Some(pinned) = lock.get(from).cloned() {
                lock.set(to, pinned);
                lock.remove(from);
            }
        })
    }

    /// Keeps a skill of a source at its version, or lets it go. `path` is its directory in the source. Returns true if this changes
    /// the lock file.
    ///
    /// # Errors
    /// Returns the errors of [`LockFile::change`].
    pub fn set_pinned(
        &self,
        lock: &Path,
        address: &Address,
        path: &str,
        is_pinned: bool,
    ) -> Result<bool, LockError> {
        LockFile::change(lock, self.store.dir(), |lock| {
            let Some(mut pinned) = lock.get(address.as_str()).cloned() else { return false };
            if let Pinned::Web(web) = &mut pinned
                && is_pinned
                && web.skills.is_none()
            {
                // Otherwise, the approved version of the skill is unknown without the index, which may be removed from the cache.
                web.skills = self.all_of(address, &web.index);
            }
            let decisions = pinned.decisions_mut();
            let is_changed = if is_pinned {
                decisions.pinned.insert(path.to_owned())
            } else {
                decisions.pinned.remove(path)
            };
            lock.set(address.as_str(), pinned);
            is_changed
        })
    }

    /// Removes versions from the cache that no known lock file refers to and that were last used at least `unused` ago. Versions that
    /// a process is using are kept. Returns the removed directories and files.
    pub fn prune(&self, unused: Duration) -> Vec<PathBuf> {
        prune::prune(self.store.dir(), unused)
    }
}
