//! [`QueuedCalls`]: the calls of a session that wait to run a program.

use std::{mem, sync::Arc};

use parking_lot::Mutex;
use skills_core::{Caller, Skill};
use tokio_util::sync::CancellationToken;

use super::{connection_end::ConnectionEnd, serving::Serving};

/// The calls of a session that wait to run a program. All clones share their state.
#[derive(Clone, Default)]
pub(super) struct QueuedCalls {
    /// The session, as far as the order of programs is concerned.
    session: Caller,
    /// Guards the token that drops queued calls. No other lock is taken while it is held.
    dropped: Arc<Mutex<CancellationToken>>,
}

impl QueuedCalls {
    /// Drops the calls that wait to run a program. Those that run a program continue.
    pub(super) fn drop_all(&self) {
        let dropped = mem::take(&mut *self.dropped.lock());
        dropped.cancel();
    }

    /// Returns the session as the caller of one call. The call is not started any more after [`Self::drop_all`], if its
    /// connection has ended, or if its skill is not served any more. `served` returns what the session serves now.
    pub(super) fn caller(
        &self,
        connection: ConnectionEnd,
        skill: Option<Arc<Skill>>,
        served: impl Fn() -> Serving + Send + 'static,
    ) -> Caller {
        let dropped = self.dropped.lock().clone();
        let removed = async move {
            match skill {
                Some(skill) => {
                    let mut serving = served();
                    while serving.has(&skill) {
                        serving.replaced.cancelled().await;
                        serving = served();
                    }
                }
                None => std::future::pending().await,
            }
        };
        self.session.until(async move {
            tokio::select! {
                () = dropped.cancelled() => {}
                () = connection.wait() => {}
                () = removed => {}
            }
        })
    }
}
