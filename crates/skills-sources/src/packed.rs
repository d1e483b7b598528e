//! Skills that a web site publishes as archives, each of them an entry with `type: archive` in its index.
//!
//! The entry has the checksum of the archive, and the lock file has that of the files. An archive is unpacked when it is fetched, and
//! its files are stored and served like those of a repository: as a place of its own, whose version is the checksum of the files.

use std::{fs, io, path::Path, time::Instant};

use skills_core::{Remote, Skill, SkillName, Source, order};

use super::{
    access,
    address::{GitPlace, Transport},
    approved, digest,
    git::{BLOCK_BYTES, GitError, Limits, mebibytes},
    lockfile::{PinnedGit, PinnedWeb},
    site::RemoteIndex,
    store::{Checkout, Store},
};

/// The path of the only skill in an archive.
const ROOT: &str = ".";
/// The number of bytes that an archive counts at least, because it takes a request. By default, this allows 4,096 archives of a site.
const MIN_BYTES: u64 = 64 * 1024;

/// Returns the archive of a skill, if it is in one.
pub(super) fn of(skill: &Skill) -> Option<&Remote> {
    match &skill.source {
        Source::Remote(remote) if remote.is_archive => Some(remote),
        _ => None,
    }
}

/// Returns the place of an archive in the index of a site. Its reference is the checksum of the archive, so that every fetch checks it.
pub(super) fn place(site: &str, archive: &Remote) -> GitPlace {
    GitPlace {
        url: archive.url.to_string(),
        reference: archive.sha256.map(|checksum| checksum.to_string()),
        path: site.to_owned(),
        transport: Transport::Archive,
    }
}

/// Returns the version of an archive by the checksum of its files.
pub(super) fn version(files: &str) -> PinnedGit {
    PinnedGit::new(files.to_owned(), [(ROOT.to_owned(), files.to_owned())].into())
}

/// Returns the approved archives of a site that are not in the store. `takes` selects the skills by name.
pub(super) fn missing(
    store: &Store,
    site: &str,
    pinned: &PinnedWeb,
    takes: &dyn Fn(&SkillName) -> bool,
) -> Vec<(GitPlace, PinnedGit)> {
    let kept = &pinned.decisions.kept;
    let mut missing = Vec::new();
    // Without the index of a skill that stays at another version, its archive is unknown.
    for version in order::set(std::iter::once(&pinned.index).chain(kept.values())) {
        let index = store.index(site, version).filter(|index| index.text.contains("\"archive\""));
        let index = index.and_then(|index| RemoteIndex::parse_with_archives(&index.text, &index.url).ok());
        for skill in index.iter().flat_map(|index| index.skills().iter()) {
            let name = skill.name.as_str();
            let Some(archive) = of(skill).filter(|_| kept.get(name).unwrap_or(&pinned.index) == version)
            else {
                continue;
            };
            if let Some(files) = pinned.skills.as_ref().and_then(|skills| skills.get(name))
                && takes(&skill.name)
            {
                let part = (place(site, archive), self::version(files));
                missing.extend(approved::served(store, &part.0, &part.1).is_none().then_some(part));
            }
        }
    }
    missing
}

/// A skill that was unpacked for a review.
#[derive(Debug, Clone)]
pub(super) struct Unpacked {
    pub(super) name: SkillName,
    pub(super) place: GitPlace,
    /// The version, see [`version`].
    pub(super) pinned: PinnedGit,
    /// The files, unless the version was approved before.
    pub(super) checkout: Option<Checkout>,
}

/// The time and the disk space that are left for all archives of a site together.
pub(super) struct Budget<'a> {
    store: &'a Store,
    deadline: Instant,
    bytes: u64,
}

impl<'a> Budget<'a> {
    /// Starts with all of the limits of a store.
    pub(super) fn new(store: &'a Store) -> Self {
        let limits = store.limits();
        Self { store, deadline: Instant::now() + limits.total, bytes: limits.bytes }
    }

    /// Returns the store with the time that is left for the archive at `url`.
    ///
    /// # Errors
    /// Returns [`GitError::Download`] if no time is left.
    pub(super) fn store(&self, url: &str) -> Result<Store, GitError> {
        let limits = self.store.limits();
        let total = self.deadline.saturating_duration_since(Instant::now());
        if total.is_zero() {
            let why = format!("the archives of the site took more than {} s", limits.total.as_secs());
            return Err(access::failed(url, why));
        }
        Ok(self.store.clone().with_limits(Limits { total, ..limits }))
    }

    /// Fetches the archive of a skill for a review.
    ///
    /// # Errors
    /// Returns an error if the archive can't be fetched, if it doesn't have the skill at its top, or if the archives exceed the limits
    /// together.
    pub(super) fn fetch(
        &mut self,
        site: &str,
        name: &SkillName,
        archive: &Remote,
    ) -> Result<Unpacked, GitError> {
        let store = self.store(&archive.url)?;
        let limits = store.limits();
        let is_first = self.bytes == limits.bytes;
        let too_large = || {
            let max = mebibytes(limits.bytes);
            GitError::LargeArchive(format!("the archives of the site need more than {max} together"))
        };
        let left = self.bytes.checked_sub(MIN_BYTES).ok_or_else(too_large)?;
        let store = store.with_limits(Limits { bytes: self.bytes, ..limits });
        self.bytes = left;
        match fetch(&store, site, name, archive) {
            Ok((unpacked, bytes)) => {
                self.bytes = left.saturating_sub(bytes);
                Ok(unpacked)
            }
            // The archive alone may be smaller than the limit.
            Err(GitError::LargeArchive(_)) if !is_first => Err(too_large()),
            Err(error) => Err(error),
        }
    }
}

/// Fetches the archive of a skill for a review. Returns the disk space of its files, too.
fn fetch(store: &Store, site: &str, name: &SkillName, archive: &Remote) -> Result<(Unpacked, u64), GitError> {
    let place = place(site, archive);
    let checkout = store.fetch_git(&place, None, None)?;
    let failed = |source| GitError::Write { path: checkout.root.clone(), source };
    let root = dunce::canonicalize(&checkout.root).map_err(failed)?;
    let found = approved::find(&root, 2, false);
    let is_it = |skill: &Skill| skill.dir() == Some(&*root) && skill.name.key() == name.key();
    if !matches!(found.entries(), [entry] if is_it(&entry.skill)) {
        let why = format!("it should only contain the skill `{name}`, with `SKILL.md` at the top level");
        return Err(GitError::Archive(why));
    }
    let files = digest::of_skill(&root).map_err(failed)?.to_string();
    let bytes = disk_space(&root).map_err(failed)?;
    let pinned = version(&files);
    Ok((Unpacked { name: name.clone(), place, pinned, checkout: Some(checkout) }, bytes))
}

fn disk_space(root: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for file in digest::files(root)? {
        bytes += fs::metadata(root.join(file))?.len().max(1).next_multiple_of(BLOCK_BYTES);
    }
    Ok(bytes)
}
