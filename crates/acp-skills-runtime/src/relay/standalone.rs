//! [`Standalone`]: the proxy between a client and an agent that it starts. It ends when the client or the agent does, and
//! leaves no process behind.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | what such a proxy needs, and its start |
//! | `supervisor` | its end: who waits for whom, and for how long |
//! | `tap` | a look at what the agent receives |

mod supervisor;
mod tap;

use std::{ffi::OsString, io, time::Duration};

use acp_skills_intercept::Policy;
use tokio::task::spawn_blocking;

use self::supervisor::Supervisor;
pub use self::tap::Tap;
pub use self::tap::tapped;
use super::{Ends, Relay};
use crate::{
    agent::{self, Agent, StartError},
    host::Host,
};

/// A proxy that is ready to run.
pub struct Standalone {
    command: Vec<OsString>,
    policy: Policy,
    host: Host,
    client: Ends,
    tap: Option<Tap>,
    exit_wait: Option<Duration>,
}

/// Why the proxy could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum StandaloneError {
    /// The agent does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The system refuses what the proxy needs.
    #[error("the proxy failed")]
    Io(#[from] io::Error),
}

impl Standalone {
    /// A proxy between `client` and the agent that `command` starts: a program and its arguments.
    pub fn new(command: Vec<OsString>, policy: Policy, host: Host, client: Ends) -> Self {
        Self { command, policy, host, client, tap: None, exit_wait: None }
    }

    /// Has `tap` see every byte that goes to the agent.
    #[must_use]
    pub fn tap(self, tap: Option<Tap>) -> Self {
        Self { tap, ..self }
    }

    /// How long the agent has to end by itself once the client has gone, before it is told to. Without this 3 seconds, or
    /// what is known of the agent.
    #[must_use]
    pub fn exit_wait(self, exit_wait: Option<Duration>) -> Self {
        Self { exit_wait, ..self }
    }

    /// Runs until the client or the agent ends. Returns the exit code. Needs a tokio runtime around it.
    ///
    /// # Errors
    /// The agent does not start, or the proxy itself fails.
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
        let ends = Ends { reader: Box::new(stdout), writer: stdin, hangup: None };
        let relay = Relay::start(self.policy, self.host, self.client, ends)?;
        let code = Supervisor::new(agent, relay, signals, self.exit_wait).run().await;
        // Scripts that still run end here.
        drop(spawn_blocking(move || processes.finish()).await);
        Ok(code?)
    }
}
