//! [`Sessions`]: the MCP sessions of one endpoint.
//!
//! A running session costs about 70 KiB. Agents keep a session for hours without using it, and few of them would start a new one.
//! So a session without an open response is put aside after a while: it ends, and only the params of its `initialize` request are
//! kept. The next request of the client starts it again. A client that listens for notifications has an open response.

use std::{
    collections::HashMap,
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

use crate::mcp::handler::Handler;

/// The time without an open response after which the sessions of an endpoint are put aside.
pub(super) const IDLE: Duration = Duration::from_mins(1);
/// The time in which a session ends. New requests wait meanwhile, because the end of a session removes it by its id.
const SETTLING: Duration = Duration::from_millis(20);

/// The MCP sessions of one endpoint. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub(super) struct Sessions(Arc<Shared>);

struct Shared {
    handler: Handler,
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
    pub(super) fn new(handler: Handler) -> Self {
        Self(Arc::new(Shared {
            handler,
            manager: Arc::new(manager()),
            store: Arc::default(),
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
        self.0.store.0.lock().len()
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
        if self.store.0.lock().is_empty() || self.is_timed.swap(true, Ordering::SeqCst) {
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
            let is_kept = self.store.0.lock().contains_key(id.as_ref());
            if is_kept {
                // This fails if the session has already ended.
                let _ = self.manager.close_session(&id).await;
            }
        }
        sleep(SETTLING).await;
        self.handler.listeners.remove_disconnected();
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

/// The params of the `initialize` request of each session, by the id of the session.
#[derive(Default)]
struct Store(Mutex<HashMap<String, SessionState>>);

/// The type of the futures of [`SessionStore`].
type Ready<'f, T> = Pin<Box<dyn Future<Output = Result<T, SessionStoreError>> + Send + 'f>>;

impl SessionStore for Store {
    fn load<'s, 'i, 'f>(&'s self, id: &'i str) -> Ready<'f, Option<SessionState>>
    where
        's: 'f,
        'i: 'f,
    {
        Box::pin(async { Ok(self.0.lock().get(id).cloned()) })
    }

    fn store<'s, 'i, 't, 'f>(&'s self, id: &'i str, state: &'t SessionState) -> Ready<'f, ()>
    where
        's: 'f,
        'i: 'f,
        't: 'f,
    {
        self.0.lock().insert(id.to_owned(), state.clone());
        Box::pin(async { Ok(()) })
    }

    fn delete<'s, 'i, 'f>(&'s self, id: &'i str) -> Ready<'f, ()>
    where
        's: 'f,
        'i: 'f,
    {
        self.0.lock().remove(id);
        Box::pin(async { Ok(()) })
    }
}
