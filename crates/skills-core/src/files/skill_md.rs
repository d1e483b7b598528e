//! [`SkillMd`]: the file of a skill as it is on disk, for checkers that quote it.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use super::{FileError, SkillFiles};
use crate::frontmatter::MAX_FILE_BYTES;

/// A character of UTF-8 has at most this many bytes.
const MAX_CHAR_BYTES: usize = 4;

/// A `SKILL.md`, read from disk, that may be anything: well formed, broken, or not a skill's file at all.
///
/// A checker quotes the lines it complains about, often in the public log of a pull request. So that it cannot be made to
/// quote another file, this is read like every file of a skill: a link that leads out of the directory is refused, and so
/// is anything but a regular file. The directory itself may be reached by a link.
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
    /// The name of the file as its directory spells it; on a file system that ignores case, that may differ from the name
    /// in the path that was given.
    pub name: String,
    /// What is in it. A file with more than [`MAX_FILE_BYTES`] is cut a little beyond that.
    pub bytes: Vec<u8>,
    /// The size of the whole file in bytes.
    pub size: u64,
}

impl SkillMd {
    /// Reads the file at `path`, whatever its name.
    ///
    /// # Errors
    /// [`FileError::Outside`] when the file is a link that leads out of its directory, [`FileError::Directory`] when that
    /// directory cannot be opened, and otherwise as [`SkillFiles::head`]. [`FileError::to_diagnostic`] says it to people.
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
        // It may have grown since it was opened.
        let size = head.size.max(head.bytes.len() as u64);
        Ok(Self { name, bytes: head.bytes, size })
    }
}

/// The same name with small letters for capital ones and the other way round; `None` when it has no letters.
pub(super) fn swap_case(name: &OsStr) -> Option<OsString> {
    let name = name.to_str()?;
    let swap = |c: char| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
    let swapped: String = name.chars().map(swap).collect();
    (swapped != name).then(|| swapped.into())
}

/// Which of the names in a directory `name` has found, when it is written differently.
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
    fn swapped() {
        for (name, swapped) in [("SKILL.md", Some("skill.MD")), ("a1-É", Some("A1-É")), ("1.2", None)] {
            assert_eq!(swap_case(name.as_ref()), swapped.map(OsString::from), "{name}");
        }
    }

    #[test]
    fn spellings() {
        for (names, name, expected) in [
            (&["SKILL.md", "a"][..], "SKILL.md", None),
            (&["a", "skill.md"], "SKILL.md", Some("skill.md")),
            (&["Skill.MD"], "SKILL.md", Some("Skill.MD")),
            (&["skill.md"], "SKILL.MD", Some("skill.md")),
            // Two files where case counts.
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
