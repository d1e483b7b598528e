//! What can go wrong with one prompt.

use std::io;

use super::parse::NotParsed;
use acp_skills_runtime::{agent::StartError, relay::standalone::StandaloneError};

use crate::{client::ClientError, component::AttachError};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OneShotError {
    /// A skill or a tool cannot be attached.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The agent does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The conversation with the agent failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The agent's answer is not what was asked for.
    #[error(transparent)]
    NotParsed(#[from] NotParsed),
    /// The system refuses what the proxy needs: a pipe, a thread, the working directory.
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
