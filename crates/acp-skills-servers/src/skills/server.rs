//! [`Server`]: one server that offers skills. A task keeps a connection, lists the skills when they change, and connects again after a
//! failure.

mod files;
mod found;
mod list;

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use skills_core::{SkillSet, text::shown};
use skills_sources::Notify as Changed;
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    task::spawn_blocking,
    time::{sleep, timeout},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::list::{Tally, list};
use super::{
    super::{
        Address, ServerError, ToolServer,
        connection::{Connection, Start},
    },
    entries::Entry,
};
use crate::processes::Processes;

/// The minimum time between two lists, so that a server that announces changes all the time costs little.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// The minimum time between two lists, as a multiple of the time in which the last one was read. A long list that changes all the time
/// would use a core otherwise.
const MIN_PAUSE: u32 = 10;
/// The age of a list after which a new session asks again.
const MAX_AGE: Duration = Duration::from_mins(1);
/// The time after which a failed server is asked again. It doubles with each failure.
const RETRY: Duration = Duration::from_secs(1);
/// The maximum number of times that the time doubles.
const MAX_DOUBLINGS: u32 = 8;
/// The number of failures after which a program is only started again if a session or the user asks for it.
const MAX_STARTS: u32 = 3;
/// The duration of a connection after which earlier failures no longer count. A server that lists its skills and exits would be started
/// each second otherwise.
const STABLE: Duration = Duration::from_mins(1);

/// A server that offers skills. Dropping it ends the connection.
pub struct Server {
    shared: Arc<Shared>,
    end: DropGuard,
}

/// The state of a server, which its skills share.
pub(super) struct Shared {
    server: ToolServer,
    label: Arc<str>,
    /// The prefix for names of skills that are taken, see [`namespace`].
    namespace: Option<Arc<str>>,
    identity: Arc<str>,
    processes: Processes,
    /// The working directory, if the server is a program.
    cwd: Option<PathBuf>,
    /// True if the server is in the configuration, so that it should offer skills.
    is_configured: bool,
    /// Guards what is known of the skills. No other lock is taken while it is held.
    state: Mutex<State>,
    /// The connection, while there is one.
    connection: watch::Sender<Option<Arc<Connection>>>,
    /// Notified if the server should be asked again.
    wanted: Notify,
    /// The runtime of the task, and the callback for changes.
    started: OnceLock<(Handle, Changed)>,
}

#[derive(Default)]
struct State {
    status: Status,
    entries: Vec<Arc<Entry>>,
    /// Problems of the list, as sentences.
    problems: Vec<String>,
    /// The skills, as they follow from all of the above.
    found: SkillSet,
    asked_at: Option<Instant>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Status {
    #[default]
    Asking,
    Listed,
    NotOffered,
    /// The reason, as a clause.
    Failed(String),
}

/// The end of a connection.
enum End {
    NotOffered,
    /// True if the connection was [stable](STABLE).
    Failed(bool),
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("label", &self.label).finish_non_exhaustive()
    }
}

impl Server {
    /// Creates a server, which is not asked yet. `cwd` is the working directory, if the server is a program, and `is_configured` is true
    /// if the configuration names it.
    pub(super) fn new(
        server: ToolServer,
        processes: Processes,
        cwd: Option<PathBuf>,
        is_configured: bool,
    ) -> Self {
        let shared = Arc::new(Shared {
            label: format!("MCP server {}", shown(&server.skill)).into(),
            namespace: namespace(&server.skill).map(Into::into),
            identity: server.identity(cwd.as_deref()).into(),
            server,
            processes,
            cwd,
            is_configured,
            state: Mutex::default(),
            connection: watch::Sender::new(None),
            wanted: Notify::new(),
            started: OnceLock::new(),
        });
        shared.changed_by(|_| {});
        Self { shared, end: CancellationToken::new().drop_guard() }
    }

    /// Starts to ask the server. `changed` is called when its skills have changed. Does nothing outside of a tokio runtime.
    pub(super) fn start(&self, changed: Changed) {
        let Ok(runtime) = Handle::try_current() else { return };
        if self.shared.started.set((runtime.clone(), changed)).is_ok() {
            runtime.spawn(Arc::clone(&self.shared).run(self.end.token().clone()));
        }
    }

    pub(super) fn identity(&self) -> &str {
        &self.shared.identity
    }

    /// Returns the skills that the server offers, before any filter.
    pub(super) fn found(&self) -> SkillSet {
        self.shared.state.lock().found.clone()
    }

    /// Asks the server again.
    pub(super) fn ask_again(&self) {
        self.shared.wanted.notify_one();
    }

    /// Asks the server again, unless this was done a short time ago.
    pub(super) fn ask_if_old(&self) {
        let asked_at = self.shared.state.lock().asked_at;
        if asked_at.is_some_and(|asked_at| asked_at.elapsed() > MAX_AGE) {
            self.ask_again();
        }
    }
}

/// Returns the name of a server as the first part of a skill's name, such as `my-docs` for `My Docs`. `None` if no character fits.
fn namespace(name: &str) -> Option<String> {
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    let name = parts.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    Some(name).filter(|name| !name.is_empty())
}

impl Shared {
    /// Runs a task. Returns `None` if the server was never started.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Option<()> {
        let (runtime, _) = self.started.get()?;
        drop(runtime.spawn(task));
        Some(())
    }

    /// Reads a resource. If there is no connection, waits for the next one.
    pub(super) async fn read(&self, uri: &str) -> Result<Value, ServerError> {
        let mut connections = self.connection.subscribe();
        let is_open = |connection: &Option<Arc<Connection>>| {
            connection.as_ref().is_some_and(|connection| !connection.has_ended())
        };
        if !is_open(&connections.borrow()) {
            self.wanted.notify_one();
        }
        let limit = self.server.limits.start;
        let expired = ServerError::Timeout { what: "start", limit };
        let found = timeout(limit, connections.wait_for(is_open)).await.map_err(|_| expired)?;
        let connection = found.ok().and_then(|found| found.clone()).ok_or(ServerError::Ended)?;
        connection.request("resources/read", json!({ "uri": uri }), "read a file").await
    }

    /// Reads the entry of one skill again, because the server sends other content than it has listed.
    pub(super) async fn update(self: &Arc<Self>, uri: &str) {
        let connection = self.connection.borrow().clone();
        let Some(connection) = connection else { return };
        let answer = connection.request("skills/get", json!({ "uri": uri }), "describe a skill").await;
        let Ok(answer) = answer else { return };
        // A long entry takes a while, in which the runtime could do nothing else.
        let read = spawn_blocking(move || Entry::read(&answer["skill"])).await;
        let Ok(Ok(entry)) = read else { return };
        if entry.uri != uri {
            return;
        }
        let entry = Arc::new(entry);
        self.change(|state| {
            for known in state.entries.iter_mut().filter(|known| known.uri == uri) {
                *known = Arc::clone(&entry);
            }
        })
        .await;
    }

    async fn run(self: Arc<Self>, end: CancellationToken) {
        let mut failures = 0;
        loop {
            let ended = tokio::select! {
                biased;
                () = end.cancelled() => None,
                ended = self.follow(&end) => Some(ended),
            };
            self.connection.send_replace(None);
            let delay = match ended {
                None => return,
                Some(End::NotOffered) => None,
                Some(End::Failed(was_stable)) => {
                    failures = if was_stable { 1 } else { failures + 1 };
                    let is_program = matches!(self.server.address, Address::Command { .. });
                    let delay = RETRY.saturating_mul(1 << (failures - 1).min(MAX_DOUBLINGS));
                    (!is_program || failures < MAX_STARTS).then_some(delay)
                }
            };
            tokio::select! {
                () = end.cancelled() => return,
                () = self.wanted.notified() => {}
                () = sleep(delay.unwrap_or_default()), if delay.is_some() => {}
            }
        }
    }

    /// Connects, and lists the skills until the connection ends.
    async fn follow(self: &Arc<Self>, end: &CancellationToken) -> End {
        let connection = match self.connect(end).await {
            Ok(connection) => Arc::new(connection),
            Err(ServerError::NoSkills) => return self.without_skills().await,
            Err(error) => return self.failed(&error, false).await,
        };
        self.connection.send_replace(Some(Arc::clone(&connection)));
        let connected_at = Instant::now();
        let was_stable = || connected_at.elapsed() >= STABLE;
        let mut subscription = Box::pin(connection.subscribe());
        loop {
            let pause = match list(&connection, self.server.limits.list).await {
                Ok(Tally { entries, problems, reading, .. }) => {
                    let changing = Instant::now();
                    self.change(|state| {
                        state.status = Status::Listed;
                        state.entries = entries;
                        state.problems = problems;
                    })
                    .await;
                    MIN_INTERVAL.max((reading + changing.elapsed()).saturating_mul(MIN_PAUSE))
                }
                Err(error) => return self.failed(&error, was_stable()).await,
            };
            tokio::select! {
                () = connection.skills_changed.notified() => {}
                () = self.wanted.notified() => {}
                () = &mut subscription => subscription.set(connection.subscribe()),
                () = connection.ended() => return self.failed(&ServerError::Ended, was_stable()).await,
            }
            sleep(pause).await;
        }
    }

    /// Connects with the server. If it offers no skills in a session of MCP, tries the latest revision, which has no sessions.
    async fn connect(&self, end: &CancellationToken) -> Result<Connection, ServerError> {
        let start = |how| {
            let cwd = self.cwd.as_deref();
            Connection::start_as(how, &self.server, &self.processes, cwd, None, end.child_token())
        };
        let first = match start(Start::Session).await {
            Ok(connection) if connection.offers_skills() => return Ok(connection),
            Ok(_) => ServerError::NoSkills,
            Err(error @ (ServerError::Refused { .. } | ServerError::Http(_))) => error,
            Err(error) => return Err(error),
        };
        match (start(Start::Stateless).await, first) {
            (Ok(connection), _) if connection.offers_skills() => Ok(connection),
            // The server understands only requests without a session, and has no skills.
            (Ok(_), ServerError::Refused { .. }) => Err(ServerError::NoSkills),
            // If the first request has failed, the server may just be starting, and its skills must not be lost.
            (_, first) => Err(first),
        }
    }

    async fn without_skills(self: &Arc<Self>) -> End {
        self.change(|state| *state = State { status: Status::NotOffered, ..State::default() }).await;
        End::NotOffered
    }

    /// Records a failure. Skills that were listed before stay.
    async fn failed(self: &Arc<Self>, error: &ServerError, was_stable: bool) -> End {
        let text = shown(&error.to_string()).into_owned();
        self.change(|state| state.status = Status::Failed(text)).await;
        End::Failed(was_stable)
    }

    /// Changes the state, and reports it if the skills or the problems have changed. Waits until the report was received, so that the
    /// next one can't come before.
    async fn change(self: &Arc<Self>, change: impl FnOnce(&mut State)) {
        if let Some(report) = self.changed_by(change) {
            // This searches for the skills of the sessions, which can read the disk.
            let _ = spawn_blocking(move || report()).await;
        }
    }

    /// Changes the state. Returns the function to call if the skills or the problems have changed.
    fn changed_by(self: &Arc<Self>, change: impl FnOnce(&mut State)) -> Option<Changed> {
        let mut state = self.state.lock();
        let before = (state.status.clone(), state.entries.clone(), state.problems.clone());
        change(&mut state);
        let is_asked = self.started.get().is_some();
        state.asked_at = is_asked.then(Instant::now);
        if is_asked && before == (state.status.clone(), state.entries.clone(), state.problems.clone()) {
            return None;
        }
        state.found = self.set(&state);
        if let Status::Failed(why) = &state.status
            && before.0 != state.status
        {
            tracing::warn!("{} cannot be asked for skills: {why}", self.label);
        }
        drop(state);
        self.started.get().map(|(_, changed)| Arc::clone(changed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_servers_are_parts_of_names_of_skills() {
        for (name, expected) in [
            ("docs", Some("docs")),
            ("My  Docs (v2)", Some("my-docs-v2")),
            ("@acme/docs", Some("acme-docs")),
            ("文档", None),
            ("--", None),
        ] {
            assert_eq!(namespace(name).as_deref(), expected, "{name}");
        }
    }
}
