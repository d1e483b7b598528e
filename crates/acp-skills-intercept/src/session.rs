//! What the proxy knows of one session.
//!
//! The id that the agent gives is not known while `session/new` is under way, so the proxy has a key of its own.

use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
    sync::Arc,
};

use serde::{Deserialize, Serialize};
use skills_core::{SkillName, SkillSet};

use crate::events::EventKind;
use acp_skills_wire::Id;

/// The proxy's own name for a session; never reused in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub u64);

/// How far the agent got with our MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mcp {
    /// The session has no entry of ours: switched off, refused, or nothing to serve.
    Off,
    /// The entry is in `mcpServers`; nobody has asked for the tools yet.
    Expected,
    /// The agent did not ask for the tools in time.
    Missing,
    /// The agent has the list of tools.
    Listed,
}

/// What the model was told last about how to use the skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Nothing yet.
    Nothing,
    /// The catalog, and to use the tools.
    Tools,
    /// The catalog, and to read the files.
    Files,
}

/// A prompt that waits: for the agent to have our tools, for a text that is being fetched, or for one before it.
#[derive(Debug)]
pub struct Held {
    /// The request's id.
    pub id: Id,
    /// The request.
    pub line: Vec<u8>,
    /// What is to be put in front of it.
    pub text: Text,
    /// The skill that it invokes by command.
    pub invokes: Option<SkillName>,
    /// The activations in the text, for the record.
    pub activations: Vec<EventKind>,
}

/// A prompt that told the model something, until its turn is over.
#[derive(Debug)]
pub struct Teller {
    /// The request's id.
    pub id: Id,
    /// [`Session::told`], as it was before.
    pub told: Told,
    /// [`Session::known`], as it was before.
    pub known: Option<SkillSet>,
    /// Whether the agent has answered it, and its turn goes on.
    pub accepted: bool,
}

/// What is active in a session, in order.
pub type Active = Vec<(SkillName, By)>;

/// Who activated a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The model, with our tool or a prompt of our server's.
    Model,
    /// The user, by command.
    User,
    /// The proxy, because the skill fits a prompt.
    Prompt,
}

/// A text that is put in front of a prompt besides the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// None.
    None,
    /// It was asked for under this number.
    Pending(u64),
    /// It is here.
    Ready(String),
}

/// The state of one session.
#[derive(Debug)]
pub struct Session {
    /// Our own name for it.
    pub key: SessionKey,
    /// The agent's name for it, once that is known.
    pub id: Option<String>,
    /// Its working directory, as the client gave it.
    pub cwd: Option<PathBuf>,
    /// The skills of this session.
    pub skills: SkillSet,
    /// The text that lists them together with how to use the tools; the same for as long as the session lives.
    pub catalog: Option<Arc<str>>,
    /// The name of our MCP server in this session, when it has one.
    pub server_name: Option<String>,
    /// The id of our MCP server when it is reached over the ACP connection.
    pub server_id: Option<String>,
    /// How far the agent got with our MCP server.
    pub mcp: Mcp,
    /// What the model was told.
    pub told: Told,
    /// The skills that the model was told of last, when it was.
    pub known: Option<SkillSet>,
    /// Prompts that wait, in order.
    pub held: VecDeque<Held>,
    /// How many prompts the agent has not answered.
    pub in_flight: usize,
    /// Whether the agent says that it works, also when it has answered every prompt.
    pub busy: bool,
    /// What the agent said last of its work in the background: a JSON array.
    pub background: Option<Vec<u8>>,
    /// The prompt that told the model something last, and what it knew before.
    pub teller: Option<Teller>,
    /// The beginning of the message that our text was put in front of, for a title that would have been ours alone.
    pub first_words: Option<String>,
    /// Our text was replayed; the words of its message come next.
    pub words_follow: bool,
    /// The agent's own commands as it sent them last: a JSON array.
    pub agent_commands: Option<Vec<u8>>,
    /// Whether the client has got a list of commands with ours in it since the session was set up last.
    pub menu_sent: bool,
    /// The skills that were activated, in order.
    pub active: Vec<(SkillName, By)>,
    /// What was decided about requests for permission, for the user to read.
    pub decisions: Vec<String>,
}

impl Session {
    /// A session that nobody was told about.
    pub fn new(key: SessionKey, cwd: Option<PathBuf>, skills: SkillSet) -> Self {
        Self {
            key,
            id: None,
            cwd,
            skills,
            catalog: None,
            server_name: None,
            server_id: None,
            mcp: Mcp::Off,
            told: Told::Nothing,
            known: None,
            held: VecDeque::new(),
            in_flight: 0,
            busy: false,
            background: None,
            teller: None,
            first_words: None,
            words_follow: false,
            agent_commands: None,
            menu_sent: false,
            active: Vec::new(),
            decisions: Vec::new(),
        }
    }

    /// Whether there is anything to command.
    pub fn has_menu(&self) -> bool {
        // Also when all skills are gone: they may come back.
        !self.skills.is_empty() || !self.skills.skipped().is_empty() || self.menu_sent
    }

    /// Notes that a skill was activated; returns whether that is new. That the user did it outweighs that anybody else
    /// did.
    pub fn activate(&mut self, name: &SkillName, by: By) -> bool {
        match self.active.iter_mut().find(|(active, _)| active.key() == name.key()) {
            Some((_, known)) if by == By::User && *known != by => *known = by,
            Some(_) => return false,
            None => self.active.push((name.clone(), by)),
        }
        true
    }

    /// The skills that the user activated.
    pub fn unlocked(&self) -> Vec<SkillName> {
        let by_user = self.active.iter().filter(|(_, by)| *by == By::User);
        by_user.map(|(name, _)| name.clone()).collect()
    }
}

/// All sessions, by our key and by the agent's id.
#[derive(Debug, Default)]
pub struct Sessions {
    by_key: HashMap<SessionKey, Session>,
    by_id: HashMap<String, SessionKey>,
    next: u64,
}

impl Sessions {
    /// A key that no session has had.
    pub fn new_key(&mut self) -> SessionKey {
        self.next += 1;
        SessionKey(self.next)
    }

    /// Adds a session, also under its id when it has one.
    pub fn add(&mut self, session: Session) {
        if let Some(id) = &session.id {
            self.by_id.insert(id.clone(), session.key);
        }
        self.by_key.insert(session.key, session);
    }

    /// Gives a session its id. Returns the key of another session that had it until now.
    pub fn name(&mut self, key: SessionKey, id: &str) -> Option<SessionKey> {
        let session = self.by_key.get_mut(&key)?;
        session.id = Some(id.to_owned());
        self.by_id.insert(id.to_owned(), key).filter(|&before| before != key)
    }

    /// The session with this key.
    pub fn get(&mut self, key: SessionKey) -> Option<&mut Session> {
        self.by_key.get_mut(&key)
    }

    /// The session with this id of the agent's.
    pub fn find(&mut self, id: &str) -> Option<&mut Session> {
        let key = self.by_id.get(id)?;
        self.by_key.get_mut(key)
    }

    /// Forgets a session.
    pub fn remove(&mut self, key: SessionKey) -> Option<Session> {
        let session = self.by_key.remove(&key)?;
        if let Some(id) = &session.id
            && self.by_id.get(id) == Some(&key)
        {
            self.by_id.remove(id);
        }
        Some(session)
    }

    /// All sessions, in no order.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.by_key.values_mut()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.by_key.len()
    }
}
