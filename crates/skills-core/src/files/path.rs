//! Checks the form of requested paths, and suggests similar files.
//!
//! Confinement does not depend on these checks; they only improve the error messages.

use std::path::{Component, Path, PathBuf};

use super::{FileError, Listing};
use crate::order;

/// The maximum number of files to compare with a requested path.
pub(super) const MAX_CANDIDATES: usize = 1_000;

/// The maximum length of a path in bytes to compare. A comparison takes time in proportion to the product of both lengths.
const MAX_COMPARED_BYTES: usize = 256;

/// The maximum number of suggestions.
const MAX_SIMILAR: usize = 3;

/// The problem with an absolute path.
const ABSOLUTE: &str = "use a path relative to the skill directory instead of an absolute path";

/// The minimum similarity of a suggestion, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.7;

/// Converts `path` to a relative path of this platform.
///
/// # Errors
/// Returns [`FileError::Invalid`] or [`FileError::Outside`] if the path cannot name a file of a skill on this platform.
pub(super) fn check(path: &str) -> Result<PathBuf, FileError> {
    let invalid = |reason| Err(FileError::Invalid { path: path.to_owned(), reason });
    check_form(path)?;
    if has_drive(path) {
        return invalid(ABSOLUTE);
    }
    // On Windows, a colon names an alternate stream of a file, or a drive.
    if cfg!(windows) && path.contains(':') {
        return invalid("Windows does not allow colons in file names");
    }
    Ok(PathBuf::from(path))
}

/// Returns the names in a relative path, joined with `/`. This is the format of a [`FileGuard`](crate::skill::FileGuard).
pub(super) fn joined(relative: &Path) -> String {
    let names = relative.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy()),
        _ => None,
    });
    names.collect::<Vec<_>>().join("/")
}

/// Checks the rules for paths that are the same for local and remote skills.
///
/// # Errors
/// Returns [`FileError::Invalid`] if the path is empty, absolute, or contains a NUL or a backslash, and
/// [`FileError::Outside`] if `..` leads out.
pub(crate) fn check_form(path: &str) -> Result<(), FileError> {
    let invalid = |reason| Err(FileError::Invalid { path: path.to_owned(), reason });
    if path.trim().is_empty() {
        return invalid("path is empty");
    }
    if path.contains('\0') {
        return invalid("paths cannot contain NUL characters");
    }
    if path.contains('\\') {
        return invalid("use `/` instead of a backslash");
    }
    if path.starts_with('/') {
        return invalid(ABSOLUTE);
    }
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return Err(FileError::Outside { path: path.to_owned() }),
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    Ok(())
}

/// Returns true if `path` starts with a drive, such as `C:`.
fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [drive, b':', ..] if drive.is_ascii_alphabetic())
}

/// Returns the files in `listing` with the most similar paths, best match first. Compares only the first [`MAX_CANDIDATES`], and no long
/// paths.
pub(crate) fn similar(path: &str, listing: &Listing) -> Vec<String> {
    let wanted = path.trim_start_matches("./").to_lowercase();
    let is_short = |path: &str| path.len() <= MAX_COMPARED_BYTES;
    let mut scored: Vec<(f64, &str)> = listing
        .files
        .iter()
        .take(MAX_CANDIDATES)
        .filter(|file| is_short(&wanted) && is_short(&file.path))
        .map(|file| (similarity(&wanted, &file.path.to_lowercase()), file.path.as_str()))
        .filter(|(score, _)| *score >= MIN_SIMILARITY)
        .collect();
    order::sort_by(&mut scored, |a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(MAX_SIMILAR).map(|(_, path)| path.to_owned()).collect()
}

/// Returns the similarity of two paths, from 0 to 1. The file name counts most, because models get directories wrong more
/// often than names.
fn similarity(wanted: &str, path: &str) -> f64 {
    let name = |path: &'_ str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let wanted_name = name(wanted);
    let path_name = name(path);
    let whole = strsim::normalized_damerau_levenshtein(wanted, path);
    let names = if wanted_name == path_name {
        0.95
    } else {
        0.9 * strsim::normalized_damerau_levenshtein(&wanted_name, &path_name)
    };
    whole.max(names)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::files::FileEntry;

    fn check_form(paths: &[&str], expected: Expect) {
        let lines: Vec<String> = paths
            .iter()
            .map(|path| match check(path) {
                Ok(path) => format!("{} ok", path.display()),
                Err(error) => error.to_string(),
            })
            .collect();
        expected.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn relative_paths_are_accepted() {
        check_form(
            &[
                "a",
                "./a/b.md",
                "a/../b",
                "a//b",
                "references/",
                ".",
                "...",
                "..a",
                "~/a",
                "a b/ü.md",
                "x:y/z",
            ],
            expect![[r"
                a ok
                ./a/b.md ok
                a/../b ok
                a//b ok
                references/ ok
                . ok
                ... ok
                ..a ok
                ~/a ok
                a b/ü.md ok
                invalid path `x:y/z`: use a path relative to the skill directory instead of an absolute path"]],
        );
    }

    #[test]
    fn absolute_and_escaping_paths_are_rejected() {
        check_form(
            &[
                "",
                "  ",
                "\0",
                "a\0b",
                "/etc/passwd",
                "//etc/passwd",
                "..",
                "../SKILL.md",
                "./../a",
                "a/../..",
                "a/../../b",
                "references/../../../../etc/passwd",
                "C:\\Windows",
                "C:/Windows",
                "c:",
                "\\\\server\\share",
                "//server/share",
                "\\\\?\\C:\\a",
                "..\\a",
                "a\\..\\..\\b",
            ],
            expect![[r"
                invalid path ``: path is empty
                invalid path `  `: path is empty
                invalid path `\0`: paths cannot contain NUL characters
                invalid path `a\0b`: paths cannot contain NUL characters
                invalid path `/etc/passwd`: use a path relative to the skill directory instead of an absolute path
                invalid path `//etc/passwd`: use a path relative to the skill directory instead of an absolute path
                `..` is outside of the skill directory, but only files inside can be read
                `../SKILL.md` is outside of the skill directory, but only files inside can be read
                `./../a` is outside of the skill directory, but only files inside can be read
                `a/../..` is outside of the skill directory, but only files inside can be read
                `a/../../b` is outside of the skill directory, but only files inside can be read
                `references/../../../../etc/passwd` is outside of the skill directory, but only files inside can be read
                invalid path `C:\\Windows`: use `/` instead of a backslash
                invalid path `C:/Windows`: use a path relative to the skill directory instead of an absolute path
                invalid path `c:`: use a path relative to the skill directory instead of an absolute path
                invalid path `\\\\server\\share`: use `/` instead of a backslash
                invalid path `//server/share`: use a path relative to the skill directory instead of an absolute path
                invalid path `\\\\?\\C:\\a`: use `/` instead of a backslash
                invalid path `..\\a`: use `/` instead of a backslash
                invalid path `a\\..\\..\\b`: use `/` instead of a backslash"]],
        );
    }

    #[test]
    fn similar_paths_are_suggested() {
        let paths =
            ["assets/fixture.json", "references/REFERENCE.md", "references/forms.md", "scripts/echo.sh"];
        let files = paths.map(|path| FileEntry { path: path.to_owned(), size: 1 }).to_vec();
        let listing = Listing { files, more: 0, complete: true };
        let check =
            |wanted: &str, expected: &[&str]| assert_eq!(similar(wanted, &listing), expected, "{wanted}");
        check("references/reference.md", &["references/REFERENCE.md"]);
        check("reference.md", &["references/REFERENCE.md"]);
        check("my-skill/references/REFERENCE.md", &["references/REFERENCE.md"]);
        check("reference/form.md", &["references/forms.md"]);
        check("./fixture.jsn", &["assets/fixture.json"]);
        check("LICENSE", &[]);
    }

    /// An index can list very many files with long paths.
    #[test]
    fn few_short_paths_are_compared() {
        let listing = |files: Vec<String>| {
            let files = files.into_iter().map(|path| FileEntry { path, size: 1 }).collect();
            Listing { files, more: 0, complete: true }
        };
        let numbers = |count| (0..count).map(|number: usize| number.to_string());
        let files = |before| listing(numbers(before).chain(["forms.md".to_owned()]).collect());
        assert_eq!(similar("form.md", &files(MAX_CANDIDATES - 1)), ["forms.md"]);
        assert!(similar("form.md", &files(MAX_CANDIDATES)).is_empty());
        let long = |length| "a".repeat(length);
        assert_eq!(similar(&long(250), &listing(vec![long(256)])).len(), 1);
        assert!(similar(&long(250), &listing(vec![long(257)])).is_empty());
        assert!(similar(&long(257), &listing(vec![long(256)])).is_empty());
    }
}
