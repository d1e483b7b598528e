//! Selects paths of a repository that are safe on every operating system. A path is rejected if it would leave the directory, if
//! operating systems interpret it differently, or if it differs from another path only in case or in Unicode normalization.

use std::collections::HashMap;

use skills_core::{SkillName, text::sanitize};

/// The maximum length of a path, in bytes.
const MAX_PATH_BYTES: usize = 1024;
/// The maximum length of a file or directory name, in bytes.
const MAX_NAME_BYTES: usize = 255;
/// The maximum number of directories in a path. The scan of a skill reads no deeper.
const MAX_DIRECTORIES: usize = 32;

/// Returns `path` as text if it means the same on every operating system and stays below its directory.
///
/// # Errors
/// Returns the reason as the predicate of a sentence, such as `has a path that is too long`.
pub(crate) fn safe(path: &[u8]) -> Result<&str, &'static str> {
    let path = std::str::from_utf8(path).map_err(|_| "has a name that is not valid UTF-8")?;
    if path.len() > MAX_PATH_BYTES {
        return Err("has a path that is too long");
    }
    if path.matches('/').count() > MAX_DIRECTORIES {
        return Err("has a path with too many directories");
    }
    for name in path.split('/') {
        if matches!(name, "" | "." | "..") {
            return Err("has a path that leads out of the directory");
        }
        if name.len() > MAX_NAME_BYTES {
            return Err("has a name that is too long");
        }
        if is_git_directory(name) {
            return Err("uses a name reserved for git");
        }
        if name.contains(['\\', ':', '*', '?', '"', '<', '>', '|'])
            || name.ends_with(['.', ' '])
            || is_device(name)
        {
            return Err("has a name that some operating systems do not allow");
        }
        if sanitize(name) != name || name.chars().any(char::is_control) {
            return Err("has a name with invisible characters");
        }
    }
    Ok(path)
}

/// Returns true if [`safe`] doesn't reject a path because of its length or the number of its directories.
pub(crate) fn has_safe_length(path: &[u8]) -> bool {
    path.len() <= MAX_PATH_BYTES && path.split(|byte| *byte == b'/').count() <= MAX_DIRECTORIES + 1
}

/// Returns true if a file system could read `name` as `.git`: in any case, with ignored characters, or as a short name.
fn is_git_directory(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| !is_ignored(*c)).collect::<String>().to_lowercase();
    plain == ".git" || plain.starts_with("git~")
}

/// Returns true for characters that HFS+ ignores in names.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Returns true if `name` is a device on Windows, with any extension.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_lowercase();
    let is_number = |rest: &str| {
        let mut characters = rest.chars();
        // Windows also accepts superscript digits as port numbers.
        let is_digit =
            characters.next().is_some_and(|c| c.is_ascii_digit() || "\u{b9}\u{b2}\u{b3}".contains(c));
        is_digit && characters.next().is_none()
    };
    let is_port = ["com", "lpt"].iter().any(|prefix| stem.strip_prefix(prefix).is_some_and(is_number));
    is_port || matches!(stem.as_str(), "con" | "prn" | "aux" | "nul" | "conin$" | "conout$")
}

/// The first spelling of each directory and file. On a file system that ignores case or the Unicode normalization, a second spelling would
/// overwrite the first.
///
/// A name is stored with the number of its directory, because paths can be long and have many directories.
#[derive(Default)]
pub(super) struct Spellings<'a>(HashMap<(usize, String), (usize, &'a str)>);

impl<'a> Spellings<'a> {
    /// Adds `path`. Returns the reason if it conflicts with an earlier path.
    pub(super) fn clash(&mut self, path: &'a str) -> Option<&'static str> {
        let mut directory = 0;
        for name in path.split('/') {
            let number = self.0.len() + 1;
            let (number, first) =
                *self.0.entry((directory, SkillName::key_of(name))).or_insert((number, name));
            if first != name {
                return Some("differs from another path only in case or in Unicode normalization");
            }
            directory = number;
        }
        None
    }

    /// Returns the number of directories and files so far.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn no_path_leaves_the_directory(path in "([a-cA-C./\\\\:é\u{200b} ]|\\.\\./|\\.git){0,12}") {
            if let Ok(path) = safe(path.as_bytes()) {
                let mut parts = std::path::Path::new(path).components();
                proptest::prop_assert!(parts.all(|part| matches!(part, std::path::Component::Normal(_))));
                proptest::prop_assert!(!path.to_lowercase().split('/').any(|part| part == ".git"));
            }
        }
    }
}
