//! The MCP server inside the proxy: one endpoint a session, three ways to reach it.
//!
//! | file | owns |
//! |---|---|
//! | `handler` | the tools, as an rmcp server |
//! | `serving` | what is served at a moment |
//! | `progress` | what a client hears while a call runs |
//! | `changes` | who hears that there are other tools, prompts or resources |
//! | `prompts`, `resources` | the skills as MCP prompts and resources |
//! | `http` | the listener on loopback: who may come in, and where to |
//! | `bridge` | the process that an agent starts as a stdio server, which copies bytes to the listener |
//! | `acp` | `mcp/message` over the ACP connection |
//! | `calls` | what the record says of a call |
//! | `fetch` | texts of skills that the proxy itself puts in front of a prompt |
//!
//! The listener opens when the first session needs it. A session's path and token are random and stay the same for as
//! long as the session lives, so that a call is known to belong to a session and to come from its agent.

mod acp;
pub mod bridge;
mod calls;
mod changes;
mod fetch;
mod handler;
mod http;
mod progress;
mod prompts;
mod resources;
mod serving;

use std::{
    collections::HashMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use skills_core::{CallContext, SkillName, SkillSet};
use tokio::{
    runtime::Handle,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use self::fetch::{Fetched, NotFetched};
use self::{handler::Handler, serving::Serving};
use crate::{
    activation_store::ActivationStore,
    activity::{Activity, Observer},
    events::{EventKind, Record},
    library::{Library, MakeToolbox},
};
use acp_skills_intercept::session::{Active, SessionKey};
use acp_skills_intercept::{Endpoint, Event, Host, Transport, Wanted};

type Events = UnboundedSender<Event>;

/// The MCP servers of all sessions. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Servers(Arc<Shared>);

struct Shared {
    runtime: Handle,
    library: Library,
    make_toolbox: MakeToolbox,
    /// The program to run as a bridge: our own binary.
    bridge: PathBuf,
    events: Events,
    receiver: Mutex<Option<UnboundedReceiver<Event>>>,
    observer: Mutex<Option<Observer>>,
    memory: Mutex<Option<ActivationStore>>,
    state: Mutex<State>,
    /// Ends the listener with the last of the clones.
    end: DropGuard,
}

#[derive(Default)]
struct State {
    address: Option<SocketAddr>,
    by_key: HashMap<SessionKey, Arc<Server>>,
    by_path: HashMap<String, Arc<Server>>,
}

/// The server of one session.
struct Server {
    handler: Handler,
    /// The random part of its address.
    path: String,
    token: String,
    http: http::Service,
    acp: acp::Connection,
    /// Cancelled when the session ends.
    end: CancellationToken,
}

impl Servers {
    /// Servers for sessions with skills from `library`. `bridge` is the binary that the stdio transport runs. Needs a
    /// tokio runtime around it.
    pub fn new(library: Library, make_toolbox: MakeToolbox, bridge: PathBuf) -> Self {
        let (events, receiver) = unbounded_channel();
        let changes = events.clone();
        Arc::clone(&library).watch(Box::new(move |reloaded| {
            // Nobody listens any more only when the relay is being taken down.
            drop(changes.send(Event::Reloaded(reloaded)));
        }));
        Self(Arc::new(Shared {
            runtime: Handle::current(),
            library,
            make_toolbox,
            bridge,
            events,
            receiver: Mutex::new(Some(receiver)),
            observer: Mutex::default(),
            memory: Mutex::default(),
            state: Mutex::default(),
            end: CancellationToken::new().drop_guard(),
        }))
    }

    /// Has `observer` told of what happens in sessions that begin from now on.
    #[must_use]
    pub fn observed_by(self, observer: Option<Observer>) -> Self {
        *self.0.observer.lock().unwrap_or_else(PoisonError::into_inner) = observer;
        self
    }

    /// Has `memory` remember which skills are active in a session.
    #[must_use]
    pub fn remembering(self, memory: Option<ActivationStore>) -> Self {
        *self.memory() = memory;
        self
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Option<ActivationStore>> {
        self.0.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observer(&self) -> Option<Observer> {
        self.0.observer.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds an event to the record. Does not block.
    pub(crate) fn record(&self, session: Option<String>, what: EventKind) {
        if let Some(observer) = self.observer() {
            observer(&Activity::Recorded(Arc::new(Record::now(session, what))));
        }
    }

    /// Remembers what is active in a session. Does not block.
    pub(crate) fn remember(&self, id: &str, active: Active) {
        if let Some(memory) = &*self.memory() {
            memory.save(id, active);
        }
    }

    fn downgrade(&self) -> Weak<Shared> {
        Arc::downgrade(&self.0)
    }

    /// Cancelled when nobody has the servers any more.
    fn end(&self) -> CancellationToken {
        self.0.end.token().clone()
    }

    /// Our own binary, when it is known.
    pub fn own_program(&self) -> Option<&Path> {
        Some(self.0.bridge.as_path()).filter(|path| !path.as_os_str().is_empty())
    }

    /// What happens on the servers. The first caller gets all of it.
    pub(crate) fn events(&self) -> UnboundedReceiver<Event> {
        let receiver = self.0.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        receiver.unwrap_or_else(|| unbounded_channel().1)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of the listener, which opens now if it has not yet.
    fn address(&self, state: &mut State) -> Result<SocketAddr, String> {
        if let Some(address) = state.address {
            return Ok(address);
        }
        let address = http::listen(self, &self.0.runtime)
            .map_err(|error| format!("cannot listen on loopback: {error}"))?;
        tracing::debug!(%address, "listening");
        state.address = Some(address);
        Ok(address)
    }

    fn by_key(&self, session: SessionKey) -> Option<Arc<Server>> {
        self.state().by_key.get(&session).cloned()
    }

    fn by_path(&self, path: &str) -> Option<Arc<Server>> {
        self.state().by_path.get(path).cloned()
    }

    fn server(
        &self,
        session: SessionKey,
        skills: &SkillSet,
        context: CallContext,
    ) -> Result<Arc<Server>, String> {
        let mut state = self.state();
        if let Some(server) = state.by_key.get(&session) {
            return Ok(Arc::clone(server));
        }
        let random = |name| random_hex().map_err(|error| format!("no randomness for a {name}: {error}"));
        let serving = Serving { toolbox: (self.0.make_toolbox)(skills.clone()), context };
        let observer = self.observer();
        let handler = Handler::new(session, serving, self.0.events.clone(), observer);
        let end = CancellationToken::new();
        let server = Arc::new(Server {
            http: http::Service::new(handler.clone(), end.child_token()),
            acp: acp::Connection::default(),
            path: random("path")?,
            token: random("token")?,
            handler,
            end,
        });
        state.by_key.insert(session, Arc::clone(&server));
        state.by_path.insert(server.path.clone(), Arc::clone(&server));
        Ok(server)
    }

    /// Answers an `mcp/message` request of the agent's; `say` gets the lines for the agent.
    pub(crate) async fn over_acp(
        &self,
        session: SessionKey,
        line: &[u8],
        say: &mut (dyn FnMut(Vec<u8>) + Send),
    ) {
        if let Some(server) = self.by_key(session) {
            server.acp.answer(&server.handler, &server.end, line, say).await;
        }
    }
}

impl Servers {
    /// A text of the session's skills; fails when there should be one.
    pub(crate) async fn fetch(&self, session: SessionKey, wanted: Wanted) -> Result<Fetched, NotFetched> {
        let Some(server) = self.by_key(session) else { return Ok(Fetched::default()) };
        fetch::text(&server.handler.now().toolbox, wanted).await
    }
}

impl Host for Servers {
    fn skills(&mut self, cwd: Option<&Path>) -> SkillSet {
        self.0.library.at(cwd)
    }

    fn serve(&mut self, session: SessionKey, skills: &SkillSet, unlocked: &[SkillName], cwd: Option<&Path>) {
        let context = cwd.map(CallContext::in_directory).unwrap_or_default().unlock(unlocked);
        match self.by_key(session) {
            Some(server) => {
                let lists = server.handler.serve(skills, context);
                if !lists.is_empty() {
                    self.0.runtime.spawn(async move { server.handler.listeners.tell(lists).await });
                }
            }
            None => match self.server(session, skills, context) {
                Ok(_) => {}
                Err(why) => tracing::warn!("no tools and no texts for this session: {why}"),
            },
        }
    }

    fn reload(&mut self) -> Duration {
        let started = Instant::now();
        self.0.library.reload();
        started.elapsed()
    }

    fn leave(&mut self, cwd: &Path) {
        self.0.library.leave(cwd);
    }

    fn open(
        &mut self,
        session: SessionKey,
        transport: Transport,
        skills: &SkillSet,
        cwd: Option<&Path>,
    ) -> Result<Endpoint, String> {
        let context = cwd.map(CallContext::in_directory).unwrap_or_default();
        let server = self.server(session, skills, context)?;
        if transport == Transport::Acp {
            return Ok(Endpoint::Acp { server_id: format!("acp-skills-{}", server.path) });
        }
        let address = self.address(&mut self.state())?;
        if transport == Transport::Http {
            let url = format!("http://{address}/{}/{}", server.path, http::MCP);
            return Ok(Endpoint::Http { url, token: server.token.clone() });
        }
        let command =
            self.0.bridge.to_str().ok_or("the path of this program is not valid Unicode")?.to_owned();
        Ok(Endpoint::Stdio {
            command,
            args: vec![bridge::SUBCOMMAND.to_owned()],
            env: bridge::environment(address, &server.path, &server.token),
        })
    }

    fn recall(&mut self, id: &str) -> Active {
        self.memory().as_ref().map(|memory| memory.load(id)).unwrap_or_default()
    }

    fn close(&mut self, session: SessionKey) {
        let mut state = self.state();
        if let Some(server) = state.by_key.remove(&session) {
            state.by_path.remove(&server.path);
            server.end.cancel();
        }
    }
}

/// 32 random bytes in hexadecimal.
fn random_hex() -> Result<String, getrandom::Error> {
    use std::fmt::Write;
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}
