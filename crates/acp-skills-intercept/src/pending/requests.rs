//! Lists of skills, requests for permission and questions to the user in the table of pending work.

use acp_skills_wire::Id;
use skills_core::set::Unapproved;

use super::{Entry, Kind, Pending};
use crate::{
    keys::{SessionKey, Ticket},
    session::server_calls::{Options, Shown},
};

/// A request of the proxy to the client, which asks the user to trust skills of a project.
#[derive(Debug)]
pub(crate) struct Question {
    /// The id of the request from the proxy.
    pub(crate) id: String,
    /// The skills that the user is asked about.
    pub(crate) skills: Vec<Unapproved>,
}

/// The party for which the proxy asks the user.
#[derive(Debug)]
pub(crate) enum Asker {
    /// An MCP server behind a skill. The value is the number of its question.
    Server(u64),
    /// The agent, in a request with this id.
    Agent {
        id: Id,
        /// The options that the agent has offered.
        options: Options,
        /// The turn of the session when the agent asked.
        turn: u64,
    },
}

/// A request of the proxy to the client, about a call of an MCP server behind a skill, or with a form of such a server.
#[derive(Debug)]
pub(crate) struct ServerQuestion {
    /// The id of the request from the proxy.
    pub(crate) id: String,
    pub(crate) asker: Asker,
    /// The call that the user is asked about, or `None` for a form.
    pub(crate) about: Option<Shown>,
    /// The generation of the permissions of the session, when the user was asked.
    pub(crate) generation: u64,
    /// True if the agent has sent a message that the client may read in another way than the proxy since the user was asked.
    pub(crate) is_unclear: bool,
}

impl Pending {
    /// Returns the call with this id if the user is being asked about it in a request of the proxy.
    pub(crate) fn shown(&self, session: SessionKey, call_id: &str) -> Option<&Shown> {
        let of_session = self.entries.iter().filter(|entry| entry.session == Some(session));
        let mut shown = of_session.filter_map(|entry| match &entry.kind {
            Kind::ServerQuestion(question) => question.about.as_ref(),
            _ => None,
        });
        shown.find(|shown| shown.call_id == call_id)
    }

    /// Removes and returns the list with this ticket: the id of the client's request, and the agent's own list if it
    /// has one.
    pub(crate) fn take_list(&mut self, ticket: Ticket) -> Option<(Id, Option<Vec<u8>>)> {
        let is_list = |entry: &Entry| entry.ticket == ticket && matches!(entry.kind, Kind::SkillList { .. });
        match self.take_first(is_list)? {
            Entry { request: Some(id), kind: Kind::SkillList { agent_list }, .. } => Some((id, agent_list)),
            _ => None,
        }
    }

    /// Removes and returns the agent's request for permission with this ticket.
    pub(crate) fn take_permission(&mut self, ticket: Ticket) -> Option<Vec<u8>> {
        self.take_permission_if(|entry| entry.ticket == ticket)
    }

    /// Removes and returns the agent's request for permission that the agent sent with this id.
    pub(crate) fn take_agent_request(&mut self, request: &Id) -> Option<Vec<u8>> {
        self.take_permission_if(
            |entry| matches!(&entry.kind, Kind::Permission { id, .. } if id.as_ref() == Some(request)),
        )
    }

    /// Removes and returns the agent's requests for permission that wait for the call of an earlier request.
    pub(crate) fn take_next_calls(&mut self, session: SessionKey) -> Vec<Vec<u8>> {
        let is_next = |entry: &Entry| {
            entry.session == Some(session)
                && matches!(entry.kind, Kind::Permission { is_next_call: true, .. })
        };
        let lines = self.take_all(is_next).into_iter().filter_map(|entry| match entry.kind {
            Kind::Permission { line, .. } => Some(line),
            _ => None,
        });
        lines.collect()
    }

    /// Returns the number of the agent's requests for permission that wait for the call of an earlier request.
    pub(crate) fn next_calls(&self, session: SessionKey) -> usize {
        let is_next = |entry: &&Entry| {
            entry.session == Some(session)
                && matches!(entry.kind, Kind::Permission { is_next_call: true, .. })
        };
        self.entries.iter().filter(is_next).count()
    }

    fn take_permission_if(&mut self, matches: impl Fn(&Entry) -> bool) -> Option<Vec<u8>> {
        let is_permission = |entry: &Entry| matches!(entry.kind, Kind::Permission { .. });
        match self.take_first(|entry| is_permission(entry) && matches(entry))?.kind {
            Kind::Permission { line, .. } => Some(line),
            _ => None,
        }
    }

    /// Takes skills out of the questions of a session if another version of them is unapproved now. The user may have reviewed
    /// that version instead of the one in the form.
    pub(crate) fn refresh_questions(&mut self, session: SessionKey, unapproved: &[Unapproved]) {
        let questions = self.entries.iter_mut().filter(|entry| entry.session == Some(session));
        let questions = questions.filter_map(|entry| match &mut entry.kind {
            Kind::Question(question) => Some(question),
            _ => None,
        });
        for question in questions {
            question.skills.retain(|asked| {
                let is_same = |now: &&Unapproved| {
                    now.skill.dir() == asked.skill.dir() && now.skill.name.key() == asked.skill.name.key()
                };
                unapproved.iter().filter(is_same).all(|now| now.version() == asked.version())
            });
        }
    }

    /// Returns the id of the question that the proxy asks in place of the request of the agent with this id.
    pub(crate) fn question_for(&self, request: &Id) -> Option<&str> {
        self.server_questions().find_map(|question| match &question.asker {
            Asker::Agent { id, .. } if id == request => Some(question.id.as_str()),
            _ => None,
        })
    }

    /// Returns the number of questions that the proxy asks in place of requests of the agent.
    pub(crate) fn agent_questions(&self) -> usize {
        self.server_questions().filter(|question| matches!(question.asker, Asker::Agent { .. })).count()
    }

    /// Returns true if the user is being asked about a call of an MCP server.
    pub(crate) fn asks_about_call(&self) -> bool {
        self.server_questions().any(|question| question.about.is_some())
    }

    /// Marks all questions about calls as unclear.
    pub(crate) fn unclear(&mut self) {
        for entry in &mut self.entries {
            if let Kind::ServerQuestion(question) = &mut entry.kind {
                question.is_unclear |= question.about.is_some();
            }
        }
    }

    fn server_questions(&self) -> impl Iterator<Item = &ServerQuestion> {
        self.entries.iter().filter_map(|entry| match &entry.kind {
            Kind::ServerQuestion(question) => Some(question),
            _ => None,
        })
    }

    /// Removes the question of a server that was asked with this id, and returns it with its session.
    pub(crate) fn take_server_question(&mut self, id: &str) -> Option<(SessionKey, ServerQuestion)> {
        let is_question =
            |entry: &Entry| matches!(&entry.kind, Kind::ServerQuestion(question) if question.id == id);
        match self.take_first(is_question)? {
            Entry { session: Some(session), kind: Kind::ServerQuestion(question), .. } => {
                Some((session, question))
            }
            _ => None,
        }
    }

    /// Removes the question that was asked with this id, and returns its session and its skills.
    pub(crate) fn take_question(&mut self, id: &str) -> Option<(SessionKey, Vec<Unapproved>)> {
        let is_question =
            |entry: &Entry| matches!(&entry.kind, Kind::Question(question) if question.id == id);
        match self.take_first(is_question)? {
            Entry { session: Some(session), kind: Kind::Question(question), .. } => {
                Some((session, question.skills))
            }
            _ => None,
        }
    }
}
