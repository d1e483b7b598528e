//! Skills that a web site publishes as archives, each of them an entry with `type: archive` in its index.
//!
//! The entry has the checksum of the archive, and the lock file has that of the files. An archive is unpacked when it is fetched, and
//! its files are stored and served like those of a repository: as a place of its own, whose version is the checksum of the files.

use std::path::PathBuf;

use skills_core::{Remote, Skill, SkillName, Source, order};

use super::{
    address::{GitPlace, Transport},
    approved,
    budget::Budget,
    digest,
    git::GitError,
    lockfile::{PinnedGit, PinnedWeb},
    site::RemoteIndex,
    store::{Checkout, Store},
};

/// The path of the only skill in an archive.
const ROOT: &str = ".";

/// Returns the archive of a skill, if it is in one.
pub(super) fn of(skill: &Skill) -> Option<&Remote> {
    match &skill.source {
        Source::Remote(remote) if remote.is_archive => Some(remote),
        _ => None,
    }
}

/// Returns the place of the archive of a skill in the index of a site. Its reference is the checksum of the archive, so that every fetch
/// checks it.
pub(super) fn place(site: &str, name: &SkillName, archive: &Remote) -> GitPlace {
    GitPlace {
        url: archive.url.to_string(),
        reference: archive.sha256.map(|checksum| checksum.to_string()),
        path: site.to_owned(),
        skill: Some(name.to_string()),
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
        let index = store.index(site, version);
        // Most indexes have no archive, and need not be parsed. A character of the type can be escaped.
        let index = index.filter(|index| ["\"archive\"", "\\u"].iter().any(|text| index.text.contains(text)));
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
                let part = (place(site, &skill.name, archive), self::version(files));
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

/// Fetches the archive of a skill for a review.
///
/// # Errors
/// Returns the errors of [`Budget::fetch`], and [`GitError::Archive`] if the archive doesn't have the skill at its top.
pub(super) fn fetch(
    budget: &mut Budget<'_>,
    site: &str,
    name: &SkillName,
    archive: &Remote,
) -> Result<Unpacked, GitError> {
    budget.fetch(&archive.url, |store| unpack(store, site, name, archive))
}

/// Fetches and unpacks an archive. Returns the directory of the files, too.
fn unpack(
    store: &Store,
    site: &str,
    name: &SkillName,
    archive: &Remote,
) -> Result<(Unpacked, PathBuf), GitError> {
    let place = place(site, name, archive);
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
    let pinned = version(&files);
    Ok((Unpacked { name: name.clone(), place, pinned, checkout: Some(checkout) }, root))
}
