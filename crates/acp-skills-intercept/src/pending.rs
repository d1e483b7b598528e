//! [`Pending`]: the one table of all work that is held back until an answer or a call has arrived.
//!
//! Each entry has a [`Ticket`], the session and the client's request that it belongs to, and its kind:
//!
//! | kind | is held until |
//! |---|---|
//! | [`Kind::Setup`] | the host has answered [`Query::SetUp`](crate::Query::SetUp) |
//! | [`Kind::Message`] | the setup request before it was sent to the agent |
//! | [`Kind::Prompt`] | the agent has the skill tools, the text was fetched, and all earlier prompts were sent |
//! | [`Kind::SkillList`] | the host has answered [`Query::Skills`](crate::Query::Skills) |
//! | [`Kind::Permission`] | the host has answered [`Query::Resolve`](crate::Query::Resolve), or a call that was granted has arrived |
//! | [`Kind::Question`], [`Kind::ServerQuestion`] | the client has answered the question |
//!
//! An answer removes the entry with its ticket. If there is no such entry, the work was cancelled, and the answer is
//! ignored. Entries are also removed by [`Pending::take_request`], [`Pending::take_turn`], [`Pending::take_session`]
//! and [`Pending::clear`]; [`cancellation`](crate::cancellation) answers the requests that these functions return.

mod prompts;
mod requests;
mod setups;

use acp_skills_wire::Id;

pub(crate) use self::{
    prompts::{HeldPrompt, PromptKind, PromptText},
    requests::{Asker, Question, ServerQuestion},
    setups::{HeldSetup, QueuedMessage, Target},
};
use crate::keys::{SessionKey, Ticket};

/// Pending work, in the order in which it arrived.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    entries: Vec<Entry>,
    last_ticket: u64,
}

/// One piece of pending work.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The ticket of this work. If a query was sent for it, the answer has the same ticket.
    pub(crate) ticket: Ticket,
    /// The session, or `None` if the work belongs to none or the session is not known here yet.
    pub(crate) session: Option<SessionKey>,
    /// The client's request that this work answers later. `None` for notifications and for requests that the agent or the
    /// proxy has sent.
    pub(crate) request: Option<Id>,
    /// The kind of work, with its data.
    pub(crate) kind: Kind,
}

/// The kinds of pending work.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A request of the client that sets up a session.
    Setup(HeldSetup),
    /// A later message of the client about a session that is being set up.
    Message(QueuedMessage),
    /// A prompt, or a `/skills` command.
    Prompt(HeldPrompt),
    /// A list of skills for the client. It belongs to no session.
    SkillList {
        /// The agent's response, if the agent provides a list.
        agent_list: Option<Vec<u8>>,
    },
    /// A permission request.
    Permission {
        /// The agent's id of the request.
        id: Option<Id>,
        /// The request.
        line: Vec<u8>,
        /// True if the request waits for an earlier granted call to arrive, false if it waits for its path to be resolved.
        is_next_call: bool,
    },
    /// A request of the proxy to the client, which asks the user to trust skills.
    Question(Question),
    /// A request of the proxy to the client, for an MCP server behind a skill.
    ServerQuestion(ServerQuestion),
}

impl Pending {
    /// Returns a ticket that was not used before.
    pub(crate) fn new_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }

    /// Returns the size of the client's messages that are held, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        let size = |entry: &Entry| match &entry.kind {
            Kind::Setup(setup) => setup.line.len(),
            Kind::Message(message) => message.line.len(),
            Kind::Prompt(prompt) => prompt.line.len(),
            Kind::SkillList { .. }
            | Kind::Permission { .. }
            | Kind::Question(_)
            | Kind::ServerQuestion(_) => 0,
        };
        self.entries.iter().map(|entry| size_of::<Entry>() + size(entry)).sum()
    }

    /// Adds an entry to the end of the table.
    pub(crate) fn insert(
        &mut self,
        ticket: Ticket,
        session: Option<SessionKey>,
        request: Option<Id>,
        kind: Kind,
    ) {
        self.entries.push(Entry { ticket, session, request, kind });
    }

    /// Gives an entry a new ticket, so that an answer to its old ticket is ignored. The entry keeps its position.
    pub(crate) fn renew(&mut self, ticket: Ticket) -> Ticket {
        let renewed = self.new_ticket();
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.ticket == ticket) {
            entry.ticket = renewed;
        }
        renewed
    }

    /// Removes and returns the entry for this request of the client.
    pub(crate) fn take_request(&mut self, id: &Id) -> Option<Entry> {
        self.take_first(|entry| entry.request.as_ref() == Some(id))
    }

    /// Removes and returns all work for the current turn of a session: its prompts, those that are queued behind its
    /// setup request, and the agent's requests for permission. `id` is the agent's id of the session, `session` our key
    /// if we know the session.
    pub(crate) fn take_turn(&mut self, session: Option<SessionKey>, id: &str) -> Vec<Entry> {
        self.take_all(|entry| match &entry.kind {
            Kind::Prompt(_) | Kind::Permission { .. } => session.is_some() && entry.session == session,
            Kind::Message(message) => message.is_prompt && message.about == id,
            Kind::Setup(_) | Kind::SkillList { .. } | Kind::Question(_) | Kind::ServerQuestion(_) => false,
        })
    }

    /// Removes and returns all work that cannot continue after a session was closed: prompts, and the agent's requests
    /// for permission.
    ///
    /// Setup requests stay, because they open the session again. Questions stay, because the client answers them anyway,
    /// and the agent must not see these answers.
    pub(crate) fn take_session(&mut self, session: SessionKey) -> Vec<Entry> {
        self.take_all(|entry| {
            entry.session == Some(session) && matches!(entry.kind, Kind::Prompt(_) | Kind::Permission { .. })
        })
    }

    /// Drops all entries, because the agent has ended.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    fn take_first(&mut self, matches: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let index = self.entries.iter().position(matches)?;
        Some(self.entries.remove(index))
    }

    fn take_all(&mut self, matches: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        self.entries.extract_if(.., |entry| matches(entry)).collect()
    }
}
