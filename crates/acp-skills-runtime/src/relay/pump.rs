//! Moves the messages of one direction: reads a batch of lines, passes it to the hub, writes the result, and repeats.
//!
//! A pump is a blocking thread instead of a task. In our benchmarks, threads forward nearly twice as many updates and
//! reduce the latency by half, because there is no need to wake a task between a read and a write.

use std::{
    io::{self, Read},
    sync::Arc,
};

use super::{
    hub::Hub,
    side::{Side, is_disconnect},
};

/// The maximum size of one read, in bytes. This is the capacity of a pipe on Linux.
pub(super) const READ_BYTES: usize = 64 * 1024;

/// Forwards lines from `source` until it ends or the other side disconnects.
///
/// # Errors
/// Returns an error if reading fails, or if the other side no longer reads.
pub(super) fn pump(mut source: impl Read, from: Side, hub: &Arc<Hub>) -> io::Result<()> {
    let lane = hub.lane_to(from.other());
    let mut storage = lane.storage(READ_BYTES);
    // The first `len` bytes are the start of a line that we haven't read to the end yet.
    let mut len = 0;
    loop {
        if storage.len() - len < READ_BYTES / 2 {
            // If the line doesn't fit, double the size of the storage, so that the total time we spend on copying is
            // linear.
            storage.resize((storage.len() * 2).max(READ_BYTES), 0);
        }
        let read = match source.read(&mut storage[len..]) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                if !is_disconnect(&error) {
                    tracing::warn!("cannot read from {}: {error}", from.name());
                }
                return Err(error);
            }
        };
        let filled = len + read;
        let Some(end) = memchr::memrchr(b'\n', &storage[len..filled]).map(|at| len + at + 1) else {
            len = filled;
            continue;
        };
        let rest = filled - end;
        let mut next = lane.storage(READ_BYTES.max(rest));
        next[..rest].copy_from_slice(&storage[end..filled]);
        if hub.batch(from, &mut storage, end) {
            lane.drain()?;
        }
        storage = next;
        len = rest;
    }
    // If the last line doesn't end with a line break, forward it as is.
    if len > 0 && hub.batch(from, &mut storage, len) {
        lane.drain()?;
    }
    Ok(())
}
