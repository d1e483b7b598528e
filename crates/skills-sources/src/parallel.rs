//! [`on_threads`]: runs a task for each number on a limited number of threads.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
};

/// The task for one number. Its thread ends if it returns false.
pub type Work = Arc<dyn Fn(usize) -> bool + Send + Sync>;

/// Calls `work` with each number below `count`, in order, on up to `max_threads` background threads, which are returned.
///
/// # Errors
/// Returns an error if no thread could be started.
pub fn on_threads(count: usize, max_threads: usize, work: &Work) -> io::Result<Vec<JoinHandle<()>>> {
    let next = Arc::new(AtomicUsize::new(0));
    let start = || {
        let (work, next) = (Arc::clone(work), Arc::clone(&next));
        let all = move || {
            let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            let _ = numbers.take_while(|number| *number < count).all(|number| work(number));
        };
        thread::Builder::new().name("fetch".to_owned()).spawn(all)
    };
    let mut threads = Vec::new();
    for _ in 0..count.min(max_threads) {
        match start() {
            Ok(thread) => threads.push(thread),
            Err(error) if threads.is_empty() => return Err(error),
            // The other threads do the work.
            Err(_) => break,
        }
    }
    Ok(threads)
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Barrier,
        mpsc::{self, Sender},
    };

    use super::*;

    #[test]
    fn every_number_is_used_once() {
        let numbers = |count: usize| {
            let (sender, receiver) = mpsc::channel();
            let work: Work = Arc::new(move |number| sender.send(number).is_ok());
            on_threads(count, 16, &work).unwrap();
            drop(work);
            let mut numbers: Vec<_> = receiver.into_iter().collect();
            skills_core::order::sort(&mut numbers);
            numbers
        };
        for count in [0, 1, 16, 1000] {
            assert_eq!(numbers(count), (0..count).collect::<Vec<_>>());
        }
    }

    /// Each thread waits for all others and for this one, so that no thread can do two things before.
    #[test]
    fn the_number_of_threads_is_limited() {
        const MOST: usize = 8;
        let (sender, receiver): (Sender<usize>, _) = mpsc::channel();
        let barrier = Arc::new(Barrier::new(MOST + 1));
        let here = Arc::clone(&barrier);
        let work = move |number| {
            let is_sent = sender.send(number).is_ok();
            here.wait();
            is_sent
        };
        let work: Work = Arc::new(work);
        on_threads(2 * MOST, MOST, &work).unwrap();
        drop(work);
        let first: Vec<_> = receiver.iter().take(MOST).collect();
        assert!(first.len() == MOST && receiver.try_recv().is_err());
        barrier.wait();
        assert_eq!(receiver.iter().take(MOST).count(), MOST);
        barrier.wait();
        assert!(receiver.recv().is_err());
    }
}
