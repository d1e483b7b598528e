//! The sessions of one connection. What is known of one is kept in parts, each private to the file that guards it.
//!
//! | file | guards |
//! |---|---|
//! | `server` | how far the agent got with our MCP server |
//! | `briefing` | what the model was told |
//! | `activations` | which skills were activated, and by whom |
//! | `turns` | the agent's work |
//! | `tools` | the states of waiting for the agent to list our tools |
//! | `menu` | the commands that the client shows |
//! | `switches` | which skills are on |
//! | `options` | the configuration options that the client shows |
//! | `first_words` | how the user began, for titles |
//! | `calls` | tool calls that the client was told of, and which are ours |
//! | `decisions` | what was decided about requests for permission |
//! | `vouching` | whether calls that are said to be ours turned out to be |
//!
//! The id that the agent gives is not known while `session/new` is under way, so the proxy has a key of its own.

pub(crate) mod activations;
pub(crate) mod briefing;
pub(crate) mod calls;
mod decisions;
pub(crate) mod first_words;
pub(crate) mod menu;
mod options;
pub(crate) mod server;
mod switches;
pub(crate) mod tools;
mod turns;
mod vouching;

use std::{collections::HashMap, path::PathBuf};

use skills_core::SkillSet;

pub(crate) use self::{
    activations::Activations, briefing::Briefing, calls::Calls, decisions::Decisions,
    first_words::FirstWords, menu::Menu, options::Options, server::SessionServer, switches::Switches,
    turns::Turns, vouching::Vouching,
};
use crate::{keys::SessionKey, marks::Mark, outputs::Effect};

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    key: SessionKey,
    id: Option<String>,
    /// Stands around what we add for the model.
    pub(crate) mark: Mark,
    /// Its working directory, as the client gave it.
    pub(crate) cwd: Option<PathBuf>,
    /// The skills of this session that are on.
    pub(crate) skills: SkillSet,
    /// All of them, and which are off.
    pub(crate) switches: Switches,
    /// How the agent reaches them.
    pub(crate) server: SessionServer,
    /// What the model was told of them.
    pub(crate) briefing: Briefing,
    /// Which were activated.
    pub(crate) activations: Activations,
    /// The agent's work.
    pub(crate) turns: Turns,
    /// The commands that the client shows.
    pub(crate) menu: Menu,
    /// The configuration options that the client shows.
    pub(crate) options: Options,
    /// How the user began.
    pub(crate) first_words: FirstWords,
    /// Tool calls that the client was told of.
    pub(crate) calls: Calls,
    /// What was decided about requests for permission.
    pub(crate) decisions: Decisions,
    /// Whether its agent can be believed about that.
    pub(crate) vouching: Vouching,
}

impl Session {
    /// A session that nobody was told about.
    pub(crate) fn new(key: SessionKey, id: Option<String>, mark: Mark) -> Self {
        Self {
            key,
            id,
            mark,
            cwd: None,
            skills: SkillSet::default(),
            switches: Switches::default(),
            server: SessionServer::default(),
            briefing: Briefing::default(),
            activations: Activations::default(),
            turns: Turns::default(),
            menu: Menu::default(),
            options: Options::default(),
            first_words: FirstWords::default(),
            calls: Calls::default(),
            decisions: Decisions::default(),
            vouching: Vouching::default(),
        }
    }

    /// Our own name for it.
    pub(crate) fn key(&self) -> SessionKey {
        self.key
    }

    /// The agent's name for it, once that is known.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// It begins as a copy of another: the model knows what it knew there.
    pub(crate) fn fork(&mut self, parent: &Self) {
        if self.cwd.is_none() {
            self.cwd.clone_from(&parent.cwd);
        }
        self.skills = parent.skills.clone();
        self.switches = parent.switches.clone();
        self.briefing = parent.briefing.forked();
        self.first_words = parent.first_words.clone();
        self.activations = parent.activations.clone();
    }

    /// Whether there is anything to command.
    pub(crate) fn has_menu(&self) -> bool {
        // Also when all skills are gone: they may come back.
        let all = self.switches.all();
        let is_nothing = all.is_empty() && all.unapproved().is_empty() && self.skills.skipped().is_empty();
        !is_nothing || self.menu.was_sent()
    }

    /// Says which skills whatever serves tools and texts goes by.
    pub(crate) fn serve(&self) -> Effect {
        Effect::Serve {
            session: self.key,
            skills: self.skills.clone(),
            unlocked: self.activations.unlocked(),
            cwd: self.cwd.clone(),
        }
    }
}

/// All sessions, by our key and by the agent's id.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_key: HashMap<SessionKey, Session>,
    by_id: HashMap<String, SessionKey>,
    last: u64,
}

impl Sessions {
    /// A key that no session has had.
    pub(crate) fn new_key(&mut self) -> SessionKey {
        self.last += 1;
        SessionKey(self.last)
    }

    /// Adds a session, also under its id when it has one.
    pub(crate) fn add(&mut self, session: Session) {
        if let Some(id) = &session.id {
            self.by_id.insert(id.clone(), session.key);
        }
        self.by_key.insert(session.key, session);
    }

    /// Gives a session its id. Returns the key of another session that had it until now.
    pub(crate) fn name(&mut self, key: SessionKey, id: &str) -> Option<SessionKey> {
        let session = self.by_key.get_mut(&key)?;
        session.id = Some(id.to_owned());
        self.by_id.insert(id.to_owned(), key).filter(|&before| before != key)
    }

    /// The session with this key.
    pub(crate) fn get(&mut self, key: SessionKey) -> Option<&mut Session> {
        self.by_key.get_mut(&key)
    }

    /// The key of the session with this id of the agent's.
    pub(crate) fn key_of(&self, id: &str) -> Option<SessionKey> {
        self.by_id.get(id).copied()
    }

    /// The session with this id of the agent's.
    pub(crate) fn find(&mut self, id: &str) -> Option<&mut Session> {
        let key = self.by_id.get(id)?;
        self.by_key.get_mut(key)
    }

    /// Forgets a session.
    pub(crate) fn remove(&mut self, key: SessionKey) -> Option<Session> {
        let session = self.by_key.remove(&key)?;
        if let Some(id) = &session.id
            && self.by_id.get(id) == Some(&key)
        {
            self.by_id.remove(id);
        }
        Some(session)
    }

    /// All sessions, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.by_key.values()
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.by_key.values_mut()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.by_key.len()
    }
}
