//! Stderr of this process.
//!
//! Commands write to it directly. The proxy writes to it from a separate thread, because an editor may never read the pipe. A write
//! to a full pipe blocks, and the log is also written while locks of the relay are held.

use std::{
    io::{self, Write},
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use acp_skills_runtime::worker::{Batch, Submitter, Worker};

/// The size of the queue in bytes. Further messages are dropped and counted.
const KEPT_BYTES: usize = 4 << 20;
/// The maximum time that [`flush`] waits for the reader of stderr.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// True if messages go to the queue.
static IS_QUEUED: AtomicBool = AtomicBool::new(false);
/// The thread that writes, and its queue. Started with the first message. `None` if the system refused the thread.
static QUEUE: OnceLock<Option<Queue>> = OnceLock::new();

/// A message with its line break.
type Message = Vec<u8>;

struct Queue {
    worker: Worker<Message>,
    submitter: Submitter<Message>,
}

/// Makes all later writes return at once. If the reader is too slow, messages are dropped, and their number is written once it reads
/// again. If the system refuses a thread for this, writes continue to block.
pub(crate) fn never_block() {
    IS_QUEUED.store(true, Ordering::Relaxed);
}

/// Waits for up to a second until all messages are written.
pub(crate) fn flush() {
    if let Some(Some(queue)) = QUEUE.get() {
        queue.worker.flush(FLUSH_TIMEOUT);
    }
}

/// A writer to stderr. Each write is one message.
pub(super) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        if IS_QUEUED.load(Ordering::Relaxed)
            && let Some(queue) = QUEUE.get_or_init(start)
        {
            queue.submitter.submit(message.to_vec());
            return Ok(message.len());
        }
        io::stderr().write(message)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn start() -> Option<Queue> {
    let worker = Worker::start_weighed("stderr", KEPT_BYTES, Vec::len, |batch| write(io::stderr(), &batch));
    let worker = worker.ok()?;
    let submitter = worker.submitter();
    Some(Queue { worker, submitter })
}

/// Writes the messages of a batch, and the number of those that were dropped after them.
fn write(mut target: impl Write, batch: &Batch<Message>) {
    for message in &batch.items {
        // If we can't write to stderr, there is nowhere to report the error to.
        let _ = target.write_all(message);
    }
    if batch.dropped > 0 {
        let _ = writeln!(target, " WARN dropped {} messages, because stderr was not read", batch.dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_messages_are_reported_after_the_others() {
        for (items, dropped, expected) in [
            (vec!["a\n", "b\n"], 0, "a\nb\n"),
            (vec!["a\n"], 7, "a\n WARN dropped 7 messages, because stderr was not read\n"),
        ] {
            let items = items.into_iter().map(|item| item.as_bytes().to_vec()).collect();
            let mut text = Vec::new();
            write(&mut text, &Batch { items, dropped, is_last: false });
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
    }
}
