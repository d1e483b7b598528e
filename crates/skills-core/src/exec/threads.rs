//! [`probe_threads`]: finds out early whether the system can start more threads.

use std::{io, sync::RwLock, thread};

/// Checks that the system can start `count` more threads.
///
/// Starts `count` threads that run at the same time, and waits until all of them have ended. Call it before code that
/// cannot report a failed thread start, such as a runtime that panics. Pass a larger number than the code needs, because
/// other programs start threads, too, and the system may count an ended thread for a moment longer.
///
/// # Errors
/// Returns the system's error if one of the threads can't be started. No thread is left running in this case, either.
pub fn probe_threads(count: usize) -> io::Result<()> {
    let gate = RwLock::new(());
    thread::scope(|scope| {
        // We make the threads wait for this guard, so that all of them exist at the same time.
        let _closed = gate.write();
        for _ in 0..count {
            thread::Builder::new().spawn_scoped(scope, || drop(gate.read()))?;
        }
        Ok(())
    })
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
