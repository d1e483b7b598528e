//! What happens outside of the two streams of messages, as the interceptor hears of it.

use std::time::Duration;

use skills_core::SkillName;

use crate::{
    events::EventKind,
    keys::{SessionKey, Ticket, Timer},
    queries::{Decided, Fetched, NotFetched, Provisions, Refreshed, Resolved, Switched},
};

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// The answer to [`Query::SetUp`](crate::Query::SetUp).
    SetUp {
        /// Which session.
        session: SessionKey,
        /// The number of the query.
        ticket: Ticket,
        /// What there is for it.
        provisions: Provisions,
    },
    /// The answer to [`Query::Fetch`](crate::Query::Fetch).
    Fetched {
        /// Whose skills.
        session: SessionKey,
        /// The number of the query.
        ticket: Ticket,
        /// The text.
        fetched: Fetched,
    },
    /// [`Query::Fetch`](crate::Query::Fetch) has no answer.
    NotFetched {
        /// Whose skills.
        session: SessionKey,
        /// The number of the query.
        ticket: Ticket,
        /// Why not.
        why: NotFetched,
    },
    /// The answer to [`Query::Resolve`](crate::Query::Resolve).
    Resolved {
        /// The number of the query.
        ticket: Ticket,
        /// Where it leads.
        resolved: Resolved,
    },
    /// The answer to [`Query::Remember`](crate::Query::Remember).
    Switched {
        /// Whose user wanted it.
        session: SessionKey,
        /// The number of the query.
        ticket: Ticket,
        /// What became of it.
        switched: Switched,
    },
    /// The answer to [`Query::Trust`](crate::Query::Trust).
    Decided {
        /// Whose user decided.
        session: SessionKey,
        /// The number of the query.
        ticket: Ticket,
        /// Whether the skills are trusted.
        trusted: bool,
        /// What became of it.
        decided: Decided,
        /// The skills of all sessions, as they are now.
        refreshed: Refreshed,
    },
    /// The answer to [`Query::Skills`](crate::Query::Skills).
    Skills(Refreshed),
    /// The library noticed changes, and found out in this time.
    SkillsChanged(Duration),
    /// Somebody has come to the server of this session who knows its token.
    Connected(SessionKey),
    /// The agent has got the list of tools of this session.
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
    /// The model activated a skill.
    Activated(SessionKey, SkillName),
    /// Something for the record.
    Recorded(SessionKey, EventKind),
    /// The client will send nothing more.
    ClientGone,
}
