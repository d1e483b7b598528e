//! One direction of the wire: chunks in the order in which they were decided, and the writer that they go to.
//!
//! Whoever decides pushes, which never blocks, while it holds the interceptor; so the order of the lane is the order
//! of the decisions. Whoever may block drains. The pump of a direction pushes one batch and drains it before it reads
//! on, so a lane holds one batch, and what others insert, however fast the source is.

use std::{
    collections::VecDeque,
    io::{self, Write},
    mem,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use parking_lot::Mutex;

use tokio::sync::Notify;

use super::{hub::Side, pump::is_departure};

/// Storage up to this size is used again, in bytes; what one huge line needed is given back.
const MAX_SPARE_BYTES: usize = 256 * 1024;

/// How many bytes may wait in a lane before whoever inserts has to write them itself.
pub(super) const MAX_WAITING_BYTES: usize = 4 * 1024 * 1024;

/// Bytes for a lane: the first `len` of `bytes`. The rest is storage that the pump gets back.
pub(super) struct Chunk {
    pub(super) bytes: Vec<u8>,
    pub(super) len: usize,
}

impl From<Vec<u8>> for Chunk {
    fn from(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len(), bytes }
    }
}

/// One direction.
pub(super) struct Lane {
    /// Where it leads.
    to: Side,
    queue: Mutex<Queue>,
    writer: Mutex<Option<Box<dyn Write + Send>>>,
    drain_is_due: AtomicBool,
    written: AtomicU64,
    /// Something was written, or will never be.
    progress: Notify,
}

#[derive(Default)]
struct Queue {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    spare: Option<Vec<u8>>,
    /// The last byte was no line break.
    is_mid_line: bool,
    closed: bool,
}

impl Queue {
    fn push(&mut self, chunk: Chunk) {
        let Some(last) = chunk.len.checked_sub(1) else { return };
        if !self.closed {
            self.is_mid_line = chunk.bytes[last] != b'\n';
            self.bytes += chunk.len;
            self.chunks.push_back(chunk);
        }
    }
}

impl Lane {
    pub(super) fn new(to: Side, writer: Box<dyn Write + Send>) -> Self {
        Self {
            to,
            queue: Mutex::default(),
            writer: Mutex::new(Some(writer)),
            drain_is_due: AtomicBool::new(false),
            written: AtomicU64::new(0),
            progress: Notify::new(),
        }
    }

    /// Adds bytes behind all others. Never blocks. A closed lane forgets them.
    pub(super) fn push(&self, chunk: impl Into<Chunk>) {
        self.queue.lock().push(chunk.into());
    }

    /// Adds a line of our own. What came before it may have been cut off in the middle of a line.
    pub(super) fn insert(&self, line: Vec<u8>) {
        let mut queue = self.queue.lock();
        if queue.is_mid_line {
            queue.push(b"\n".to_vec().into());
        }
        queue.push(line.into());
    }

    /// How many bytes wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.lock().bytes
    }

    /// Waits until the reader has taken so much that a lane is not overfull.
    pub(super) async fn has_room(&self) {
        loop {
            let progress = self.progress.notified();
            if self.waiting() <= MAX_WAITING_BYTES {
                return;
            }
            progress.await;
        }
    }

    /// How many bytes were written so far.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Storage that the lane has done with, at least `capacity` bytes long.
    pub(super) fn storage(&self, capacity: usize) -> Vec<u8> {
        match self.queue.lock().spare.take() {
            Some(spare) if spare.len() >= capacity => spare,
            _ => vec![0; capacity],
        }
    }

    /// Notes that somebody is to drain the lane soon. Returns whether it was noted already.
    pub(super) fn schedule(&self) -> bool {
        self.drain_is_due.swap(true, Ordering::AcqRel)
    }

    /// Writes everything that waits. Blocks for as long as the reader does not read.
    ///
    /// # Errors
    /// The reader is gone; the lane is closed then.
    pub(super) fn drain(&self) -> io::Result<()> {
        let mut writer = self.writer.lock();
        self.drain_is_due.store(false, Ordering::Release);
        let result = self.write_all(writer.as_mut());
        if let Err(error) = &result {
            if !is_departure(error) {
                tracing::warn!("cannot write to {}: {error}", self.to.name());
            }
            *writer = None;
            self.shut();
        }
        result
    }

    /// Writes everything that waits, then closes the writer.
    pub(super) fn close(&self) {
        // The reader may be gone already; closing is what was asked for.
        drop(self.drain());
        self.shut();
        *self.writer.lock() = None;
    }

    fn shut(&self) {
        let mut queue = self.queue.lock();
        queue.closed = true;
        queue.chunks.clear();
        queue.bytes = 0;
        drop(queue);
        self.progress.notify_waiters();
    }

    fn write_all(&self, mut writer: Option<&mut Box<dyn Write + Send>>) -> io::Result<()> {
        // Once the reader was gone it stays gone, also when there is nothing to write.
        if writer.is_none() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        loop {
            let chunks = {
                let mut queue = self.queue.lock();
                queue.bytes = 0;
                mem::take(&mut queue.chunks)
            };
            self.progress.notify_waiters();
            if chunks.is_empty() {
                return Ok(());
            }
            let Some(writer) = writer.as_mut() else {
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            for chunk in chunks {
                writer.write_all(&chunk.bytes[..chunk.len])?;
                self.written.fetch_add(chunk.len as u64, Ordering::Relaxed);
                if chunk.bytes.len() <= MAX_SPARE_BYTES {
                    self.queue.lock().spare = Some(chunk.bytes);
                }
            }
            writer.flush()?;
        }
    }
}
