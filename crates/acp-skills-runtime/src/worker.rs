//! [`Worker`]: a background thread with a bounded queue.
//!
//! Submitting an item never blocks, no matter how slow the thread is. If the queue is full, the item is dropped and
//! counted. The thread takes all queued items at once, so bursts are processed in batches. The work can ask for a time at which it is
//! called again, until which items are collected.
//!
//! This is used for everything that the proxy writes besides messages: events, state, and messages on stderr.

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
pub struct Worker<T>(Arc<Shared<T>>);

/// The sending end of a worker's queue. All clones share the queue.
pub struct Submitter<T>(Arc<Shared<T>>);

/// The items that the thread takes out of the queue at once.
#[derive(Debug)]
pub struct Batch<T> {
    /// The items in the order in which they were submitted.
    pub items: Vec<T>,
    /// The number of items that were dropped since the previous batch because the queue was full.
    pub dropped: u64,
    /// True if no items follow, because the queue is closed.
    pub is_last: bool,
}

struct Shared<T> {
    capacity: usize,
    /// Returns the part of the capacity that an item uses.
    weigh: fn(&T) -> usize,
    /// Guards the queue. No other lock is taken while it is held.
    queue: Mutex<Queue<T>>,
    /// Notified when an item was submitted or the queue was closed.
    submitted: Condvar,
    /// Notified when the thread has processed a batch, or has ended.
    progressed: Condvar,
}

struct Queue<T> {
    items: Vec<T>,
    /// The part of the capacity that the items use.
    weight: usize,
    /// The number of items that were dropped since the last batch.
    dropped: u64,
    /// True while the thread processes a batch.
    is_busy: bool,
    is_closed: bool,
    is_finished: bool,
}

impl<T> Queue<T> {
    fn has_work(&self) -> bool {
        !self.items.is_empty() || self.dropped > 0
    }
}

impl<T> Shared<T> {
    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock()
    }

    /// Waits for items, or until the time `wake` if there is one, or until half of the queue is used, so that a burst isn't lost. Once the
    /// queue is closed, returns the last batch, which can be empty.
    fn next_batch(&self, wake: Option<Instant>) -> Batch<T> {
        let mut queue = self.queue();
        queue.is_busy = false;
        self.progressed.notify_all();
        loop {
            let is_due = wake.map_or_else(|| queue.has_work(), |wake| Instant::now() >= wake);
            let is_filling = wake.is_some() && queue.weight * 2 >= self.capacity;
            if is_due || is_filling || queue.is_closed {
                queue.is_busy = true;
                queue.weight = 0;
                let items = mem::take(&mut queue.items);
                let dropped = mem::take(&mut queue.dropped);
                return Batch { items, dropped, is_last: queue.is_closed };
            }
            match wake {
                Some(wake) => {
                    self.submitted.wait_until(&mut queue, wake);
                }
                None => self.submitted.wait(&mut queue),
            }
        }
    }
}

impl<T: Send + 'static> Worker<T> {
    /// Starts a thread called `name`, which calls `work` with each batch. At most `capacity` items are queued.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub fn start(
        name: &str,
        capacity: usize,
        work: impl FnMut(Batch<T>) + Send + 'static,
    ) -> io::Result<Self> {
        Self::start_weighed(name, capacity, |_item| 1, work)
    }

    /// Starts a thread like [`start`](Self::start). The weights of the queued items add up to at most `capacity`, except
    /// if a single item is heavier: it is accepted if the queue is empty.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub fn start_weighed(
        name: &str,
        capacity: usize,
        weigh: fn(&T) -> usize,
        mut work: impl FnMut(Batch<T>) + Send + 'static,
    ) -> io::Result<Self> {
        let work = move |batch: Batch<T>| {
            if !batch.items.is_empty() || batch.dropped > 0 {
                work(batch);
            }
            None
        };
        Self::start_with(name, capacity, weigh, work)
    }

    /// Starts a thread like [`start`](Self::start), whose work can return the time of its next call. Until then, items are collected.
    /// The work is called at this time even if there are no items, and a last time when the queue is closed.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub fn start_paced(
        name: &str,
        capacity: usize,
        work: impl FnMut(Batch<T>) -> Option<Instant> + Send + 'static,
    ) -> io::Result<Self> {
        Self::start_with(name, capacity, |_item| 1, work)
    }

    fn start_with(
        name: &str,
        capacity: usize,
        weigh: fn(&T) -> usize,
        mut work: impl FnMut(Batch<T>) -> Option<Instant> + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Queue {
            items: Vec::new(),
            weight: 0,
            dropped: 0,
            is_busy: false,
            is_closed: false,
            is_finished: false,
        };
        let shared = Arc::new(Shared {
            capacity,
            weigh,
            queue: Mutex::new(queue),
            submitted: Condvar::new(),
            progressed: Condvar::new(),
        });
        let worker = Arc::clone(&shared);
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut wake = None;
            loop {
                let batch = worker.next_batch(wake);
                let is_last = batch.is_last;
                wake = work(batch);
                if is_last {
                    break;
                }
            }
            worker.queue().is_finished = true;
            worker.progressed.notify_all();
        })?;
        Ok(Self(shared))
    }

    /// Returns a handle for submitting items.
    pub fn submitter(&self) -> Submitter<T> {
        Submitter(Arc::clone(&self.0))
    }
}

impl<T> Worker<T> {
    /// Closes the queue and waits for up to 2 seconds until the queued items are processed.
    pub fn finish(&self) {
        self.finish_within(DRAIN_TIMEOUT);
    }

    /// Closes the queue and waits for up to `timeout` until the queued items are processed. Does nothing if the queue is closed
    /// already.
    pub fn finish_within(&self, timeout: Duration) {
        let mut queue = self.0.queue();
        if queue.is_closed {
            return;
        }
        queue.is_closed = true;
        self.0.submitted.notify_all();
        let deadline = Instant::now() + timeout;
        while !queue.is_finished && Instant::now() < deadline {
            self.0.progressed.wait_until(&mut queue, deadline);
        }
    }

    /// Waits for up to `timeout` until the queue is empty and all items are processed. The queue stays open.
    pub fn flush(&self, timeout: Duration) {
        let mut queue = self.0.queue();
        let deadline = Instant::now() + timeout;
        while (queue.is_busy || queue.has_work()) && Instant::now() < deadline {
            self.0.progressed.wait_until(&mut queue, deadline);
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
    pub fn submit(&self, item: T) {
        let mut queue = self.0.queue();
        if queue.is_closed {
            return;
        }
        let weight = queue.weight.saturating_add((self.0.weigh)(&item));
        if queue.items.is_empty() || weight <= self.0.capacity {
            queue.weight = weight;
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

    #[test]
    fn paced_work_is_called_at_its_time_and_at_the_end() {
        for (pause, expected) in [
            // The second batch is what was collected until the first pause was over.
            (Duration::ZERO, vec![(vec![1], false), (vec![], false), (vec![], true)]),
            (Duration::from_hours(1), vec![(vec![1], false), (vec![2], true)]),
        ] {
            let (done, all) = mpsc::channel();
            let mut pauses = Some(pause);
            let worker = Worker::start_paced("test", 3, move |batch: Batch<u32>| {
                done.send((batch.items, batch.is_last)).unwrap();
                pauses.take().map(|pause| Instant::now() + pause)
            });
            let worker = worker.unwrap();
            worker.submitter().submit(1);
            let mut seen = vec![all.recv().unwrap()];
            if pause.is_zero() {
                seen.push(all.recv().unwrap());
            } else {
                worker.submitter().submit(2);
            }
            drop(worker);
            seen.extend(all.iter());
            assert_eq!(seen, expected);
        }
    }

    /// The items of a burst are processed before the queue is full, also if the next call is far away.
    #[test]
    fn paced_work_is_called_early_if_the_queue_fills() {
        let (done, all) = mpsc::channel();
        let worker = Worker::start_paced("test", 4, move |batch: Batch<u32>| {
            done.send((batch.items, batch.dropped)).unwrap();
            Some(Instant::now() + Duration::from_hours(1))
        });
        let worker = worker.unwrap();
        let next = || all.recv_timeout(Duration::from_mins(1)).unwrap();
        worker.submitter().submit(1);
        assert_eq!(next(), (vec![1], 0));
        worker.submitter().submit(2);
        worker.submitter().submit(3);
        assert_eq!(next(), (vec![2, 3], 0));
    }

    #[test]
    fn a_short_end_is_not_repeated() {
        let (leave, leaves) = mpsc::channel::<()>();
        let worker = Worker::start("test", 3, move |_batch: Batch<u32>| leaves.recv().unwrap_or_default());
        let worker = worker.unwrap();
        worker.submitter().submit(1);
        let started = Instant::now();
        worker.finish_within(Duration::from_millis(1));
        drop(worker);
        assert!(started.elapsed() < DRAIN_TIMEOUT);
        drop(leave);
    }

    #[test]
    fn heavy_items_fill_the_queue_and_flushing_waits_for_all() {
        let (entered, enters) = mpsc::channel();
        let (leave, leaves) = mpsc::channel();
        let (done, all) = mpsc::channel();
        let worker = Worker::start_weighed("test", 10, Vec::len, move |batch: Batch<Vec<u8>>| {
            entered.send(()).unwrap();
            leaves.recv().unwrap();
            done.send((batch.items.iter().map(Vec::len).collect::<Vec<_>>(), batch.dropped)).unwrap();
        });
        let worker = worker.unwrap();
        let submitter = worker.submitter();
        // An item that exceeds the capacity is accepted if the queue is empty.
        submitter.submit(vec![0; 20]);
        enters.recv().unwrap();
        for length in [6, 5, 4, 1] {
            submitter.submit(vec![0; length]);
        }
        worker.flush(Duration::ZERO);
        assert!(all.try_recv().is_err(), "flushing has a timeout");
        leave.send(()).unwrap();
        leave.send(()).unwrap();
        worker.flush(Duration::from_mins(1));
        assert_eq!(all.try_iter().collect::<Vec<_>>(), [(vec![20], 0), (vec![6, 4], 2)]);
        // The queue is still open.
        submitter.submit(vec![0; 3]);
        leave.send(()).unwrap();
        drop(worker);
        assert_eq!(all.iter().collect::<Vec<_>>(), [(vec![3], 0)]);
    }
}
