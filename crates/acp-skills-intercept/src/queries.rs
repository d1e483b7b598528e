//! What the interceptor needs from outside, and what it gets.
//!
//! A query leaves with the [`Actions`](crate::Actions) and is answered whenever the answer is there, as an
//! [`Input`](crate::Input). Until then the interceptor holds back what depends on it and nothing else.

use std::{path::PathBuf, time::Duration};

use skills_core::{SkillName, SkillSet, set::Unapproved};

use crate::{
    active_skills::ActiveSkills,
    events::EventKind,
    keys::{SessionKey, Ticket},
};

/// How the agent reaches our MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Over the ACP connection itself: `mcp/message` (unstable).
    Acp,
    /// Streamable HTTP on loopback.
    Http,
    /// A process of our own binary that the agent starts.
    Stdio,
}

impl Transport {
    /// Its name, as in `--mcp`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::Http => "http",
            Self::Stdio => "stdio",
        }
    }
}

/// Where one session's MCP server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// `mcp/message` with this server id.
    Acp {
        /// Unique in this run of the proxy.
        server_id: String,
    },
    /// An address and the token for its `Authorization: Bearer` header.
    Http {
        /// `http://127.0.0.1:PORT/PATH`.
        url: String,
        /// The token.
        token: String,
    },
    /// A command to run.
    Stdio {
        /// Absolute path of the program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables for its environment.
        env: Vec<(String, String)>,
    },
}

/// A question to the world outside. Whoever answers may take as long as it takes.
#[derive(Debug, Clone)]
pub enum Query {
    /// What a session needs before its request goes on; answered with [`Input::SetUp`](crate::Input::SetUp).
    SetUp {
        /// Which session.
        session: SessionKey,
        /// Tells the answer from that to another query for the same session.
        ticket: Ticket,
        /// What it needs.
        needs: Needs,
    },
    /// A text; answered with [`Input::Fetched`](crate::Input::Fetched) or
    /// [`Input::NotFetched`](crate::Input::NotFetched).
    Fetch {
        /// Whose skills.
        session: SessionKey,
        /// Tells the answer from others.
        ticket: Ticket,
        /// What.
        wanted: Wanted,
    },
    /// Where a path leads; answered with [`Input::Resolved`](crate::Input::Resolved).
    Resolve {
        /// Whose session.
        session: SessionKey,
        /// Tells the answer from others.
        ticket: Ticket,
        /// As the agent wrote it: absolute, or relative to `cwd`. It need not exist.
        path: PathBuf,
        /// Where the session works.
        cwd: Option<PathBuf>,
    },
    /// Keep for new sessions which skills are off in a directory; answered with [`Input::Switched`](crate::Input::Switched).
    Remember {
        /// Whose user wants that.
        session: SessionKey,
        /// Tells the answer from others.
        ticket: Ticket,
        /// The directory, as the client gave it.
        cwd: PathBuf,
        /// Which skills.
        names: Vec<SkillName>,
        /// Whether they are to be on.
        on: bool,
    },
    /// Keep what the user decided about skills of their project that wait; answered with
    /// [`Input::Decided`](crate::Input::Decided).
    Trust {
        /// Whose user decided.
        session: SessionKey,
        /// Tells the answer from others.
        ticket: Ticket,
        /// Where the session works.
        cwd: Option<PathBuf>,
        /// About which skills, as they were told of them.
        skills: Vec<Unapproved>,
        /// Whether they are trusted.
        trusted: bool,
        /// The working directories of all sessions, whose skills may be others afterwards.
        directories: Vec<Option<PathBuf>>,
    },
    /// The skills of directories, as they are now; answered with [`Input::Skills`](crate::Input::Skills). An answer is
    /// never older than the one before it.
    Skills {
        /// The working directories of sessions.
        directories: Vec<Option<PathBuf>>,
        /// Why.
        reason: Reason,
    },
}

/// What became of [`Query::Remember`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switched {
    /// Which skills.
    pub names: Vec<SkillName>,
    /// Whether they are on.
    pub on: bool,
    /// Or a clause that says why it is not kept.
    pub kept: Result<(), String>,
}

/// What became of [`Query::Trust`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The skills that the decision holds for.
    pub done: Vec<SkillName>,
    /// The others, each with a clause that says why.
    pub failed: Vec<(SkillName, String)>,
    /// Or a clause that says why it is not kept; it holds for this run.
    pub kept: Result<(), String>,
}

impl Default for Decided {
    fn default() -> Self {
        Self { done: Vec::new(), failed: Vec::new(), kept: Ok(()) }
    }
}

/// What a session that is being set up needs.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// Where the session works.
    pub cwd: Option<PathBuf>,
    /// Its skills, when they are known; else those of `cwd` are looked for.
    pub skills: Option<SkillSet>,
    /// The skills that the client brings for it.
    pub brought: SkillSet,
    /// The agent's id of a session that is to be remembered.
    pub recall: Option<String>,
    /// How the agent is to reach our server, if at all. A session without skills needs none.
    pub transport: Option<Transport>,
    /// The agent of which is to be remembered whether it comes to our server, as name and version.
    pub agent: Option<String>,
}

/// What there is of that.
#[derive(Debug, Clone, Default)]
pub struct Provisions {
    /// The skills of the session, without those that the client brings.
    pub skills: SkillSet,
    /// Which of them are off in its directory, there or not.
    pub off: Vec<SkillName>,
    /// What was active in the session when it was open last.
    pub active: ActiveSkills,
    /// Where its server is, or a sentence that says why there is none; nothing when none was needed.
    pub endpoint: Option<Result<Endpoint, String>>,
    /// Whether the agent did not come to our server in the last run that waited for it.
    pub never_connects: bool,
}

/// Why the skills of sessions are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The library noticed that there are others, in this time.
    Changed(Duration),
    /// Sessions came while the others got new ones, in this time.
    CatchUp(Duration),
    /// A user wants them to be looked for anew, and waits for the answer.
    Reload(SessionKey, Ticket),
    /// The client wants a list of them, and no session has anything to do with it.
    List(Ticket),
}

/// A text that has to be read from somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The activation text of a skill, with what the user wrote behind its name.
    Skill {
        /// Its name.
        name: String,
        /// The user's words, possibly none.
        arguments: String,
        /// Whether the model has our tools.
        tools: bool,
    },
    /// The activation texts of the skills that fit these words best.
    BestFor(String),
}

/// What [`Query::Fetch`] asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fetched {
    /// The text; nothing when there is nothing to say.
    pub text: Option<String>,
    /// The activations that the text is made of.
    pub activations: Vec<EventKind>,
}

/// Why that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotFetched {
    /// A sentence for the user.
    pub why: String,
    /// The activation that failed.
    pub failed: Option<EventKind>,
}

/// Where the paths of [`Query::Resolve`] lead, without links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The path, absolute; `None` where that cannot be found out, as of a link to what is not there yet.
    pub path: Option<PathBuf>,
    /// Where the session works; as it was told where that cannot be found out.
    pub cwd: Option<PathBuf>,
}

/// The skills that [`Query::Skills`] asked for.
#[derive(Debug, Clone)]
pub struct Refreshed {
    /// By directory.
    pub skills: Vec<(Option<PathBuf>, SkillSet)>,
    /// How long it took to look for them.
    pub took: Duration,
    /// Why they were asked for.
    pub reason: Reason,
}

impl Refreshed {
    /// The answer when nothing could be found out.
    pub fn nothing(reason: Reason) -> Self {
        Self { skills: Vec::new(), took: Duration::ZERO, reason }
    }
}
