//! The connection of a run: the process of the agent, the proxy in front of it if the run has skills, and their messages.
//!
//! No other file of this crate starts agents or the relay.
//!
//! | file | owns |
//! |---|---|
//! | `inbox` | the messages that were received and not read yet, within a limit |
//! | `outbox` | the lines for the agent, and the thread that writes them |

mod inbox;
mod outbox;

use std::{
    collections::VecDeque,
    ffi::OsString,
    io::{self, Read},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use acp_skills_intercept::Policy;
use acp_skills_runtime::{
    activity::{Activity, Observer},
    agent::{self, Agent, StartError},
    demo,
    events::{EventKind, Outcome},
    host::Host,
    library::MakeToolbox,
    relay::{DEFAULT_MAX_MESSAGE, Ends, Relay},
};
use acp_skills_servers::processes::Processes;
use skills_core::{SkillSet, exec::SandboxError};
use tokio::{sync::oneshot, task::spawn_blocking, time::timeout};

pub(super) use self::inbox::Received;
use self::{
    inbox::{Inbox, InboxSender, Limited, read_lines},
    outbox::Outbox,
};

use super::{
    isolation::{Environment, Home},
    orphans,
};

/// The shutdown grace period: the time that an agent has to end after its stdin is closed, and again after it was terminated.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(1);
/// The maximum amount of standard error output to keep. We keep the end, because it usually contains the error message.
const MAX_STDERR_BYTES: usize = 16 * 1024;

/// The settings for starting the agents of an evaluation.
#[derive(Clone)]
pub(super) struct Launch {
    pub(super) policy: Policy,
    pub(super) toolbox: Option<MakeToolbox>,
    /// The path of `acp-skills-proxy`. It is the bridge for agents without MCP over HTTP, and the watchdog.
    pub(super) program: Option<PathBuf>,
    /// Variables of the agents' processes.
    pub(super) environment: Environment,
}

/// A running agent.
pub(super) struct Connection {
    inbox: Inbox,
    outbox: Outbox,
    process: Option<Process>,
    /// The home directory of the agent, if it is isolated.
    home: Option<Home>,
}

struct Process {
    stop: oneshot::Sender<()>,
    ended: oneshot::Receiver<String>,
    stderr: Stderr,
    /// The mark of the agent's processes.
    mark: String,
}

/// A description of an agent that has ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// A description such as `exited with code 1`. Empty for the built-in agent.
    pub(super) how: String,
    /// The last part of the agent's standard error output.
    pub(super) stderr: String,
}

/// An error that occurs when an agent is started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum OpenError {
    /// The agent's program could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The sandbox can't be used in this directory.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The system has no pipes or threads left.
    #[error("cannot connect to agent: {0}")]
    Connect(#[from] io::Error),
}

impl Connection {
    /// Starts `command` in `directory`, or the built-in agent if the command is empty. If there are `skills`, the proxy is put
    /// in front of the agent.
    ///
    /// # Errors
    /// Returns [`OpenError::Start`] if the program doesn't start, and [`OpenError::Connect`] if the system has no pipes or
    /// threads left.
    ///
    /// # Panics
    /// Panics if it is called outside of a tokio runtime.
    pub(super) fn open(
        launch: &Launch,
        command: &[OsString],
        directory: &Path,
        skills: Option<SkillSet>,
    ) -> Result<Self, OpenError> {
        let (sender, inbox) = Inbox::new();
        let (process, mut agent) = if command.is_empty() {
            let (agent_reads, to_agent) = io::pipe()?;
            let (from_agent, agent_writes) = io::pipe()?;
            thread::Builder::new().name("embedded-agent".to_owned()).spawn(move || {
                let _ = demo::serve_selectively(agent_reads, agent_writes);
            })?;
            (None, Ends::new(from_agent, to_agent))
        } else {
            let (process, agent) = Process::start(launch, command, directory)?;
            (Some(process), agent)
        };
        // Limit the lines before the proxy reads them, because it would skip a line without an end until the timeout.
        agent.reader = Box::new(Limited::new(agent.reader, sender.clone(), DEFAULT_MAX_MESSAGE));
        let client = match skills {
            Some(skills) => put_proxy_in_front(launch, skills, agent, sender.clone())?,
            None => agent,
        };
        let reader = client.reader;
        thread::Builder::new().name("from-agent".to_owned()).spawn(move || read_lines(reader, &sender))?;
        let outbox = Outbox::start(client.writer)?;
        Ok(Self { inbox, outbox, process, home: None })
    }

    /// Keeps the agent's home directory until the agent has ended.
    pub(super) fn keep(&mut self, home: Option<Home>) {
        self.home = home;
    }

    /// Queues a line for the agent. `line` has no line break at its end.
    pub(super) fn send(&self, line: &str) {
        self.outbox.send(line);
    }

    /// Waits for the next message. Before that, waits for an agent that doesn't read the answers to its requests. It is safe to
    /// drop the future.
    pub(super) async fn receive(&mut self) -> Received {
        self.outbox.has_room().await;
        self.inbox.receive().await
    }

    /// Ends the agent and all of its children.
    pub(super) async fn close(mut self) -> Ended {
        self.outbox.close();
        // The agent may be waiting for us to read.
        self.inbox.discard_lines();
        let Some(process) = self.process.take() else { return Ended::default() };
        // If this fails, the agent has already ended.
        let _ = process.stop.send(());
        let how = process.ended.await.unwrap_or_else(|_| "ended".to_owned());
        let mark = process.mark;
        // This fails if the runtime is shutting down.
        let _ = spawn_blocking(move || orphans::end(&mark)).await;
        Ended { how, stderr: process.stderr.end().await }
    }
}

/// Starts the proxy in front of `agent`. Returns the ends for the client.
fn put_proxy_in_front(
    launch: &Launch,
    skills: SkillSet,
    agent: Ends,
    sender: InboxSender,
) -> io::Result<Ends> {
    let observer: Observer = Arc::new(move |activity| {
        if let Some(skill) = loaded(activity) {
            sender.loaded(skill);
        }
    });
    let mut host = Host::new(Arc::new(skills)).observer(Some(observer));
    if let Some(toolbox) = &launch.toolbox {
        host = host.toolbox(Arc::clone(toolbox));
    }
    if let Some(program) = &launch.program {
        host = host.bridge(program);
    }
    let (client_reads, to_client) = io::pipe()?;
    let (from_client, client_writes) = io::pipe()?;
    let mut relay = Relay::start(launch.policy.clone(), host, Ends::new(from_client, to_client), agent)?;
    tokio::spawn(async move {
        // Wait for the output of the agent to end. If this fails, the client has already ended.
        let _ = (&mut relay.agent_done).await;
        let _ = spawn_blocking(relay.close_client()).await;
    });
    Ok(Ends::new(client_reads, client_writes))
}

/// Returns the name of the skill whose instructions the model received with this activity.
fn loaded(activity: &Activity) -> Option<String> {
    match activity {
        Activity::Recorded(record) => match &record.what {
            EventKind::SkillActivated { skill: Some(skill), end, .. } if end.outcome == Outcome::Ok => {
                Some(skill.clone())
            }
            EventKind::FileRead { skill: Some(skill), file: Some(file), end }
                if end.outcome == Outcome::Ok && is_instructions(file) =>
            {
                Some(skill.clone())
            }
            _ => None,
        },
        Activity::ResourceRead { skill, path, .. } if is_instructions(path) => Some(skill.clone()),
        _ => None,
    }
}

fn is_instructions(path: &str) -> bool {
    path.trim_start_matches("./").eq_ignore_ascii_case("SKILL.md")
}

impl Process {
    fn start(launch: &Launch, command: &[OsString], directory: &Path) -> Result<(Self, Ends), OpenError> {
        let (errors, stderr) = io::pipe()?;
        let processes = Processes::default();
        if let Some(program) = &launch.program {
            processes.prepare_agent(program);
        }
        let mark = orphans::mark();
        let (agent, stdin, stdout) = Agent::start_with(command, processes.clone(), |process| {
            process.current_dir(directory).stderr(Stdio::from(stderr)).env(orphans::VARIABLE, &mark);
            for (name, value) in &launch.environment {
                match value {
                    Some(value) => process.env(name, value),
                    None => process.env_remove(name),
                };
            }
        })?;
        let stderr = Stderr::collect(errors)?;
        let (stop, stopped) = oneshot::channel();
        let (sender, ended) = oneshot::channel();
        tokio::spawn(async move {
            let how = supervise(agent, stopped).await;
            // End any processes that the agent started but didn't end.
            processes.end().await;
            // This can fail if the connection is dropped first.
            let _ = sender.send(how);
        });
        Ok((Self { stop, ended, stderr, mark }, Ends::new(stdout, stdin)))
    }
}

/// Waits until the agent ends or is stopped, and ends all of its processes. Returns a description of how it
/// ended.
async fn supervise(mut agent: Agent, stopped: oneshot::Receiver<()>) -> String {
    let by_itself = tokio::select! {
        status = agent.wait() => Some(status),
        // We get an error here if the sender was dropped with the run, but we need to stop the agent in both cases.
        _ = stopped => None,
    };
    let status = match by_itself {
        Some(status) => status,
        None => shut_down(&mut agent).await,
    };
    // Make sure to end the agent's children as well, or they would keep the pipes open.
    agent.reap();
    status.map_or_else(|error| format!("exited with unknown status: {error}"), agent::describe)
}

/// Ends an agent whose stdin is closed: waits, then terminates it, then kills it.
async fn shut_down(agent: &mut Agent) -> io::Result<ExitStatus> {
    if let Ok(status) = timeout(SHUTDOWN_GRACE, agent.wait()).await {
        return status;
    }
    agent.terminate();
    if let Ok(status) = timeout(SHUTDOWN_GRACE, agent.wait()).await {
        return status;
    }
    agent.kill();
    agent.wait().await
}

/// Collects the last part of a process's standard error output.
struct Stderr {
    /// Guards the kept bytes. It is held while a piece is added.
    kept: Arc<Mutex<VecDeque<u8>>>,
    done: oneshot::Receiver<()>,
}

impl Stderr {
    fn collect(mut pipe: io::PipeReader) -> io::Result<Self> {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, done) = oneshot::channel();
        let keep = Arc::clone(&kept);
        thread::Builder::new().name("agent-stderr".to_owned()).spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = pipe.read(&mut buffer) {
                let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&buffer[..read]);
                let more = kept.len().saturating_sub(MAX_STDERR_BYTES);
                kept.drain(..more);
            }
            // This can fail if the run is dropped first.
            let _ = sender.send(());
        })?;
        Ok(Self { kept, done })
    }

    async fn end(self) -> String {
        // Use a timeout here, because a process that has left the agent's group can keep the pipe open.
        let _ = timeout(SHUTDOWN_GRACE, self.done).await;
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
