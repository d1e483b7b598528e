//! Removes temporary files and directories that processes left behind when they were killed.

use std::{
    fs::{self, Metadata},
    path::Path,
    time::Duration,
};

/// Removes the files and directories in `dir` that `is_ours` accepts and that were changed at least `age` ago. A process may still use
/// newer ones. `is_ours` gets the path and the metadata of an entry, and should check the kind and the whole name, because `dir` can be
/// a directory of the user. Links are left as they are.
pub fn remove_older(dir: &Path, age: Duration, is_ours: impl Fn(&Path, &Metadata) -> bool) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        let unchanged = metadata.modified().ok().and_then(|time| time.elapsed().ok());
        let path = entry.path();
        if unchanged.is_none_or(|unchanged| unchanged < age) || !is_ours(&path, &metadata) {
            continue;
        }
        // If this fails, the next call tries it again.
        let _ = if metadata.is_dir() {
            crate::system::remove_dir_all(&path)
        } else if metadata.is_file() {
            fs::remove_file(&path)
        } else {
            Ok(())
        };
    }
}

/// Returns true if `text` looks like the random end of the name of a temporary file: six ASCII letters and digits.
pub fn is_random(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use std::{fs::File, time::SystemTime};

    use super::*;

    #[test]
    fn only_old_entries_of_ours_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let hour = Duration::from_hours(1);
        for (name, age) in [("ours-old", 2), ("ours-new", 0), ("theirs-old", 2)] {
            let file = File::create(dir.path().join(name)).unwrap();
            file.set_modified(SystemTime::now() - hour * age).unwrap();
        }
        fs::create_dir_all(dir.path().join("ours-directory/deep")).unwrap();
        let is_ours =
            |path: &Path, _: &Metadata| path.file_name().unwrap().to_str().unwrap().starts_with("ours");
        let left = || {
            let entries = fs::read_dir(dir.path()).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        remove_older(dir.path(), hour, is_ours);
        assert_eq!(left(), ["ours-directory", "ours-new", "theirs-old"]);
        remove_older(dir.path(), Duration::ZERO, is_ours);
        assert_eq!(left(), ["theirs-old"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_left() {
        let dir = tempfile::tempdir().unwrap();
        let target = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(target.path(), dir.path().join("link")).unwrap();
        remove_older(dir.path(), Duration::ZERO, |_, _| true);
        assert!(dir.path().join("link").exists());
    }

    #[test]
    fn random_ends() {
        for (text, expected) in
            [("a1B2c3", true), ("notes", false), ("notes.", false), ("abcdefg", false), ("", false)]
        {
            assert_eq!(is_random(text), expected, "{text}");
        }
    }
}
