//! [`Scratch`]: temporary directories that are also removed if this process is killed: by the next evaluation.
//!
//! Each directory has a lock file beside it, with the same name and the suffix `.lock`. The file is locked while its process
//! runs, and the system unlocks it if the process is killed.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// The beginning of the names of all directories.
const PREFIX: &str = "skill-eval-";
/// The extension of the lock files.
const LOCK: &str = "lock";

/// A temporary directory. Dropping it removes the directory.
pub(super) struct Scratch {
    directory: TempDir,
    /// Holds the lock.
    _lock: File,
}

impl Scratch {
    /// Creates an empty directory.
    ///
    /// # Errors
    /// Returns an error if the directory or its lock file can't be created.
    pub(super) fn new() -> io::Result<Self> {
        Self::new_in(&env::temp_dir())
    }

    fn new_in(parent: &Path) -> io::Result<Self> {
        // Create the lock file first, so that there is never a directory without one.
        let mut lock = loop {
            let lock =
                tempfile::Builder::new().prefix(PREFIX).suffix(&format!(".{LOCK}")).tempfile_in(parent)?;
            // If this fails, the file is removed.
            lock.as_file().lock()?;
            // Another process may have removed the file as a leftover before it was locked.
            if lock.path().exists() {
                break lock;
            }
        };
        lock.disable_cleanup(true);
        let path = lock.path().with_extension("");
        let name = path.file_name().unwrap_or_default();
        let directory = tempfile::Builder::new().prefix(name).rand_bytes(0).tempdir_in(parent);
        match directory {
            Ok(directory) => Ok(Self { directory, _lock: lock.into_file() }),
            Err(error) => {
                let _ = fs::remove_file(lock.path());
                Err(error)
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn lock_file(&self) -> PathBuf {
        self.path().with_extension(LOCK)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If this fails, the next evaluation will remove both.
        if fs::remove_dir_all(self.path()).is_ok() {
            let _ = fs::remove_file(self.lock_file());
        }
    }
}

/// Removes the directories of processes that were killed. Errors are ignored, for example because a directory belongs to another
/// user.
pub(super) fn remove_leftovers() {
    remove_leftovers_in(&env::temp_dir());
}

fn remove_leftovers_in(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // Don't open anything else here: opening a FIFO would block, and a link could lead anywhere.
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_ours || !is_file || path.extension() != Some(OsStr::new(LOCK)) {
            continue;
        }
        let Ok(lock) = File::open(&path) else { continue };
        if lock.try_lock().is_err() {
            continue;
        }
        let removed = fs::remove_dir_all(path.with_extension(""));
        if removed.is_ok() || removed.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            let _ = fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_ended_processes_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let names = || {
            let mut names: Vec<_> =
                fs::read_dir(parent.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let running = Scratch::new_in(parent.path()).unwrap();
        fs::write(running.path().join("file"), "x").unwrap();
        let kept = names();
        assert_eq!(kept.len(), 2);
        // This is what is left of a process that was killed.
        fs::create_dir_all(parent.path().join("skill-eval-abc/deep")).unwrap();
        fs::write(parent.path().join("skill-eval-abc.lock"), "").unwrap();
        fs::write(parent.path().join("skill-eval-gone.lock"), "").unwrap();
        remove_leftovers_in(parent.path());
        assert_eq!(names(), kept);
        // These are not ours.
        fs::create_dir(parent.path().join("skill-eval-mine")).unwrap();
        fs::write(parent.path().join("other.lock"), "").unwrap();
        remove_leftovers_in(parent.path());
        assert_eq!(names().len(), 4);
        drop(running);
        assert_eq!(names().len(), 2);
    }
}
