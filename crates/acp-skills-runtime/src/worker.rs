//! [`Worker`]: a background thread with a bounded queue.
//!
//! Submitting an item never blocks, no matter how slow the thread is. If the queue is full, the item is dropped and
//! counted. The thread takes all queued items at once, so bursts are processed in batches.

use std::{
    io, mem,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// The maximum time that [`Worker::finish`] waits for queued items. A disk that doesn't respond must not keep the
/// program from exiting.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A thread and its queue. Dropping it waits for up to 2 seconds until the queued items are processed.
pub(crate) struct Worker<T>(Arc<Shared<T>>);

/// The sending end of a worker's queue. All clones share the queue.
pub(crate) struct Submitter<T>(Arc<Shared<T>>);

/// The items that the thread takes out of the queue at once.
#[derive(Debug)]
pub(crate) struct Batch<T> {
    /// The items in the order in which they were submitted.
    pub(crate) items: Vec<T>,
    /// The number of items that were dropped since the previous batch because the queue was full.
    pub(crate) dropped: u64,
}

struct Shared<T> {
    capacity: usize,
    /// Guards the queue. No other lock is taken while it is held.
    queue: Mutex<Queue<T>>,
    /// Notified when an item was submitted or the queue was closed.
    submitted: Condvar,
    /// Notified when the thread has ended.
    finished: Condvar,
}

struct Queue<T> {
    items: Vec<T>,
    /// The number of items that were dropped since the last batch.
    dropped: u64,
    is_closed: bool,
    is_finished: bool,
}

impl<T> Shared<T> {
    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock()
    }

    /// Waits for items. Returns `None` once the queue is closed and empty.
    fn next_batch(&self) -> Option<Batch<T>> {
        let mut queue = self.queue();
        loop {
            if !queue.items.is_empty() || queue.dropped > 0 {
                let items = mem::take(&mut queue.items);
                let dropped = mem::take(&mut queue.dropped);
                return Some(Batch { items, dropped });
            }
            if queue.is_closed {
                return None;
            }
            self.submitted.wait(&mut queue);
        }
    }
}

impl<T: Send + 'static> Worker<T> {
    /// Starts a thread called `name`, which calls `work` with each batch. At most `capacity` items are queued.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub(crate) fn start(
        name: &str,
        capacity: usize,
        mut work: impl FnMut(Batch<T>) + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Queue { items: Vec::new(), dropped: 0, is_closed: false, is_finished: false };
        let shared = Arc::new(Shared {
            capacity,
            queue: Mutex::new(queue),
            submitted: Condvar::new(),
            finished: Condvar::new(),
        });
        let worker = Arc::clone(&shared);
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Some(batch) = worker.next_batch() {
                work(batch);
            }
            worker.queue().is_finished = true;
            worker.finished.notify_all();
        })?;
        Ok(Self(shared))
    }

    /// Returns a handle for submitting items.
    pub(crate) fn submitter(&self) -> Submitter<T> {
        Submitter(Arc::clone(&self.0))
    }
}

impl<T> Worker<T> {
    /// Closes the queue and waits for up to 2 seconds until the queued items are processed.
    pub(crate) fn finish(&self) {
        let mut queue = self.0.queue();
        queue.is_closed = true;
        self.0.submitted.notify_all();
        let deadline = Instant::now() + DRAIN_TIMEOUT;
        while !queue.is_finished && Instant::now() < deadline {
            self.0.finished.wait_until(&mut queue, deadline);
        }
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.finish();
    }
}

impl<T> Submitter<T> {
    /// Submits an item. Never blocks. If the queue is full or closed, the item is dropped.
    pub(crate) fn submit(&self, item: T) {
        let mut queue = self.0.queue();
        if queue.is_closed {
            return;
        }
        if queue.items.len() < self.0.capacity {
            queue.items.push(item);
        } else {
            queue.dropped += 1;
        }
        drop(queue);
        self.0.submitted.notify_all();
    }
}

impl<T> Clone for Submitter<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn items_keep_their_order_and_overflow_is_counted() {
        let (entered, enters) = mpsc::channel();
        let (leave, leaves) = mpsc::channel();
        let (done, all) = mpsc::channel();
        let worker = Worker::start("test", 3, move |batch: Batch<u32>| {
            entered.send(()).unwrap();
            leaves.recv().unwrap();
            done.send((batch.items, batch.dropped)).unwrap();
        });
        let worker = worker.unwrap();
        let submitter = worker.submitter();
        submitter.submit(0);
        enters.recv().unwrap();
        // The thread is busy, so these items are added to the queue, but there's no space for the last two.
        (1..=5).for_each(|number| submitter.submit(number));
        leave.send(()).unwrap();
        leave.send(()).unwrap();
        drop(worker);
        submitter.submit(6);
        assert_eq!(all.iter().collect::<Vec<_>>(), [(vec![0], 0), (vec![1, 2, 3], 2)]);
    }
}
