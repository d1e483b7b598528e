//! Fetches a source into the store: its approved version, or its current one if none was approved yet.

use std::{io, time::Duration};

use parking_lot::Mutex;
use skills_core::SkillName;

use super::{
    super::{
        SourceError,
        address::{Address, GitPlace, Place},
        approved,
        budget::Budget,
        git::GitError,
        load::{self, HeldBack, Wanted},
        lockfile::{LockFile, MAX_KEPT, Pinned, PinnedGit, PinnedWeb, lock_path},
        named::NamedSources,
        packed::{self, Unpacked},
        site::RemoteIndex,
        store::{Checkout, Store},
    },
    Options, Spec,
};
use crate::disk::FileLock;

/// Held while a lock file is in memory. All sources can be fetched at the same time, and a lock file can be large. No other lock is taken
/// while it is held.
static READING: Mutex<()> = Mutex::new(());

/// The approved version of a source that is in the store.
pub(super) struct Fetched {
    pub(super) pinned: Pinned,
    /// True if the version is in the lock file. False if the file could not be written.
    pub(super) is_saved: bool,
}

/// Fetches a source into the store.
pub(super) fn fetch(spec: &Spec, store: &Store, options: &Options) -> Result<Fetched, SourceError> {
    // Another process may just be fetching this source for the first time. If so, wait until it is in the lock file.
    let is_new = !options.locked && {
        let _one = READING.lock();
        LockFile::read(&spec.lock).is_ok_and(|lock| lock.get(spec.address.as_str()).is_none())
    };
    let _first = if is_new { store.lock_first_fetch(spec.address.place()) } else { None };
    let (pinned, broken) = {
        let _one = READING.lock();
        let (lock_file, broken) = options.lock_file(&spec.lock, store);
        (lock_file.get(spec.address.as_str()).cloned(), broken)
    };
    match (spec.address.place(), pinned) {
        (Place::Git(place), Some(Pinned::Git(pinned))) => {
            fetch_parts(&spec.address, place, &pinned, store, options)?;
            Ok(Fetched { pinned: Pinned::Git(pinned), is_saved: true })
        }
        (Place::Web(url), Some(Pinned::Web(pinned))) => {
            if store.index(url, &pinned.index).is_none() {
                let digest = store
                    .fetch_index(url, None, Some(&pinned.index))
                    .map_err(|error| SourceError::web(&spec.address, error))?;
                if digest.to_string() != pinned.index {
                    return Err(SourceError::Changed { address: spec.address.to_string() });
                }
            }
            fetch_archives(spec, url, &pinned, store, options);
            Ok(Fetched { pinned: Pinned::Web(pinned), is_saved: true })
        }
        _ => {
            if let Some(broken) = broken {
                return Err(broken.into());
            }
            if options.locked && !options.is_governed() {
                return Err(SourceError::NotLocked {
                    address: spec.address.to_string(),
                    path: spec.lock.clone(),
                });
            }
            if waits(spec, store) {
                return Err(not_approved(spec, options));
            }
            let Current { mut pinned, checkout, archives } = pin_now(spec, store, options)?;
            if let (Some(checkout), Pinned::Git(git)) = (&checkout, &mut pinned) {
                warn_of_risks(&spec.address, &load::hold_back_risks(&checkout.root, git));
            }
            let approved = approve_first(spec, pinned, store, options);
            if let (Place::Web(url), Ok(Fetched { pinned: Pinned::Web(web), .. })) =
                (spec.address.place(), &approved)
            {
                for archive in archives {
                    let Some(checkout) = &archive.checkout else { continue };
                    // If this fails, or if another process has approved another version, the archive is fetched again.
                    let _ = approved::add(store, &archive.place, &archive.pinned, checkout);
                }
                fetch_archives(spec, url, web, store, options);
            }
            let (Place::Git(place), Some(checkout)) = (spec.address.place(), checkout) else {
                return approved;
            };
            let Ok(Fetched { pinned: Pinned::Git(git), .. }) = &approved else { return approved };
            // Another process may have approved another version.
            let is_ours = git.commit == checkout.commit;
            let added = if is_ours {
                approved::add(store, place, &git.parts()[0], &checkout)
                    .map_err(|error| SourceError::git(&spec.address, error))
            } else {
                drop(checkout);
                fetch_parts(&spec.address, place, git, store, options)
            };
            added.and(approved)
        }
    }
}

/// Fetches an approved version. Skills that stay at another commit are missing if that commit can't be fetched. All other commits together
/// have the limits of one.
fn fetch_parts(
    address: &Address,
    place: &GitPlace,
    pinned: &PinnedGit,
    store: &Store,
    options: &Options,
) -> Result<(), SourceError> {
    let fetch =
        |store: &Store, part: &PinnedGit| approved::fetch(store, place, part, options.observer.clone());
    let parts = pinned.parts();
    let (own, kept) = parts.split_first().expect("the source has a commit");
    fetch(store, own).map_err(|error| SourceError::git(address, error))?;
    let missing: Vec<_> = kept.iter().filter(|part| approved::served(store, place, part).is_none()).collect();
    let mut budget = Budget::of_commits(store);
    let mut failed = 0;
    let mut first = None;
    for part in &missing {
        let fetched = if kept.len() > MAX_KEPT {
            Err(GitError::TooManyCommits)
        } else {
            budget.fetch(&place.url, |store| Ok((fetch(store, part)?, store.root(place, &part.commit))))
        };
        if let Err(error) = fetched {
            failed += 1;
            first.get_or_insert((&part.commit, error));
        }
    }
    if let Some((commit, error)) = first {
        let others = if failed > 1 { format!(" and {} other commits", failed - 1) } else { String::new() };
        let hint = error.hint();
        tracing::warn!(
            "cannot fetch the skills of {address} that stay at commit {commit:.12}{others}: {error}; {hint}"
        );
    }
    Ok(())
}

/// Fetches the approved archives of a site that are not in the store. An archive that can't be fetched is only a warning, because the
/// other skills can be used.
fn fetch_archives(spec: &Spec, url: &str, pinned: &PinnedWeb, store: &Store, options: &Options) {
    let takes = |name: &SkillName| spec.filters.iter().all(|filter| filter.takes(name));
    let warn = |error: &GitError| {
        tracing::warn!("cannot fetch an archive of {}: {error}; {}", spec.address, error.hint());
    };
    let mut budget = Budget::of_archives(store);
    for (place, version) in packed::missing(store, url, pinned, &takes) {
        let fetched = budget.fetch(&place.url, |store| {
            let observer = options.observer.clone();
            approved::fetch_at(store, &place, None, &version, observer)?;
            Ok(((), store.root(&place, &version.commit)))
        });
        if let Err(error) = fetched {
            warn(&error);
            // The others would fail for the same reason.
            if budget.is_spent() {
                return;
            }
        }
    }
}

/// Returns true if a source that is not in the lock file has to wait for its approval: either it was not named explicitly, or it
/// was named before and its approval was lost.
///
/// Another process may just be approving the source, which takes two files. Waits for this process for up to 15 seconds.
fn waits(spec: &Spec, store: &Store) -> bool {
    let lock = lock_path(&spec.lock, store.dir());
    is_unapproved(spec, || {
        // If the other process is stopped, it has not approved the source.
        let _lock = FileLock::acquire_for_change(&lock);
        is_not_in(spec)
    })
}

/// Like [`waits`], without waiting for another process. Returns false if another process may just be approving the source. Fetching
/// the source then waits for it.
pub(super) fn waits_now(spec: &Spec, store: &Store) -> bool {
    let lock = lock_path(&spec.lock, store.dir());
    is_unapproved(spec, || match FileLock::acquire_within(&lock, Duration::ZERO) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => false,
        _lock => is_not_in(spec),
    })
}

/// Returns true if naming a source doesn't approve it. `is_lost` is only called if the source was named before, and returns true if
/// its approval was lost.
fn is_unapproved(spec: &Spec, is_lost: impl FnOnce() -> bool) -> bool {
    !spec.is_named || NamedSources::beside(&spec.lock).contains(spec.address.as_str()) && is_lost()
}

/// Returns true if the lock file can be read and doesn't contain the source.
fn is_not_in(spec: &Spec) -> bool {
    LockFile::read(&spec.lock).is_ok_and(|lock_file| lock_file.get(spec.address.as_str()).is_none())
}

/// Returns the error for a source that waits for its approval, or that is not in the lock file of an administrator.
pub(super) fn not_approved(spec: &Spec, options: &Options) -> SourceError {
    let refusal = options.policy.as_ref().and_then(|policy| policy.not_in_lock(&spec.address));
    refusal.map_or_else(
        || SourceError::NotApproved {
            address: spec.address.to_string(),
            path: spec.lock.clone(),
            is_named: spec.is_named,
        },
        SourceError::Refused,
    )
}

/// Writes the first version of a source to the lock file. If another process has written one in the meantime, we use that
/// version instead.
fn approve_first(
    spec: &Spec,
    pinned: Pinned,
    store: &Store,
    options: &Options,
) -> Result<Fetched, SourceError> {
    let key = spec.address.as_str();
    let named = NamedSources::beside(&spec.lock);
    let write = |lock_file: &mut LockFile| {
        if let Some(theirs) = lock_file.get(key) {
            return Ok(theirs.clone());
        }
        if named.contains(key) {
            return Err(not_approved(spec, options));
        }
        // Make sure to do this first. If we're killed in between, the source just has to be approved with `update`.
        named.insert(key).map_err(|source| named.unwritable(source))?;
        lock_file.set(key, pinned.clone());
        Ok(pinned.clone())
    };
    match LockFile::change(&spec.lock, store.dir(), write).unwrap_or_else(|error| Err(error.into())) {
        Ok(pinned) => Ok(Fetched { pinned, is_saved: true }),
        Err(SourceError::Lock(error)) => {
            tracing::warn!("cannot save approval for {key}: {error}; {}", error.hint());
            Ok(Fetched { pinned, is_saved: false })
        }
        Err(error) => Err(error),
    }
}

/// Warns about skills that were held back, because naming their source does not approve them.
fn warn_of_risks(address: &Address, held_back: &[HeldBack]) {
    for HeldBack { path, why } in held_back {
        tracing::warn!(
            "skill in `{path}` from {address} is not used: {why}; use `acp-skills-proxy update '{address}'` to review and approve"
        );
    }
}

/// The current version of a source.
struct Current {
    /// The pin that approves the skills that pass the filters.
    pinned: Pinned,
    /// The files of a repository.
    checkout: Option<Checkout>,
    /// The files of the archives of a web site.
    archives: Vec<Unpacked>,
}

/// Fetches the current version of a source.
fn pin_now(spec: &Spec, store: &Store, options: &Options) -> Result<Current, SourceError> {
    let address = &spec.address;
    let wanted = Wanted::new(&spec.filters, options.max_skills, spec.nested, options.policy.as_deref());
    match address.place() {
        Place::Git(place) => {
            let fetched = store
                .fetch_git(place, None, options.observer.clone())
                .map_err(|error| SourceError::git(address, error))?;
            for note in &fetched.notes {
                tracing::warn!("{address}: {note}");
            }
            let max_bytes = store.limits().bytes;
            let pinned = load::pin_wanted(&fetched.root, &fetched.commit, &wanted, max_bytes);
            let mut pinned = pinned.map_err(|error| SourceError::pin(address, error))?;
            pinned.tag.clone_from(&fetched.tag);
            pinned.registry.clone_from(&fetched.registry);
            Ok(Current { pinned: Pinned::Git(pinned), checkout: Some(fetched), archives: Vec::new() })
        }
        Place::Web(url) => {
            let digest =
                store.fetch_index(url, None, None).map_err(|error| SourceError::web(address, error))?;
            let mut pinned = PinnedWeb::new(digest.to_string(), None);
            let index = store
                .index(url, &pinned.index)
                .and_then(|index| RemoteIndex::parse_with_archives(&index.text, &index.url).ok());
            let mut archives = Vec::new();
            if let Some(index) = index {
                pinned.skills = load::listed(&index, &wanted);
                archives = unpack(spec, url, &index, &wanted, &mut pinned, store)?;
            }
            Ok(Current { pinned: Pinned::Web(pinned), checkout: None, archives })
        }
    }
}

/// Fetches the archives of a site, and adds them to `pinned`, except those that a person should review.
fn unpack(
    spec: &Spec,
    url: &str,
    index: &RemoteIndex,
    wanted: &Wanted<'_>,
    pinned: &mut PinnedWeb,
    store: &Store,
) -> Result<Vec<Unpacked>, SourceError> {
    let mut archives = Vec::new();
    let mut budget = Budget::of_archives(store);
    let entries = index.skills().entries().iter().filter(|entry| wanted.takes(&entry.skill.name));
    for entry in entries {
        let skill = &entry.skill;
        let Some(archive) = packed::of(skill) else { continue };
        // An archive is only approved by its name and its checksum.
        let skills = pinned.skills.get_or_insert_with(|| load::all_listed(index));
        let why = match packed::fetch(&mut budget, url, &skill.name, archive) {
            Ok(mut unpacked) => {
                let root = unpacked.checkout.as_ref().map(|checkout| &checkout.root);
                let held_back = root.map(|root| load::hold_back_risks(root, &mut unpacked.pinned));
                let held_back = held_back.into_iter().flatten().next();
                if held_back.is_none() {
                    skills.insert(skill.name.to_string(), unpacked.pinned.commit.clone());
                    archives.push(unpacked);
                    continue;
                }
                held_back.map(|held_back| held_back.why).unwrap_or_default()
            }
            Err(error @ GitError::Download { .. }) => return Err(SourceError::git(&spec.address, error)),
            Err(error) => error.to_string(),
        };
        warn_of_risks(&spec.address, &[HeldBack { path: skill.name.to_string(), why }]);
    }
    Ok(archives)
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::mpsc, thread};

    use super::*;
    use crate::Sources;

    /// A process that is stopped while it changes the lock file must not delay the sessions of other processes.
    #[test]
    fn reading_sources_does_not_wait_for_another_process() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache");
        let spec = |is_named| Spec {
            nested: false,
            address: Address::parse("github:acme/skills").unwrap(),
            filters: Vec::new(),
            lock: dir.path().join("skills.lock"),
            is_named,
        };
        let lock = spec(true).lock;
        NamedSources::beside(&lock).insert("github:acme/skills").unwrap();
        let options = Options { cache: Some(cache.clone()), max_skills: 10, ..Options::default() };
        let code = || {
            let (sender, codes) = mpsc::channel();
            let sources = Sources::start(vec![spec(true)], options.clone());
            thread::spawn(move || sender.send(sources.get().skipped()[0].diagnostics[0].code));
            codes.recv_timeout(Duration::from_secs(10)).unwrap()
        };
        assert_eq!(code(), "source-not-approved");
        let held = FileLock::acquire(&lock_path(&lock, &cache)).unwrap();
        // The other process may just be approving the source.
        assert_eq!(code(), "source-absent");
        drop(held);
        fs::remove_dir_all(cache.join("locks")).unwrap();
        assert_eq!(code(), "source-not-approved");
        assert!(waits_now(&spec(false), &Store::new(cache)));
    }
    /// A session can be opened before the fetch has begun. It must get the skills server.
    #[test]
    fn a_source_that_will_be_fetched_is_awaited() {
        let dir = tempfile::tempdir().unwrap();
        let spec = Spec {
            nested: false,
            address: Address::parse("github:acme/skills").unwrap(),
            filters: Vec::new(),
            lock: dir.path().join("skills.lock"),
            is_named: true,
        };
        let options = Options { cache: Some(dir.path().join("cache")), max_skills: 10, ..Options::default() };
        assert!(!Sources::start(vec![spec], options).get().will_offer_nothing());
    }
}
