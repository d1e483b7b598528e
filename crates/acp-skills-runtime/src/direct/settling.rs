//! [`Settling`]: the rounds in which a session learns its directories. Only one of them runs at a time, because a client can send
//! the notifications that start them without a limit.

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The rounds of one session.
#[derive(Default)]
pub(super) struct Settling {
    /// No other lock is taken while it is held.
    state: Mutex<State>,
    settled: CancellationToken,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    NotStarted,
    Running,
    /// A round is running, and another one has to follow.
    RunningAgain,
    Idle,
}

/// The notification of the client that starts a round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Initialized,
    RootsChanged,
}

impl Settling {
    /// Returns true if the caller has to run a round, and then call [`Self::ends`]. If a round is running, it will be repeated. A
    /// client is initialized once only.
    pub(super) fn begins(&self, cause: Cause) -> bool {
        let mut state = self.state.lock();
        let (next, begins) = match *state {
            State::NotStarted => (State::Running, true),
            now if cause == Cause::Initialized => (now, false),
            State::Idle => (State::Running, true),
            State::Running | State::RunningAgain => (State::RunningAgain, false),
        };
        *state = next;
        begins
    }

    /// Ends a round. Returns true if the caller has to run another one. The directories are known after the last round.
    pub(super) fn ends(&self) -> bool {
        let mut state = self.state.lock();
        let is_due = *state == State::RunningAgain;
        *state = if is_due { State::Running } else { State::Idle };
        if !is_due {
            self.finish();
        }
        is_due
    }

    /// Ends the wait for the directories, although they may not be known.
    pub(super) fn finish(&self) {
        self.settled.cancel();
    }

    /// Waits until the directories are known.
    pub(super) async fn finished(&self) {
        self.settled.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_round_runs_at_a_time() {
        let settling = Settling::default();
        assert!(settling.begins(Cause::Initialized));
        for _ in 0..1_000 {
            assert!(!settling.begins(Cause::Initialized));
        }
        assert!(!settling.ends(), "a client is initialized once");
        assert!(settling.settled.is_cancelled());
        assert!(!settling.begins(Cause::Initialized));
        assert!(settling.begins(Cause::RootsChanged));
        for _ in 0..1_000 {
            assert!(!settling.begins(Cause::RootsChanged));
        }
        assert!(settling.ends(), "the roots have changed during the round");
        assert!(!settling.ends(), "all changes are in the second round");
    }

    #[test]
    fn roots_that_change_during_the_first_round_are_awaited() {
        let settling = Settling::default();
        assert!(settling.begins(Cause::Initialized));
        assert!(!settling.begins(Cause::RootsChanged));
        assert!(settling.ends());
        assert!(!settling.settled.is_cancelled());
        assert!(!settling.ends());
        assert!(settling.settled.is_cancelled());
    }
}
