//! [`Counted`]: the output of the agent, and the number of its bytes.

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// A reader that counts the bytes that were read.
pub(super) struct Counted<R> {
    source: R,
    bytes: Arc<AtomicU64>,
}

impl<R> Counted<R> {
    /// Counts the bytes of `source`. Returns the reader and the count.
    pub(super) fn new(source: R) -> (Self, Arc<AtomicU64>) {
        let bytes = Arc::<AtomicU64>::default();
        (Self { source, bytes: Arc::clone(&bytes) }, bytes)
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
