//! [`Input`]: events other than messages, such as answers of the host and the ends of timers.

use std::time::Duration;

use acp_skills_wire::Id;
use serde_json::{Map, Value};
use skills_core::SkillName;

use crate::{
    events::EventKind,
    keys::{SessionKey, Ticket, Timer},
    queries::{Fetched, NotFetched, Provisions, Refreshed, Resolved, SavedSwitches, TrustOutcome},
};

/// An event that the runtime reports to the interceptor.
#[derive(Debug, Clone)]
pub enum Input {
    /// The answer to [`Query::SetUp`](crate::Query::SetUp).
    SetUp {
        /// The session.
        session: SessionKey,
        /// The ticket that the query contains.
        ticket: Ticket,
        /// The answer.
        provisions: Provisions,
    },
    /// The answer to [`Query::Fetch`](crate::Query::Fetch).
    Fetched {
        /// The session.
        session: SessionKey,
        /// The ticket that the query contains.
        ticket: Ticket,
        /// The text.
        fetched: Fetched,
    },
    /// The answer to [`Query::Fetch`](crate::Query::Fetch) if the text cannot be fetched.
    NotFetched {
        /// The session.
        session: SessionKey,
        /// The ticket that the query contains.
        ticket: Ticket,
        /// The reason.
        why: NotFetched,
    },
    /// The answer to [`Query::Resolve`](crate::Query::Resolve).
    Resolved {
        /// The ticket that the query contains.
        ticket: Ticket,
        /// The resolved path.
        resolved: Resolved,
    },
    /// The answer to [`Query::SaveSwitches`](crate::Query::SaveSwitches).
    SwitchesSaved {
        /// The session in which the user gave the command.
        session: SessionKey,
        /// The ticket that the query contains.
        ticket: Ticket,
        /// The result.
        saved: SavedSwitches,
    },
    /// The answer to [`Query::Trust`](crate::Query::Trust).
    TrustSaved {
        /// The session in which the user decided.
        session: SessionKey,
        /// The ticket that the query contains.
        ticket: Ticket,
        /// True if the user approved the skills, false if the user refused them.
        trusted: bool,
        /// The result.
        outcome: TrustOutcome,
        /// The skills of all sessions after the decision.
        refreshed: Refreshed,
    },
    /// The answer to [`Query::Skills`](crate::Query::Skills).
    Skills(Refreshed),
    /// The library noticed that skills have changed. The duration is the time that it needed.
    SkillsChanged(Duration),
    /// A client with the right token, which is the agent, has connected to the MCP server of this session.
    Connected(SessionKey),
    /// The agent has listed the tools of this session's server.
    ToolsListed(SessionKey),
    /// The timer of [`Task::ToolsTimer`](crate::Task::ToolsTimer) has ended.
    ToolsTimerEnded {
        /// The session.
        session: SessionKey,
        /// The number of the timer.
        timer: Timer,
    },
    /// The timer of [`Task::MenuTimer`](crate::Task::MenuTimer) has ended.
    MenuTimerEnded(SessionKey),
    /// The timer of [`Task::CallTimer`](crate::Task::CallTimer) has ended.
    CallTimerEnded {
        /// The session.
        session: SessionKey,
        /// The number of the timer.
        timer: Timer,
    },
    /// A call of one of the skill tools has arrived at the MCP server of this session.
    CallArrived {
        /// The session.
        session: SessionKey,
        /// The name of the tool.
        tool: String,
        /// The input.
        arguments: Map<String, Value>,
    },
    /// A tool server of this session asks the user. Answered with [`Effect::AnswerServer`](crate::Effect::AnswerServer), except if the
    /// session or the client is gone.
    UserAsked {
        /// The session.
        session: SessionKey,
        /// The number of the question, which the answer repeats. Unique in its session.
        number: u64,
        /// The question.
        question: UserQuestion,
    },
    /// The model has activated a skill.
    Activated(SessionKey, SkillName),
    /// An event for the record, from the MCP server of this session.
    Recorded(SessionKey, EventKind),
    /// A request of [`Task::Mcp`](crate::Task::Mcp) or [`Task::ReadFile`](crate::Task::ReadFile) was answered, so it can no longer be
    /// cancelled.
    McpAnswered(Id),
    /// The client's stream has ended.
    ClientGone,
}

/// A question of an MCP server behind a skill.
#[derive(Debug, Clone)]
pub enum UserQuestion {
    /// May this tool be called?
    Call {
        /// The name of the skill.
        skill: String,
        /// The name of the tool.
        tool: String,
        /// The input.
        input: Map<String, Value>,
        /// False if the user's settings allow the call.
        needs_user: bool,
    },
    /// A form that the server wants to show.
    Form {
        /// The name of the skill.
        skill: String,
        /// The text of the form.
        message: String,
        /// The schema of the fields.
        schema: Value,
    },
}

impl Input {
    /// Returns the session that the input belongs to, if it belongs to a single one and names it.
    pub fn session(&self) -> Option<SessionKey> {
        match self {
            Self::SetUp { session, .. }
            | Self::Fetched { session, .. }
            | Self::NotFetched { session, .. }
            | Self::SwitchesSaved { session, .. }
            | Self::TrustSaved { session, .. }
            | Self::ToolsTimerEnded { session, .. }
            | Self::CallTimerEnded { session, .. }
            | Self::CallArrived { session, .. }
            | Self::UserAsked { session, .. }
            | Self::Connected(session)
            | Self::ToolsListed(session)
            | Self::MenuTimerEnded(session)
            | Self::Activated(session, _)
            | Self::Recorded(session, _) => Some(*session),
            Self::Resolved { .. }
            | Self::Skills(_)
            | Self::SkillsChanged(_)
            | Self::McpAnswered(_)
            | Self::ClientGone => None,
        }
    }
}
