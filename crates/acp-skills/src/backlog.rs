//! [`Backlog`]: work that a thread of its own does behind the back of whoever asks for it.
//!
//! Asking never blocks, however slow the work is: the queue is bounded, and what does not fit is counted instead. The
//! thread takes all that waits at once, so work that comes in bursts is done in batches.

use std::{
    io, mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// A queue and the thread behind it. When it is dropped it waits a while for what is left to be done.
pub(crate) struct Backlog<T>(Arc<Shared<T>>);

/// Where work is asked for. All clones are the same.
pub(crate) struct Inbox<T>(Arc<Shared<T>>);

struct Shared<T> {
    max: usize,
    state: Mutex<State<T>>,
    /// Something was asked for, or there will be no more.
    asked: Condvar,
    /// The thread has ended.
    done: Condvar,
}

struct State<T> {
    waiting: Vec<T>,
    /// How many did not fit since somebody was told of it last.
    lost: u64,
    is_closed: bool,
    is_done: bool,
}

/// What waits at a moment.
#[derive(Debug)]
pub(crate) struct Batch<T> {
    /// What was asked for, in order.
    pub(crate) items: Vec<T>,
    /// How many did not fit before that.
    pub(crate) lost: u64,
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        // A panic elsewhere leaves the state whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for work; `None` when there will be no more.
    fn next(&self) -> Option<Batch<T>> {
        let mut state = self.state();
        loop {
            if !state.waiting.is_empty() || state.lost > 0 {
                let (items, lost) = (mem::take(&mut state.waiting), mem::take(&mut state.lost));
                return Some(Batch { items, lost });
            }
            if state.is_closed {
                return None;
            }
            state = self.asked.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// How long the end waits for what is left to be done.
const PATIENCE: Duration = Duration::from_secs(2);

impl<T: Send + 'static> Backlog<T> {
    /// Starts the thread `name`, which does `work`; at most `max` wait for it.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(
        name: &str,
        max: usize,
        mut work: impl FnMut(Batch<T>) + Send + 'static,
    ) -> io::Result<Self> {
        let state = State { waiting: Vec::new(), lost: 0, is_closed: false, is_done: false };
        let state = Mutex::new(state);
        let shared = Arc::new(Shared { max, state, asked: Condvar::new(), done: Condvar::new() });
        let theirs = Arc::clone(&shared);
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Some(batch) = theirs.next() {
                work(batch);
            }
            theirs.state().is_done = true;
            theirs.done.notify_all();
        })?;
        Ok(Self(shared))
    }

    /// Where to ask.
    pub(crate) fn inbox(&self) -> Inbox<T> {
        Inbox(Arc::clone(&self.0))
    }
}

impl<T> Backlog<T> {
    /// Takes no more, and waits a while for what is left to be done.
    pub(crate) fn finish(&self) {
        let mut state = self.0.state();
        state.is_closed = true;
        self.0.asked.notify_all();
        let end = Instant::now() + PATIENCE;
        // A disk that does not answer must not keep the program.
        while !state.is_done && Instant::now() < end {
            let left = end.saturating_duration_since(Instant::now());
            state = self.0.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<T> Drop for Backlog<T> {
    fn drop(&mut self) {
        self.finish();
    }
}

impl<T> Inbox<T> {
    /// Asks for work. Never blocks; what does not fit, or comes too late, is lost.
    pub(crate) fn put(&self, item: T) {
        let mut state = self.0.state();
        if state.is_closed {
            return;
        }
        if state.waiting.len() < self.0.max {
            state.waiting.push(item);
        } else {
            state.lost += 1;
        }
        drop(state);
        self.0.asked.notify_all();
    }
}

impl<T> Clone for Inbox<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn order_limits_and_the_end() {
        let (entered, enters) = mpsc::channel();
        let (leave, leaves) = mpsc::channel();
        let (done, all) = mpsc::channel();
        let backlog = Backlog::start("test", 3, move |batch: Batch<u32>| {
            entered.send(()).unwrap();
            leaves.recv().unwrap();
            done.send((batch.items, batch.lost)).unwrap();
        });
        let backlog = backlog.unwrap();
        let inbox = backlog.inbox();
        inbox.put(0);
        enters.recv().unwrap();
        // Nobody takes these, and nobody who asks waits.
        (1..=5).for_each(|number| inbox.put(number));
        leave.send(()).unwrap();
        leave.send(()).unwrap();
        drop(backlog);
        inbox.put(6);
        assert_eq!(all.iter().collect::<Vec<_>>(), [(vec![0], 0), (vec![1, 2, 3], 2)]);
    }
}
