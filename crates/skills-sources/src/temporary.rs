//! Temporary directories in the cache, beside the versions of a source.
//!
//! A process locks a file in each of its directories. If the lock is free, the process has ended without removing the directory, so
//! another one can. Directories that the user has to look at are kept for a day.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use crate::{
    disk::{leftovers, private},
    system,
};

/// The prefix of the directories.
const NEW: &str = ".new-";
/// The file that is locked while a directory is used. No skill has this name.
const LOCK: &str = ".lock";
/// The file that exists if the user has to look at the directory. It contains the id of the process.
const KEPT: &str = ".kept";
/// The age after which a directory without a locked file is a leftover. Its process may not have locked the file yet.
const UNLOCKED: Duration = Duration::from_mins(1);

/// A temporary directory that only the user can read. Dropping it removes the directory, unless it is kept.
#[derive(Debug)]
pub(super) struct Temporary {
    path: PathBuf,
    /// `None` if the file can't be locked. The directory is then removed by its age if it is left over.
    lock: Option<File>,
    is_kept: bool,
}

impl Temporary {
    /// Creates a directory in the directory of a source.
    pub(super) fn create_in(directory: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let path = private::for_owner(builder.prefix(NEW)).tempdir_in(directory)?.keep();
        let lock = File::create(path.join(LOCK)).and_then(|file| file.lock().map(|()| file));
        Ok(Self { path, lock: lock.ok(), is_kept: false })
    }

    /// Creates a directory among those of the system, for a cache that can't be written.
    pub(super) fn create() -> io::Result<Self> {
        let path = private::for_owner(&mut tempfile::Builder::new()).tempdir()?.keep();
        Ok(Self { path, lock: None, is_kept: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the directory on disk for the user, after this process as well. Removes those that ended processes have kept for the same
    /// source, because each of them can be large.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
        let id = process::id().to_string();
        let _ = fs::write(self.path.join(KEPT), &id);
        let directory = self.path.parent().filter(|_| self.lock.is_some());
        for other in directory.into_iter().filter_map(|directory| fs::read_dir(directory).ok()).flatten() {
            let Ok(other) = other.map(|other| other.path()) else { continue };
            // The user may look at the directories of several sources after one command.
            let is_of_other = fs::read_to_string(other.join(KEPT)).is_ok_and(|other| other != id);
            if is_new(&other) && is_of_other && is_unused(&other) {
                // If this fails, a later fetch removes it.
                let _ = system::remove_dir_all(&other);
            }
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Windows can't remove a file that is open.
        self.lock = None;
        if !self.is_kept {
            // If this fails, a later fetch removes it.
            let _ = system::remove_dir_all(&self.path);
        }
    }
}

/// Removes directories of processes that have ended, and those for the user that are at least `old`.
pub(super) fn remove_leftovers(dir: &Path, old: Duration) {
    leftovers::remove_older(dir, old.min(UNLOCKED), |path, metadata| {
        let age = metadata.modified().ok().and_then(|time| time.elapsed().ok());
        is_new(path) && (age.is_some_and(|age| age >= old) || is_abandoned(path))
    });
}

/// Returns true if the process that has created a directory has ended, and the user doesn't have to look at the directory.
fn is_abandoned(dir: &Path) -> bool {
    is_unused(dir) && !dir.join(KEPT).exists()
}

/// Returns true if the process that has created a directory has ended.
fn is_unused(dir: &Path) -> bool {
    let lock = File::options().write(true).open(dir.join(LOCK));
    lock.is_ok_and(|lock| lock.try_lock().is_ok())
}

fn is_new(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(NEW))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// Opens a directory in a way that its time can be changed.
    fn open(dir: &Path) -> File {
        #[cfg(windows)]
        {
            use std::os::windows::fs::OpenOptionsExt;
            const FILE_WRITE_ATTRIBUTES: u32 = 0x100;
            // Only with this flag, Windows opens a directory.
            const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
            let mut options = File::options();
            options.access_mode(FILE_WRITE_ATTRIBUTES).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
            options.open(dir).unwrap()
        }
        #[cfg(not(windows))]
        File::open(dir).unwrap()
    }

    /// A process that has not ended may just be showing its directory.
    #[test]
    fn one_directory_of_an_ended_process_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let mut all: Vec<_> = (0..3).map(|_| Temporary::create_in(place.path()).unwrap()).collect();
        let paths: Vec<_> = all.iter().map(|temporary| temporary.path().to_owned()).collect();
        let left = || paths.iter().map(|path| path.exists()).collect::<Vec<_>>();
        let mut last = all.pop().unwrap();
        let mut running = all.pop().unwrap();
        let mut ended = all.pop().unwrap();
        running.keep();
        ended.keep();
        drop(ended);
        last.keep();
        assert_eq!(left(), [true, true, true]);
        for path in &paths[..2] {
            fs::write(path.join(KEPT), "0").unwrap();
        }
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        // Child processes of other tests inherit our locks until they execute a program.
        while left() != [false, true, true] {
            assert!(std::time::Instant::now() < deadline, "{:?}", left());
            last.keep();
        }
    }

    #[test]
    fn directories_of_ended_processes_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let names = ["used", "kept", "young", "left", "old"];
        let day = Duration::from_hours(24);
        let mut all: Vec<Temporary> =
            names.iter().map(|_| Temporary::create_in(place.path()).unwrap()).collect();
        let paths: Vec<PathBuf> = all.iter().map(|temporary| temporary.path().to_owned()).collect();
        all[1].keep();
        // What is left of processes that were killed.
        for temporary in &mut all[2..] {
            temporary.is_kept = true;
        }
        all.truncate(2);
        let age = |number: usize, age: Duration| {
            let _ = open(&paths[number]).set_modified(SystemTime::now() - age);
        };
        for number in [0, 1, 3] {
            age(number, Duration::from_mins(2));
        }
        fs::remove_file(paths[4].join(LOCK)).unwrap();
        age(4, day);
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        let left = || paths.iter().map(|path| path.exists()).collect::<Vec<_>>();
        // Child processes of other tests inherit our locks until they execute a program.
        while left() != [true, true, true, false, false] {
            assert!(std::time::Instant::now() < deadline, "{:?}", left());
            remove_leftovers(place.path(), day);
        }
        // Windows can't remove a file that is open.
        drop(all.pop());
        age(1, day);
        remove_leftovers(place.path(), day);
        assert_eq!(left(), [true, false, true, false, false]);
    }
}
