//! What can go wrong in a conversation with an agent.

use std::io;

use serde_json::Value;

/// Why a conversation cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Somebody gave the conversation up.
    #[error("the conversation was given up")]
    Cancelled,
    /// The agent does not listen any more.
    #[error("the agent is gone")]
    Write(#[source] io::Error),
    /// What the agent says cannot be read.
    #[error("cannot read what the agent says")]
    Read(#[source] io::Error),
    /// The agent closed the connection instead of answering.
    #[error("the agent is gone before it answered `{method}`")]
    Unanswered {
        /// The request.
        method: String,
    },
    /// The agent answered with an error.
    #[error("the agent refuses `{method}`: {error}")]
    Refused {
        /// The request.
        method: String,
        /// The JSON-RPC error object.
        error: Value,
    },
    /// The agent sent a line that is no JSON.
    #[error("no message: {line}")]
    NotAMessage {
        /// The line.
        line: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}
