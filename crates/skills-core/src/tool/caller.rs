//! [`Caller`]: the session whose calls run programs.

use std::{fmt, sync::Arc};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared, pending},
};

/// A session whose calls run programs. Programs that have to wait start in turn for all callers, so a session with many calls does
/// not delay the others.
///
/// Clones are the same caller. [`Caller::default`] creates a new one.
#[derive(Clone, Default)]
pub struct Caller {
    /// Identifies the caller. The address is unique as long as a clone exists.
    id: Arc<()>,
    /// Completes when the result of a call that has not started is no longer needed.
    left: Option<Shared<BoxFuture<'static, ()>>>,
}

impl Caller {
    /// Returns the same caller for one call, which is not started any more once `left` has completed. A program that runs
    /// already continues.
    #[must_use]
    pub fn until(&self, left: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { id: Arc::clone(&self.id), left: Some(left.boxed().shared()) }
    }

    /// Waits until the result of a queued call is no longer needed.
    #[cfg_attr(not(feature = "exec"), expect(dead_code, reason = "only programs have to wait"))]
    pub(crate) async fn left(&self) {
        match &self.left {
            Some(left) => left.clone().await,
            None => pending().await,
        }
    }

    /// Returns true if the result of a call that has not started is no longer needed.
    pub fn has_left(&self) -> bool {
        self.left.clone().is_some_and(|left| left.now_or_never().is_some())
    }

    /// Returns true if this is the same caller.
    #[cfg_attr(not(feature = "exec"), expect(dead_code, reason = "only programs have to wait"))]
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.id, &other.id)
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Caller").field(&Arc::as_ptr(&self.id)).finish()
    }
}
