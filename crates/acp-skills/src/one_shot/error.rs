//! [`OneShotError`]: errors of a prompt.

use std::io;

use acp_skills_runtime::{agent::StartError, relay::standalone::StandaloneError};

use crate::{client::ClientError, component::AttachError, structured_output::NotParsed};

/// An error that occurs when a prompt is sent or answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OneShotError {
    /// A skill or a tool can't be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The agent's program could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The conversation with the agent failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The agent's answer doesn't contain the requested type.
    #[error(transparent)]
    NotParsed(#[from] NotParsed),
    /// The system refused a pipe or a thread, or the working directory can't be determined.
    #[error("the proxy failed")]
    Io(#[from] io::Error),
}

impl From<StandaloneError> for OneShotError {
    fn from(error: StandaloneError) -> Self {
        match error {
            StandaloneError::Start(error) => Self::Start(error),
            StandaloneError::Io(error) => Self::Io(error),
        }
    }
}
