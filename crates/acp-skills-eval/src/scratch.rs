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
    sync::LazyLock,
};

use skills_core::text::shown_path;
use skills_sources::disk::{locations, private};
use tempfile::TempDir;

/// The beginning of the names of all directories.
const PREFIX: &str = "skill-eval-";
/// The directory that is used if other users can write to the temporary directory. It is beside the cache, because scripts in a sandbox can't
/// run in the cache.
const OWN_PARENT: &str = "acp-skills-proxy-runs";
/// The extension of the lock files.
const LOCK: &str = "lock";

/// The directory in which all others are created.
static PARENT: LazyLock<io::Result<PathBuf>> = LazyLock::new(|| {
    parent(env::temp_dir(), locations::cache_dir().map(|dir| dir.with_file_name(OWN_PARENT)))
});

/// Returns the directory for temporary files, or `own` if other users can write to that one. Agents look for settings, which can run
/// programs, in the directories above the one in which they start.
fn parent(temporary: PathBuf, own: Option<PathBuf>) -> io::Result<PathBuf> {
    if private::is_own(&temporary) {
        return Ok(temporary);
    }
    if let Some(own) = own {
        private::create_dir(&own)?;
        if private::is_own(&own) {
            return Ok(own);
        }
    }
    tracing::warn!(
        "other users can create files in {} or above it, where agents look for settings; set `TMPDIR` to a directory of your own",
        shown_path(&temporary)
    );
    Ok(temporary)
}

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
        let parent = PARENT.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        Self::new_in(parent)
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
        let mut builder = tempfile::Builder::new();
        let directory = private::for_owner(builder.prefix(name).rand_bytes(0)).tempdir_in(parent);
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
    if let Ok(parent) = &*PARENT {
        remove_leftovers_in(parent);
    }
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

    #[cfg(unix)]
    #[test]
    fn directories_of_all_users_are_avoided() {
        use std::os::unix::fs::PermissionsExt;

        let Some(home) = env::home_dir().filter(|home| private::is_own(home)) else { return };
        let dir = tempfile::tempdir_in(home).unwrap();
        let (shared, own) = (dir.path().join("shared"), dir.path().join("own"));
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        let found =
            |temporary: &PathBuf, own: Option<&PathBuf>| parent(temporary.clone(), own.cloned()).unwrap();
        assert_eq!(found(&shared, Some(&own)), own);
        assert_eq!(found(&own, Some(&shared)), own);
        assert_eq!(found(&shared, Some(&shared.join("below"))), shared);
        assert_eq!(found(&shared, None), shared);
    }

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
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Members of the user's group can't put files there, even if the umask would let them.
            let mode = fs::metadata(running.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
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
