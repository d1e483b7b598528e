//! The life of the standalone proxy: it ends when the client or the agent does, and leaves no process behind.

use std::{
    ffi::OsString,
    io::{self, Write},
    path::Path,
    process::ExitStatus,
    time::Duration,
};

use tokio::{
    sync::mpsc::Receiver,
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{Ends, Relay};
use crate::{
    agent::{self, Agent, Signal},
    host::Host,
};
use acp_skills_intercept::Policy;

/// How long the agent has to end by itself once its stdin is closed.
const AFTER_EOF: Duration = Duration::from_secs(1);
/// How long the agent has to end once it was told to.
const AFTER_TERMINATE: Duration = Duration::from_secs(2);
/// How long a client may read nothing of a dead agent's last output, and an agent nothing of what a client said last,
/// before that counts as never.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the children of a dead agent are looked after.
const POLL: Duration = Duration::from_millis(10);

/// A proxy that is ready to run.
pub struct Standalone {
    /// The agent's command.
    pub command: Vec<OsString>,
    /// What the interceptor does.
    pub policy: Policy,
    /// The skills, and how they are served.
    pub host: Host,
    /// The client.
    pub client: Ends,
    /// Sees every byte that goes to the agent.
    pub tap: Option<Tap>,
}

/// Sees bytes on their way.
pub type Tap = Box<dyn FnMut(&[u8]) + Send>;

/// `writer`, with `tap` in front of it.
pub fn tapped(writer: impl Write + Send + 'static, tap: Option<Tap>) -> Box<dyn Write + Send> {
    match tap {
        Some(tap) => Box::new(Tapped { writer, tap }),
        None => Box::new(writer),
    }
}

struct Tapped<W> {
    writer: W,
    tap: Tap,
}

impl<W: Write> Write for Tapped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Before the agent can answer.
        (self.tap)(bytes);
        self.writer.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Standalone {
    /// Runs until the client or the agent ends. Returns the exit code. Needs a tokio runtime around it.
    ///
    /// # Errors
    /// [`StartError`](agent::StartError) when the agent does not start; any other error is the proxy's own.
    pub async fn run(self) -> anyhow::Result<u8> {
        let signals = agent::signals()?;
        let (mut agent, stdin, stdout) = Agent::start(&self.command)?;
        let stdin = tapped(stdin, self.tap);
        let ends = Ends { reader: Box::new(stdout), writer: stdin, hangup: None };
        let own_program = self.host.own_program().map(Path::to_owned);
        let relay = Relay::start(self.policy, self.host, self.client, ends)?;
        if let Some(own_program) = own_program {
            agent.watch_over(&own_program);
        }
        Ok(Life { agent, relay, signals, silent: false }.run().await?)
    }
}

struct Life {
    agent: Agent,
    relay: Relay,
    signals: Receiver<Signal>,
    /// The agent has closed its stdout, and all it said is with the client.
    silent: bool,
}

/// Where the deadlines for the agent stand.
enum Stage {
    /// Everything is in order.
    Running,
    /// The client is gone, but the agent does not take what it said last; `u64` bytes were taken when we looked.
    Stalled(u64),
    /// Its stdin is closed; it may end by itself.
    Closing,
    /// It was told to end.
    Told,
}

impl Life {
    async fn run(mut self) -> io::Result<u8> {
        let status = self.until_the_agent_ends().await?;
        self.bury(status).await;
        Ok(agent::code(status))
    }

    async fn until_the_agent_ends(&mut self) -> io::Result<ExitStatus> {
        let (mut stage, mut deadline) = (Stage::Running, None);
        let (mut client_done, mut client_gone) = (false, false);
        loop {
            tokio::select! {
                status = self.agent.wait() => return status,
                _ = &mut self.relay.client_done, if !client_done => {
                    (client_done, client_gone) = (true, true);
                    if matches!(stage, Stage::Running | Stage::Stalled(_)) {
                        (stage, deadline) = (Stage::Closing, Some(Instant::now() + AFTER_EOF));
                    }
                }
                gone = &mut self.relay.client_gone, if !client_gone => {
                    client_gone = true;
                    if gone.is_ok() && matches!(stage, Stage::Running) {
                        stage = Stage::Stalled(self.relay.written_to_agent());
                        deadline = Some(Instant::now() + PATIENCE);
                    }
                }
                // Fails when the client does not listen any more: then it is gone, whatever its stdin says.
                written = &mut self.relay.agent_done, if !self.silent => {
                    self.silent = true;
                    let client_is_deaf = !matches!(written, Ok(Ok(())));
                    if client_is_deaf && matches!(stage, Stage::Running) {
                        (stage, deadline) = (Stage::Closing, Some(Instant::now() + AFTER_EOF));
                    }
                }
                Some(signal) = self.signals.recv() => {
                    self.agent.signal(signal);
                    // Ctrl-C may mean `stop what you are doing` to an agent; the other two mean the end.
                    if signal != Signal::Interrupt {
                        (stage, deadline) = (Stage::Told, Some(Instant::now() + AFTER_TERMINATE));
                    }
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => match stage {
                    Stage::Running => deadline = None,
                    Stage::Stalled(before) => {
                        let written = self.relay.written_to_agent();
                        if written == before {
                            self.agent.signal(Signal::Terminate);
                            (stage, deadline) = (Stage::Told, Some(Instant::now() + AFTER_TERMINATE));
                        } else {
                            (stage, deadline) = (Stage::Stalled(written), Some(Instant::now() + PATIENCE));
                        }
                    }
                    Stage::Closing => {
                        self.agent.signal(Signal::Terminate);
                        (stage, deadline) = (Stage::Told, Some(Instant::now() + AFTER_TERMINATE));
                    }
                    Stage::Told => {
                        self.agent.kill();
                        deadline = None;
                    }
                },
            }
        }
    }

    /// Sees to it that nobody of the agent's is left, that all it said is delivered and all it owes is answered.
    async fn bury(mut self, status: ExitStatus) {
        // Children of the agent's would live on, and those that hold its stdout would keep the end of it from us.
        self.agent.signal(Signal::Terminate);
        let deadline = Instant::now() + AFTER_TERMINATE;
        while self.agent.is_alive() && Instant::now() < deadline {
            sleep(POLL).await;
        }
        self.agent.bury();
        if !self.delivered().await {
            tracing::warn!("the client did not read the agent's last output");
        }
        self.relay.agent_gone(&format!("the agent {}", agent::describe(status)));
        if timeout(PATIENCE, spawn_blocking(self.relay.close())).await.is_err() {
            tracing::warn!("the client does not read; open requests are left without an answer");
        }
    }

    /// Waits until the client has all that the agent said, for as long as it goes on reading.
    async fn delivered(&mut self) -> bool {
        let mut written = self.relay.written_to_client();
        while !self.silent {
            if timeout(PATIENCE, &mut self.relay.agent_done).await.is_ok() {
                return true;
            }
            let now = self.relay.written_to_client();
            if now == written {
                return false;
            }
            written = now;
        }
        true
    }
}
