//! [`Supervisor`]: shuts down the agent when the client disconnects, and the proxy when the agent exits.

use std::{io, process::ExitStatus, time::Duration};

use tokio::{
    sync::mpsc::Receiver,
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};

use crate::{
    agent::{self, Agent, Signal},
    relay::Relay,
};

/// The default shutdown grace: the time for the agent to exit after we close its stdin. Agents that exit on their own
/// need up to 2.2 seconds.
const DEFAULT_SHUTDOWN_GRACE: Duration = Duration::from_secs(3);
/// The time for the agent to exit after we send a request to terminate. After this time, we kill the agent.
const TERMINATE_GRACE: Duration = Duration::from_secs(2);
/// The timeout for a side that doesn't read. It is used for the client when we write the last output of an agent, and
/// for the agent when we write the last messages of the client.
const STALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Replaces [`STALL_TIMEOUT`] for the client after a signal to end. It can be needed twice.
const SHORT_STALL_TIMEOUT: Duration = Duration::from_millis(1_500);
/// The maximum time to write the last output of an agent while the client reads it. The output of the agent itself is at most
/// what fits into its pipe, but a child that left the agent's group can hold the pipe and write to it forever.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time to wait for the first request of the client if the agent exits early, so that we can respond with an
/// error.
const FIRST_REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval at which we check for the children of a dead agent, and for the client's first request.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The delay between the error for an agent that didn't start and our exit. Emacs discards the output of a process if
/// the process exits at the same time.
const REFUSAL_DELAY: Duration = Duration::from_millis(500);

/// Supervises a relay and its agent.
pub(super) struct Supervisor {
    agent: Agent,
    relay: Relay,
    signals: Receiver<Signal>,
    /// The shutdown grace, if the user has set one.
    exit_wait: Option<Duration>,
    /// True if all output of the agent was written to the client, or if writing failed.
    is_drained: bool,
    stdout: AgentStdout,
    client: ClientState,
    /// True if a signal asked the proxy to end.
    end_requested: bool,
    shutdown: Shutdown,
    /// The time at which the next phase of the shutdown begins.
    deadline: Option<Instant>,
}

/// The state of the client, as far as its messages to the agent are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientState {
    /// Connected, as far as we know.
    Connected,
    /// The client has disconnected, and its last messages are still being forwarded. Also used if the platform can't report a
    /// disconnection before the end of the client's output.
    Gone,
    /// The client closed its output, or we can no longer forward it.
    Done,
}

/// The state of the agent's stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentStdout {
    /// Open, as far as we know.
    Open,
    /// The agent closed it, and may still be running.
    Closed,
    /// The agent closed it but didn't exit within the shutdown grace, so we terminated the agent.
    ClosedTooEarly,
    /// The client doesn't read it any more, which can make the agent exit.
    Unread,
}

/// The phase of the agent's shutdown.
enum Shutdown {
    /// The agent runs, and no shutdown has begun.
    NotStarted,
    /// The user pressed Ctrl-C, which the agent may use to stop the current turn. The number is the count of bytes that the
    /// agent had sent at the start of this phase.
    Interrupted(u64),
    /// The client disconnected, but the agent is still reading messages from it. The number is the count of bytes
    /// that were written to the agent at the start of this phase.
    Stalled(u64),
    /// The agent's stdin is closed, and the shutdown grace runs.
    StdinClosed,
    /// The agent was asked to terminate.
    Terminating,
}

impl Shutdown {
    /// Returns true if the agent may still keep running: no shutdown has begun, or only Ctrl-C was pressed.
    fn is_avoidable(&self) -> bool {
        matches!(self, Self::NotStarted | Self::Interrupted(_))
    }
}

impl Supervisor {
    pub(super) fn new(
        agent: Agent,
        relay: Relay,
        signals: Receiver<Signal>,
        exit_wait: Option<Duration>,
    ) -> Self {
        Self {
            agent,
            relay,
            signals,
            exit_wait,
            is_drained: false,
            stdout: AgentStdout::Open,
            client: ClientState::Connected,
            end_requested: false,
            shutdown: Shutdown::NotStarted,
            deadline: None,
        }
    }

    /// Runs until the agent and all of its children exit. Returns the exit code.
    ///
    /// # Errors
    /// Returns an error if the operating system doesn't provide the agent's exit status.
    pub(super) async fn run(mut self) -> io::Result<i32> {
        let status = self.until_the_agent_exits().await?;
        self.finish(status).await;
        Ok(agent::code(status))
    }

    async fn until_the_agent_exits(&mut self) -> io::Result<ExitStatus> {
        loop {
            tokio::select! {
                status = self.agent.wait() => return status,
                _ = &mut self.relay.client_done, if self.client != ClientState::Done => self.end_client_output(),
                () = self.relay.agent_failed.notified(), if self.client != ClientState::Done => self.end_client_output(),
                gone = &mut self.relay.client_gone, if self.client == ClientState::Connected => {
                    self.client = ClientState::Gone;
                    if gone.is_ok() && self.shutdown.is_avoidable() {
                        self.begin(Shutdown::Stalled(self.relay.written_to_agent()), STALL_TIMEOUT);
                    }
                }
                // If we get an error, the client has stopped reading. In that case, treat it as disconnected, even if
                // our stdin is still open. If there's no error, the agent has closed its stdout, so it can't respond
                // to requests any more, even if it's still running.
                delivered = &mut self.relay.agent_done, if !self.is_drained => {
                    self.end_agent_output(match delivered {
                        Ok(Ok(())) => AgentStdout::Closed,
                        Ok(Err(_)) => AgentStdout::Unread,
                        Err(_) => self.stdout,
                    });
                }
                () = self.relay.client_failed.notified(), if !self.is_drained => {
                    self.end_agent_output(AgentStdout::Unread);
                }
                Some(signal) = self.signals.recv() => self.forward(signal),
                () = sleep_until(self.deadline.unwrap_or_else(Instant::now)), if self.deadline.is_some() => {
                    self.next_phase();
                }
            }
        }
    }

    /// Begins the shutdown because nothing more can be forwarded to the agent.
    fn end_client_output(&mut self) {
        self.client = ClientState::Done;
        if self.shutdown.is_avoidable() || matches!(self.shutdown, Shutdown::Stalled(_)) {
            self.begin_grace();
        }
    }

    /// Begins the shutdown because nothing more can be forwarded to the client.
    fn end_agent_output(&mut self, stdout: AgentStdout) {
        self.is_drained = true;
        self.stdout = stdout;
        if self.shutdown.is_avoidable() {
            spawn_blocking(self.relay.close_agent());
            self.begin_grace();
        }
    }

    /// Forwards a signal to the agent. Some agents use Ctrl-C just to stop the current turn, but any other signal is a request
    /// to exit. Ctrl-C becomes a request to exit if it is repeated, or if the agent sends nothing within the shutdown grace. An
    /// agent that was stopped, or that ignores signals, could not be ended otherwise.
    fn forward(&mut self, signal: Signal) {
        self.agent.forward(signal);
        if signal == Signal::Interrupt {
            if matches!(self.shutdown, Shutdown::NotStarted) {
                let grace = self.shutdown_grace();
                self.begin(Shutdown::Interrupted(self.relay.read_from_agent()), grace);
            } else if matches!(self.shutdown, Shutdown::Interrupted(_)) {
                self.end_requested = true;
                self.terminate();
            }
            return;
        }
        self.end_requested = true;
        // Repeated signals must not extend the time until we kill the agent.
        if !matches!(self.shutdown, Shutdown::Terminating) {
            self.begin(Shutdown::Terminating, TERMINATE_GRACE);
        }
    }

    /// Begins a phase of the shutdown, which lasts for at most `time`.
    fn begin(&mut self, phase: Shutdown, time: Duration) {
        self.shutdown = phase;
        self.deadline = Instant::now().checked_add(time);
    }

    /// Begins the shutdown grace.
    fn begin_grace(&mut self) {
        let grace = self.shutdown_grace();
        self.begin(Shutdown::StdinClosed, grace);
    }

    fn shutdown_grace(&self) -> Duration {
        self.exit_wait.or_else(|| self.relay.shutdown_grace()).unwrap_or(DEFAULT_SHUTDOWN_GRACE)
    }

    /// Asks the agent to terminate.
    fn terminate(&mut self) {
        self.agent.terminate();
        self.begin(Shutdown::Terminating, TERMINATE_GRACE);
    }

    /// Continues the shutdown after the deadline of the current phase.
    fn next_phase(&mut self) {
        match self.shutdown {
            Shutdown::NotStarted => self.deadline = None,
            Shutdown::Interrupted(before) if self.relay.read_from_agent() == before => {
                self.end_requested = true;
                self.terminate();
            }
            // The agent still works.
            Shutdown::Interrupted(_) => {
                self.shutdown = Shutdown::NotStarted;
                self.deadline = None;
            }
            Shutdown::Stalled(before) => {
                let written = self.relay.written_to_agent();
                if written == before {
                    self.terminate();
                } else {
                    self.begin(Shutdown::Stalled(written), STALL_TIMEOUT);
                }
            }
            Shutdown::StdinClosed => {
                if self.stdout == AgentStdout::Closed && self.client == ClientState::Connected {
                    self.stdout = AgentStdout::ClosedTooEarly;
                }
                self.terminate();
            }
            Shutdown::Terminating => {
                self.agent.kill();
                self.deadline = None;
            }
        }
    }

    /// Terminates the remaining children of the agent, writes its last output to the client, and sends an error for
    /// each request that it didn't answer.
    async fn finish(mut self, status: ExitStatus) {
        // Make sure to end the agent's children. Otherwise, they would keep running, and any child that inherited the
        // agent's stdout would also keep it open.
        self.agent.terminate();
        let deadline = Instant::now() + TERMINATE_GRACE;
        while self.agent.is_alive() && Instant::now() < deadline {
            sleep(POLL_INTERVAL).await;
        }
        self.agent.reap();
        self.deliver_output().await;
        // An agent can exit because its output goes nowhere, and we may notice its exit before we notice the failed write.
        if self.relay.is_client_unreachable() {
            self.stdout = AgentStdout::Unread;
        }
        let end = match self.stdout {
            AgentStdout::ClosedTooEarly => "closed its stdout".to_owned(),
            AgentStdout::Open | AgentStdout::Closed | AgentStdout::Unread => agent::describe(status),
        };
        let is_refused = self.answer_open_requests(&format!("the agent {end}")).await;
        if timeout(self.client_timeout(), spawn_blocking(self.relay.close_client())).await.is_err() {
            tracing::info!("client does not read; open requests are not answered");
        } else if is_refused {
            sleep(REFUSAL_DELAY).await;
        }
    }

    /// Sends an error for each open request of the client. If there were no messages at all, also waits for the first
    /// request. Returns true if the agent exited while it was starting, so that the client could not use it.
    async fn answer_open_requests(&mut self, why: &str) -> bool {
        let deadline = Instant::now() + FIRST_REQUEST_TIMEOUT;
        let is_over = self.end_requested || self.relay.has_traffic();
        let mut was_starting = self.relay.agent_gone(why);
        while !is_over
            && self.client != ClientState::Done
            && !self.relay.has_traffic()
            && Instant::now() < deadline
        {
            // If the first request can't be forwarded, the client's pump will stop here.
            if timeout(POLL_INTERVAL, &mut self.relay.client_done).await.is_ok() {
                self.client = ClientState::Done;
            }
            was_starting |= self.relay.agent_gone(why);
        }
        let is_refused = was_starting && !self.end_requested && self.stdout != AgentStdout::Unread;
        if is_refused {
            tracing::warn!(
                "{why} during startup; run the agent command in a terminal to see the error message"
            );
        }
        is_refused
    }

    /// Returns the time after which a client that doesn't read is given up.
    fn client_timeout(&self) -> Duration {
        if self.end_requested { SHORT_STALL_TIMEOUT } else { STALL_TIMEOUT }
    }

    /// Waits until all output of the agent was written to the client. Gives up if the client stops reading, or after
    /// [`LAST_OUTPUT_TIMEOUT`].
    async fn deliver_output(&mut self) {
        let end = Instant::now() + LAST_OUTPUT_TIMEOUT;
        let mut written = self.relay.written_to_client();
        while !self.is_drained {
            let stalled = Instant::now() + self.client_timeout();
            if timeout_at(stalled.min(end), &mut self.relay.agent_done).await.is_ok() {
                return;
            }
            let now = self.relay.written_to_client();
            if now == written || Instant::now() >= end {
                tracing::info!(
                    "agent output did not end: the client does not read it, or a child of the agent still writes"
                );
                return;
            }
            written = now;
        }
    }
}
