//! Moves messages between a client and an agent, or within a proxy chain ([`chain`]).
//!
//! The relay forwards bytes and carries out the decisions of the interceptor, but it makes no decisions itself. Each
//! direction runs on a separate thread, which reads, decides and writes. If one side stops reading, only the
//! direction to that side is blocked.
//!
//! | file | owns |
//! |---|---|
//! | `pump` | the thread of one direction |
//! | `lane` | the queue and the writer of one direction |
//! | `hub` | the interceptor, and everything else that both directions share |
//! | `side` | the names of the two sides |
//! | `counted` | the number of bytes that the agent has sent |
//! | `oversize` | messages that are too long |
//! | `throttle` | the back-pressure for messages of the client that were held |
//! | `standalone` | the proxy between a client and an agent that it starts |
//! | `chain` | the proxy under a conductor |

pub mod chain;
mod counted;
mod hub;
mod lane;
mod oversize;
mod pump;
mod side;
pub mod standalone;
mod throttle;

use std::{
    hash::{BuildHasher, RandomState},
    io::{self, Read, Write},
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use acp_skills_intercept::{Input, Interceptor, Policy, Task};
use acp_skills_wire::Id;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, mpsc::UnboundedReceiver, oneshot},
    time::sleep,
};

pub use self::oversize::DEFAULT_MAX_MESSAGE;
use self::{
    counted::Counted,
    hub::{Hub, Job},
    lane::MAX_QUEUED_BYTES,
    side::Side,
    throttle::Throttled,
};
use crate::host::{Host, RunningHost};

/// The time after which we look again whether a client that is behind has read more.
const BEHIND_INTERVAL: Duration = Duration::from_millis(100);

/// The connection to one side: a reader and a writer.
pub struct Ends {
    /// The output of the side.
    pub reader: Box<dyn Read + Send>,
    /// The input of the side.
    pub writer: Box<dyn Write + Send>,
    /// Blocks until the side disconnects, even if the relay is still reading from it. `None` if the platform doesn't
    /// support this.
    pub hangup: Option<Box<dyn FnOnce() + Send>>,
    /// The maximum size of a message that is read, in bytes without the line break. A longer message is skipped, and its request
    /// gets an error as the response.
    pub max_message: usize,
}

impl Ends {
    /// Creates the connection to one side. Its disconnection is noticed only at the end of `reader`. The maximum size of a message
    /// is 256 MiB.
    pub fn new(reader: impl Read + Send + 'static, writer: impl Write + Send + 'static) -> Self {
        let max_message = DEFAULT_MAX_MESSAGE;
        Self { reader: Box::new(reader), writer: Box::new(writer), hangup: None, max_message }
    }
}

/// A running relay.
pub struct Relay {
    hub: Arc<Hub>,
    /// Resolves when the client closes its output and all of it was written to the agent.
    pub client_done: oneshot::Receiver<io::Result<()>>,
    /// Resolves when the client disconnects, even if some of its messages still have to be written to the agent. If
    /// the platform doesn't support this, it resolves to an error at once.
    pub client_gone: oneshot::Receiver<()>,
    /// Resolves when the agent closes its output and all of it was written to the client.
    pub agent_done: oneshot::Receiver<io::Result<()>>,
    /// Notified once if a write to the agent fails. The client's thread may not notice it, because it waits for the next message
    /// while another thread writes a message that was held.
    pub agent_failed: Arc<Notify>,
    /// Notified once if a write to the client fails, like `agent_failed`.
    pub client_failed: Arc<Notify>,
    read_from_agent: Arc<AtomicU64>,
}

impl Relay {
    /// Starts the relay between `client` and `agent`. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be started.
    pub fn start(policy: Policy, host: Host, client: Ends, agent: Ends) -> io::Result<Self> {
        let hub = start_hub(policy, host, client.writer, agent.writer);
        let (gone, client_gone) = oneshot::channel();
        if let Some(hangup) = client.hangup {
            thread::Builder::new().name("client-hangup".to_owned()).spawn(move || {
                hangup();
                // Ignore the error if the receiver was dropped.
                let _ = gone.send(());
            })?;
        }
        let from_client = Box::new(Throttled::new(client.reader, &hub));
        let client_done = start_pump("client", Side::Client, (from_client, client.max_message), &hub)?;
        let (from_agent, read_from_agent) = Counted::new(agent.reader);
        let from_agent = Box::new(from_agent);
        let agent_done = start_pump("agent", Side::Agent, (from_agent, agent.max_message), &hub)
            .inspect_err(|_| {
                // The other pump is running, so close both connections. Otherwise, the client would wait for an answer.
                hub.lane_to(Side::Client).close();
                hub.lane_to(Side::Agent).close();
            })?;
        let agent_failed = hub.lane_to(Side::Agent).failed();
        let client_failed = hub.lane_to(Side::Client).failed();
        Ok(Self { hub, client_done, client_gone, agent_done, agent_failed, client_failed, read_from_agent })
    }

    /// Sends an error for each request that the agent didn't answer. `why` is a clause such as `the agent exited with
    /// code 3`. Returns true if one of these requests was used to start the agent, such as `initialize`.
    pub fn agent_gone(&self, why: &str) -> bool {
        self.hub.agent_gone(why)
    }

    /// Returns the shutdown grace for this agent: the time it usually needs to exit after the client disconnects.
    /// `None` if it isn't known.
    pub fn shutdown_grace(&self) -> Option<Duration> {
        self.hub.shutdown_grace()
    }

    /// Returns true if either side has received anything, or if bytes are queued for the client.
    pub fn has_traffic(&self) -> bool {
        let to_client = self.hub.lane_to(Side::Client);
        let to_agent = self.hub.lane_to(Side::Agent);
        to_client.written() > 0 || to_client.queued() > 0 || to_agent.written() > 0
    }

    /// Returns true if we can no longer write to the client.
    pub fn is_client_unreachable(&self) -> bool {
        self.hub.lane_to(Side::Client).is_closed()
    }

    /// Returns the number of bytes that were written to the client.
    pub fn written_to_client(&self) -> u64 {
        self.hub.lane_to(Side::Client).written()
    }

    /// Returns the number of bytes that the agent has sent.
    pub fn read_from_agent(&self) -> u64 {
        self.read_from_agent.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes that were written to the agent.
    pub fn written_to_agent(&self) -> u64 {
        self.hub.lane_to(Side::Agent).written()
    }

    /// Returns a function that removes what must not stay on disk after this process. Call it before the process exits without
    /// dropping the relay.
    pub fn clean_up(&self) -> impl FnOnce() + Send + 'static {
        let hub = Arc::clone(&self.hub);
        move || hub.clean_up()
    }

    /// Returns a function that writes everything that is queued for the agent and then closes the agent's stdin. It
    /// blocks while the agent doesn't read.
    pub fn close_agent(&self) -> impl FnOnce() + Send + 'static {
        let hub = Arc::clone(&self.hub);
        move || hub.lane_to(Side::Agent).close()
    }

    /// Returns a function that writes everything that is queued for the client and then closes the connection. It
    /// blocks while the client doesn't read.
    pub fn close_client(&self) -> impl FnOnce() + Send + 'static {
        let hub = Arc::clone(&self.hub);
        move || hub.lane_to(Side::Client).close()
    }
}

/// Starts the host, and creates a hub that writes to `to_client` and `to_agent`.
fn start_hub(
    policy: Policy,
    host: Host,
    to_client: Box<dyn Write + Send>,
    to_agent: Box<dyn Write + Send>,
) -> Arc<Hub> {
    let marks = host.marks();
    let (host, inputs) = host.start();
    let interceptor = Interceptor::new(policy, RandomState::new().hash_one(()), marks);
    let (hub, tasks) = Hub::new(interceptor, host.clone(), to_client, to_agent);
    let hub = Arc::new(hub);
    tokio::spawn(run_tasks(Arc::downgrade(&hub), host, tasks, inputs));
    hub
}

fn start_pump(
    name: &str,
    from: Side,
    (source, max_message): (Box<dyn Read + Send>, usize),
    hub: &Arc<Hub>,
) -> io::Result<oneshot::Receiver<io::Result<()>>> {
    let (done, receiver) = oneshot::channel();
    let hub = Arc::clone(hub);
    thread::Builder::new().name(format!("from-{name}")).spawn(move || {
        let result = pump::pump(source, from, max_message, &hub);
        if from == Side::Client {
            hub.client_gone();
        }
        // Ignore the error if the receiver was dropped.
        let _ = done.send(result);
        if from == Side::Client {
            // Do this last, because it will block if the agent doesn't read from its stdin.
            hub.lane_to(Side::Agent).close();
        }
    })?;
    Ok(receiver)
}

/// Runs the tasks of the interceptor and passes inputs to it until the hub is dropped.
async fn run_tasks(
    hub: Weak<Hub>,
    host: RunningHost,
    mut tasks: UnboundedReceiver<Job>,
    mut inputs: UnboundedReceiver<Input>,
) {
    // A change of the skills that waits until the client has read more.
    let mut change = None;
    loop {
        let input = tokio::select! {
            task = tasks.recv() => match task {
                Some((task, permits)) => {
                    tokio::spawn(run_task(task, permits, hub.clone(), host.clone()));
                    continue;
                }
                None => return,
            },
            Some(input) = inputs.recv() => match input {
                changed @ Input::SkillsChanged(_) if is_client_behind(&hub) => {
                    change = Some(changed);
                    continue;
                }
                input => input,
            },
            () = sleep(BEHIND_INTERVAL), if change.is_some() => {
                match change.take_if(|_| !is_client_behind(&hub)) {
                    Some(changed) => changed,
                    None => continue,
                }
            }
        };
        handle(&hub, &host, input);
    }
}

/// Returns true if the client reads so slowly that lists for it would pile up. Each change of the skills results in a list of commands
/// for each session.
fn is_client_behind(hub: &Weak<Hub>) -> bool {
    hub.upgrade().is_some_and(|hub| hub.lane_to(Side::Client).queued() > MAX_QUEUED_BYTES)
}

async fn run_task(task: Task, mut permits: Option<OwnedSemaphorePermit>, hub: Weak<Hub>, host: RunningHost) {
    match task {
        Task::Ask(query) => host.answer(query, |input| handle(&hub, &host, input)).await,
        Task::ToolsTimer { session, timer, time } => {
            sleep(time).await;
            handle(&hub, &host, Input::ToolsTimerEnded { session, timer });
        }
        Task::MenuTimer { session, time } => {
            sleep(time).await;
            handle(&hub, &host, Input::MenuTimerEnded(session));
        }
        Task::CallTimer { session, timer, time } => {
            sleep(time).await;
            handle(&hub, &host, Input::CallTimerEnded { session, timer });
        }
        Task::Mcp { session, request: None, line } => {
            host.servers().notify_over_acp(session, &line, permits);
        }
        Task::CancelMcp { session, request } => host.servers().cancel_over_acp(session, &request),
        Task::Mcp { session, request: Some(id), line } => {
            let mut send = |line| send_to_agent(&hub, line);
            let request = (&id, &line[..]);
            let answer = host.servers().answer_over_acp(session, request, &mut permits, &mut send).await;
            drop(line);
            answer_agent(&hub, &host, id, answer).await;
        }
        Task::ReadFile { session, request, file } => {
            let answer = host.servers().read_file(session, &request, file).await;
            answer_agent(&hub, &host, request, answer).await;
        }
    }
}

fn send_to_agent(hub: &Weak<Hub>, line: Vec<u8>) {
    if let Some(hub) = hub.upgrade() {
        hub.send(Side::Agent, line);
    }
}

/// Sends the answer to a request of the agent.
async fn answer_agent(hub: &Weak<Hub>, host: &RunningHost, request: Id, answer: Vec<u8>) {
    // Do this first, because the agent may use the id again after the answer.
    handle(hub, host, Input::McpAnswered(request));
    send_to_agent(hub, answer);
    // Wait here to make sure that the request is in flight until the agent has read enough of the answers that we queued for it.
    if let Some(hub) = hub.upgrade() {
        hub.lane_to(Side::Agent).has_room().await;
    }
}

/// Passes an input to the interceptor, within the span of its session.
fn handle(hub: &Weak<Hub>, host: &RunningHost, input: Input) {
    if let Some(hub) = hub.upgrade() {
        host.span_of(&input).in_scope(|| hub.handle(input));
    }
}
