//! Lists and reads the files of a skill, both for skills in a directory and for remote skills.

use super::{FileContent, FileError, ReadOptions, SkillFiles};
use crate::{
    evaluation::{CASES_DIR, OUTPUT_CASES, TRIGGER_CASES},
    skill::Skill,
};

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

/// Lists the first `max` files of `skill`, without its `SKILL.md` and its evaluation. Blocks on the file system, but sends no requests.
///
/// # Errors
/// Returns [`FileError::NoFiles`] for a virtual skill, and [`FileError::Directory`] or [`FileError::LinkInPath`] if the
/// directory can't be opened.
pub fn bundled(skill: &Skill, max: usize) -> Result<Bundled, FileError> {
    #[cfg(feature = "fetch")]
    if let crate::skill::Source::Remote(remote) = &skill.source {
        let known =
            remote.files.iter().flat_map(|files| files.iter()).map(|file| (file.path.clone(), file.size));
        let (files, more) = without_cases(known.collect(), max);
        let complete = remote.files.is_some() || remote.base.is_none();
        return Ok(Bundled { files, more, complete });
    }
    let listing = SkillFiles::of(skill)?.list(usize::MAX);
    let files = listing.files.into_iter().map(|file| (file.path, Some(file.size)));
    let (files, more) = without_cases(files.collect(), max);
    Ok(Bundled { files, more: listing.more + more, complete: listing.complete })
}

/// Removes the files of an evaluation, because the model doesn't need the cases, and shouldn't know the expected results. Returns the first `max` files, and the number of the others.
fn without_cases(mut files: Vec<(String, Option<u64>)>, max: usize) -> (Vec<(String, Option<u64>)>, usize) {
    let is_case = |path: &str| path == OUTPUT_CASES || TRIGGER_CASES.contains(&path);
    if files.iter().any(|(path, _)| is_case(path)) {
        files.retain(|(path, _)| !path.starts_with(CASES_DIR));
    }
    let more = files.len().saturating_sub(max);
    files.truncate(max);
    (files, more)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_not_listed() {
        let list = |paths: &[&str], max| {
            let files = paths.iter().map(|path| ((*path).to_owned(), None)).collect();
            let (files, more) = without_cases(files, max);
            (files.into_iter().map(|(path, _)| path).collect::<Vec<_>>(), more)
        };
        let skill = ["a.md", "evals/evals.json", "evals/files/a.csv", "evals.md", "x/evals/evals.json"];
        assert_eq!(list(&skill, 9), (vec!["a.md".into(), "evals.md".into(), "x/evals/evals.json".into()], 0));
        assert_eq!(list(&skill, 1), (vec!["a.md".into()], 2));
        // A skill about evaluations can have a directory with this name.
        let about = ["evals/guide.md", "evals/notes.md"];
        assert_eq!(list(&about, 9).0, about);
    }
}
