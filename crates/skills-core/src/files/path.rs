//! The form of a path that a model sends, and what it may have meant.
//!
//! The checks here make good error messages; the confinement does not depend on them.

use std::path::PathBuf;

use super::{FileError, Listing};

/// How many files are looked at for a similar one.
pub(super) const MAX_CANDIDATES: usize = 1_000;

/// Names that are suggested at most.
const MAX_SIMILAR: usize = 3;

/// What is wrong with a path from the root on.
const ABSOLUTE: &str = "it is absolute; give it relative to the skill's directory";

/// How alike two paths must be to be taken for each other, from 0 to 1.
const ALIKE: f64 = 0.7;

/// `path` as a relative path of this platform.
pub(super) fn check(path: &str) -> Result<PathBuf, FileError> {
    let invalid = |reason| Err(FileError::Invalid { path: path.to_owned(), reason });
    check_form(path)?;
    if has_drive(path) {
        return invalid(ABSOLUTE);
    }
    // On Windows a colon names another stream of a file, or another drive.
    if cfg!(windows) && path.contains(':') {
        return invalid("it contains a colon");
    }
    Ok(PathBuf::from(path))
}

/// Whether `path` has the form of a path to a file of a skill, wherever the skill is: on this machine or on the web.
pub(crate) fn check_form(path: &str) -> Result<(), FileError> {
    let invalid = |reason| Err(FileError::Invalid { path: path.to_owned(), reason });
    if path.trim().is_empty() {
        return invalid("it is empty");
    }
    if path.contains('\0') {
        return invalid("it contains a NUL character");
    }
    if path.contains('\\') {
        return invalid("it contains a backslash; separate the parts with `/`");
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

/// Whether `path` starts like `C:`.
fn has_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [drive, b':', ..] if drive.is_ascii_alphabetic())
}

/// The files in `listing` that `path` may have meant, best first.
pub(crate) fn similar(path: &str, listing: &Listing) -> Vec<String> {
    let wanted = path.trim_start_matches("./").to_lowercase();
    let mut scored: Vec<(f64, &str)> = listing
        .files
        .iter()
        .map(|file| (likeness(&wanted, &file.path.to_lowercase()), file.path.as_str()))
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(MAX_SIMILAR).map(|(_, path)| path.to_owned()).collect()
}

/// From 0 to 1. The file's name counts most: models invent or forget directories more often than names.
fn likeness(wanted: &str, path: &str) -> f64 {
    let name = |path: &'_ str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let (wanted_name, path_name) = (name(wanted), name(path));
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
    fn forms() {
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
                `x:y/z` is not a path to a file of the skill: it is absolute; give it relative to the skill's directory"]],
        );
    }

    #[test]
    fn attacks() {
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
                `` is not a path to a file of the skill: it is empty
                `  ` is not a path to a file of the skill: it is empty
                `\0` is not a path to a file of the skill: it contains a NUL character
                `a\0b` is not a path to a file of the skill: it contains a NUL character
                `/etc/passwd` is not a path to a file of the skill: it is absolute; give it relative to the skill's directory
                `//etc/passwd` is not a path to a file of the skill: it is absolute; give it relative to the skill's directory
                `..` leads outside of the skill's directory, and only files inside can be read
                `../SKILL.md` leads outside of the skill's directory, and only files inside can be read
                `./../a` leads outside of the skill's directory, and only files inside can be read
                `a/../..` leads outside of the skill's directory, and only files inside can be read
                `a/../../b` leads outside of the skill's directory, and only files inside can be read
                `references/../../../../etc/passwd` leads outside of the skill's directory, and only files inside can be read
                `C:\\Windows` is not a path to a file of the skill: it contains a backslash; separate the parts with `/`
                `C:/Windows` is not a path to a file of the skill: it is absolute; give it relative to the skill's directory
                `c:` is not a path to a file of the skill: it is absolute; give it relative to the skill's directory
                `\\\\server\\share` is not a path to a file of the skill: it contains a backslash; separate the parts with `/`
                `//server/share` is not a path to a file of the skill: it is absolute; give it relative to the skill's directory
                `\\\\?\\C:\\a` is not a path to a file of the skill: it contains a backslash; separate the parts with `/`
                `..\\a` is not a path to a file of the skill: it contains a backslash; separate the parts with `/`
                `a\\..\\..\\b` is not a path to a file of the skill: it contains a backslash; separate the parts with `/`"]],
        );
    }

    #[test]
    fn suggestions() {
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
}
