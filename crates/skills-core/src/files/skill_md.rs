//! [`SkillMd`]: the raw content of a `SKILL.md`, for checkers that quote its lines.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use super::{FileError, SkillFiles};
use crate::frontmatter::MAX_FILE_BYTES;

/// The maximum length of a UTF-8 sequence in bytes.
const MAX_CHAR_BYTES: usize = 4;

/// The raw content of a `SKILL.md`. It may be well-formed, broken, or not a skill's file at all.
///
/// A checker quotes lines with errors, often in the public log of a pull request. To prevent a skill from publishing another
/// file in this way, the file is read like all files of a skill: it must be a regular file, and must not be a link that leads
/// out of its directory. The path of the directory itself may contain links.
///
/// ```
/// use skills_core::files::SkillMd;
///
/// let dir = tempfile::tempdir()?;
/// std::fs::write(dir.path().join("SKILL.md"), "# No frontmatter\n")?;
/// let file = SkillMd::read(&dir.path().join("SKILL.md"))?;
/// assert_eq!((file.name.as_str(), file.size), ("SKILL.md", 17));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillMd {
    /// The name of the file as it is spelled in the directory. It can differ from the requested name on a file system that
    /// ignores case.
    pub name: String,
    /// The content. If the file has more than [`MAX_FILE_BYTES`], it is truncated up to 4 bytes after that.
    pub bytes: Vec<u8>,
    /// The size of the whole file in bytes.
    pub size: u64,
}

impl SkillMd {
    /// Reads the file at `path`. The file may have any name.
    ///
    /// # Errors
    /// Returns [`FileError::Outside`] if the file is a link that leads out of its directory, [`FileError::Directory`] if that
    /// directory can't be opened, and otherwise the errors of [`SkillFiles::head`]. Use [`FileError::to_diagnostic`] to show
    /// them to a person.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let name = path.file_name().unwrap_or_default();
        let dir = match path.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir,
            _ => Path::new("."),
        };
        let files = SkillFiles::open(dir)?;
        let Some(head) = files.head_if_exists(name, (MAX_FILE_BYTES + MAX_CHAR_BYTES) as u64)? else {
            let path = name.to_string_lossy().into_owned();
            return Err(FileError::NotFound { path, similar: Vec::new() });
        };
        let spelled = files.other_spelling(name);
        let name = spelled.as_deref().unwrap_or(name).to_string_lossy().into_owned();
        // The file may have grown since it was opened.
        let size = head.size.max(head.bytes.len() as u64);
        Ok(Self { name, bytes: head.bytes, size })
    }
}

/// Swaps lowercase and uppercase ASCII letters. Returns `None` if the name has no letters.
pub(super) fn swap_case(name: &OsStr) -> Option<OsString> {
    let name = name.to_str()?;
    let swap = |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    let swapped: String = name.chars().map(swap).collect();
    (swapped != name).then(|| swapped.into())
}

/// Finds the name in a directory that equals `name` except for its case. Returns `None` if `name` itself exists.
pub(super) fn other_spelling(names: impl Iterator<Item = OsString>, name: &OsStr) -> Option<OsString> {
    let mut other = None;
    for spelled in names.filter(|spelled| spelled.eq_ignore_ascii_case(name)) {
        if spelled == name {
            return None;
        }
        other = other.max(Some(spelled));
    }
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_swapped() {
        for (name, swapped) in [("SKILL.md", Some("skill.MD")), ("a1-É", Some("A1-É")), ("1.2", None)] {
            assert_eq!(swap_case(name.as_ref()), swapped.map(OsString::from), "{name}");
        }
    }

    #[test]
    fn the_actual_spelling_is_found() {
        for (names, name, expected) in [
            (&["SKILL.md", "a"][..], "SKILL.md", None),
            (&["a", "skill.md"], "SKILL.md", Some("skill.md")),
            (&["Skill.MD"], "SKILL.md", Some("Skill.MD")),
            (&["skill.md"], "SKILL.MD", Some("skill.md")),
            // Here, the file system distinguishes case, so both files exist.
            (&["skill.md", "SKILL.md"], "SKILL.md", None),
            (&["SKILL.md", "skill.md"], "skill.md", None),
            (&["SKILL.md.txt", "XSKILL.md"], "SKILL.md", None),
            (&[], "SKILL.md", None),
        ] {
            let found = other_spelling(names.iter().map(OsString::from), name.as_ref());
            assert_eq!(found, expected.map(OsString::from), "{names:?} {name}");
        }
    }
}
