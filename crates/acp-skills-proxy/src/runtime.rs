//! The runtime of tasks, made where the system has what it needs.

use std::{io, time::Duration};

use skills_core::exec::probe_threads;
use tokio::runtime::{Builder, Runtime};

/// How many descriptors a start takes at most at once; the runtime panics when there are none for it, where we can tell.
const DESCRIPTORS: usize = 24;
/// How many threads there must be room for.
const SPARE_THREADS: usize = 2;
/// How long a thread for what blocks waits for work. The runtime panics when it has none and can have none, and queues the
/// work when it has one.
const FOREVER: Duration = Duration::from_hours(24 * 365);

/// A runtime for one thread.
///
/// # Errors
/// There are too few descriptors or threads.
pub(crate) fn new() -> io::Result<Runtime> {
    // Each pipe is two.
    let spare: Vec<_> = (0..DESCRIPTORS / 2).map(|_| io::pipe()).collect::<io::Result<_>>()?;
    drop(spare);
    probe_threads(SPARE_THREADS)?;
    let runtime = Builder::new_current_thread().enable_all().thread_keep_alive(FOREVER).build()?;
    // The first is there before it is needed.
    drop(runtime.spawn_blocking(|| ()));
    Ok(runtime)
}
