//! Brings a source into the store: what was approved of it, or what it has at first.

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

/// Brings a source into the store. Returns what is approved of it, and whether that is written.
pub(super) fn fetch(spec: &Spec, store: &Store, options: &Options) -> Result<(Pinned, bool), SourceError> {
    let (lock_file, broken) = LockFile::read_or_last(&spec.lock, store.dir());
    let pinned = lock_file.get(spec.address.as_str()).cloned();
    match (spec.address.place(), pinned) {
        (Place::Git(place), Some(Pinned::Git(pinned))) => {
            store
                .fetch_git(place, Some(&pinned.commit), options.observer.clone())
                .map_err(|error| SourceError::git(&spec.address, error))?;
            Ok((Pinned::Git(pinned), true))
        }
        (Place::Web(url), Some(Pinned::Web(pinned))) => {
            let digest =
                store.fetch_index(url, None).map_err(|error| SourceError::web(&spec.address, error))?;
            if digest.to_string() != pinned.index {
                return Err(SourceError::Changed { address: spec.address.to_string() });
            }
            Ok((Pinned::Web(pinned), true))
        }
        _ => {
            if let Some(broken) = broken {
                return Err(broken.into());
            }
            if options.locked {
                let (address, path) = (spec.address.to_string(), spec.lock.clone());
                return Err(SourceError::NotLocked { address, path });
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

/// Writes down what came first, unless another process was faster: then that is what counts.
fn approve_first(spec: &Spec, pinned: Pinned, store: &Store) -> (Pinned, bool) {
    let key = spec.address.as_str();
    let write = |lock_file: &mut LockFile| {
        if let Some(theirs) = lock_file.get(key) {
            return theirs.clone();
        }
        lock_file.set(key, pinned.clone());
        pinned.clone()
    };
    match LockFile::change(&spec.lock, store.dir(), write) {
        Ok(pinned) => (pinned, true),
        Err(error) => {
            tracing::warn!("what is fetched of {key} is not written down: {error}; {}", error.hint());
            (pinned, false)
        }
    }
}

/// What came with a source and waits for somebody to look at it.
fn warn_of_risks(address: &Address, risks: &[(String, Finding)]) {
    for (path, finding) in risks {
        tracing::warn!(
            "the skill in `{path}` of {address} is not used: {} ({}, {}); `acp-skills-proxy update '{address}'` shows it, and asks",
            finding.reason,
            finding.code,
            finding.file
        );
    }
}

/// Fetches a source as it is now. Returns what is approved of it when all of it is.
fn pin_now(address: &Address, store: &Store, options: &Options) -> Result<Pinned, SourceError> {
    match address.place() {
        Place::Git(place) => {
            let fetched = store
                .fetch_git(place, None, options.observer.clone())
                .map_err(|error| SourceError::git(address, error))?;
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
