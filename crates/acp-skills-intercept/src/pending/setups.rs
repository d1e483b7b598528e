//! Requests that set up a session, and the messages queued behind them, in the table of pending work.

use acp_skills_wire::{Id, Message};
use skills_core::SkillSet;

use super::{Entry, Kind, Pending};
use crate::{
    keys::{SessionKey, Ticket},
    queries::Transport,
    workspace::Workspace,
};

/// A request that sets up a session, and that the agent has not received yet.
#[derive(Debug)]
pub(crate) struct HeldSetup {
    /// The method of the request.
    pub(crate) method: String,
    /// The request.
    pub(crate) line: Vec<u8>,
    /// Tells a new session from one that is known here.
    pub(crate) target: Target,
    /// The directories that the session will have.
    pub(crate) workspace: Workspace,
    /// The session of which the new one is a copy.
    pub(crate) parent: Option<SessionKey>,
    /// The transport for the skills server, or `None` if the agent gets no server.
    pub(crate) transport: Option<Transport>,
    /// The number of refreshes of all skills before the host was asked.
    pub(crate) refreshes: u64,
    /// The skills that the client provides for the session. If this is `None`, a copied session keeps its skills.
    pub(crate) client_skills: Option<SkillSet>,
    /// The agent's id of the session for which later messages are queued. `None` for `session/new`.
    pub(crate) about: Option<String>,
}

/// The session that a request sets up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A session that is not known here yet.
    New,
    /// A session that is known here, and keeps its directories.
    Known,
    /// A session that is known here, and gets other directories.
    Moved,
}

/// A message from the client for a session that is waiting for setup.
#[derive(Debug)]
pub(crate) struct QueuedMessage {
    /// The ticket of the setup request.
    pub(crate) behind: Ticket,
    /// The agent's id of the session.
    pub(crate) about: String,
    /// True if the message is a `session/prompt` request.
    pub(crate) is_prompt: bool,
    /// The message.
    pub(crate) line: Vec<u8>,
}

impl Pending {
    /// Returns true if a request to set up a session is held.
    pub(crate) fn has_setups(&self) -> bool {
        self.entries.iter().any(|entry| matches!(entry.kind, Kind::Setup(_)))
    }

    /// Removes the setup request with this ticket, and returns it with the id of the request.
    pub(crate) fn take_setup(&mut self, ticket: Ticket) -> Option<(Id, HeldSetup)> {
        let entry =
            self.take_first(|entry| entry.ticket == ticket && matches!(entry.kind, Kind::Setup(_)))?;
        match entry {
            Entry { request: Some(id), kind: Kind::Setup(setup), .. } => Some((id, setup)),
            _ => None,
        }
    }

    /// Queues a message of the client behind the last held setup request for the same session. Returns false if no such request is
    /// held.
    pub(crate) fn queue(&mut self, message: &Message<'_>) -> bool {
        let Some(about) = message.session_id() else { return false };
        let is_setup = |entry: &&Entry| matches!(&entry.kind, Kind::Setup(setup) if setup.about.as_deref() == Some(&*about));
        let Some(setup) = self.entries.iter().rev().find(is_setup) else { return false };
        let behind = setup.ticket;
        let session = setup.session;
        let ticket = self.new_ticket();
        let message_kind = Kind::Message(QueuedMessage {
            behind,
            about: about.into_owned(),
            is_prompt: message.id().is_some() && message.method() == "session/prompt",
            line: message.line.to_vec(),
        });
        self.insert(ticket, session, message.id(), message_kind);
        true
    }

    /// Removes and returns the messages that are queued after a setup request, in the order of their arrival.
    pub(crate) fn take_queue(&mut self, setup: Ticket) -> Vec<Vec<u8>> {
        let queued =
            self.take_all(|entry| matches!(&entry.kind, Kind::Message(message) if message.behind == setup));
        let line = |entry: Entry| match entry.kind {
            Kind::Message(message) => Some(message.line),
            _ => None,
        };
        queued.into_iter().filter_map(line).collect()
    }

    /// Removes and returns all setup requests, each followed by the messages that are queued after it.
    pub(crate) fn take_setups(&mut self) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        for entry in self.take_all(|entry| matches!(entry.kind, Kind::Setup(_))) {
            if let Kind::Setup(setup) = entry.kind {
                lines.push(setup.line);
            }
            lines.append(&mut self.take_queue(entry.ticket));
        }
        lines
    }

    /// Returns the workspaces of the sessions that are being set up.
    pub(crate) fn workspaces(&self) -> impl Iterator<Item = &Workspace> {
        self.entries.iter().filter_map(|entry| match &entry.kind {
            Kind::Setup(setup) => Some(&setup.workspace),
            _ => None,
        })
    }
}
