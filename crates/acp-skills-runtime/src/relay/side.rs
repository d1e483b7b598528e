//! [`Side`]: the client or the agent. Also recognizes the I/O errors for a side that disconnected.

use std::io;

/// One of the two sides of the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Agent,
}

impl Side {
    /// Returns the name of the side for log messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Client => "the client",
            Self::Agent => "the agent",
        }
    }

    /// Returns the opposite side: the destination of messages from this one.
    pub(super) fn other(self) -> Self {
        match self {
            Self::Client => Self::Agent,
            Self::Agent => Self::Client,
        }
    }
}

/// Returns true if an I/O error means that the other end disconnected. This is common when clients and agents exit,
/// so it should not be logged as a warning.
pub(super) fn is_disconnect(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted
    )
}
