//! [`probe_threads`]: finds out early whether the system can start more threads.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::RwLock,
    thread,
    time::{Duration, Instant},
};

/// The maximum time to wait until the system no longer counts a thread that has ended.
const SETTLING: Duration = Duration::from_millis(100);

/// Checks that the system can start `count` more threads.
///
/// Starts `count` threads that run at the same time, and waits until all of them have ended. Call it before code that
/// cannot report a failed thread start, such as a runtime that panics. Pass a larger number than the code needs, because
/// other programs start threads, too.
///
/// # Errors
/// Returns the system's error if one of the threads can't be started. No thread is left running in this case, either.
pub fn probe_threads(count: usize) -> io::Result<()> {
    let gate = RwLock::new(());
    let mut threads = Vec::new();
    let probed = thread::scope(|scope| {
        // We make the threads wait for this guard, so that all of them exist at the same time.
        let closed = gate.write();
        let start = || {
            thread::Builder::new().spawn_scoped(scope, || {
                drop(gate.read());
                this_thread()
            })
        };
        let started: Vec<_> = (0..count).map(|_| start()).collect();
        drop(closed);
        let mut probed = Ok(());
        for thread in started {
            match thread {
                Ok(thread) => threads.extend(thread.join().ok().flatten()),
                Err(error) => probed = Err(error),
            }
        }
        probed
    });
    // The system counts a thread for a moment after it has ended.
    let deadline = Instant::now() + SETTLING;
    while threads.iter().any(|thread| thread.exists()) && Instant::now() < deadline {
        thread::yield_now();
    }
    probed
}

/// Returns the path that exists as long as the system knows the current thread. `None` if the system has no such paths.
fn this_thread() -> Option<PathBuf> {
    Some(Path::new("/proc").join(fs::read_link("/proc/thread-self").ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_threads_can_be_started() {
        probe_threads(0).unwrap();
        probe_threads(4).unwrap();
    }
}
