//! [`Watch`]: gives up on a host that sends nothing, too slowly, or too much.
//!
//! Git itself doesn't have such limits for all transports, so we check the files that git writes: the received packs
//! and objects, and a trace of the connection. The trace shows if the host has answered, and it also grows if a host
//! sends messages instead of objects.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    super::system,
    Limits,
    error::{GitError, mebibytes},
};

/// The number of bytes that a host must send within [`Limits::stall`].
const MIN_BYTES: u64 = 64 * 1024;

/// The minimum interval between two checks of the files.
const INTERVAL: Duration = Duration::from_millis(100);

/// The interval between two checks if they take long, as a multiple of their duration, and its maximum.
const CHECK_TIMES: u32 = 10;
const MAX_INTERVAL: Duration = Duration::from_secs(5);

/// The line that git's trace has for each header of an HTTP response.
const HTTP_ANSWER: &str = "<= Recv header";
/// The number of bytes of a trace within which an answer is expected. A line about the connection has about 100 bytes.
const TRACE_BYTES: u64 = 64 * 1024;

/// Watches one git command. Dropping this removes the trace.
pub(super) struct Watch<'a> {
    directory: &'a Path,
    limits: &'a Limits,
    started: Instant,
    /// The trace of a command that uses the network, until the host has answered.
    unanswered: Option<PathBuf>,
    /// The size of the objects when the host last made progress, and the time. `None` if the command doesn't use the network.
    progress: Option<(u64, Instant)>,
    /// The duration of the last check, which depends on the number of files.
    took: Duration,
}

/// Returns the path of the trace in a repository's directory.
pub(super) fn trace(directory: &Path) -> PathBuf {
    directory.join("connection-trace")
}

impl<'a> Watch<'a> {
    /// Watches a command in the repository in `directory`.
    pub(super) fn local(directory: &'a Path, limits: &'a Limits) -> Self {
        Self {
            directory,
            limits,
            started: Instant::now(),
            unanswered: None,
            progress: None,
            took: Duration::ZERO,
        }
    }

    /// Watches a command that fetches. With `over_http`, the trace shows if the host has answered.
    pub(super) fn of_fetch(directory: &'a Path, limits: &'a Limits, over_http: bool) -> Self {
        let trace = trace(directory);
        // Make sure that an earlier command's answer isn't taken for this one's. If this fails, there is no trace.
        let _ = fs::remove_file(&trace);
        let progress = Some((size(&directory.join("objects")), Instant::now()));
        Self { unanswered: over_http.then_some(trace), progress, ..Self::local(directory, limits) }
    }

    /// Returns the time until the next check. Otherwise, the checks of very many files would take all of the time.
    pub(super) fn interval(&self) -> Duration {
        (self.took * CHECK_TIMES).clamp(INTERVAL, MAX_INTERVAL)
    }

    /// Checks the files against the limits.
    ///
    /// # Errors
    /// Returns [`GitError::TooMuch`], [`GitError::NoAnswer`] or [`GitError::Stalled`] if a limit was reached.
    pub(super) fn look(&mut self) -> Result<(), GitError> {
        let limits = self.limits;
        let start = Instant::now();
        let bytes = size(self.directory);
        self.took = start.elapsed();
        if bytes > limits.bytes {
            return Err(GitError::TooMuch(format!("host sent more than {}", mebibytes(limits.bytes))));
        }
        let trace = fs::metadata(trace(self.directory)).map_or(0, |metadata| metadata.len());
        if trace > limits.reference_bytes() {
            let most = mebibytes(limits.reference_bytes());
            return Err(GitError::TooMuch(format!("host sent more than {most} of references and messages")));
        }
        if self.unanswered.as_deref().is_some_and(has_answer) {
            self.unanswered = None;
        }
        if self.unanswered.is_some() && self.started.elapsed() >= limits.answer {
            return Err(GitError::NoAnswer(limits.answer));
        }
        if let Some((before, since)) = &mut self.progress {
            let now = size(&self.directory.join("objects"));
            if now >= *before + MIN_BYTES {
                *before = now;
                *since = Instant::now();
            } else if since.elapsed() >= limits.stall {
                return Err(GitError::Stalled(limits.stall));
            }
        }
        Ok(())
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        // The trace may contain secret headers, so don't leave it on disk. Most commands have none.
        let _ = fs::remove_file(trace(self.directory));
    }
}

fn has_answer(trace: &Path) -> bool {
    let mut text = Vec::new();
    let read = File::open(trace).and_then(|file| file.take(TRACE_BYTES).read_to_end(&mut text));
    read.is_ok() && String::from_utf8_lossy(&text).contains(HTTP_ANSWER)
}

/// Returns the disk space that everything below a directory uses. Files that disappear meanwhile don't count.
fn size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match fs::symlink_metadata(entry.path()) {
            Ok(metadata) if metadata.is_dir() => system::disk_bytes(&metadata) + size(&entry.path()),
            Ok(metadata) => system::disk_bytes(&metadata),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each loose reference of a repository needs a block, although it has only 41 bytes.
    #[test]
    fn small_files_count_as_blocks() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join("refs");
        fs::create_dir(&directory).unwrap();
        for number in 0..100 {
            fs::write(directory.join(number.to_string()), [b'a'; 41]).unwrap();
        }
        let look = |blocks: u64| {
            let limits = Limits { bytes: blocks * 4096, ..Limits::default() };
            Watch::local(dir.path(), &limits).look().map_err(|error| error.to_string())
        };
        assert_eq!(look(150), Ok(()));
        assert!(look(99).unwrap_err().contains("host sent more than"));
    }

    /// Git keeps all references of a repository in memory, and a host can compress a long list of them.
    #[test]
    fn the_list_of_references_is_limited() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits { bytes: 8 * 1024 * 1024, ..Limits::default() };
        let mut watch = Watch::of_fetch(dir.path(), &limits, true);
        fs::write(trace(dir.path()), vec![b'x'; 1024 * 1024]).unwrap();
        assert!(watch.look().is_ok());
        fs::write(trace(dir.path()), vec![b'x'; 1024 * 1024 + 1]).unwrap();
        assert!(watch.look().unwrap_err().to_string().contains("more than 1 MiB of references"));
    }

    /// The user's headers may be secret, and git writes them to the trace.
    #[test]
    fn the_trace_is_removed_after_a_command() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits::default();
        let watch = Watch::of_fetch(dir.path(), &limits, true);
        fs::write(trace(dir.path()), "Send header: PRIVATE-TOKEN: x").unwrap();
        drop(watch);
        assert!(!trace(dir.path()).exists());
    }
}
