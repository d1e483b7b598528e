//! Whether there can be more threads, where it is too late for an error once there are none.

use std::{io, sync::RwLock, thread};

/// Starts `count` threads that run at the same time, and ends them again. Ask for more than are needed: others start theirs,
/// too, and one that has ended may count for a moment longer.
///
/// # Errors
/// The system has no more threads for us.
pub fn probe(count: usize) -> io::Result<()> {
    let gate = RwLock::new(());
    thread::scope(|scope| {
        let _closed = gate.write();
        for _ in 0..count {
            thread::Builder::new().spawn_scoped(scope, || drop(gate.read()))?;
        }
        Ok(())
    })
}
