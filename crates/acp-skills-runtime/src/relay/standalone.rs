//! [`Standalone`]: the proxy between a client and an agent that it starts. It ends if the client or the agent ends, and leaves
//! no process behind.
//!
//! | file | owns |
//! |---|---|
//! | `supervisor` | the shutdown: its order, its timeouts and the exit code |
//! | `tap` | observing the bytes that the agent receives |

mod supervisor;
mod tap;

use std::{ffi::OsString, io, time::Duration};

use acp_skills_intercept::Policy;

use self::supervisor::Supervisor;
use super::{Ends, Relay};
use crate::{
    agent::{self, Agent, StartError},
    host::Host,
};

pub use self::tap::{Tap, tapped};

/// The proxy between a client and an agent, ready to run.
pub struct Standalone {
    command: Vec<OsString>,
    policy: Policy,
    host: Host,
    client: Ends,
    tap: Option<Tap>,
    exit_wait: Option<Duration>,
}

/// The errors of [`Standalone::run`].
#[derive(Debug, thiserror::Error)]
pub enum StandaloneError {
    /// The agent could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The operating system refused a resource such as a thread or a signal handler.
    #[error("the proxy failed")]
    Io(#[from] io::Error),
}

impl Standalone {
    /// Creates a proxy between `client` and the agent that `command` starts. The command is a program and its arguments. The
    /// maximum size of the client's messages also applies to the agent.
    pub fn new(command: Vec<OsString>, policy: Policy, host: Host, client: Ends) -> Self {
        Self { command, policy, host, client, tap: None, exit_wait: None }
    }

    /// Sets the tap that observes every byte for the agent. The default is none.
    #[must_use]
    pub fn tap(self, tap: Option<Tap>) -> Self {
        Self { tap, ..self }
    }

    /// Sets the shutdown grace: the time for the agent to exit after the client disconnects. After this time, we
    /// terminate the agent. The default is 3 seconds, or the usual time for agents that we know.
    #[must_use]
    pub fn exit_wait(self, exit_wait: Option<Duration>) -> Self {
        Self { exit_wait, ..self }
    }

    /// Runs the proxy until the client disconnects or the agent exits. Returns the exit code. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// Returns [`StandaloneError::Start`] if the agent cannot be started, and [`StandaloneError::Io`] if the operating system
    /// refuses a thread, a signal handler or the agent's exit status.
    pub async fn run(self) -> Result<i32, StandaloneError> {
        let processes = self.host.own_processes().clone();
        if let Some(program) = self.host.own_program() {
            processes.prepare_agent(program);
        }
        let signals = agent::signals()?;
        let (agent, stdin, stdout) = match Agent::start(&self.command, processes.clone()) {
            Ok(started) => started,
            Err(error) => {
                processes.finish();
                return Err(error.into());
            }
        };
        let stdin = tapped(stdin, self.tap);
        let max_message = self.client.max_message;
        let ends = Ends { reader: Box::new(stdout), writer: stdin, hangup: None, max_message };
        let relay = Relay::start(self.policy, self.host, self.client, ends)?;
        let clean_up = relay.clean_up();
        let code = Supervisor::new(agent, relay, signals, self.exit_wait).run().await;
        // End all scripts that are still running.
        processes.end().await;
        clean_up();
        Ok(code?)
    }
}
