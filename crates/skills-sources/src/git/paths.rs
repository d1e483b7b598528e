//! Paths of a repository that can be written on any system. A name that would leave the directory, that one system reads
//! differently from another, or that is the same as another's where case does not count, has none.

use std::collections::HashMap;

use skills_core::text::sanitize;

/// Longest path, in bytes.
const MAX_PATH_BYTES: usize = 1024;
/// Longest name of a file or directory, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// `path` as text, when it means the same on every system and stays below the directory that it is written to; otherwise why
/// it does not, as the end of a sentence about it.
pub(super) fn safe(path: &[u8]) -> Result<&str, &'static str> {
    let path = std::str::from_utf8(path).map_err(|_| "has a name that is no text")?;
    if path.len() > MAX_PATH_BYTES {
        return Err("has a path that is too long");
    }
    for name in path.split('/') {
        if matches!(name, "" | "." | "..") {
            return Err("has a path that leads elsewhere");
        }
        if name.len() > MAX_NAME_BYTES {
            return Err("has a name that is too long");
        }
        if is_git_directory(name) {
            return Err("has the name of git's own directory");
        }
        if name.contains(['\\', ':', '*', '?', '"', '<', '>', '|'])
            || name.ends_with(['.', ' '])
            || is_device(name)
        {
            return Err("has a name that not every system can have");
        }
        if sanitize(name) != name || name.chars().any(char::is_control) {
            return Err("has a name with characters that nobody sees");
        }
    }
    Ok(path)
}

/// `.git` as some file system may read it: in any case, with characters that are ignored, or by its short name.
fn is_git_directory(name: &str) -> bool {
    let plain: String = name.chars().filter(|c| !is_ignored(*c)).collect::<String>().to_lowercase();
    plain == ".git" || plain.starts_with("git~")
}

/// What HFS+ does not count in names.
fn is_ignored(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Names that Windows has for devices, whatever stands behind the dot.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_lowercase();
    let is_number = |rest: &str| {
        let mut characters = rest.chars();
        // These digits, too, are those of a port.
        let is_digit =
            characters.next().is_some_and(|c| c.is_ascii_digit() || "\u{b9}\u{b2}\u{b3}".contains(c));
        is_digit && characters.next().is_none()
    };
    let is_port = ["com", "lpt"].iter().any(|prefix| stem.strip_prefix(prefix).is_some_and(is_number));
    is_port || matches!(stem.as_str(), "con" | "prn" | "aux" | "nul" | "conin$" | "conout$")
}

/// How each directory and file was spelled first. Where case does not count, a second spelling would be written over it.
#[derive(Default)]
pub(super) struct Spellings<'a>(HashMap<String, &'a str>);

impl<'a> Spellings<'a> {
    /// Takes `path`; returns why it cannot be written beside what came before, if so.
    pub(super) fn clash(&mut self, path: &'a str) -> Option<&'static str> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let part = &path[..end];
            let first = self.0.entry(part.to_lowercase()).or_insert(part);
            if *first != part {
                return Some("differs from another only in upper and lower case");
            }
        }
        None
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
