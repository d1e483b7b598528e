//! Lists and reads the files of a skill, both for skills in a directory and for remote skills.

use super::{FileContent, FileError, ReadOptions, SkillFiles};
use crate::skill::Skill;

/// The files of a skill, apart from its `SKILL.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bundled {
    /// The path and, if known, the size in bytes of each file, sorted by path. Paths are untrusted: escape them before you
    /// show them to a person.
    pub files: Vec<(String, Option<u64>)>,
    /// The number of further files that are not in `files`.
    pub more: usize,
    /// True if all readable files were counted. If false, `more` is a lower bound.
    pub complete: bool,
}

/// Lists the first `max` files of `skill`, without its `SKILL.md`. Blocks on the file system, but sends no requests.
///
/// # Errors
/// Returns [`FileError::NoFiles`] for a virtual skill, and [`FileError::Directory`] or [`FileError::LinkInPath`] if the
/// directory can't be opened.
pub fn bundled(skill: &Skill, max: usize) -> Result<Bundled, FileError> {
    #[cfg(feature = "fetch")]
    if let crate::skill::Source::Remote(remote) = &skill.source {
        let known = remote.files.as_deref().unwrap_or_default();
        let files = known.iter().take(max).map(|file| (file.path.clone(), file.size)).collect();
        let complete = remote.files.is_some() || remote.base.is_none();
        return Ok(Bundled { files, more: known.len().saturating_sub(max), complete });
    }
    let listing = SkillFiles::of(skill)?.list(max);
    let files = listing.files.into_iter().map(|file| (file.path, Some(file.size))).collect();
    Ok(Bundled { files, more: listing.more, complete: listing.complete })
}

/// Reads the file of `skill` at `path`, which is relative to the skill's directory or URL and separated by `/`.
///
/// Blocks. The file of a remote skill is fetched.
///
/// # Errors
/// Returns [`FileError::NoFiles`] for a virtual skill, and otherwise the errors of [`SkillFiles::read`], or of
/// [`Remote::read`](crate::skill::Remote::read) for a remote skill.
pub fn read(skill: &Skill, path: &str, options: ReadOptions) -> Result<FileContent, FileError> {
    match &skill.source {
        #[cfg(feature = "fetch")]
        crate::skill::Source::Remote(remote) => remote.read(path, options),
        _ => SkillFiles::of(skill)?.read(path, options),
    }
}
