//! The changes of lock files: approvals of sources, and their removal.

use std::{io, path::Path};

use super::{
    super::{
        address::{Address, Place},
        approved,
        lockfile::{self, LockError, LockFile, Pinned},
        named::NamedSources,
    },
    Decision, Offer, Updater,
};
use crate::disk::FileLock;

impl Updater {
    /// Approves skills of an offer as the user has decided: writes the pin to the lock file. The approved skills of a repository then
    /// move to the directory from which they are served, so the directories in the offer are gone.
    ///
    /// # Errors
    /// Returns the errors of [`LockFile::change`], and [`LockError::Outpaced`] if another version was approved since the offer was made, or a
    /// change that the user declines: the offer could be older, and the user has compared it with another version.
    pub fn approve(
        &self,
        lock: &Path,
        address: &Address,
        offer: &Offer,
        decision: &Decision,
    ) -> Result<Pinned, LockError> {
        let pinned = LockFile::change(lock, self.store.dir(), |entries| {
            // Another process may have changed the lock file in the meantime, so decide with its current content.
            let current = entries.get(address.as_str()).filter(|_| !decision.is_first());
            let is_known = |version: &str| {
                version == offer.pinned.version() || Some(version) == offer.approved.as_deref()
            };
            let is_outrun = |current: &Pinned| decision.declines_approved(offer, current);
            if current.is_some_and(|current| !is_known(current.version()) || is_outrun(current)) {
                return Err(LockError::Outpaced { path: lock.to_owned(), address: address.to_string() });
            }
            let pinned = self.decided(address, current, offer, decision);
            entries.set(address.as_str(), pinned.clone());
            Ok(pinned)
        })??;
        if let (Place::Git(place), Pinned::Git(git), Some(checkout)) =
            (address.place(), &pinned, &offer.checkout)
        {
            // If this fails, the approved version is fetched when it is used.
            let _ = approved::add(&self.store, place, &git.parts()[0], checkout);
        }
        self.add_archives(offer, &pinned);
        Ok(pinned)
    }

    /// Removes a source from the lock file. Returns true if the file contained it.
    ///
    /// # Errors
    /// Returns the errors of [`LockFile::change`], and [`LockError::UnwritableRecord`] if the record of named sources can't be changed.
    pub fn forget(&self, lock: &Path, source: &str) -> Result<bool, LockError> {
        // Forget that the source was approved by naming it, so that naming it again approves it again.
        let named = NamedSources::beside(lock);
        let was_named = named.remove(source).map_err(|source| named.unwritable(source))?;
        if !lock.exists() {
            return Ok(was_named);
        }
        Ok(LockFile::change(lock, self.store.dir(), |lock| lock.remove(source))? || was_named)
    }

    /// Takes the file lock for changes of the file at `path`, and waits while another process holds it. Processes exclude each other
    /// only if they use the same cache directory.
    ///
    /// # Errors
    /// Returns the system's error if the lock file can't be created or locked.
    pub fn lock_for_change(&self, path: &Path) -> io::Result<FileLock> {
        FileLock::acquire_for_change(&lockfile::lock_path(path, self.store.dir()))
    }
}
