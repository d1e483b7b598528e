//! [`Lane`]: the queue of one direction, and the writer at its end.
//!
//! A thread that holds the interceptor pushes its lines into the lane, which never blocks. This means that lines are
//! in the order in which the interceptor decided about them. Only threads that are allowed to block drain a lane. The
//! pump of a direction drains each batch before it reads the next one, so a lane holds at most one batch and the
//! lines that other threads insert, even if the source is fast.

use std::{
    collections::VecDeque,
    io::{self, Write},
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use acp_skills_wire::{Kind, Message};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::side::{Side, is_disconnect};

/// The maximum size of a buffer that is reused, in bytes. Larger buffers, which are only needed for very long lines,
/// are freed.
const MAX_SPARE_BYTES: usize = 256 * 1024;

/// The size of the queue, in bytes, from which a thread that inserts lines has to write them itself (back-pressure).
pub(super) const MAX_QUEUED_BYTES: usize = 4 * 1024 * 1024;

/// Bytes for a lane: the first `len` of `bytes`. The pump reuses the rest of the storage.
pub(super) struct Chunk {
    pub(super) bytes: Vec<u8>,
    pub(super) len: usize,
}

impl From<Vec<u8>> for Chunk {
    fn from(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len(), bytes }
    }
}

/// The queue and the writer of one direction.
pub(super) struct Lane {
    /// The side that the lane writes to.
    to: Side,
    queue: Mutex<Queue>,
    /// The writer, or `None` once the lane is closed. Held while writing, so only threads that may block take it.
    writer: Mutex<Option<Box<dyn Write + Send>>>,
    drain_is_scheduled: AtomicBool,
    written: AtomicU64,
    /// Notified when the queue has become shorter, or when the lane was closed.
    progress: Notify,
    /// Notified once if writing fails.
    failed: Arc<Notify>,
}

#[derive(Default)]
struct Queue {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    /// The bytes of the inserted lines that are answers to requests of the side.
    answers: usize,
    spare: Option<Vec<u8>>,
    /// True if the last byte was not a line break.
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
            drain_is_scheduled: AtomicBool::new(false),
            written: AtomicU64::new(0),
            progress: Notify::new(),
            failed: Arc::default(),
        }
    }

    /// Appends bytes to the queue. Never blocks. If the lane is closed, the bytes are dropped.
    pub(super) fn push(&self, chunk: impl Into<Chunk>) {
        self.queue.lock().push(chunk.into());
    }

    /// Appends a line of our own. If the bytes before it end in the middle of a line, a line break is added first.
    pub(super) fn insert(&self, line: Vec<u8>) {
        let is_answer = Message::parse(&line).is_some_and(|message| message.kind() == Kind::Response);
        let mut queue = self.queue.lock();
        if is_answer && !queue.closed {
            queue.answers += line.len();
        }
        if queue.is_mid_line {
            queue.push(b"\n".to_vec().into());
        }
        queue.push(line.into());
    }

    /// Returns the number of queued bytes.
    pub(super) fn queued(&self) -> usize {
        self.queue.lock().bytes
    }

    /// Returns the number of queued bytes that are not answers to requests of this side, so that the other side does not wait for
    /// these answers.
    pub(super) fn queued_messages(&self) -> usize {
        let queue = self.queue.lock();
        queue.bytes.saturating_sub(queue.answers)
    }

    /// Returns the number of queued bytes that are answers to requests of this side.
    pub(super) fn queued_answers(&self) -> usize {
        self.queue.lock().answers
    }

    /// Returns true if the lane was closed, or if writing has failed.
    pub(super) fn is_closed(&self) -> bool {
        self.queue.lock().closed
    }

    /// Returns the notification of a failed write. It has a permit even if writing failed before the first wait.
    pub(super) fn failed(&self) -> Arc<Notify> {
        Arc::clone(&self.failed)
    }

    /// Waits until at most [`MAX_QUEUED_BYTES`] of answers are queued.
    pub(super) async fn has_room(&self) {
        loop {
            let progress = self.progress.notified();
            if self.queued_answers() <= MAX_QUEUED_BYTES {
                return;
            }
            progress.await;
        }
    }

    /// Returns the number of bytes that were written so far.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Returns a buffer of at least `capacity` bytes. A buffer whose content was written is reused.
    pub(super) fn storage(&self, capacity: usize) -> Vec<u8> {
        match self.queue.lock().spare.take() {
            Some(spare) if spare.len() >= capacity => spare,
            _ => vec![0; capacity],
        }
    }

    /// Marks the lane as scheduled to be drained. Returns true if it was scheduled already.
    pub(super) fn schedule(&self) -> bool {
        self.drain_is_scheduled.swap(true, Ordering::AcqRel)
    }

    /// Writes all queued bytes. Blocks while the other side doesn't read.
    ///
    /// # Errors
    /// Returns an error if the other side disconnected. In this case, the lane is also closed.
    pub(super) fn drain(&self) -> io::Result<()> {
        let mut writer = self.writer.lock();
        self.drain_is_scheduled.store(false, Ordering::Release);
        let result = self.write_all(writer.as_mut());
        if let Err(error) = &result {
            if !is_disconnect(error) {
                tracing::warn!("cannot write to {}: {error}", self.to.name());
            }
            // A lane that we closed did not fail.
            if writer.take().is_some() {
                self.failed.notify_one();
            }
            self.shut();
        }
        result
    }

    /// Writes all queued bytes, then closes the writer.
    pub(super) fn close(&self) {
        // If this fails, the lane is already closed, so we can ignore the error.
        let _ = self.drain();
        self.shut();
        *self.writer.lock() = None;
    }

    fn shut(&self) {
        let mut queue = self.queue.lock();
        queue.closed = true;
        queue.chunks.clear();
        queue.bytes = 0;
        queue.answers = 0;
        drop(queue);
        self.progress.notify_waiters();
    }

    fn write_all(&self, mut writer: Option<&mut Box<dyn Write + Send>>) -> io::Result<()> {
        // Return an error for a closed lane even if the queue is empty, so that the pump stops reading.
        if writer.is_none() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        loop {
            let chunks = {
                let mut queue = self.queue.lock();
                queue.bytes = 0;
                queue.answers = 0;
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
