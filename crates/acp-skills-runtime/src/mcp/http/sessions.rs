//! [`Sessions`]: the MCP sessions of one endpoint.
//!
//! A running session costs about 70 KiB. Agents keep a session for hours without using it, and few of them would start a new one.
//! So a session without an open response is put aside after a while: it ends, and only the params of its `initialize` request are
//! kept. The next request of the client starts it again. A client that listens for notifications has an open response. The other
//! sessions of the endpoint are put aside all the same, because they can belong to other clients.
//!
//! The number of sessions is limited. At the limit, a new session replaces one that was put aside, and is refused if all of them
//! run.

use std::{
    mem,
    pin::Pin,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::{
    SessionManager,
    session::{
        local::LocalSessionManager,
        store::{SessionState, SessionStore, SessionStoreError},
    },
};
use tokio::{
    runtime::Handle,
    sync::RwLock,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

/// The time without an open response after which a session is put aside.
pub(super) const IDLE: Duration = Duration::from_mins(1);
/// The time in which a session ends. New requests wait meanwhile, because the end of a session removes it by its id.
const SETTLING: Duration = Duration::from_millis(20);

/// The maximum number of MCP sessions of one endpoint. Some clients start new sessions without ending the old ones.
pub(super) const MAX_MCP_SESSIONS: usize = 256;
/// The maximum size of the params of an `initialize` request, as JSON. They are kept as long as the session.
pub(super) const MAX_PARAMS_BYTES: usize = 64 * 1024;

/// The MCP sessions of one endpoint. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub(super) struct Sessions(Arc<Shared>);

struct Shared {
    /// Called after sessions were put aside.
    put_aside: Box<dyn Fn() + Send + Sync>,
    manager: Arc<LocalSessionManager>,
    store: Arc<Store>,
    /// Taken for reading when a request begins, and for writing while sessions are put aside.
    gate: RwLock<()>,
}

/// A request whose response is not complete yet.
pub(super) struct Open {
    shared: Arc<Shared>,
    /// The session of the request. `None` if the request has no session.
    session: Option<String>,
    /// Cancelled when the session ends or is put aside. Never cancelled without a session.
    pub(super) end: CancellationToken,
}

impl Sessions {
    pub(super) fn new(put_aside: impl Fn() + Send + Sync + 'static) -> Self {
        let manager = Arc::new(manager());
        let store = Arc::new(Store { manager: Arc::clone(&manager), all: Mutex::default() });
        Self(Arc::new(Shared { put_aside: Box::new(put_aside), manager, store, gate: RwLock::default() }))
    }

    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.0.manager)
    }

    pub(super) fn store(&self) -> Arc<dyn SessionStore> {
        self.0.store.clone()
    }

    /// Returns the number of sessions, including those that were put aside.
    pub(super) fn count(&self) -> usize {
        self.0.store.all.lock().kept.len()
    }

    /// Returns true if this session exists, even if it was put aside.
    pub(super) fn is_kept(&self, id: &str) -> bool {
        self.0.store.all.lock().get(id).is_some()
    }

    /// Begins a request of a session, or of a client without one. Keep the returned value until the response is complete.
    pub(super) async fn begin(&self, id: Option<&str>) -> Open {
        let _entered = self.0.gate.read().await;
        let mut all = self.0.store.all.lock();
        let kept = id.and_then(|id| all.get(id));
        let end = kept.map_or_else(CancellationToken::new, |kept| {
            kept.open += 1;
            kept.end.clone()
        });
        Open { shared: Arc::clone(&self.0), session: id.map(str::to_owned), end }
    }

    /// Returns the number of running sessions.
    #[cfg(test)]
    pub(super) async fn running(&self) -> usize {
        self.0.manager.sessions.read().await.len()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut all = self.shared.store.all.lock();
        // The session may have ended meanwhile.
        if let Some(kept) = self.session.as_deref().and_then(|id| all.get(id)) {
            kept.open = kept.open.saturating_sub(1);
            kept.used = Instant::now();
        }
        // At the end of the program, there is no runtime.
        let Ok(runtime) = Handle::try_current() else { return };
        if !all.kept.is_empty() && !mem::replace(&mut all.is_timed, true) {
            runtime.spawn(put_aside_when_idle(Arc::downgrade(&self.shared)));
        }
    }
}

impl Shared {
    /// Puts the idle sessions aside. Returns true if other sessions may become idle without another request.
    async fn put_aside(&self) -> bool {
        let _closed = self.gate.write().await;
        let mut idle = Vec::new();
        let is_awaited = {
            let running = self.manager.sessions.read().await;
            let mut all = self.store.all.lock();
            let mut is_awaited = false;
            for kept in &mut all.kept {
                if kept.open > 0 || !running.contains_key(kept.id.as_str()) {
                    continue;
                }
                if kept.used.elapsed() < IDLE {
                    is_awaited = true;
                    continue;
                }
                // The client does not wait for its calls any more.
                mem::take(&mut kept.end).cancel();
                idle.push(kept.id.as_str().into());
            }
            all.is_timed = is_awaited;
            is_awaited
        };
        if idle.is_empty() {
            return is_awaited;
        }
        for id in idle {
            // This fails if the session has already ended.
            let _ = self.manager.close_session(&id).await;
        }
        sleep(SETTLING).await;
        (self.put_aside)();
        is_awaited
    }
}

async fn put_aside_when_idle(shared: Weak<Shared>) {
    loop {
        sleep(IDLE).await;
        let Some(shared) = shared.upgrade() else { return };
        if !shared.put_aside().await {
            return;
        }
    }
}

/// Creates the manager of the running sessions.
fn manager() -> LocalSessionManager {
    let mut sessions = LocalSessionManager::default();
    // Never send an event with no data: Gemini tries to parse the data as JSON, fails, and then disconnects.
    sessions.session_config.sse_retry = None;
    // Sessions must not time out, because users may take a break for hours, and few agents would start a new session
    // after that. We drop the sessions with the endpoint instead.
    sessions.session_config.keep_alive = None;
    sessions
}

/// The sessions that can be started again.
struct Store {
    manager: Arc<LocalSessionManager>,
    /// No other lock is taken while it is held.
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    /// The session that was started the longest time ago comes first.
    kept: Vec<Kept>,
    /// True while a task waits for sessions to become idle.
    is_timed: bool,
}

/// A session, which runs or was put aside.
struct Kept {
    id: String,
    /// The params of the `initialize` request.
    state: SessionState,
    /// The number of requests whose response is not complete yet.
    open: usize,
    /// The time of the last response.
    used: Instant,
    /// Cancelled when the session ends or is put aside.
    end: CancellationToken,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl All {
    fn get(&mut self, id: &str) -> Option<&mut Kept> {
        self.kept.iter_mut().find(|kept| kept.id == id)
    }
}

/// The reasons to refuse a session.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("all {MAX_MCP_SESSIONS} MCP sessions are running")]
    TooMany,
    #[error("params of `initialize` are longer than {MAX_PARAMS_BYTES} bytes")]
    TooLong,
}

impl Store {
    /// Keeps the params of a new session, which runs already. At the limit, the session that was put aside and was not used for
    /// the longest time is dropped.
    async fn keep(&self, id: &str, state: &SessionState) -> Result<(), Refused> {
        if serde_json::to_vec(state).map_or(true, |params| params.len() > MAX_PARAMS_BYTES) {
            return Err(Refused::TooLong);
        }
        let running = self.manager.sessions.read().await;
        if running.len() > MAX_MCP_SESSIONS {
            return Err(Refused::TooMany);
        }
        let kept = &mut self.all.lock().kept;
        if kept.len() >= MAX_MCP_SESSIONS {
            let unused = kept.iter().position(|kept| !running.contains_key(kept.id.as_str()));
            kept.remove(unused.ok_or(Refused::TooMany)?);
        }
        let used = Instant::now();
        let end = CancellationToken::new();
        kept.push(Kept { id: id.to_owned(), state: state.clone(), open: 0, used, end });
        Ok(())
    }
}

/// The type of the futures of [`SessionStore`].
type Ready<'f, T> = Pin<Box<dyn Future<Output = Result<T, SessionStoreError>> + Send + 'f>>;

impl SessionStore for Store {
    fn load<'s, 'i, 'f>(&'s self, id: &'i str) -> Ready<'f, Option<SessionState>>
    where
        's: 'f,
        'i: 'f,
    {
        // The session starts again, so it is now the newest one.
        let kept = &mut self.all.lock().kept;
        let index = kept.iter().position(|kept| kept.id == id);
        if let Some(index) = index {
            kept[index..].rotate_left(1);
        }
        let state = index.and_then(|_| kept.last()).map(|kept| kept.state.clone());
        Box::pin(async { Ok(state) })
    }

    fn store<'s, 'i, 't, 'f>(&'s self, id: &'i str, state: &'t SessionState) -> Ready<'f, ()>
    where
        's: 'f,
        'i: 'f,
        't: 'f,
    {
        Box::pin(async move {
            let refused = match self.keep(id, state).await {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            };
            // This fails if the session has already ended.
            let _ = self.manager.close_session(&id.into()).await;
            Err(refused.into())
        })
    }

    fn delete<'s, 'i, 'f>(&'s self, id: &'i str) -> Ready<'f, ()>
    where
        's: 'f,
        'i: 'f,
    {
        self.all.lock().kept.retain(|kept| kept.id != id);
        Box::pin(async { Ok(()) })
    }
}
