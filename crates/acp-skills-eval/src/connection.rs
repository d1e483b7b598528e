//! One agent for one run: its process, with the proxy in front of it when it is to have skills, and everything that is received
//! from both. The only file here that knows how agents and the relay are started.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use acp_skills_intercept::Policy;
use skills_core::{SkillSet, exec::SandboxError};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot,
    },
    task::spawn_blocking,
    time::timeout,
};

use acp_skills_runtime::{
    activity::{Activity, Observer},
    agent::{self, Agent, StartError},
    demo,
    events::{EventKind, Outcome},
    host::Host,
    library::MakeToolbox,
    processes::Processes,
    relay::{Ends, Relay},
};

/// How long an agent has to end by itself once its stdin is closed, and again once it was told to end.
const GRACE: Duration = Duration::from_secs(1);
/// How much of stderr is kept: its end says why an agent failed.
const MAX_STDERR_BYTES: usize = 16 * 1024;

/// How the agents of an evaluation are started.
#[derive(Clone)]
pub(super) struct Launch {
    pub(super) policy: Policy,
    pub(super) toolbox: Option<MakeToolbox>,
    /// Our own program: the bridge for agents without MCP over HTTP, and the watchdog.
    pub(super) program: Option<PathBuf>,
}

/// What is received from agent and proxy, in order.
#[derive(Debug)]
pub(super) enum Received {
    /// The agent wrote this line.
    Line(String),
    /// The proxy gave the instructions of this skill to the model.
    Loaded(String),
    /// The agent will write nothing more.
    Closed,
}

/// A running agent.
pub(super) struct Connection {
    received: UnboundedReceiver<Received>,
    say: Option<std::sync::mpsc::Sender<String>>,
    process: Option<Process>,
}

struct Process {
    over: oneshot::Sender<()>,
    ended: oneshot::Receiver<String>,
    stderr: Stderr,
}

/// How an agent ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// In words; empty for the embedded agent.
    pub(super) how: String,
    /// The end of what it wrote to stderr.
    pub(super) stderr: String,
}

/// Why an agent cannot be talked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum OpenError {
    /// It does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It may not run there in the sandbox.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The system is out of descriptors or threads.
    #[error("cannot connect to the agent: {0}")]
    Connect(#[from] io::Error),
}

impl Connection {
    /// Starts `command` (the embedded agent when it is empty) in `directory`, behind the proxy when there are `skills`.
    /// Needs a tokio runtime around it.
    ///
    /// # Errors
    /// The agent does not start, or the system is out of descriptors.
    pub(super) fn open(
        launch: &Launch,
        command: &[OsString],
        directory: &Path,
        skills: Option<SkillSet>,
    ) -> Result<Self, OpenError> {
        let (tell, received) = unbounded_channel();
        let (process, agent) = if command.is_empty() {
            let (agent_reads, to_agent) = io::pipe()?;
            let (from_agent, agent_writes) = io::pipe()?;
            thread::Builder::new()
                .name("embedded-agent".to_owned())
                .spawn(move || drop(demo::serve_selectively(agent_reads, agent_writes)))?;
            (None, Ends::new(from_agent, to_agent))
        } else {
            let (process, agent) = Process::start(launch, command, directory)?;
            (Some(process), agent)
        };
        let client = match skills {
            Some(skills) => proxied(launch, skills, agent, tell.clone())?,
            None => agent,
        };
        let reader = client.reader;
        thread::Builder::new().name("from-agent".to_owned()).spawn(move || read_lines(reader, &tell))?;
        let (say, lines) = std::sync::mpsc::channel::<String>();
        let mut writer = client.writer;
        // A thread of its own: an agent that does not read must not hold up other runs.
        thread::Builder::new().name("to-agent".to_owned()).spawn(move || {
            for line in lines {
                if writer.write_all(line.as_bytes()).and_then(|()| writer.flush()).is_err() {
                    // The agent is gone, and whoever listens to it learns so.
                    return;
                }
            }
        })?;
        Ok(Self { received, say: Some(say), process })
    }

    /// Sends a line, without its end.
    pub(super) fn say(&self, line: &str) {
        if let Some(say) = &self.say {
            // That the agent is gone is received, too.
            drop(say.send(format!("{line}\n")));
        }
    }

    /// What is received next.
    pub(super) async fn receive(&mut self) -> Received {
        self.received.recv().await.unwrap_or(Received::Closed)
    }

    /// Ends the agent and all its children.
    pub(super) async fn close(mut self) -> Ended {
        // The end of its stdin.
        self.say = None;
        let Some(process) = self.process.take() else { return Ended::default() };
        // It may have ended already.
        let _ = process.over.send(());
        let how = process.ended.await.unwrap_or_else(|_| "ended".to_owned());
        Ended { how, stderr: process.stderr.end().await }
    }
}

/// Starts the proxy in front of `agent`. Returns what the client gets.
fn proxied(
    launch: &Launch,
    skills: SkillSet,
    agent: Ends,
    tell: UnboundedSender<Received>,
) -> io::Result<Ends> {
    let observer: Observer = Arc::new(move |activity| {
        if let Some(skill) = loaded(activity) {
            // The run may be over.
            drop(tell.send(Received::Loaded(skill)));
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
        // Fails only when the client is gone.
        drop((&mut relay.agent_done).await);
        drop(spawn_blocking(relay.close_client()).await);
    });
    Ok(Ends::new(client_reads, client_writes))
}

/// The skill whose instructions the model was given, if that is what happened.
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

/// Tells each line, and the end.
fn read_lines(reader: Box<dyn Read + Send>, tell: &UnboundedSender<Received>) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    // A pipe that cannot be read has ended as well.
    while let Ok(1..) = reader.read_until(b'\n', &mut line) {
        if tell.send(Received::Line(String::from_utf8_lossy(&line).trim_end().to_owned())).is_err() {
            break;
        }
        line.clear();
    }
    // The run may be over.
    drop(tell.send(Received::Closed));
}

impl Process {
    fn start(launch: &Launch, command: &[OsString], directory: &Path) -> Result<(Self, Ends), OpenError> {
        let (errors, stderr) = io::pipe()?;
        let processes = Processes::default();
        if let Some(program) = &launch.program {
            processes.prepare_agent(program);
        }
        let (agent, stdin, stdout) = Agent::start_with(command, processes.clone(), |process| {
            process.current_dir(directory).stderr(Stdio::from(stderr));
        })?;
        let stderr = Stderr::collect(errors)?;
        let (over, is_over) = oneshot::channel();
        let (tell, ended) = oneshot::channel();
        tokio::spawn(async move {
            let how = supervise(agent, is_over).await;
            // Whatever the agent has left behind ends here.
            drop(spawn_blocking(move || processes.finish()).await);
            // Whoever waited may have given up.
            drop(tell.send(how));
        });
        Ok((Self { over, ended, stderr }, Ends::new(stdout, stdin)))
    }
}

/// Waits until the agent ends by itself or is to end, and leaves no process of it. Says how it ended.
async fn supervise(mut agent: Agent, is_over: oneshot::Receiver<()>) -> String {
    let by_itself = tokio::select! {
        status = agent.wait() => Some(status),
        // Dropped without a word, the run was given up: that means the same.
        _ = is_over => None,
    };
    let status = match by_itself {
        Some(status) => status,
        None => end(&mut agent).await,
    };
    // Children of the agent's would live on, and hold its pipes.
    agent.reap();
    status.map_or_else(|error| format!("cannot be waited for: {error}"), agent::describe)
}

/// Has an agent end whose stdin is closed.
async fn end(agent: &mut Agent) -> io::Result<ExitStatus> {
    if let Ok(status) = timeout(GRACE, agent.wait()).await {
        return status;
    }
    agent.terminate();
    if let Ok(status) = timeout(GRACE, agent.wait()).await {
        return status;
    }
    agent.kill();
    agent.wait().await
}

/// The end of what a process writes to stderr.
struct Stderr {
    kept: Arc<Mutex<VecDeque<u8>>>,
    done: oneshot::Receiver<()>,
}

impl Stderr {
    fn collect(mut pipe: io::PipeReader) -> io::Result<Self> {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let (tell, done) = oneshot::channel();
        let keep = Arc::clone(&kept);
        thread::Builder::new().name("agent-stderr".to_owned()).spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = pipe.read(&mut buffer) {
                let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&buffer[..read]);
                let more = kept.len().saturating_sub(MAX_STDERR_BYTES);
                kept.drain(..more);
            }
            // Nobody may wait for it.
            let _ = tell.send(());
        })?;
        Ok(Self { kept, done })
    }

    async fn end(self) -> String {
        // A process that left the agent's group may hold the pipe for ever.
        drop(timeout(GRACE, self.done).await);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
