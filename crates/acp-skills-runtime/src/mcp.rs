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
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};

use acp_skills_intercept::{Endpoint, Fetched, Input, NotFetched, SessionKey, Transport, Wanted};
use skills_core::{CallContext, SkillSet};
use tokio::{runtime::Handle, sync::mpsc::UnboundedSender};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::{handler::Handler, serving::Serving};
use crate::{activity::Observer, library::MakeToolbox};

/// Where what happens on the servers is told.
type Inputs = UnboundedSender<Input>;

/// The MCP servers of all sessions. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub(crate) struct Servers(Arc<Shared>);

struct Shared {
    runtime: Handle,
    make_toolbox: MakeToolbox,
    /// The program to run as a bridge: our own binary, when it is known.
    bridge: Option<PathBuf>,
    inputs: Inputs,
    observer: Option<Observer>,
    /// Guards which servers there are. Held for a moment, and no other lock is taken meanwhile.
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
    /// Whether anybody has come who knows the token.
    is_known: AtomicBool,
    /// Cancelled when the session ends.
    end: CancellationToken,
}

impl Server {
    /// Somebody has come who knows the token.
    fn welcome(&self) {
        if !self.is_known.swap(true, Ordering::Relaxed) {
            self.handler.connected();
        }
    }
}

impl Servers {
    /// Servers whose tools are made by `make_toolbox`. `bridge` is the program that the stdio transport runs. Needs a tokio
    /// runtime around it.
    pub(crate) fn new(
        make_toolbox: MakeToolbox,
        bridge: Option<PathBuf>,
        inputs: Inputs,
        observer: Option<Observer>,
    ) -> Self {
        Self(Arc::new(Shared {
            runtime: Handle::current(),
            make_toolbox,
            bridge,
            inputs,
            observer,
            state: Mutex::default(),
            end: CancellationToken::new().drop_guard(),
        }))
    }

    fn downgrade(&self) -> Weak<Shared> {
        Arc::downgrade(&self.0)
    }

    /// Cancelled when nobody has the servers any more.
    fn end(&self) -> CancellationToken {
        self.0.end.token().clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
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
        let observer = self.0.observer.clone();
        let handler = Handler::new(session, serving, self.0.inputs.clone(), observer);
        let end = CancellationToken::new();
        let server = Arc::new(Server {
            http: http::Service::new(handler.clone(), end.child_token()),
            acp: acp::Connection::default(),
            is_known: AtomicBool::new(false),
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

    /// A text of the session's skills; fails when there should be one.
    pub(crate) async fn fetch(&self, session: SessionKey, wanted: Wanted) -> Result<Fetched, NotFetched> {
        let Some(server) = self.by_key(session) else { return Ok(Fetched::default()) };
        fetch::text(&server.handler.now().toolbox, wanted).await
    }

    /// Says which skills a session has. Whatever serves tools and texts goes by that, also when the agent has no server of
    /// ours.
    pub(crate) fn serve(&self, session: SessionKey, skills: &SkillSet, context: CallContext) {
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

    /// Opens, or finds again, the MCP server of a session.
    ///
    /// # Errors
    /// A sentence that says why there is none.
    pub(crate) fn open(
        &self,
        session: SessionKey,
        transport: Transport,
        skills: &SkillSet,
        context: CallContext,
    ) -> Result<Endpoint, String> {
        let command = match (transport, &self.0.bridge) {
            (Transport::Stdio, None) => {
                return Err(
                    "the agent takes MCP servers as processes only, and no program was named to be one \
                            (`bridge`)"
                        .to_owned(),
                );
            }
            (Transport::Stdio, Some(program)) => {
                program.to_str().ok_or("the path of this program is not valid Unicode")?.to_owned()
            }
            (Transport::Acp | Transport::Http, _) => String::new(),
        };
        let server = self.server(session, skills, context)?;
        if transport == Transport::Acp {
            return Ok(Endpoint::Acp { server_id: format!("acp-skills-{}", server.path) });
        }
        let address = self.address(&mut self.state())?;
        if transport == Transport::Http {
            let url = format!("http://{address}/{}/{}", server.path, http::MCP);
            return Ok(Endpoint::Http { url, token: server.token.clone() });
        }
        Ok(Endpoint::Stdio {
            command,
            args: vec![bridge::SUBCOMMAND.to_owned()],
            env: bridge::environment(address, &server.path, &server.token),
        })
    }

    /// Closes the MCP server of a session.
    pub(crate) fn close(&self, session: SessionKey) {
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
