//! What the interceptor asks of the world around it, and what it tells it to do.
//!
//! The interceptor decides and never acts: no I/O, no clock, no task. Two things it needs at once, in the middle of a
//! message: the skills of a session and the address of its MCP server. They come through [`Host`], which a test
//! answers from a table. Everything else goes out as [`Actions`].

use std::{path::Path, time::Duration};

use skills_core::{SkillName, SkillSet};

use crate::{events::EventKind, session::Active, session::SessionKey};

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

/// The world around the interceptor.
pub trait Host: Send {
    /// The skills of a session that works in `cwd`.
    fn skills(&mut self, cwd: Option<&Path>) -> SkillSet;

    /// Opens, or finds again, the MCP server of a session.
    ///
    /// # Errors
    /// A sentence that says why there is none.
    fn open(
        &mut self,
        session: SessionKey,
        transport: Transport,
        skills: &SkillSet,
        cwd: Option<&Path>,
    ) -> Result<Endpoint, String>;

    /// Says which skills a session has, before anything else is asked for it and whenever they change. Whatever serves
    /// tools and texts goes by that, also when the agent has no server of ours. `unlocked` are the skills that the user
    /// activated.
    fn serve(&mut self, session: SessionKey, skills: &SkillSet, unlocked: &[SkillName], cwd: Option<&Path>);

    /// Looks again at what is there: [`Host::skills`] says what was found. Returns how long that took.
    fn reload(&mut self) -> Duration;

    /// What was active in this session of the agent's when it was open last, where somebody remembers.
    fn recall(&mut self, _id: &str) -> Active {
        Active::new()
    }

    /// No session works in `cwd` any more.
    fn leave(&mut self, cwd: &Path) {
        let _ = cwd;
    }

    /// Closes the MCP server of a session.
    fn close(&mut self, session: SessionKey);
}

/// What becomes of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Pass {
    /// It goes on as it came.
    Untouched,
    /// This goes on instead.
    Edited(Vec<u8>),
    /// It does not go on.
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
    /// Everything else.
    pub effects: Vec<Effect>,
}

/// Something to do that is no message.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send [`Event::WaitOver`] for this session after this time.
    Wait(SessionKey, Duration),
    /// Send [`Event::MenuDue`] for this session after this time.
    WaitForMenu(SessionKey, Duration),
    /// Give this MCP request to the session's server; its answer goes to the agent as the response to the request.
    Mcp {
        /// Whose server.
        session: SessionKey,
        /// The whole `mcp/message` request.
        line: Vec<u8>,
    },
    /// Fetch a text and send it as [`Event::Fetched`] with the same session and number.
    Fetch {
        /// Whose skills.
        session: SessionKey,
        /// To tell it from others.
        ticket: u64,
        /// What.
        wanted: Wanted,
    },
    /// Write a line into the log.
    Log(Level, String),
    /// Add an event to the record.
    Record {
        /// The agent's id of the session, when it is known.
        session: Option<String>,
        /// What happened.
        what: EventKind,
    },
    /// Remember what is active in a session; nothing forgets it.
    Remember {
        /// The agent's id of it.
        id: String,
        /// All of it.
        active: Active,
    },
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

/// Something that happened outside of the two streams of messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The agent has got the list of tools of this session.
    Listed(SessionKey),
    /// The time that [`Effect::Wait`] asked for is over.
    WaitOver(SessionKey),
    /// What [`Effect::Fetch`] asked for; nothing when there is nothing to say.
    Fetched {
        /// Whose skills.
        session: SessionKey,
        /// The number of the request.
        ticket: u64,
        /// The text.
        text: Option<String>,
        /// The activations that the text is made of.
        activations: Vec<EventKind>,
    },
    /// What [`Effect::Fetch`] asked for cannot be had.
    NotFetched {
        /// Whose skills.
        session: SessionKey,
        /// The number of the request.
        ticket: u64,
        /// Why, in a sentence for the user.
        why: String,
        /// The activation that failed.
        failed: Option<EventKind>,
    },
    /// The time that [`Effect::WaitForMenu`] asked for is over.
    MenuDue(SessionKey),
    /// The model activated a skill.
    Activated(SessionKey, SkillName),
    /// Something for the record.
    Recorded(SessionKey, EventKind),
    /// The library noticed changes: [`Host::skills`] says what there is now.
    Reloaded(Reloaded),
    /// The client will send nothing more.
    ClientGone,
}

/// What a library found when it looked again, over all directories that it looks after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reloaded {
    /// How many skills are new.
    pub added: usize,
    /// How many are not there any more.
    pub removed: usize,
    /// How many are not what they were.
    pub changed: usize,
    /// How long it took to find out.
    pub took: Duration,
}
