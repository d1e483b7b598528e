//! [`Supervisor`]: ends the agent when the client goes, and the proxy when the agent goes.

use std::{io, process::ExitStatus, time::Duration};

use tokio::{
    sync::mpsc::Receiver,
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    agent::{self, Agent, Signal},
    relay::Relay,
};

/// How long the agent has to end by itself once its stdin is closed, unless somebody says how long, or what is known of it
/// does. Those that do need up to 2.2 seconds.
const AFTER_EOF: Duration = Duration::from_secs(3);
/// How long the agent has to end once it was told to.
const AFTER_TERMINATE: Duration = Duration::from_secs(2);
/// How long a client may read nothing of a dead agent's last output, and an agent nothing of what a client said last,
/// before that counts as never.
const STALLED: Duration = Duration::from_secs(5);
/// How long a client that has not said anything may take to learn that there is no agent.
const FIRST_REQUEST: Duration = Duration::from_secs(2);
/// How often the children of a dead agent, and a client that has not said anything, are looked after.
const POLL: Duration = Duration::from_millis(10);

/// How long a client has to read that the agent did not start, before it sees our end. Emacs forgets what a program said that it
/// sees end at once.
const FAREWELL: Duration = Duration::from_millis(500);

/// Watches over a relay and its agent.
pub(super) struct Supervisor {
    agent: Agent,
    relay: Relay,
    signals: Receiver<Signal>,
    /// How long the agent has to end by itself, when somebody says so.
    exit_wait: Option<Duration>,
    /// The agent has closed its stdout, and the client has all that it said.
    is_drained: bool,
    stdout: AgentStdout,
    /// The client will say nothing more, or nothing that somebody hears.
    is_client_done: bool,
    /// Somebody wants the proxy to end.
    is_told_to_end: bool,
}

/// What became of the agent's stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AgentStdout {
    /// It is open, as far as is known.
    Open,
    /// The agent has closed it, perhaps because it has ended.
    Closed,
    /// The agent has closed it and lived on, so it was told to end.
    ClosedTooEarly,
    /// The client does not read what the agent says any more, and the agent may end for that.
    Unread,
}

/// How far the end of the agent has come.
enum Stage {
    /// Nobody has gone.
    Running,
    /// The client is gone, but the agent has not read all that it said; so many bytes were read by then.
    Stalled(u64),
    /// Its stdin is closed; it may end by itself.
    Closing,
    /// It was told to end.
    Terminating,
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
            is_client_done: false,
            is_told_to_end: false,
        }
    }

    /// Until when the agent may end by itself, from now.
    fn end_of_patience(&self) -> Option<Instant> {
        let time = self.exit_wait.or_else(|| self.relay.time_to_leave()).unwrap_or(AFTER_EOF);
        Instant::now().checked_add(time)
    }

    /// Runs until the agent has ended and nothing of it is left. Returns its exit code.
    ///
    /// # Errors
    /// The system does not tell how the agent ended.
    pub(super) async fn run(mut self) -> io::Result<i32> {
        let status = self.until_the_agent_ends().await?;
        self.finish(status).await;
        Ok(agent::code(status))
    }

    async fn until_the_agent_ends(&mut self) -> io::Result<ExitStatus> {
        let (mut stage, mut deadline) = (Stage::Running, None);
        let mut client_gone = false;
        loop {
            tokio::select! {
                status = self.agent.wait() => return status,
                _ = &mut self.relay.client_done, if !self.is_client_done => {
                    (self.is_client_done, client_gone) = (true, true);
                    if matches!(stage, Stage::Running | Stage::Stalled(_)) {
                        (stage, deadline) = (Stage::Closing, self.end_of_patience());
                    }
                }
                gone = &mut self.relay.client_gone, if !client_gone => {
                    client_gone = true;
                    if gone.is_ok() && matches!(stage, Stage::Running) {
                        stage = Stage::Stalled(self.relay.written_to_agent());
                        deadline = Some(Instant::now() + STALLED);
                    }
                }
                // Fails when the client does not read any more: then it is gone, whatever its stdin says. Otherwise the agent
                // has closed its stdout, and who waits for an answer of a living one waits in vain.
                delivered = &mut self.relay.agent_done, if !self.is_drained => {
                    self.is_drained = true;
                    match delivered {
                        Ok(Ok(())) => self.stdout = AgentStdout::Closed,
                        Ok(Err(_)) => self.stdout = AgentStdout::Unread,
                        Err(_) => {}
                    }
                    if matches!(stage, Stage::Running) {
                        drop(spawn_blocking(self.relay.hang_up()));
                        (stage, deadline) = (Stage::Closing, self.end_of_patience());
                    }
                }
                Some(signal) = self.signals.recv() => {
                    self.agent.forward(signal);
                    // Ctrl-C may mean `stop what you are doing` to an agent; the other two mean the end.
                    if signal != Signal::Interrupt {
                        self.is_told_to_end = true;
                        (stage, deadline) = (Stage::Terminating, Some(Instant::now() + AFTER_TERMINATE));
                    }
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => match stage {
                    Stage::Running => deadline = None,
                    Stage::Stalled(before) => {
                        let written = self.relay.written_to_agent();
                        if written == before {
                            self.agent.terminate();
                            (stage, deadline) = (Stage::Terminating, Some(Instant::now() + AFTER_TERMINATE));
                        } else {
                            (stage, deadline) = (Stage::Stalled(written), Some(Instant::now() + STALLED));
                        }
                    }
                    Stage::Closing => {
                        if self.stdout == AgentStdout::Closed && !client_gone {
                            self.stdout = AgentStdout::ClosedTooEarly;
                        }
                        self.agent.terminate();
                        (stage, deadline) = (Stage::Terminating, Some(Instant::now() + AFTER_TERMINATE));
                    }
                    Stage::Terminating => {
                        self.agent.kill();
                        deadline = None;
                    }
                },
            }
        }
    }

    /// Ends the children that the agent left, delivers what it said last, and answers the requests that it left open.
    async fn finish(mut self, status: ExitStatus) {
        // They would live on otherwise, and one that holds the agent's stdout would keep its end from us.
        self.agent.terminate();
        let deadline = Instant::now() + AFTER_TERMINATE;
        while self.agent.is_alive() && Instant::now() < deadline {
            sleep(POLL).await;
        }
        self.agent.reap();
        if !self.drained().await {
            tracing::info!("the client did not read the agent's last output");
        }
        let end = match self.stdout {
            AgentStdout::ClosedTooEarly => "closed its stdout".to_owned(),
            AgentStdout::Open | AgentStdout::Closed | AgentStdout::Unread => agent::describe(status),
        };
        let is_refused = self.answer_all(&format!("the agent {end}")).await;
        if timeout(STALLED, spawn_blocking(self.relay.close())).await.is_err() {
            tracing::info!("the client does not read; open requests are left without an answer");
        } else if is_refused {
            sleep(FAREWELL).await;
        }
    }

    /// Answers what the client asked; and when it has not come to ask anything yet, its first request too. Returns whether the
    /// agent had to answer some of it before it could be used.
    async fn answer_all(&mut self, why: &str) -> bool {
        let deadline = Instant::now() + FIRST_REQUEST;
        let is_over = self.is_told_to_end || self.relay.has_talked();
        let mut was_starting = self.relay.agent_gone(why);
        while !is_over && !self.is_client_done && !self.relay.has_talked() && Instant::now() < deadline {
            // What the client says now goes nowhere, and that ends its side.
            self.is_client_done = timeout(POLL, &mut self.relay.client_done).await.is_ok();
            was_starting |= self.relay.agent_gone(why);
        }
        let is_refused = was_starting && !self.is_told_to_end && self.stdout != AgentStdout::Unread;
        if is_refused {
            tracing::warn!(
                "{why} before it could be used; run its command in a terminal to see what it says"
            );
        }
        is_refused
    }

    /// Waits until the client has all that the agent said, for as long as it goes on reading. Returns whether it has.
    async fn drained(&mut self) -> bool {
        let mut written = self.relay.written_to_client();
        while !self.is_drained {
            if timeout(STALLED, &mut self.relay.agent_done).await.is_ok() {
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
