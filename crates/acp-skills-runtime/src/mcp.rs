//! The MCP server inside the proxy: one endpoint per session, and three transports.
//!
//! | file | owns |
//! |---|---|
//! | `handler` | the tools, as an rmcp server |
//! | `responder` | the type of handler and transport that all connections share |
//! | `conversion` | the server, and definitions and results of tools, as rmcp's types |
//! | `serving` | the tools and the caller's context at one moment |
//! | `progress` | progress notifications while a call runs |
//! | `tool_list` | the list of tools that the agent has received, which changes only if it has to |
//! | `changes` | notifications that the lists of tools, prompts or resources have changed |
//! | `prompts`, `resources` | the skills as MCP prompts and resources |
//! | `http` | MCP over HTTP: the listener on loopback |
//! | `stdio` | MCP over stdio: the socket for bridges |
//! | `bridge` | the process that an agent starts as a stdio server, which copies bytes to the socket |
//! | `local_socket` | sockets that only processes of the same user can connect to |
//! | `accept`, `unauthenticated` | accepting connections, and limits for those that have not sent a token yet |
//! | `acp` | `mcp/message` over the ACP connection |
//! | `random` | paths and tokens of sessions |
//! | `connection_end` | the end of the connection that a call came from |
//! | `queued_calls` | the calls that wait to run a program |
//! | `calls` | the events of calls, for the record |
//! | `fetch` | texts of skills that the proxy itself adds to a prompt |
//! | `files` | files of skills for `fs/read_text_file` requests of the agent |
//!
//! A listener opens when the first session needs it, so there is no port if no agent needs HTTP. The path and the token of a session
//! are random and don't change while the session is open. They identify the session of a call, and prove that the call comes from
//! the agent of this session.

pub(crate) mod accept;
mod acp;
pub mod bridge;
mod calls;
pub(crate) mod changes;
mod connection_end;
pub(crate) mod conversion;
mod fetch;
mod files;
pub(crate) mod handler;
pub(crate) mod http;
mod local_socket;
mod progress;
mod prompts;
mod queued_calls;
mod random;
mod resources;
pub(crate) mod responder;
mod serving;
pub(crate) mod stdio;
mod tool_list;
pub(crate) mod unauthenticated;

#[cfg(test)]
mod fixture;

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use acp_skills_intercept::{
    Endpoint, Fetched, Input, Listen, NotFetched, SessionKey, SkillFile, Transport, UserAnswer, Wanted,
    Workspace,
};
use acp_skills_wire::Id;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Map;
use skills_core::{CallContext, SkillName, SkillSet};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, mpsc::UnboundedSender},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument;

pub(crate) use self::random::random_hex;
use self::{
    handler::{Handler, Reports},
    serving::Serving,
};
use crate::{activity::Observer, library::MakeToolbox, spans::Spans};

/// The maximum number of open subscriptions of a connection.
const MAX_SUBSCRIPTIONS: usize = 64;
/// The method of the request that replaces one that is too long.
const TOO_LONG: &str = "acp-skills/message_too_long";
/// The method of the request that replaces one that cannot be read.
const UNREADABLE: &str = "acp-skills/message_unreadable";
/// The method of the request that replaces a subscription at the limit.
const TOO_MANY_SUBSCRIPTIONS: &str = "acp-skills/too_many_subscriptions";

/// The channel for inputs to the interceptor.
type Inputs = UnboundedSender<Input>;

/// The reasons why a session has no MCP server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    #[error("cannot create a socket for the skills server: {0}")]
    Socket(io::Error),
    #[error("cannot create a random token: {0}")]
    Random(#[from] getrandom::Error),
    #[error("agent only supports MCP servers over stdio, but no bridge program is configured (`bridge`)")]
    NoBridge,
    #[error("path to bridge program is not valid Unicode")]
    BridgePath,
}

/// The MCP servers of all sessions. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub(crate) struct Servers(Arc<Shared>);

struct Shared {
    runtime: Handle,
    make_toolbox: MakeToolbox,
    /// The program to use as a bridge. This is the path of this binary, if it is known.
    bridge: Option<PathBuf>,
    reports: Reports,
    /// Guards the table of servers. No other lock is taken while it is held.
    state: Mutex<State>,
    /// The socket for bridges. It has its own lock.
    socket: stdio::Socket,
    /// Ends the listeners when the last clone is dropped.
    end: DropGuard,
}

#[derive(Default)]
struct State {
    /// The start of the URLs of the HTTP listener, such as `http://127.0.0.1:PORT`, once it is open.
    http_base: Option<Arc<str>>,
    by_key: HashMap<SessionKey, Arc<Server>>,
    by_path: HashMap<String, Arc<Server>>,
}

/// The server of one session.
struct Server {
    handler: Handler,
    /// The random part of the server's address.
    path: String,
    token: String,
    http: http::Service,
    acp: acp::Connection,
    /// True if the agent connected with the token.
    has_connected: AtomicBool,
    /// Cancelled when the session is closed.
    end: CancellationToken,
}

impl Server {
    /// Reports that the agent connected, unless this was already reported.
    fn connected(&self) {
        if !self.has_connected.swap(true, Ordering::Relaxed) {
            self.handler.connected();
        }
    }
}

impl Servers {
    /// Creates the servers. `make_toolbox` creates the tools of a session, and `bridge` is the program that the stdio transport
    /// runs. Must be called within a tokio runtime.
    pub(crate) fn new(
        make_toolbox: MakeToolbox,
        bridge: Option<PathBuf>,
        inputs: Inputs,
        observer: Option<Observer>,
        spans: Spans,
    ) -> Self {
        Self(Arc::new(Shared {
            runtime: Handle::current(),
            make_toolbox,
            bridge,
            reports: Reports { inputs, observer, spans },
            state: Mutex::default(),
            socket: stdio::Socket::default(),
            end: CancellationToken::new().drop_guard(),
        }))
    }

    fn downgrade(&self) -> Weak<Shared> {
        Arc::downgrade(&self.0)
    }

    /// Returns the token that is cancelled when the last clone is dropped.
    fn end(&self) -> CancellationToken {
        self.0.end.token().clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Reads a file of a skill. Returns the answer to the agent's request.
    pub(crate) async fn read_file(&self, session: SessionKey, request: &Id, file: SkillFile) -> Vec<u8> {
        match self.by_key(session) {
            Some(server) => files::answer(&server.handler, request, file).await,
            None => files::no_such_skill(request),
        }
    }

    fn by_key(&self, session: SessionKey) -> Option<Arc<Server>> {
        self.state().by_key.get(&session).cloned()
    }

    fn by_path(&self, path: &str) -> Option<Arc<Server>> {
        self.state().by_path.get(path).cloned()
    }

    /// Returns the server of a session. Creates it if necessary.
    fn server(
        &self,
        session: SessionKey,
        skills: &SkillSet,
        context: CallContext,
        open_names: bool,
    ) -> Result<Arc<Server>, ServerError> {
        let mut state = self.state();
        if let Some(server) = state.by_key.get(&session).map(Arc::clone) {
            drop(state);
            if open_names {
                server.handler.leave_names_open();
            }
            return Ok(server);
        }
        let toolbox = (self.0.make_toolbox)(skills.clone());
        let toolbox = if open_names { toolbox.with_open_names() } else { toolbox };
        let serving = Serving::new(toolbox, context);
        let handler = Handler::new(session, serving, self.0.reports.clone());
        let end = CancellationToken::new();
        let server = Arc::new(Server {
            http: http::Service::of(&handler, end.child_token()),
            acp: acp::Connection::default(),
            has_connected: AtomicBool::new(false),
            path: random_hex()?,
            token: random_hex()?,
            handler,
            end,
        });
        state.by_key.insert(session, Arc::clone(&server));
        state.by_path.insert(server.path.clone(), Arc::clone(&server));
        Ok(server)
    }

    /// Returns the answer to an `mcp/message` request of the agent. `send` is called with the notifications before it. A
    /// subscription releases `permit` when it has been acknowledged.
    pub(crate) async fn answer_over_acp(
        &self,
        session: SessionKey,
        (id, line): (&Id, &[u8]),
        permit: &mut Option<OwnedSemaphorePermit>,
        send: &mut (dyn FnMut(Vec<u8>) + Send),
    ) -> Vec<u8> {
        match self.by_key(session) {
            Some(server) => server.acp.answer((&server.handler, &server.end), (id, line), permit, send).await,
            None => acp::closed(id),
        }
    }

    /// Passes an `mcp/message` notification of the agent to the server of a session. `permit` is released when the server has handled
    /// it.
    pub(crate) fn notify_over_acp(
        &self,
        session: SessionKey,
        line: &[u8],
        permit: Option<OwnedSemaphorePermit>,
    ) {
        if let Some(server) = self.by_key(session) {
            server.acp.notify(line, permit);
        }
    }

    /// Cancels an `mcp/message` request of the agent.
    pub(crate) fn cancel_over_acp(&self, session: SessionKey, request: &Id) {
        if let Some(server) = self.by_key(session) {
            server.acp.cancel(request);
        }
    }

    /// Fetches a text of the session's skills for a prompt.
    ///
    /// # Errors
    /// Returns an error if the skill that the user asked for cannot be activated.
    pub(crate) async fn fetch(&self, session: SessionKey, wanted: Wanted) -> Result<Fetched, NotFetched> {
        let Some(server) = self.by_key(session) else { return Ok(Fetched::default()) };
        let span = tracing::debug_span!("fetch", skill = tracing::field::Empty);
        let Serving { toolbox, context, .. } = server.handler.now();
        let context = server.handler.linked(context, None, Map::new());
        fetch::text(&toolbox, &context, wanted).instrument(span).await
    }

    /// Sets the skills of a session for its tools and the texts for prompts. `is_setup` is true if the session is being set up.
    pub(crate) fn serve(&self, session: SessionKey, skills: &SkillSet, context: CallContext, is_setup: bool) {
        match self.by_key(session) {
            Some(server) => {
                let _inside = self.0.runtime.enter();
                let lists = server.handler.serve(skills, context, is_setup);
                if !lists.is_empty() {
                    self.0.runtime.spawn(async move { server.handler.listeners.notify(lists).await });
                }
            }
            None => match self.server(session, skills, context, false) {
                Ok(_) => {}
                Err(error) => tracing::warn!("cannot serve skills for a session: {error}"),
            },
        }
    }

    /// Returns the handler of a session, if it has a server.
    pub(crate) fn handler(&self, session: SessionKey) -> Option<Handler> {
        Some(self.by_key(session)?.handler.clone())
    }

    /// Sets the skills that results of tool calls remind of, because the model has lost their instructions.
    pub(crate) fn remind(&self, session: SessionKey, skills: Vec<SkillName>) {
        if let Some(server) = self.by_key(session) {
            server.handler.remind(skills);
        }
    }

    /// Opens the MCP server of a session for a transport, or returns its endpoint if it is open already. `listen` is the address for
    /// HTTP, if the user has chosen one, and `open_names` is true if the schemas of the server don't list the names of skills.
    ///
    /// # Errors
    /// Returns an error if the listener or the socket cannot be opened, or if the bridge program is missing or its path is not Unicode.
    pub(crate) fn open(
        &self,
        session: SessionKey,
        (transport, listen): (Transport, Option<&Listen>),
        skills: &SkillSet,
        context: CallContext,
        open_names: bool,
    ) -> Result<Endpoint, ServerError> {
        let command = match (transport, &self.0.bridge) {
            (Transport::Stdio, None) => return Err(ServerError::NoBridge),
            (Transport::Stdio, Some(program)) => program.to_str().ok_or(ServerError::BridgePath)?.to_owned(),
            (Transport::Acp | Transport::Http, _) => String::new(),
        };
        let server = self.server(session, skills, context, open_names)?;
        if transport == Transport::Acp {
            return Ok(Endpoint::Acp { server_id: format!("acp-skills-{}", server.path) });
        }
        if transport == Transport::Http {
            let base = http::base(self, &mut self.state().http_base, listen)?;
            let url = format!("{base}/{}/{}", server.path, http::MCP);
            return Ok(Endpoint::Http { url, token: server.token.clone() });
        }
        let address = self.0.socket.address(self, &self.0.runtime)?;
        Ok(Endpoint::Stdio {
            command,
            args: vec![bridge::SUBCOMMAND.to_owned()],
            env: bridge::environment(&address, &server.path, &server.token),
        })
    }

    /// Passes an answer on to an MCP server behind a skill.
    pub(crate) fn answer_server(&self, session: SessionKey, number: u64, answer: UserAnswer) {
        if let Some(server) = self.by_key(session) {
            server.handler.link.answered(number, answer);
        }
    }

    /// Sets the directories of a session that MCP servers behind skills may ask for.
    pub(crate) fn set_workspace(&self, session: SessionKey, workspace: &Workspace) {
        if let Some(server) = self.by_key(session) {
            server.handler.link.set_workspace(workspace);
        }
    }

    /// Drops the tool calls of a session that wait to run a program.
    pub(crate) fn drop_queued(&self, session: SessionKey) {
        if let Some(server) = self.by_key(session) {
            server.handler.queued.drop_all();
        }
    }

    /// Removes the socket for bridges for good, because the process is about to exit.
    pub(crate) fn close_socket(&self) {
        self.0.socket.close();
    }

    /// Closes the MCP server of a session.
    pub(crate) fn close(&self, session: SessionKey) {
        let mut state = self.state();
        let Some(server) = state.by_key.remove(&session) else { return };
        state.by_path.remove(&server.path);
        drop(state);
        // This wakes tasks, which can take locks.
        server.end.cancel();
        server.handler.queued.drop_all();
        let _inside = self.0.runtime.enter();
        server.handler.link.close();
    }
}
