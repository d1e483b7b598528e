//! The files of a skill, wherever they are: below a directory, or on the web.

use super::{FileContent, FileError, ReadOptions, SkillFiles};
use crate::skill::Skill;

/// The files that come with a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bundled {
    /// Path and size in bytes, where it is known; sorted by path. The names are a stranger's: escape them where they are
    /// shown.
    pub files: Vec<(String, Option<u64>)>,
    /// How many files there are beyond these.
    pub more: usize,
    /// Whether these are all that can be read; if not, `more` is a lower bound.
    pub complete: bool,
}

/// What comes with `skill`, without its `SKILL.md`; the first `max` files. Blocks, but fetches nothing.
///
/// # Errors
/// [`FileError::NoFiles`] for a virtual skill, [`FileError::Directory`] when the directory cannot be opened.
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

/// Reads the file at `path`, relative to where the skill is and separated by `/`. Blocks, and fetches the files of a
/// remote skill.
///
/// # Errors
/// A [`FileError`] that says why the path is not served.
pub fn read(skill: &Skill, path: &str, options: ReadOptions) -> Result<FileContent, FileError> {
    match &skill.source {
        #[cfg(feature = "fetch")]
        crate::skill::Source::Remote(remote) => remote.read(path, options),
        _ => SkillFiles::of(skill)?.read(path, options),
    }
}
