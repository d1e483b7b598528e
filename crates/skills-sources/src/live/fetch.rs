//! Fetches a source into the store: its approved version, or its current one if none was approved yet.

use skills_core::scan::Finding;

use super::{
    super::{
        SourceError,
        address::{Address, Place},
        load,
        lockfile::{LockFile, Pinned, PinnedWeb},
        store::Store,
    },
    Options, Spec,
};

/// The approved version of a source that is in the store.
pub(super) struct Fetched {
    pub(super) pinned: Pinned,
    /// True if the version is in the lock file. False if the file could not be written.
    pub(super) is_saved: bool,
}

/// Fetches a source into the store.
pub(super) fn fetch(spec: &Spec, store: &Store, options: &Options) -> Result<Fetched, SourceError> {
    // Another process may just be fetching this source for the first time. If so, wait until it is in the lock file.
    let is_new = !options.locked
        && LockFile::read(&spec.lock).is_ok_and(|lock| lock.get(spec.address.as_str()).is_none());
    let _first = if is_new { store.lock_first_fetch(spec.address.place()) } else { None };
    let (lock_file, broken) = LockFile::read_or_last(&spec.lock, store.dir());
    let pinned = lock_file.get(spec.address.as_str()).cloned();
    match (spec.address.place(), pinned) {
        (Place::Git(place), Some(Pinned::Git(pinned))) => {
            store
                .fetch_git(place, Some(&pinned.commit), options.observer.clone())
                .map_err(|error| SourceError::git(&spec.address, error))?;
            Ok(Fetched { pinned: Pinned::Git(pinned), is_saved: true })
        }
        (Place::Web(url), Some(Pinned::Web(pinned))) => {
            if store.index(url, &pinned.index).is_some() {
                return Ok(Fetched { pinned: Pinned::Web(pinned), is_saved: true });
            }
            let digest =
                store.fetch_index(url, None).map_err(|error| SourceError::web(&spec.address, error))?;
            if digest.to_string() != pinned.index {
                return Err(SourceError::Changed { address: spec.address.to_string() });
            }
            Ok(Fetched { pinned: Pinned::Web(pinned), is_saved: true })
        }
        _ => {
            if let Some(broken) = broken {
                return Err(broken.into());
            }
            if options.locked {
                return Err(SourceError::NotLocked {
                    address: spec.address.to_string(),
                    path: spec.lock.clone(),
                });
            }
            let mut pinned = pin_now(&spec.address, store, options)?;
            if let (Place::Git(place), Pinned::Git(git)) = (spec.address.place(), &mut pinned) {
                let root = store.root(place, &git.commit);
                warn_of_risks(&spec.address, &load::hold_back_risks(&root, git));
            }
            Ok(approve_first(spec, pinned, store))
        }
    }
}

/// Writes the first version of a source to the lock file. If another process has written one in the meantime, we use that
/// version instead.
fn approve_first(spec: &Spec, pinned: Pinned, store: &Store) -> Fetched {
    let key = spec.address.as_str();
    let write = |lock_file: &mut LockFile| {
        if let Some(theirs) = lock_file.get(key) {
            return theirs.clone();
        }
        lock_file.set(key, pinned.clone());
        pinned.clone()
    };
    match LockFile::change(&spec.lock, store.dir(), write) {
        Ok(pinned) => Fetched { pinned, is_saved: true },
        Err(error) => {
            tracing::warn!("the approval of {key} could not be saved: {error}; {}", error.hint());
            Fetched { pinned, is_saved: false }
        }
    }
}

/// Warns about skills that were held back because of a high-risk finding.
fn warn_of_risks(address: &Address, risks: &[(String, Finding)]) {
    for (path, finding) in risks {
        tracing::warn!(
            "the skill in `{path}` of {address} is not used: {} ({}, {}); run `acp-skills-proxy update '{address}'` to review and approve it",
            finding.reason,
            finding.code,
            finding.file
        );
    }
}

/// Fetches the current version of a source. Returns the pin that approves all of its skills.
fn pin_now(address: &Address, store: &Store, options: &Options) -> Result<Pinned, SourceError> {
    match address.place() {
        Place::Git(place) => {
            let fetched = store
                .fetch_git(place, None, options.observer.clone())
                .map_err(|error| SourceError::git(address, error))?;
            for note in &fetched.notes {
                tracing::warn!("{address}: {note}");
            }
            let root = store.root(place, &fetched.commit);
            let pinned = load::pin(&root, &fetched.commit, options.max_skills);
            pinned.map(Pinned::Git).map_err(|error| SourceError::system(address, error))
        }
        Place::Web(url) => {
            let digest = store.fetch_index(url, None).map_err(|error| SourceError::web(address, error))?;
            Ok(Pinned::Web(PinnedWeb { index: digest.to_string() }))
        }
    }
}
