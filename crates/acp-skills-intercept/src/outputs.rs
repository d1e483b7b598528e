//! What the interceptor decides: what becomes of a line, and what is to be done besides.

use std::{path::PathBuf, time::Duration};

use skills_core::{SkillName, SkillSet};

use crate::{
    active_skills::ActiveSkills,
    events::EventKind,
    keys::{SessionKey, Timer},
    queries::Query,
};

/// What becomes of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Pass {
    /// It goes on as it came.
    Untouched,
    /// This goes on instead.
    Edited(Vec<u8>),
    /// It does not go on, or not yet.
    Consumed,
}

/// Lines to send and things to do, besides what becomes of the line itself.
#[derive(Debug, Default)]
pub struct Actions {
    /// Lines for the client, before the line itself if that goes to the client too.
    pub to_client: Vec<Vec<u8>>,
    /// Lines for the agent, before the line itself if that goes to the agent too.
    pub to_agent: Vec<Vec<u8>>,
    /// Lines that follow the line itself in its own direction.
    pub after: Vec<Vec<u8>>,
    /// What is to be done at once, in this order and in that of the decisions.
    pub effects: Vec<Effect>,
    /// What takes its time, in any order.
    pub tasks: Vec<Task>,
}

impl Actions {
    pub(crate) fn log(&mut self, level: Level, text: impl Into<String>) {
        self.effects.push(Effect::Log(level, text.into()));
    }

    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        self.log(Level::Warn, text);
    }

    pub(crate) fn ask(&mut self, query: Query) {
        self.tasks.push(Task::Ask(query));
    }
}

/// Something to do at once. None of it blocks.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Write a line into the log.
    Log(Level, String),
    /// Add an event to the record.
    Record {
        /// The agent's id of the session, when it is known.
        session: Option<String>,
        /// What happened.
        kind: EventKind,
    },
    /// Remember what is active in a session; nothing forgets it.
    Remember {
        /// The agent's id of it.
        id: String,
        /// All of it.
        active: ActiveSkills,
    },
    /// Remember for other runs whether this agent comes to our server by itself.
    RememberAgent {
        /// Its name and version.
        agent: String,
        /// Whether it does.
        connects: bool,
    },
    /// From now on a session has these skills. Whatever serves tools and texts goes by that, also when the agent has no
    /// server of ours.
    Serve {
        /// Which session.
        session: SessionKey,
        /// Its skills.
        skills: SkillSet,
        /// Those of them that the user activated.
        unlocked: Vec<SkillName>,
        /// Where the session works.
        cwd: Option<PathBuf>,
    },
    /// Name a session in the log: the agent has opened it, so its id is known.
    Opened {
        /// The session.
        session: SessionKey,
        /// The agent's id of the session.
        id: String,
    },
    /// Note the start of a turn in the log: the client has sent a prompt.
    TurnStarted {
        /// The session.
        session: SessionKey,
        /// The id of the client's request, as JSON.
        request: String,
    },
    /// Note the end of a turn in the log: the agent has answered the prompt.
    TurnEnded(SessionKey),
    /// A session is over: close its MCP server.
    Close(SessionKey),
    /// No session works in this directory any more.
    Leave(PathBuf),
}

/// Something to do that takes its time.
#[derive(Debug, Clone)]
pub enum Task {
    /// Answer this query.
    Ask(Query),
    /// Send [`Input::ToolsTimerEnded`](crate::Input::ToolsTimerEnded) after some time.
    ToolsTimer {
        /// The session.
        session: SessionKey,
        /// The number of the timer, which the input repeats.
        timer: Timer,
        /// The time.
        time: Duration,
    },
    /// Send [`Input::MenuTimerEnded`](crate::Input::MenuTimerEnded) after some time.
    MenuTimer {
        /// The session.
        session: SessionKey,
        /// The time.
        time: Duration,
    },
    /// Give this MCP request to the session's server; its answer goes to the agent as the response to the request.
    Mcp {
        /// Whose server.
        session: SessionKey,
        /// The whole `mcp/message` request.
        line: Vec<u8>,
    },
}

/// How important a line in the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something does not work.
    Warn,
    /// Something that a curious user wants to know.
    Info,
    /// For whoever looks for a bug.
    Debug,
}
