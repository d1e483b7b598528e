//! [`Sessions`]: the MCP sessions of one endpoint.
//!
//! A running session costs about 70 KiB. Agents keep a session for hours without using it, and few of them would start a new one.
//! So a session without an open response is put aside after a while: it ends, and only the params of its `initialize` request are
//! kept. The next request of the client starts it again. A client that listens for notifications has an open response.
//!
//! The number of sessions is limited. At the limit, a new session replaces one that was put aside, and is refused if all of them
//! run.

use std::{
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
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
use tokio::{runtime::Handle, sync::RwLock, time::sleep};

/// The time without an open response after which the sessions of an endpoint are put aside.
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
    /// Called after the sessions were put aside.
    put_aside: Box<dyn Fn() + Send + Sync>,
    manager: Arc<LocalSessionManager>,
    store: Arc<Store>,
    /// The number of requests whose response is not complete yet.
    open: AtomicUsize,
    /// The number of requests so far.
    requests: AtomicU64,
    /// True while a task waits for the endpoint to become idle.
    is_timed: AtomicBool,
    /// Taken for reading when a request begins, and for writing while the sessions are put aside.
    gate: RwLock<()>,
}

/// A request whose response is not complete yet.
pub(super) struct Open(Arc<Shared>);

impl Sessions {
    pub(super) fn new(put_aside: impl Fn() + Send + Sync + 'static) -> Self {
        let manager = Arc::new(manager());
        let store = Arc::new(Store { manager: Arc::clone(&manager), kept: Mutex::default() });
        Self(Arc::new(Shared {
            put_aside: Box::new(put_aside),
            manager,
            store,
            open: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            is_timed: AtomicBool::new(false),
            gate: RwLock::default(),
        }))
    }

    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.0.manager)
    }

    pub(super) fn store(&self) -> Arc<dyn SessionStore> {
        self.0.store.clone()
    }

    /// Returns the number of sessions, including those that were put aside.
    pub(super) fn count(&self) -> usize {
        self.0.store.kept.lock().len()
    }

    /// Returns true if this session exists, even if it was put aside.
    pub(super) fn is_kept(&self, id: &str) -> bool {
        self.0.store.index(id).is_some()
    }

    /// Begins a request. Keep the returned value until the response is complete.
    pub(super) async fn begin(&self) -> Open {
        let _entered = self.0.gate.read().await;
        self.0.open.fetch_add(1, Ordering::SeqCst);
        self.0.requests.fetch_add(1, Ordering::SeqCst);
        Open(Arc::clone(&self.0))
    }

    /// Returns the number of running sessions.
    #[cfg(test)]
    pub(super) async fn running(&self) -> usize {
        self.0.manager.sessions.read().await.len()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.await_idleness();
        }
    }
}

impl Shared {
    /// Starts a task that puts the sessions aside when the endpoint is idle, unless there is one already.
    fn await_idleness(self: &Arc<Self>) {
        // At the end of the program, there is no runtime.
        let Ok(runtime) = Handle::try_current() else { return };
        if self.store.kept.lock().is_empty() || self.is_timed.swap(true, Ordering::SeqCst) {
            return;
        }
        runtime.spawn(put_aside_when_idle(Arc::downgrade(self)));
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst) > 0
    }

    /// Puts all sessions aside that can be started again, unless a response is open.
    async fn put_aside(&self) {
        let _closed = self.gate.write().await;
        if self.is_open() {
            return;
        }
        let running: Vec<_> = self.manager.sessions.read().await.keys().cloned().collect();
        for id in running {
            if self.store.index(&id).is_some() {
                // This fails if the session has already ended.
                let _ = self.manager.close_session(&id).await;
            }
        }
        sleep(SETTLING).await;
        (self.put_aside)();
    }
}

async fn put_aside_when_idle(shared: Weak<Shared>) {
    let requests = || shared.upgrade().map(|shared| shared.requests.load(Ordering::SeqCst));
    loop {
        let before = requests();
        sleep(IDLE).await;
        if before != requests() {
            continue;
        }
        let Some(shared) = shared.upgrade() else { return };
        if !shared.is_open() {
            shared.put_aside().await;
        }
        shared.is_timed.store(false, Ordering::SeqCst);
        // A request that has just ended did not start a task, because this task was still running.
        let is_new = requests_since(&shared, before) && !shared.is_open();
        if !is_new || shared.is_timed.swap(true, Ordering::SeqCst) {
            return;
        }
    }
}

fn requests_since(shared: &Shared, before: Option<u64>) -> bool {
    Some(shared.requests.load(Ordering::SeqCst)) != before
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

/// The params of the `initialize` requests.
struct Store {
    manager: Arc<LocalSessionManager>,
    /// The ids of the sessions with their params. The session that was started the longest time ago comes first.
    kept: Mutex<Vec<(String, SessionState)>>,
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
    fn index(&self, id: &str) -> Option<usize> {
        self.kept.lock().iter().position(|(kept, _)| kept == id)
    }

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
        let mut kept = self.kept.lock();
        if kept.len() >= MAX_MCP_SESSIONS {
            let unused = kept.iter().position(|(id, _)| !running.contains_key(id.as_str()));
            kept.remove(unused.ok_or(Refused::TooMany)?);
        }
        kept.push((id.to_owned(), state.clone()));
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
        let mut kept = self.kept.lock();
        let index = kept.iter().position(|(kept, _)| kept == id);
        if let Some(index) = index {
            kept[index..].rotate_left(1);
        }
        let state = index.and_then(|_| kept.last()).map(|(_, state)| state.clone());
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
        self.kept.lock().retain(|(kept, _)| kept != id);
        Box::pin(async { Ok(()) })
    }
}
