//! The interceptor's decisions: [`Pass`] for the line itself, [`Actions`] for everything else.

use std::time::Duration;

use acp_skills_wire::Id;
use serde_json::Value;
use skills_core::{SkillName, SkillSet};

use crate::{
    active_skills::ActiveSkills,
    events::EventKind,
    keys::{SessionKey, Timer},
    queries::Query,
    trace_context::TraceContext,
    workspace::Workspace,
};

/// The decision about a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Pass {
    /// The line is forwarded as it is.
    Untouched,
    /// This line is forwarded instead.
    Edited(Vec<u8>),
    /// The line is not forwarded. It was answered here, or it is held and follows later in [`Actions`].
    Consumed,
}

/// Lines to send and work to do, in addition to the decision about the line itself.
#[derive(Debug, Default)]
pub struct Actions {
    /// Lines for the client. They are sent before the line itself if it is sent to the client too.
    pub to_client: Vec<Vec<u8>>,
    /// Lines for the agent. They are sent before the line itself if it is sent to the agent too.
    pub to_agent: Vec<Vec<u8>>,
    /// Lines that are sent after the line itself, in its direction.
    pub after: Vec<Vec<u8>>,
    /// Work that is done immediately, in this order. The effects of one call come before those of the next call.
    pub effects: Vec<Effect>,
    /// Work that takes time. Tasks run concurrently, in any order.
    pub tasks: Vec<Task>,
    /// Warnings for the user of a session, until they are sent.
    pub(crate) notices: Vec<(SessionKey, String)>,
}

impl Actions {
    pub(crate) fn log(&mut self, level: Level, text: impl Into<String>) {
        self.effects.push(Effect::Log(level, text.into()));
    }

    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        self.log(Level::Warn, text);
    }

    /// Logs a warning, and shows it to the user of a session if the client can do that.
    pub(crate) fn warn_user(&mut self, session: SessionKey, text: impl Into<String>) {
        let text = text.into();
        self.notices.push((session, text.clone()));
        self.warn(text);
    }

    pub(crate) fn ask(&mut self, query: Query) {
        self.tasks.push(Task::Ask(query));
    }
}

/// Work that is done immediately. None of it blocks.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Write a line to the log.
    Log(Level, String),
    /// Add an event to the record.
    Record {
        /// The agent's id of the session, if it is known.
        session: Option<String>,
        /// The event.
        kind: EventKind,
    },
    /// Save the active skills of a session, so that they are known if the session is loaded again. An empty list removes the
    /// saved entry.
    SaveActiveSkills {
        /// The agent's id of the session.
        id: String,
        /// All active skills.
        active: ActiveSkills,
    },
    /// Save for later runs whether this agent connects to the skills server by itself.
    SaveAgentConnects {
        /// The agent's name and version.
        agent: String,
        /// True if the agent connects by itself.
        connects: bool,
    },
    /// Set the skills of a session. They are used for tools and for texts in prompts, even if the agent does not use our MCP
    /// server.
    Serve {
        /// The session.
        session: SessionKey,
        /// The enabled skills.
        skills: SkillSet,
        /// The skills that the user activated. The model can use them even if only users can invoke them.
        unlocked: Vec<SkillName>,
        /// The directories of the session.
        workspace: Workspace,
        /// True if the session is being set up, so that the agent may ask for the list of tools again.
        is_setup: bool,
    },
    /// Set the skills that the results of the skill tools remind of, because the model has lost their instructions.
    Remind {
        /// The session.
        session: SessionKey,
        /// The skills. Empty if nothing is lost.
        skills: Vec<SkillName>,
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
        /// The trace of the client that the turn belongs to.
        trace: Option<Box<TraceContext>>,
    },
    /// Note the end of a turn in the log: the agent has answered the prompt.
    TurnEnded(SessionKey),
    /// Drop the tool calls of a session that wait to run a program, because the client has cancelled the turn.
    TurnCancelled(SessionKey),
    /// Close the MCP server of a session that has ended.
    CloseServer(SessionKey),
    /// Answer a question of an MCP server behind a skill.
    AnswerServer {
        /// The session.
        session: SessionKey,
        /// The number of the question.
        number: u64,
        /// The answer.
        answer: UserAnswer,
    },
    /// Stop watching a workspace, because no session has it any more.
    ReleaseWorkspace(Workspace),
}

/// The answer to a [`UserQuestion`](crate::UserQuestion).
#[derive(Debug, Clone, PartialEq)]
pub enum UserAnswer {
    /// The call is allowed.
    Allowed,
    /// The user refused the call.
    Refused,
    /// The `allowed-tools` of the active skills refuse the call.
    NotAllowed,
    /// The user's answer to a form: an object with `action` and `content`.
    Form(Value),
    /// The user cannot be asked.
    Unavailable,
}

/// Work that takes time.
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
    /// Send [`Input::CallTimerEnded`](crate::Input::CallTimerEnded) after some time.
    CallTimer {
        /// The session.
        session: SessionKey,
        /// The number of the timer, which the input repeats.
        timer: Timer,
        /// The time.
        time: Duration,
    },
    /// Pass an MCP message to the session's server. If it is a request, send
    /// [`Input::McpAnswered`](crate::Input::McpAnswered) and then the server's answer to the agent. This task has to start before
    /// the tasks that follow it.
    Mcp {
        /// The session.
        session: SessionKey,
        /// The id of the `mcp/message` request, or `None` for a notification.
        request: Option<Id>,
        /// The whole `mcp/message`.
        line: Vec<u8>,
    },
    /// Read a file of a skill for an `fs/read_text_file` request of the agent. Send [`Input::McpAnswered`](crate::Input::McpAnswered)
    /// and then the answer to the agent.
    ReadFile {
        /// The session.
        session: SessionKey,
        /// The id of the request.
        request: Id,
        /// The file.
        file: SkillFile,
    },
    /// Cancel a request to the session's MCP server. The answer to the request is an error.
    CancelMcp {
        /// The session.
        session: SessionKey,
        /// The id of the `mcp/message` request.
        request: Id,
    },
}

/// A file of a skill that the agent asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// The name of the skill.
    pub skill: SkillName,
    /// The rest of the path after the skill's directory, separated by `/`. It is not trusted: it can contain `..`.
    pub path: String,
    /// The number of the first line, starting at 1.
    pub line: Option<u64>,
    /// The maximum number of lines.
    pub limit: Option<u64>,
}

/// The level of a line in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A problem that the user should know about.
    Warn,
    /// Information for interested users.
    Info,
    /// Details for debugging.
    Debug,
}
