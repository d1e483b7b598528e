//! The hash of a skill: what is approved, and what is served.

use std::{fs, io, path::Path};

use skills_core::remote::Sha256;

/// What may be in a directory of ours at most; more was not written by us.
const MAX_ENTRIES: usize = 100_000;

/// The SHA-256 of all files below `dir`: of a line `SHA-256 PATH` for each, sorted by path, with `/` between its parts.
///
/// # Errors
/// A file cannot be read, or is no regular file: nothing but those is ever approved.
pub(super) fn of_skill(dir: &Path) -> io::Result<Sha256> {
    let mut text = String::new();
    for path in files(dir)? {
        let digest = Sha256::of(&fs::read(dir.join(&path))?);
        text.extend([digest.to_string().as_str(), " ", &path, "\n"]);
    }
    Ok(Sha256::of(text.as_bytes()))
}

/// The files below `dir`, sorted by path.
///
/// # Errors
/// As [`of_skill`].
pub(super) fn files(dir: &Path) -> io::Result<Vec<String>> {
    let (mut files, mut directories, mut seen) = (Vec::new(), vec![String::new()], 0);
    while let Some(prefix) = directories.pop() {
        for entry in fs::read_dir(dir.join(&prefix))? {
            let entry = entry?;
            let wrong = || io::Error::new(io::ErrorKind::InvalidData, "there is more than regular files");
            let name = entry.file_name().into_string().map_err(|_| wrong())?;
            let kind = entry.file_type()?;
            seen += 1;
            if seen > MAX_ENTRIES {
                return Err(wrong());
            }
            if kind.is_dir() {
                directories.push(format!("{prefix}{name}/"));
            } else if kind.is_file() {
                files.push(format!("{prefix}{name}"));
            } else {
                return Err(wrong());
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_counts_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            fs::write(dir.path().join(path), text).unwrap();
        };
        let hash = || of_skill(dir.path()).unwrap();
        write("SKILL.md", "a");
        write("b/c", "d");
        let line = |path: &str, text: &str| format!("{} {path}\n", Sha256::of(text.as_bytes()));
        let expected = Sha256::of((line("SKILL.md", "a") + &line("b/c", "d")).as_bytes());
        assert_eq!(hash(), expected);
        fs::create_dir(dir.path().join("empty")).unwrap();
        assert_eq!(hash(), expected);
        for (path, text) in [("SKILL.md", "b"), ("b/c", "D"), (".hidden", ""), ("b/e", "")] {
            let before = hash();
            write(path, text);
            assert_ne!(hash(), before, "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_never_approved() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("x")).unwrap();
        assert_eq!(of_skill(dir.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
