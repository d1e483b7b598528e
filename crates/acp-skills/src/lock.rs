//! Locks of the standard library without their poison, in one place.
//!
//! A panic elsewhere must not end every thread that needs the same lock. Under each lock of this crate a change is whole
//! once it is visible: an assignment, or an insertion or removal in one collection. So what a panic leaves behind is usable.
//!
//! What a lock guards, and in which order it is taken together with others, stands at its declaration.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Takes the lock.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the lock back until somebody notifies, then takes it again.
pub(crate) fn wait<'g, T>(condvar: &Condvar, guard: MutexGuard<'g, T>) -> MutexGuard<'g, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// The same, for `time` at most.
pub(crate) fn wait_for<'g, T>(
    condvar: &Condvar,
    guard: MutexGuard<'g, T>,
    time: Duration,
) -> MutexGuard<'g, T> {
    condvar.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}

/// Gives the lock back until the condition does not hold any more, for `time` at most.
pub(crate) fn wait_while<'g, T>(
    condvar: &Condvar,
    guard: MutexGuard<'g, T>,
    time: Duration,
    mut condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'g, T> {
    let waited = condvar.wait_timeout_while(guard, time, |state| condition(state));
    waited.unwrap_or_else(PoisonError::into_inner).0
}
