//! How the bytes move: between a client and an agent, or under a conductor (`chain`).
//!
//! The relay moves bytes and carries out what the interceptor decides; it decides nothing. Between two sides, each
//! direction has a thread of its own that reads, decides and writes, so a side that stops reading stops only the direction
//! that leads to it.

pub mod chain;
mod hub;
mod lane;
mod pump;
pub mod standalone;

use std::{
    hash::{BuildHasher, RandomState},
    io::{self, Read, Write},
    sync::{Arc, Weak},
    thread,
    time::Duration,
};

use tokio::sync::{mpsc::UnboundedReceiver, oneshot};

use self::hub::{Hub, Job, Side};
use crate::host::{Host, RunningHost};
use acp_skills_intercept::{Input, Interceptor, Policy, Task};

/// The two ends of one side: what it says, and where it listens.
pub struct Ends {
    /// What the side says.
    pub reader: Box<dyn Read + Send>,
    /// Where the side listens.
    pub writer: Box<dyn Write + Send>,
    /// Returns when the side has gone, also while nobody reads what it said last; where that can be known.
    pub hangup: Option<Box<dyn FnOnce() + Send>>,
}

impl Ends {
    /// The ends of one side.
    pub fn new(reader: impl Read + Send + 'static, writer: impl Write + Send + 'static) -> Self {
        Self { reader: Box::new(reader), writer: Box::new(writer), hangup: None }
    }
}

/// A running relay.
pub struct Relay {
    hub: Arc<Hub>,
    /// Resolves when the client will say nothing more and all it said is with the agent.
    pub client_done: oneshot::Receiver<io::Result<()>>,
    /// Resolves when the client is gone, even if the agent does not take what it said last. Fails where that cannot be
    /// known.
    pub client_gone: oneshot::Receiver<()>,
    /// Resolves when the agent will say nothing more and all it said is with the client.
    pub agent_done: oneshot::Receiver<io::Result<()>>,
}

impl Relay {
    /// Starts to pump between `client` and `agent`. Needs a tokio runtime around it.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(policy: Policy, host: Host, client: Ends, agent: Ends) -> io::Result<Self> {
        let hub = hub(policy, host, client.writer, agent.writer);
        let (gone, client_gone) = oneshot::channel();
        if let Some(hangup) = client.hangup {
            thread::Builder::new().name("client-hangup".to_owned()).spawn(move || {
                hangup();
                // Whoever waits may have given up already.
                let _ = gone.send(());
            })?;
        }
        let client_done = start_pump("client", Side::Client, client.reader, &hub)?;
        let agent_done = start_pump("agent", Side::Agent, agent.reader, &hub)?;
        Ok(Self { hub, client_done, client_gone, agent_done })
    }

    /// Answers every request that the agent has left open; `why` is a clause such as `the agent exited with code 3`. Returns
    /// whether one of them had to be answered before the agent could be used.
    pub fn agent_gone(&self, why: &str) -> bool {
        self.hub.agent_gone(why)
    }

    /// How long it is worth to wait for the agent to end by itself once the client has gone, where that is known.
    pub fn time_to_leave(&self) -> Option<Duration> {
        self.hub.time_to_leave()
    }

    /// Whether either side has said anything to the other, or something waits to be said to the client.
    pub fn has_talked(&self) -> bool {
        let (to_client, to_agent) = (self.hub.lane_to(Side::Client), self.hub.lane_to(Side::Agent));
        to_client.written() > 0 || to_client.waiting() > 0 || to_agent.written() > 0
    }

    /// How many bytes the client has been sent.
    pub fn written_to_client(&self) -> u64 {
        self.hub.lane_to(Side::Client).written()
    }

    /// How many bytes the agent has been sent.
    pub fn written_to_agent(&self) -> u64 {
        self.hub.lane_to(Side::Agent).written()
    }

    /// Writes everything that still waits for the agent, and tells it that there will be no more. Blocks for as long as the
    /// agent does not read.
    pub fn hang_up(&self) -> impl FnOnce() + Send + 'static {
        let hub = Arc::clone(&self.hub);
        move || hub.lane_to(Side::Agent).close()
    }

    /// Writes everything that still waits for the client, and tells it that there will be no more. Blocks for as long as
    /// the client does not read.
    pub fn close(&self) -> impl FnOnce() + Send + 'static {
        let hub = Arc::clone(&self.hub);
        move || hub.lane_to(Side::Client).close()
    }
}

/// The middle of a relay that writes to these two, and whoever carries out what it asks for.
fn hub(
    policy: Policy,
    host: Host,
    to_client: Box<dyn Write + Send>,
    to_agent: Box<dyn Write + Send>,
) -> Arc<Hub> {
    let (host, inputs) = host.start();
    let interceptor = Interceptor::new(policy, RandomState::new().hash_one(()));
    let (hub, tasks) = Hub::new(interceptor, host.clone(), to_client, to_agent);
    let hub = Arc::new(hub);
    tokio::spawn(attend(Arc::downgrade(&hub), host, tasks, inputs));
    hub
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
            hub.client_gone();
        }
        // Whoever waits may have given up already.
        drop(done.send(result));
        if from == Side::Client {
            // Last, because it waits for an agent that may never read.
            hub.lane_to(Side::Agent).close();
        }
    })?;
    Ok(receiver)
}

/// Does what the interceptor asks for, and tells it what happens, for as long as there is a hub.
async fn attend(
    hub: Weak<Hub>,
    host: RunningHost,
    mut tasks: UnboundedReceiver<Job>,
    mut inputs: UnboundedReceiver<Input>,
) {
    loop {
        let input = tokio::select! {
            task = tasks.recv() => match task {
                Some((task, share)) => {
                    let (hub, host) = (hub.clone(), host.clone());
                    tokio::spawn(async move {
                        perform(task, hub, host).await;
                        drop(share);
                    });
                    continue;
                }
                // The hub is gone.
                None => return,
            },
            Some(input) = inputs.recv() => input,
        };
        tell(&hub, input);
    }
}

/// Does one thing that the interceptor asked for.
async fn perform(task: Task, hub: Weak<Hub>, host: RunningHost) {
    match task {
        Task::Ask(query) => host.answer(query, |input| tell(&hub, input)).await,
        Task::ToolsTimer { session, timer, time } => {
            tokio::time::sleep(time).await;
            tell(&hub, Input::ToolsTimerEnded { session, timer });
        }
        Task::MenuTimer { session, time } => {
            tokio::time::sleep(time).await;
            tell(&hub, Input::MenuTimerEnded(session));
        }
        Task::Mcp { session, line } => {
            let mut say = |line| {
                if let Some(hub) = hub.upgrade() {
                    hub.tell_agent(line);
                }
            };
            host.over_acp(session, &line, &mut say).await;
            // It is under way until the agent has read so much of what it asked for.
            if let Some(hub) = hub.upgrade() {
                hub.lane_to(Side::Agent).has_room().await;
            }
        }
    }
}

fn tell(hub: &Weak<Hub>, input: Input) {
    if let Some(hub) = hub.upgrade() {
        hub.handle(input);
    }
}
