//! The hash of a skill: what is approved, and what is served.

use std::{collections::BTreeMap, fs, io, path::Path};

use skills_core::{remote::Sha256, skill::FileGuard};

/// What may be in a directory of ours at most; more was not written by us.
const MAX_ENTRIES: usize = 100_000;

/// The SHA-256 of all files below `dir`: of a line `SHA-256 PATH` for each, sorted by path, with `/` between its parts.
///
/// # Errors
/// A file cannot be read, or is no regular file: nothing but those is ever approved.
pub(super) fn of_skill(dir: &Path) -> io::Result<Sha256> {
    Ok(Files::of(dir)?.digest())
}

/// The files of a skill by their hashes, to be compared again when they are read.
pub(super) struct Files(BTreeMap<String, Sha256>);

impl Files {
    /// Those below `dir`.
    ///
    /// # Errors
    /// As [`of_skill`].
    pub(super) fn of(dir: &Path) -> io::Result<Self> {
        let hashed = |path: String| {
            let digest = Sha256::of(&fs::read(dir.join(&path))?);
            Ok((path, digest))
        };
        Ok(Self(files(dir)?.into_iter().map(hashed).collect::<io::Result<_>>()?))
    }

    /// The hash of all of them, see [`of_skill`].
    pub(super) fn digest(&self) -> Sha256 {
        let mut text = String::new();
        for (path, digest) in &self.0 {
            text.extend([digest.to_string().as_str(), " ", path, "\n"]);
        }
        Sha256::of(text.as_bytes())
    }
}

impl FileGuard for Files {
    fn allows(&self, path: &str, content: Option<&mut dyn io::Read>) -> io::Result<bool> {
        let (Some(known), Some(content)) = (self.0.get(path), content) else { return Ok(false) };
        Ok(*known == Sha256::of_content(content)?)
    }
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
            // One with a line break could be taken for two.
            if name.contains(char::is_control) {
                return Err(wrong());
            }
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

    /// Two files, and one whose name is a line of theirs.
    #[cfg(unix)]
    #[test]
    fn a_name_is_no_line() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(format!("a\n{} b", Sha256::of(b""))), "").unwrap();
        assert_eq!(of_skill(dir.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_never_approved() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("x")).unwrap();
        assert_eq!(of_skill(dir.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
