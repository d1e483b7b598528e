//! [`Queue`]: limits the number of programs that run at the same time. Programs that have to wait start in turn for all callers.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::tool::Caller;

/// A limit, and the calls that wait for it.
#[derive(Debug)]
pub(super) struct Queue {
    /// The maximum number of permits.
    limit: usize,
    /// Guards the queue. No other lock is taken while it is held.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of permits that are in use.
    running: usize,
    /// The queued calls of each caller. The front caller is the next to start a program.
    queued: VecDeque<(Caller, VecDeque<oneshot::Sender<Permit>>)>,
}

/// The permission to run a program. Dropping it starts the next one.
#[derive(Debug)]
pub(super) struct Permit(Option<Arc<Queue>>);

impl Queue {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a program of `caller` may start. Dropping the future leaves the queue.
    pub(super) async fn acquire(self: &Arc<Self>, caller: &Caller) -> Permit {
        let granted = {
            let mut state = self.state();
            if state.running < self.limit {
                state.running += 1;
                return Permit(Some(Arc::clone(self)));
            }
            state.wait(caller)
        };
        // The sender is only dropped if the receiver was dropped before.
        granted.await.unwrap_or(Permit(None))
    }

    /// Passes a permit on to the next queued call.
    fn release(self: &Arc<Self>) {
        loop {
            let next = {
                let mut state = self.state();
                let next = state.next();
                if next.is_none() {
                    state.running -= 1;
                }
                next
            };
            let Some(next) = next else { return };
            // This fails if the call was dropped.
            match next.send(Permit(Some(Arc::clone(self)))) {
                Ok(()) => return,
                Err(mut unused) => unused.0 = None,
            }
        }
    }
}

impl State {
    fn wait(&mut self, caller: &Caller) -> oneshot::Receiver<Permit> {
        let (sender, receiver) = oneshot::channel();
        match self.queued.iter_mut().find(|(other, _)| other.is(caller)) {
            Some((_, calls)) => {
                calls.retain(|call| !call.is_closed());
                calls.push_back(sender);
            }
            None => self.queued.push_back((caller.clone(), VecDeque::from([sender]))),
        }
        receiver
    }

    /// Takes the next queued call. Its caller is the last to get the next turn.
    fn next(&mut self) -> Option<oneshot::Sender<Permit>> {
        while let Some((caller, mut calls)) = self.queued.pop_front() {
            calls.retain(|call| !call.is_closed());
            let next = calls.pop_front();
            if !calls.is_empty() {
                self.queued.push_back((caller, calls));
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::FutureExt;

    use super::*;

    /// Two calls of the first caller run, and three wait. Then two other callers arrive, one of which leaves.
    #[test]
    fn callers_start_in_turn() {
        let queue = Arc::new(Queue::new(2));
        let callers = [Caller::default(), Caller::default(), Caller::default()];
        let mut running = VecDeque::new();
        let mut queued = Vec::new();
        for (name, caller) in [('a', 0), ('b', 0), ('c', 0), ('d', 0), ('e', 0), ('f', 1), ('g', 2), ('h', 2)]
        {
            let queue = Arc::clone(&queue);
            let caller = callers[caller].clone();
            let mut call = async move { queue.acquire(&caller).await }.boxed();
            match (&mut call).now_or_never() {
                Some(permit) => running.push_back((name, permit)),
                None => queued.push((name, call)),
            }
        }
        queued.retain(|(name, _)| *name != 'd');
        let mut order = String::new();
        while let Some((name, permit)) = running.pop_front() {
            order.push(name);
            drop(permit);
            queued.retain_mut(|(name, call)| match call.now_or_never() {
                Some(permit) => {
                    running.push_back((*name, permit));
                    false
                }
                None => true,
            });
        }
        assert_eq!(order, "abcfgeh");
        assert_eq!(queue.state().running, 0);
        assert!(queue.state().queued.is_empty());
    }

    /// A call that is dropped between its turn and its start passes the turn on.
    #[test]
    fn a_dropped_call_passes_its_turn_on() {
        let queue = Arc::new(Queue::new(1));
        let caller = Caller::default();
        let first = queue.acquire(&caller).now_or_never().expect("a permit");
        let mut last = pin!(queue.acquire(&caller));
        {
            let mut second = pin!(queue.acquire(&caller));
            assert!(second.as_mut().now_or_never().is_none());
            assert!(last.as_mut().now_or_never().is_none());
            drop(first);
        }
        assert!(last.now_or_never().is_some());
        assert_eq!(queue.state().running, 0);
    }
}
