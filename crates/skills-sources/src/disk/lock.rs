//! [`FileLock`]: one process at a time changes what is on disk. The lock is on a file of its own beside what it guards, which
//! stays there; the operating system holds it, so it ends with the process that has it, however that ends.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::private;

/// How often it is tried again while another process has it.
const PAUSE: Duration = Duration::from_millis(5);

/// A lock that no other process has, until it is dropped.
#[derive(Debug)]
#[must_use = "the lock ends when this is dropped"]
pub struct FileLock(#[expect(dead_code, reason = "it is held")] File);

impl FileLock {
    /// Waits until no other process has the lock at `path`, however long. Creates the file, and directories, that are missing.
    ///
    /// # Errors
    /// As the system says; and when there is a FIFO in its place.
    pub fn acquire(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let file = private::lockable(path)?;
        file.lock()?;
        Ok(Self(file))
    }

    /// The same in a directory that is there, for at most `patience`: a process that is stopped must not stop us.
    ///
    /// # Errors
    /// As of [`acquire`](Self::acquire), and [`TimedOut`](io::ErrorKind::TimedOut).
    pub fn acquire_within(path: &Path, patience: Duration) -> io::Result<Self> {
        let file = private::lockable(path)?;
        let deadline = Instant::now() + patience;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let why = "another process does not let go of it";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// The lock, unless another process has it or it cannot be had.
    pub fn try_acquire(path: &Path) -> Option<Self> {
        let file = private::lockable(path).ok()?;
        file.try_lock().ok()?;
        Some(Self(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/lock");
        let held = FileLock::acquire(&path).unwrap();
        assert!(FileLock::try_acquire(&path).is_none());
        let error = FileLock::acquire_within(&path, Duration::ZERO).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        thread::scope(|scope| {
            let waits = scope.spawn(|| FileLock::acquire_within(&path, Duration::from_mins(1)).map(drop));
            drop(held);
            waits.join().unwrap().unwrap();
        });
        drop(FileLock::acquire(&path).unwrap());
        // What this process starts meanwhile has the lock, too, until it executes its program.
        let deadline = Instant::now() + Duration::from_secs(30);
        while FileLock::try_acquire(&path).is_none() {
            assert!(Instant::now() < deadline, "it is free");
        }
    }

    /// Whoever opens a FIFO to write waits for somebody who reads.
    #[cfg(unix)]
    #[test]
    fn a_fifo_in_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let within = FileLock::acquire_within(&path, Duration::from_mins(1));
        for error in [FileLock::acquire(&path).unwrap_err(), within.unwrap_err()] {
            assert!(error.to_string().contains("a FIFO that nobody reads"), "{error}");
        }
        assert!(FileLock::try_acquire(&path).is_none());
    }
}
