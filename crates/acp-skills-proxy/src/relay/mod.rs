//! Standalone mode: two pumps between a client and an agent.
//!
//! The relay moves bytes and carries out what the interceptor decides; it decides nothing. Each direction has a thread
//! of its own that reads, decides and writes, so a side that stops reading stops only the direction that leads to it.

mod hub;
mod lane;
mod pump;
pub mod standalone;

use std::{
    io::{self, Read, Write},
    sync::Arc,
    thread,
};

use tokio::sync::{mpsc::UnboundedReceiver, oneshot};

use self::hub::{Hub, Side};
use crate::{
    intercept::{Effect, Event, Interceptor, Policy},
    mcp::Servers,
};

/// The two ends of one side: what it says, and where it listens.
pub struct Ends {
    /// What the side says.
    pub reader: Box<dyn Read + Send>,
    /// Where the side listens.
    pub writer: Box<dyn Write + Send>,
}

impl Ends {
    /// The ends of one side.
    pub fn new(reader: impl Read + Send + 'static, writer: impl Write + Send + 'static) -> Self {
        Self { reader: Box::new(reader), writer: Box::new(writer) }
    }
}

/// A running relay.
pub struct Relay {
    hub: Arc<Hub>,
    /// Resolves when the client will say nothing more and all it said is with the agent.
    pub client_done: oneshot::Receiver<io::Result<()>>,
    /// Resolves when the agent will say nothing more and all it said is with the client.
    pub agent_done: oneshot::Receiver<io::Result<()>>,
}

impl Relay {
    /// Starts to pump between `client` and `agent`. Needs a tokio runtime around it.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(policy: Policy, servers: Servers, client: Ends, agent: Ends) -> io::Result<Self> {
        let events = servers.events();
        let interceptor = Interceptor::new(policy, Box::new(servers.clone()));
        let (hub, effects) = Hub::new(interceptor, client.writer, agent.writer);
        let hub = Arc::new(hub);
        tokio::spawn(carry_out(Arc::clone(&hub), servers, effects, events));
        let client_done = start_pump("client", Side::Client, client.reader, &hub)?;
        let agent_done = start_pump("agent", Side::Agent, agent.reader, &hub)?;
        Ok(Self { hub, client_done, agent_done })
    }

    /// Answers every request that the agent has left open; `why` is a clause such as `the agent exited with code 3`.
    pub fn agent_gone(&self, why: &str) {
        self.hub.agent_gone(why);
    }

    /// How many bytes the client has been sent.
    pub fn written_to_client(&self) -> u64 {
        self.hub.lane_to(Side::Client).written()
    }

    /// Writes everything that still waits for the client. Blocks for as long as the client does not read.
    pub fn flush(&self) -> impl FnOnce() + Send + 'static {
        let hub = Arc::clone(&self.hub);
        move || drop(hub.lane_to(Side::Client).drain())
    }
}

fn start_pump(
    name: &str,
    from: Side,
    source: Box<dyn Read + Send>,
    hub: &Arc<Hub>,
) -> io::Result<oneshot::Receiver<io::Result<()>>> {
    let (done, receiver) = oneshot::channel();
    let hub = Arc::clone(hub);
    thread::Builder::new().name(format!("from-{name}")).spawn(move || {
        let result = pump::pump(source, from, &hub);
        if from == Side::Client {
            hub.happened(Event::ClientGone);
            hub.lane_to(Side::Agent).close();
        }
        // Whoever waits may have given up already.
        drop(done.send(result));
    })?;
    Ok(receiver)
}

/// Does what the interceptor asks for, and tells it what happens.
async fn carry_out(
    hub: Arc<Hub>,
    servers: Servers,
    mut effects: UnboundedReceiver<Effect>,
    mut events: UnboundedReceiver<Event>,
) {
    loop {
        tokio::select! {
            Some(effect) = effects.recv() => match effect {
                Effect::Wait(session, time) => {
                    let hub = Arc::clone(&hub);
                    tokio::spawn(async move {
                        tokio::time::sleep(time).await;
                        hub.happened(Event::WaitOver(session));
                    });
                }
                Effect::WaitForMenu(session, time) => {
                    let hub = Arc::clone(&hub);
                    tokio::spawn(async move {
                        tokio::time::sleep(time).await;
                        hub.happened(Event::MenuDue(session));
                    });
                }
                Effect::Mcp { session, line } => {
                    let (hub, servers) = (Arc::clone(&hub), servers.clone());
                    tokio::spawn(async move {
                        let mut say = |line| hub.tell_agent(line);
                        servers.over_acp(session, &line, &mut say).await;
                    });
                }
                Effect::Fetch { session, ticket, wanted } => {
                    let (hub, servers) = (Arc::clone(&hub), servers.clone());
                    tokio::spawn(async move {
                        hub.happened(match servers.fetch(session, wanted).await {
                            Ok(text) => Event::Fetched { session, ticket, text },
                            Err(why) => Event::NotFetched { session, ticket, why },
                        });
                    });
                }
                Effect::Log(..) => {}
            },
            Some(event) = events.recv() => hub.happened(event),
            else => return,
        }
    }
}
