//! [`FileLock`]: a lock between processes.
//!
//! The lock is taken on a separate lock file, which is never removed. The operating system releases it when the process ends, for any
//! reason. The lock file contains the id of the process that holds it, so that a waiting process can name it.

use std::{
    fs::{File, TryLockError},
    io::{self, Write},
    path::Path,
    process, thread,
    time::{Duration, Instant},
};

use super::private;

/// The interval between attempts while another process holds the lock.
const PAUSE: Duration = Duration::from_millis(5);
/// The time after which a process that waits for the lock logs a warning.
const SILENCE: Duration = Duration::from_secs(1);
/// The timeout for a lock that is held while a file is changed, which takes milliseconds. A process that holds it for this time is
/// stopped, or its disk doesn't respond.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(15);
/// The timeout for a lock that is held while a source is fetched. It is longer than the timeout of a fetch.
const FETCH_TIMEOUT: Duration = Duration::from_mins(6);

/// An exclusive lock between processes. Dropping it releases the lock.
#[derive(Debug)]
#[must_use = "the lock ends when this is dropped"]
pub struct FileLock(File);

impl Drop for FileLock {
    /// Releases the lock explicitly. Closing the file would not be enough, because a child process has a copy of our files until it
    /// executes its program.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

impl FileLock {
    /// Takes the lock at `path` for work that may take minutes, and waits for up to 6 minutes while another process holds it. Creates
    /// the lock file and its parent directories if they are missing.
    ///
    /// # Errors
    /// Returns the system's error if the directories can't be created, and the errors of [`acquire_within`](Self::acquire_within).
    pub fn acquire(path: &Path) -> io::Result<Self> {
        Self::create_and_acquire(path, FETCH_TIMEOUT)
    }

    /// Takes the lock at `path` for the change of a file, and waits for up to 15 seconds while another process holds it. Creates the
    /// lock file and its parent directories if they are missing.
    ///
    /// # Errors
    /// Returns the errors of [`acquire`](Self::acquire).
    pub fn acquire_for_change(path: &Path) -> io::Result<Self> {
        Self::create_and_acquire(path, CHANGE_TIMEOUT)
    }

    fn create_and_acquire(path: &Path, timeout: Duration) -> io::Result<Self> {
        if let Some(parent) = path.parent() {
            private::create_dir(parent)?;
        }
        Self::acquire_within(path, timeout)
    }

    /// Takes the lock at `path` with a timeout, because a process that is stopped may hold it forever. After one second of waiting,
    /// logs a warning that names the process. The parent directory must exist.
    ///
    /// # Errors
    /// Returns the system's error if the lock file can't be opened or locked, an error if `path` is a FIFO without a reader, and
    /// [`TimedOut`](io::ErrorKind::TimedOut) after the timeout.
    pub fn acquire_within(path: &Path, timeout: Duration) -> io::Result<Self> {
        let file = private::lockable(path)?;
        let started = Instant::now();
        let mut has_warned = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self::held(file)),
                Err(TryLockError::WouldBlock) if started.elapsed() < timeout => {
                    if !has_warned && started.elapsed() >= SILENCE {
                        has_warned = true;
                        tracing::warn!("waiting for {}, which holds {}", holder(path), path.display());
                    }
                    thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    let why = format!(
                        "{} has held {} for {} seconds",
                        holder(path),
                        path.display(),
                        timeout.as_secs()
                    );
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
        Some(Self::held(file))
    }

    /// Writes our process id to the file, whose lock we hold.
    fn held(mut file: File) -> Self {
        // If this fails, a process that waits can't name us.
        let _ = file.set_len(0).and_then(|()| file.write_all(process::id().to_string().as_bytes()));
        Self(file)
    }
}

/// Names the process that holds the lock at `path`.
fn holder(path: &Path) -> String {
    // On Windows, the file can't be read while it is locked.
    let id = private::read(path, 20).ok().and_then(|id| String::from_utf8(id).ok()?.parse::<u32>().ok());
    id.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"))
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
        if cfg!(unix) {
            assert!(error.to_string().contains(&format!("process {} has held ", process::id())), "{error}");
        }
        thread::scope(|scope| {
            let waits = scope.spawn(|| FileLock::acquire_within(&path, Duration::from_mins(1)).map(drop));
            drop(held);
            waits.join().unwrap().unwrap();
        });
        let lock = FileLock::acquire(&path).unwrap();
        // A child process has such a copy until it executes its program.
        let copy = lock.0.try_clone().unwrap();
        drop(lock);
        assert!(FileLock::try_acquire(&path).is_some());
        drop(copy);
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
