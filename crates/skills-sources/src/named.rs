//! [`NamedSources`]: the sources that the user approved by naming them.
//!
//! Naming a source approves its first version once. If the approval is lost later, for example because a broken lock file was
//! removed, the current version must not be approved silently. Therefore, this record is
//! not a part of the lock file, but a directory next to it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use skills_core::order;

use super::lockfile::LockError;
use crate::disk::{StateDir, state};

/// The name of the directory, which is next to the lock file. It contains one file per source.
const DIRECTORY: &str = "named-sources";

/// The record of named sources for a lock file.
pub(super) struct NamedSources(StateDir);

impl NamedSources {
    /// Returns the record for the lock file at `lock`. Nothing is read or written yet.
    pub(super) fn beside(lock: &Path) -> Self {
        Self(StateDir::later(lock.with_file_name(DIRECTORY)))
    }

    /// Returns the error for a record that can't be written.
    pub(super) fn unwritable(&self, source: io::Error) -> LockError {
        LockError::UnwritableRecord { path: self.0.path().to_owned(), source }
    }

    fn file(&self, source: &str) -> PathBuf {
        self.0.about(source.as_bytes())
    }

    /// Returns true if the record contains a source, even if its file is invalid.
    pub(super) fn contains(&self, source: &str) -> bool {
        fs::symlink_metadata(self.file(source)).is_ok()
    }

    /// Adds a source.
    ///
    /// # Errors
    /// Returns an error if the file can't be locked or written.
    pub(super) fn insert(&self, source: &str) -> io::Result<()> {
        self.0.change(&self.file(source), |_: Option<String>| Some(source.to_owned()))
    }

    /// Removes a source. Returns true if the record contained it.
    ///
    /// # Errors
    /// Returns an error if the file can't be removed.
    pub(super) fn remove(&self, source: &str) -> io::Result<bool> {
        let is_there = self.contains(source);
        if is_there {
            self.0.change(&self.file(source), |_: Option<String>| None)?;
        }
        Ok(is_there)
    }

    /// Returns all sources that can be read, sorted.
    pub(super) fn all(&self) -> Vec<String> {
        let files = fs::read_dir(self.0.path()).into_iter().flatten().flatten();
        let mut sources: Vec<String> =
            files.filter_map(|file| state::read(&file.path()).ok().flatten()).collect();
        order::sort(&mut sources);
        sources
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_added_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let named = NamedSources::beside(&dir.path().join("state/skills.lock"));
        assert!(
            !named.contains("github:a/b") && named.all().is_empty() && !named.remove("github:a/b").unwrap()
        );
        for source in ["github:c/d", "github:a/b", "github:a/b"] {
            named.insert(source).unwrap();
        }
        assert_eq!(named.all(), ["github:a/b", "github:c/d"]);
        assert!(named.remove("github:a/b").unwrap() && !named.contains("github:a/b"));
        // We can't read this file, but the source must not be approved again because of that.
        fs::write(named.file("github:c/d"), "{").unwrap();
        assert!(named.contains("github:c/d") && named.all().is_empty());
        // If the record can't be written, the message must not blame the lock file.
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let blocked = NamedSources::beside(&file.join("skills.lock"));
        let error = blocked.unwritable(blocked.insert("github:a/b").unwrap_err());
        assert!(error.to_string().starts_with("cannot write record of named sources: "), "{error}");
        assert!(error.to_string().ends_with(DIRECTORY), "{error}");
    }
}
