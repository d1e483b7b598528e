//! The client's requests that the agent has not answered, and what their answers mean to us.

use acp_skills_wire::{INTERNAL_ERROR, Id, NOT_STARTED, build};

use crate::keys::SessionKey;

/// A request of the client's that the agent has not answered.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    /// Its method.
    pub(crate) method: String,
    /// What its answer means.
    pub(crate) purpose: Purpose,
}

/// What the answer to an open request means to us.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// It tells what the agent can do.
    Initialize,
    /// It sets up a session.
    SetUp(Setup),
    /// The request is in the table of pending work.
    Pending,
    /// It ends a session.
    Leave {
        /// The agent's id of it.
        id: String,
    },
    /// It ends a turn of this session.
    Prompt(SessionKey),
    /// It has all options of this session.
    Option(SessionKey),
    /// It lists sessions with titles.
    List,
    /// It lists the agent's own skills, of this session or of none.
    ListSkills(Option<SessionKey>),
    /// Nothing.
    Other,
}

/// A request that sets up a session.
#[derive(Debug)]
pub(crate) struct Setup {
    /// Which session.
    pub(crate) session: SessionKey,
    /// Whether the answer names it (`session/new`, `session/fork`), or its id is known (`session/load`,
    /// `session/resume`).
    pub(crate) kind: SetupKind,
    /// The request as it came, for a second try.
    pub(crate) retry: Option<Vec<u8>>,
}

/// How a session is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetupKind {
    /// The answer names it.
    New,
    /// Its id is known; `known` when this process knew the session before.
    Enter {
        /// Whether this process knew the session before.
        known: bool,
    },
}

impl OpenRequest {
    /// The error for a request that has no answer any more; `why` is a clause such as `the agent exited with code 3`.
    pub(crate) fn unanswered(&self, id: &Id, why: &str) -> Vec<u8> {
        let message = format!("{why} before it answered `{}`", self.method);
        if self.is_start() {
            // Editors drop what the agent itself says of it.
            let message =
                format!("{message}\nhint: run the agent's command in a terminal to see what it says");
            return build::error(id, NOT_STARTED, &message);
        }
        build::error(id, INTERNAL_ERROR, &message)
    }

    /// Whether the agent has to answer it before it can be used.
    pub(crate) fn is_start(&self) -> bool {
        matches!(self.purpose, Purpose::Initialize | Purpose::SetUp(_) | Purpose::Pending)
    }
}
