//! [`Unauthenticated`]: connections that have not sent a token yet.
//!
//! Any program on this machine can connect. Until a connection has sent a request with the token of a session, it
//! counts as unauthenticated. Only a few such connections are allowed, for a short time. If there are too many, the
//! oldest one is closed, because real agents send their token at once. But a burst of connections can be accepted before
//! any of them was read, so a connection is not closed in its first [`MIN_AGE`]. Meanwhile, no connection is admitted. On a busy
//! machine, this time can pass before the connection is read. A token that has arrived by then still counts.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

/// The maximum number of unauthenticated connections. Agents open one or two connections per session, one after
/// another.
pub(super) const MAX_UNAUTHENTICATED: usize = 64;
/// The timeout for the first authorized request on a connection.
pub(super) const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(10);
/// The time in which a connection is not closed to make room for another one. Each second, `MAX_UNAUTHENTICATED / MIN_AGE` connections
/// can be admitted, which has to be more than a program can open, because an agent waits behind them.
pub(super) const MIN_AGE: Duration = Duration::from_millis(20);
/// The minimum time between two warnings about rejected connections.
const WARNING_INTERVAL: Duration = Duration::from_mins(1);

/// The unauthenticated connections. Cheap to clone; all clones share their state.
#[derive(Clone, Default)]
pub(crate) struct Unauthenticated(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified if a connection was authenticated or closed, so that there is room for another one.
    left: Notify,
}

/// The state behind the only lock of this file. No thread blocks while it is held.
#[derive(Default)]
struct State {
    /// The connections that have not authenticated, oldest first.
    connections: VecDeque<Arc<Connection>>,
    warned_at: Option<Instant>,
}

struct Connection {
    since: Instant,
    authenticated: Notify,
    /// Notified if the connection has to make room for a newer one.
    evicted: Notify,
}

/// A connection, from its acceptance until it is closed.
pub(crate) struct Admission {
    connection: Arc<Connection>,
    all: Unauthenticated,
}

impl Unauthenticated {
    /// Adds a connection. If there are too many, waits until one of them has left, or until the oldest one has reached
    /// [`MIN_AGE`], which is then evicted. Only one task may wait.
    pub(crate) async fn admit(&self) -> Admission {
        loop {
            match self.try_admit() {
                Ok(admission) => return admission,
                // After this time, the next attempt evicts the oldest connection.
                Err(free) => {
                    let _ = timeout_at(free, self.0.left.notified()).await;
                }
            }
        }
    }

    /// Adds a connection, or returns the time from which the oldest one can be evicted.
    fn try_admit(&self) -> Result<Admission, Instant> {
        let mut state = self.state();
        if state.connections.len() >= MAX_UNAUTHENTICATED
            && let Some(oldest) = state.connections.front()
        {
            let free = oldest.since + MIN_AGE;
            if Instant::now() < free {
                return Err(free);
            }
            oldest.evicted.notify_one();
            state.connections.pop_front();
        }
        let connection = Arc::new(Connection {
            since: Instant::now(),
            authenticated: Notify::new(),
            evicted: Notify::new(),
        });
        state.connections.push_back(Arc::clone(&connection));
        drop(state);
        Ok(Admission { connection, all: self.clone() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Returns the number of unauthenticated connections.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.state().connections.len()
    }
}

impl State {
    fn warn(&mut self) {
        if self.warned_at.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL) {
            self.warned_at = Some(Instant::now());
            tracing::warn!(
                "rejecting connections to the skills server: another program on this machine keeps connecting without \
                 the token"
            );
        }
    }
}

impl Admission {
    /// Records that the connection has sent the token of a session.
    pub(crate) fn authenticated(&self) {
        self.leave();
        self.connection.authenticated.notify_one();
    }

    /// Returns when the connection should be closed, either because it timed out or because it was evicted. If the
    /// connection is authenticated, this never returns. The connection must be read before this is polled, because the token could
    /// have arrived already.
    pub(crate) async fn expires(&self) {
        tokio::select! {
            biased;
            () = self.connection.authenticated.notified() => std::future::pending().await,
            () = self.connection.evicted.notified() => self.all.state().warn(),
            () = tokio::time::sleep(AUTHENTICATION_TIMEOUT) => {}
        }
    }

    /// Removes the connection from the list, if it is there.
    fn leave(&self) {
        let mut state = self.all.state();
        let index = state.connections.iter().position(|other| Arc::ptr_eq(other, &self.connection));
        let has_left = index.is_some_and(|index| state.connections.remove(index).is_some());
        drop(state);
        if has_left {
            self.all.0.left.notify_one();
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_oldest_connection_is_evicted() {
        let all = Unauthenticated::default();
        let known = all.admit().await;
        known.authenticated();
        known.authenticated();
        let begun = Instant::now();
        let admitted = fill(&all).await;
        // The oldest connection should be closed when it has had time to send the token.
        let newest = all.admit().await;
        admitted[0].expires().await;
        assert_eq!(begun.elapsed(), MIN_AGE);
        assert_eq!(all.count(), MAX_UNAUTHENTICATED);
        // All other connections should stay open until the timeout.
        newest.expires().await;
        assert_eq!(begun.elapsed(), MIN_AGE + AUTHENTICATION_TIMEOUT);
        // If we close these connections, there should be room for new ones.
        drop(admitted);
        assert_eq!(all.count(), 1);
        let forever = tokio::time::timeout(Duration::from_hours(1), known.expires()).await;
        assert!(forever.is_err(), "an authenticated connection may stay");
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_arrives_late_still_counts() {
        let all = Unauthenticated::default();
        let admitted = fill(&all).await;
        let _newest = all.admit().await;
        admitted[0].authenticated();
        let forever = tokio::time::timeout(Duration::from_hours(1), admitted[0].expires()).await;
        assert!(forever.is_err(), "a client with the token was evicted");
        assert_eq!(all.count(), MAX_UNAUTHENTICATED);
    }

    /// Admits as many connections as possible without waiting.
    async fn fill(all: &Unauthenticated) -> Vec<Admission> {
        let mut admitted = Vec::new();
        while all.count() < MAX_UNAUTHENTICATED {
            admitted.push(all.admit().await);
        }
        admitted
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_of_clients_with_the_token_is_not_evicted() {
        let all = Unauthenticated::default();
        let begun = Instant::now();
        for leaves in [true, false] {
            let mut admitted = fill(&all).await;
            let ((), next) = tokio::join!(
                async {
                    // The others wait for this, so the connection should be closed or authenticated first.
                    tokio::task::yield_now().await;
                    if leaves {
                        drop(admitted.pop());
                    } else {
                        admitted[0].authenticated();
                    }
                },
                all.admit(),
            );
            assert_eq!((begun.elapsed(), all.count()), (Duration::ZERO, MAX_UNAUTHENTICATED));
            for other in admitted.iter().chain([&next]) {
                other.authenticated();
                let closed = tokio::time::timeout(Duration::ZERO, other.expires()).await;
                assert!(closed.is_err(), "a client with the token was evicted");
            }
        }
    }
}
