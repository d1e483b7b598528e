//! [`FileLock`]: a lock between processes.
//!
//! The lock is taken on a separate lock file, which is never removed. The operating system releases it when the process ends, for any
//! reason.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use super::private;

/// The interval between attempts while another process holds the lock.
const PAUSE: Duration = Duration::from_millis(5);

/// An exclusive lock between processes. Dropping it releases the lock.
#[derive(Debug)]
#[must_use = "the lock ends when this is dropped"]
pub struct FileLock(#[expect(dead_code, reason = "the open file holds the lock")] File);

impl FileLock {
    /// Takes the lock at `path`, and waits without a timeout while another process holds it. Creates the lock file and its parent
    /// directories if they are missing.
    ///
    /// # Errors
    /// Returns the system's error if the file can't be created or locked, and an error if `path` is a FIFO.
    pub fn acquire(path: &Path) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let file = private::lockable(path)?;
        file.lock()?;
        Ok(Self(file))
    }

    /// Takes the lock at `path` with a timeout, because a process that is stopped may hold it forever. The parent directory must
    /// exist.
    ///
    /// # Errors
    /// Returns the errors of [`acquire`](Self::acquire), and [`TimedOut`](io::ErrorKind::TimedOut) after the timeout.
    pub fn acquire_within(path: &Path, timeout: Duration) -> io::Result<Self> {
        let file = private::lockable(path)?;
        let deadline = Instant::now() + timeout;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let why = "another process holds the lock";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Takes the lock without waiting. Returns `None` if another process holds it, or if it can't be taken.
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
    fn the_lock_is_exclusive() {
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
        // Child processes of other tests inherit the lock until they execute a program.
        let deadline = Instant::now() + Duration::from_secs(30);
        while FileLock::try_acquire(&path).is_none() {
            assert!(Instant::now() < deadline, "the lock is still taken");
        }
    }

    /// Opening a FIFO for writing would block until a reader opens it.
    #[cfg(unix)]
    #[test]
    fn a_fifo_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let within = FileLock::acquire_within(&path, Duration::from_mins(1));
        for error in [FileLock::acquire(&path).unwrap_err(), within.unwrap_err()] {
            assert!(error.to_string().contains("a FIFO without a reader"), "{error}");
        }
        assert!(FileLock::try_acquire(&path).is_none());
    }
}
