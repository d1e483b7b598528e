//! Creates the tokio runtime, after checking that the system has enough descriptors and threads.

use std::{
    io,
    sync::{Arc, RwLock},
    time::Duration,
};

use skills_core::exec::probe_threads;
use tokio::runtime::{Builder, Runtime};

/// The maximum number of descriptors that a start needs at once. Tokio panics if it cannot get one, while we can return an error.
const DESCRIPTORS: usize = 24;
/// The number of threads that must be available.
const SPARE_THREADS: usize = 2;
/// The number of threads for blocking work that are started early. A side that doesn't read can block one of them, and the proxy
/// must still be able to read skills then, even if the system refuses further threads.
const BLOCKING_THREADS: usize = 3;
/// The time for which a thread for blocking work stays alive. If such a thread is alive, Tokio queues work for it.
/// Without one, Tokio panics if the system refuses to start a thread.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// Creates a single-threaded runtime.
///
/// # Errors
/// Returns an error if there are too few descriptors or threads.
pub(crate) fn new() -> io::Result<Runtime> {
    // Note that a pipe uses two descriptors.
    let spare: Vec<_> = (0..DESCRIPTORS / 2).map(|_| io::pipe()).collect::<io::Result<_>>()?;
    drop(spare);
    probe_threads(SPARE_THREADS)?;
    let runtime = Builder::new_current_thread().enable_all().thread_keep_alive(FOREVER).build()?;
    // Start the first threads for blocking work here, so that they can be used later. None of them may finish before
    // all have started, because the runtime would otherwise reuse one instead of starting another. If the system
    // refuses a thread, the runtime queues its work.
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write();
    for _ in 0..BLOCKING_THREADS {
        let gate = Arc::clone(&gate);
        drop(runtime.spawn_blocking(move || drop(gate.read())));
    }
    drop(closed);
    Ok(runtime)
}
