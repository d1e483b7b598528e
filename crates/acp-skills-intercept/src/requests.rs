//! The client's requests that have no answer yet, and the meaning of their answers for the interceptor.

use acp_skills_wire::{INTERNAL_ERROR, Id, NOT_STARTED, build};

use crate::keys::SessionKey;

/// The maximum number of characters of a method that are kept.
const MAX_METHOD_CHARS: usize = 200;

/// A request of the client that has no answer yet.
#[derive(Debug)]
pub(crate) struct OpenRequest {
    /// The method of the request, shortened to [`MAX_METHOD_CHARS`].
    pub(crate) method: String,
    /// The meaning of the answer.
    pub(crate) purpose: Purpose,
}

/// The meaning of the answer to a request.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// The answer has the agent's capabilities.
    Initialize,
    /// The answer opens a session.
    SetUp(Setup),
    /// The request is in the table of pending work, and the agent has not received it.
    Pending,
    /// The answer ends a session.
    Close {
        /// The agent's id of the session.
        id: String,
    },
    /// The answer ends a turn of this session.
    Prompt(SessionKey),
    /// The answer has all configuration options of this session.
    Option(SessionKey),
    /// The answer lists sessions with their titles.
    List,
    /// The answer lists the agent's own skills, of this session or of none.
    ListSkills(Option<SessionKey>),
    /// The answer is forwarded as it is.
    Other,
}

/// A request that sets up a session.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The session.
    pub(crate) session: SessionKey,
    /// Distinguishes new sessions from sessions that are opened again.
    pub(crate) kind: SetupKind,
    /// The request as the client sent it, for a retry without our changes. `None` if there is nothing to change.
    pub(crate) retry: Option<Vec<u8>>,
}

/// The way in which a session is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetupKind {
    /// The answer has the id of the session (`session/new`, `session/fork`).
    New,
    /// The request has the id of the session (`session/load`, `session/resume`).
    Reopen {
        /// True if the session is open here already.
        known: bool,
    },
}

impl OpenRequest {
    /// Creates a request.
    pub(crate) fn new(method: &str, purpose: Purpose) -> Self {
        Self { method: method.chars().take(MAX_METHOD_CHARS).collect(), purpose }
    }

    /// Returns the error for a request that the agent can no longer answer. `why` is a clause such as `the agent exited with
    /// code 3`.
    pub(crate) fn unanswered(&self, id: &Id, why: &str) -> Vec<u8> {
        let message = format!("{why} before answering `{}`", self.method);
        if self.is_start() {
            // Editors don't show the output of the agent itself, so we add a hint on where to find it.
            let message =
                format!("{message}\nhint: run the agent command in a terminal to show error messages");
            return build::error(id, NOT_STARTED, &message);
        }
        build::error(id, INTERNAL_ERROR, &message)
    }

    /// Returns true if the agent cannot be used before it has answered the request.
    pub(crate) fn is_start(&self) -> bool {
        matches!(self.purpose, Purpose::Initialize | Purpose::SetUp(_) | Purpose::Pending)
    }
}
