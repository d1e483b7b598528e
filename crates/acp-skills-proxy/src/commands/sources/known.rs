//! The sources that the user has named, and the lock files with their approved versions.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::{Path, PathBuf},
};

use skills_core::{SkillName, discovery::Filter, text::shown_path};
use skills_sources::{
    Address, LockFile, Pinned, disk::locations, named_sources, policy::Policy, required_lock, user_lock,
};

use super::{Target, lock_error, source_error};
use crate::{error::UsageError, output};

/// A source, and the lock file with its approved version.
pub(super) struct Known {
    pub(super) address: Address,
    pub(super) lock: PathBuf,
    /// True if an entry of the source uses skills within other skills.
    pub(super) nested: bool,
    /// True if an entry of the source requires signatures.
    pub(super) verify: bool,
    /// True if the headers and the registries of the configuration apply. They don't if it is that of a project and the source isn't in it,
    /// or if an administrator requires the source.
    pub(super) uses_configuration: bool,
    /// The filters of each entry of the source. A skill is used if it passes all filters of an entry.
    wanted: Vec<Vec<Filter>>,
}

impl Known {
    /// Returns a source of the user's lock file, by its address. `None` if the address is invalid.
    pub(super) fn of_user(source: &str) -> Option<Self> {
        let address = Address::parse(source).ok()?;
        Some(Self {
            address,
            lock: user_lock(),
            nested: false,
            verify: false,
            uses_configuration: false,
            wanted: vec![Vec::new()],
        })
    }

    /// Returns true if an entry of the source uses a skill with this name.
    pub(super) fn takes(&self, name: &SkillName) -> bool {
        self.wanted.iter().any(|filters| filters.iter().all(|filter| filter.takes(name)))
    }

    /// Returns true if an entry of the source uses a skill with this name, or if the name is invalid.
    pub(super) fn uses(&self, name: &str) -> bool {
        SkillName::new(name).is_none_or(|name| self.takes(&name))
    }
}

/// Returns the sources of the configuration file, and the sources of earlier `--source` flags.
///
/// # Errors
/// Returns an error if an address or a glob in the configuration is invalid, or if the user's lock file can't be read.
pub(super) fn known(target: &Target) -> anyhow::Result<Vec<Known>> {
    let mut known: Vec<Known> = Vec::new();
    let of_user = locations::config_file().is_some_and(|file| file == target.path);
    let mut add = |address: Address, lock: PathBuf, filters: Vec<Filter>, nested: bool, verify: bool| {
        let same = known.iter_mut().find(|known| known.address == address && known.lock == lock);
        if let Some(same) = same {
            same.wanted.push(filters);
            same.nested |= nested;
            same.verify |= verify;
            return;
        }
        let uses_configuration = lock == target.lock() || of_user && lock == user_lock();
        let wanted = vec![filters];
        known.push(Known { address, lock, nested, verify, uses_configuration, wanted });
    };
    for (entry, filters) in target.sources().map_err(|error| UsageError::new(error.to_string()))? {
        let address = Address::parse(&entry.source).map_err(acp_skills::config::ConfigError::from)?;
        add(address, target.lock(), filters, entry.nested || target.config.nested, entry.verify.is_some());
    }
    for lock in [user_lock(), required_lock()] {
        let locked = LockFile::read(&lock).map_err(lock_error)?;
        for source in locked.sources().map(str::to_owned).chain(named_sources(&lock)) {
            // Skip addresses that we can't parse. They may have been written by another version of this program.
            if let Ok(address) = Address::parse(&source) {
                let mut entries = target.config.all_sources().filter(|entry| entry.has_source_of(&address));
                let verify = entries.any(|entry| entry.verify.is_some());
                add(address, lock.clone(), Vec::new(), target.config.nested, verify);
            }
        }
    }
    Ok(known)
}

/// Replaces the lock files by that of an administrator, if there is one, because sessions only use the versions in it.
///
/// # Errors
/// Returns an error if the policy of this machine can't be used.
pub(super) fn as_used(known: Vec<Known>) -> anyhow::Result<Vec<Known>> {
    let Some(lock) = policy_lock()? else { return Ok(known) };
    let mut used: Vec<Known> = Vec::new();
    for mut source in known {
        lock.clone_into(&mut source.lock);
        match used.iter_mut().find(|other| other.address == source.address) {
            Some(same) => {
                same.wanted.append(&mut source.wanted);
                same.nested |= source.nested;
                same.verify |= source.verify;
            }
            None => used.push(source),
        }
    }
    Ok(used)
}

/// Returns the lock file of an administrator. Sessions only use the versions in it.
///
/// # Errors
/// Returns an error if the policy of this machine can't be used.
fn policy_lock() -> anyhow::Result<Option<PathBuf>> {
    let policy = Policy::load().map_err(|error| source_error(error.into()))?;
    Ok(policy.as_ref().and_then(Policy::lock).map(Path::to_owned))
}

/// Says so on stderr if sessions don't use the versions in one of these lock files.
///
/// # Errors
/// Returns an error if the policy of this machine can't be used.
pub(super) fn note_unused<'l>(mut locks: impl Iterator<Item = &'l Path>) -> anyhow::Result<()> {
    if let Some(used) = policy_lock()?.filter(|used| locks.any(|lock| lock != used)) {
        let used = shown_path(&used);
        output::note(&format!("sessions use only the versions in {used}, by the policy of this machine"));
    }
    Ok(())
}

/// Adds the approved version to each source. Each lock file is read once.
///
/// # Errors
/// Returns an error if a lock file can't be read.
pub(super) fn with_pinned(sources: Vec<Known>) -> anyhow::Result<Vec<(Known, Option<Pinned>)>> {
    let mut locks: BTreeMap<PathBuf, LockFile> = BTreeMap::new();
    let mut all = Vec::new();
    for source in sources {
        let lock = match locks.entry(source.lock.clone()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(LockFile::read(&source.lock).map_err(lock_error)?),
        };
        let pinned = lock.get(source.address.as_str()).cloned();
        all.push((source, pinned));
    }
    Ok(all)
}

/// Returns the known sources with the address `source` or the same target.
///
/// # Errors
/// Returns an error if the address is invalid, or if no known source matches.
pub(super) fn named(known: Vec<Known>, source: &str) -> anyhow::Result<Vec<Known>> {
    let address = Address::parse(source).map_err(|error| {
        UsageError::new(error.to_string()).hint("use `acp-skills-proxy sources` to list all sources")
    })?;
    let matches = |known: &Known| known.address == address || known.address.place() == address.place();
    let (matching, others): (Vec<_>, Vec<_>) = known.into_iter().partition(matches);
    if matching.is_empty() {
        let names: Vec<_> = others.iter().map(|known| format!("`{}`", known.address)).collect();
        let hint = if names.is_empty() {
            "there are no sources; use `acp-skills-proxy add SOURCE` to add one".to_owned()
        } else {
            format!("configured sources: {}", names.join(", "))
        };
        return Err(UsageError::new(format!("unknown source `{address}`")).hint(hint).into());
    }
    Ok(matching)
}
