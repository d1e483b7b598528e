//! The sessions of one connection. The state of a session is in parts, and the fields of each part are private to its file.
//!
//! | file | state |
//! |---|---|
//! | `server` | The skills server, as the agent sees it |
//! | `awaited` | the skills that join when a file comes up |
//! | `briefing` | the texts about skills that the model has received |
//! | `activations` | the active skills, and who activated them |
//! | `compaction`, `usage`, `turn_input` | what the model has lost in a compaction, and falls of the context usage |
//! | `turns` | the agent's work |
//! | `tools` | the states of waiting for the agent to list the skill tools |
//! | `menu` | the commands that the client shows |
//! | `switches` | the enabled and disabled skills |
//! | `options` | the configuration options that the client shows |
//! | `first_words` | the beginning of the user's first message, for titles |
//! | `calls` | the tool calls that the client knows, and those that are ours |
//! | `decisions` | decisions about requests for permission, for the user |
//! | `listed` | the unapproved skills that the user was shown |
//! | `server_calls` | the calls of tools of MCP servers that the user has allowed |
//! | `shell` | the directory of the agent's shell |
//! | `claims` | whether the agent can be trusted when it claims that a call is ours |
//!
//! Since the agent's id is not known before the response to `session/new`, the proxy uses an additional key.

pub(crate) mod activations;
mod awaited;
pub(crate) mod briefing;
pub(crate) mod calls;
mod claims;
mod compaction;
mod decisions;
pub(crate) mod first_words;
mod listed;
pub(crate) mod menu;
mod options;
pub(crate) mod server;
pub(crate) mod server_calls;
mod shell;
mod switches;
pub(crate) mod tools;
mod turn_input;
mod turns;
mod usage;

use std::collections::HashMap;

use skills_core::{Skill, SkillName, SkillSet, catalog::Guide};

pub use self::switches::other_name;
pub(crate) use self::{
    activations::Activations,
    awaited::Awaited,
    briefing::Briefing,
    calls::Calls,
    claims::{Claim, TrustedClaims, Verdict},
    compaction::{Compaction, TurnEnd},
    decisions::Decisions,
    first_words::FirstWords,
    listed::{Listed, unique_name},
    menu::Menu,
    options::Options,
    server::SessionServer,
    server_calls::ServerCalls,
    shell::Shell,
    switches::Switches,
    turns::Turns,
    usage::{UsageChange, has_fallen},
};
use crate::{keys::SessionKey, marks::MarkKey, outputs::Effect, workspace::Workspace};

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    key: SessionKey,
    id: Option<String>,
    /// The secret of the marks around the text that we add for the model.
    pub(crate) marks: MarkKey,
    /// The directories, as the client wrote them.
    pub(crate) workspace: Workspace,
    /// The enabled skills.
    pub(crate) skills: SkillSet,
    /// All skills, and the switches that turn them on and off.
    pub(crate) switches: Switches,
    /// The skills that join when a file comes up.
    pub(crate) awaited: Awaited,
    /// The directory of the agent's shell.
    pub(crate) shell: Shell,
    /// The skills server.
    pub(crate) server: SessionServer,
    /// The way in which the model uses skills if it does not have the skill tools.
    pub(crate) without_tools: Guide,
    /// The texts about skills that the model has received.
    pub(crate) briefing: Briefing,
    /// The active skills.
    pub(crate) activations: Activations,
    /// The skills that were named in a hint.
    pub(crate) hinted: Vec<SkillName>,
    /// The texts that the model has lost in a compaction.
    pub(crate) compaction: Compaction,
    /// The agent's work.
    pub(crate) turns: Turns,
    /// The commands that the client shows.
    pub(crate) menu: Menu,
    /// The configuration options that the client shows.
    pub(crate) options: Options,
    /// The beginning of the user's first message.
    pub(crate) first_words: FirstWords,
    /// The tool calls that the client knows.
    pub(crate) calls: Calls,
    /// Decisions about requests for permission.
    pub(crate) decisions: Decisions,
    /// The unapproved skills that the user was shown.
    pub(crate) listed: Listed,
    /// The agent's latest list of its own skills, as the JSON of an array.
    pub(crate) agent_skills: Option<Vec<u8>>,
    /// True if the client has received a list of skills.
    pub(crate) shows_skills: bool,
    /// Warnings for the user until the session is set up.
    pub(crate) notices: Vec<String>,
    /// The record that decides if the agent's claims about calls are trusted.
    pub(crate) claims: TrustedClaims,
    /// The calls of tools of MCP servers that the user has allowed.
    pub(crate) server_calls: ServerCalls,
}

impl Session {
    /// Creates a session without skills. `id` is the agent's id if it is known.
    pub(crate) fn new(key: SessionKey, id: Option<String>, marks: MarkKey) -> Self {
        Self {
            key,
            id,
            marks,
            workspace: Workspace::default(),
            skills: SkillSet::default(),
            switches: Switches::default(),
            awaited: Awaited::default(),
            shell: Shell::default(),
            server: SessionServer::default(),
            without_tools: Guide::Files,
            briefing: Briefing::default(),
            activations: Activations::default(),
            hinted: Vec::new(),
            compaction: Compaction::default(),
            turns: Turns::default(),
            menu: Menu::default(),
            options: Options::default(),
            first_words: FirstWords::default(),
            calls: Calls::default(),
            decisions: Decisions::default(),
            listed: Listed::default(),
            agent_skills: None,
            shows_skills: false,
            notices: Vec::new(),
            claims: TrustedClaims::default(),
            server_calls: ServerCalls::default(),
        }
    }

    /// Returns the proxy's key for this session.
    pub(crate) fn key(&self) -> SessionKey {
        self.key
    }

    /// Returns the agent's id of this session, if it is known.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Makes this session a copy of `parent`: the model has the same texts and the same active skills.
    pub(crate) fn fork(&mut self, parent: &Self) {
        self.skills = parent.skills.clone();
        self.switches = parent.switches.clone();
        self.briefing = parent.briefing.forked();
        self.first_words = parent.first_words.clone();
        self.activations = parent.activations.clone();
        self.hinted.clone_from(&parent.hinted);
        self.compaction = parent.compaction.forked();
    }

    /// Returns the way in which the model can use the skills now.
    pub(crate) fn guide(&self) -> Guide {
        if self.server.has_tools() { Guide::Tools } else { self.without_tools }
    }

    /// Returns true if this session has any skill commands.
    pub(crate) fn has_menu(&self) -> bool {
        // Once we have sent a menu, we keep the commands when all skills are removed, because the skills might come back.
        let all = self.switches.all();
        let is_nothing = all.is_empty() && all.unapproved().is_empty() && self.skills.skipped().is_empty();
        !is_nothing || self.menu.was_sent()
    }

    /// Returns the skills that the user has activated in the session's directory, in their current versions.
    pub(crate) fn invoked(&self) -> impl Iterator<Item = &Skill> {
        self.activations.of_user(&self.skills, self.workspace.cwd.as_deref())
    }

    /// Returns the effect that sets the skills for tools and texts. `is_setup` is true if the session is being set up.
    pub(crate) fn serve(&self, is_setup: bool) -> Effect {
        Effect::Serve {
            session: self.key,
            skills: self.skills.clone(),
            unlocked: self.invoked().map(|skill| skill.name.clone()).collect(),
            workspace: self.workspace.clone(),
            is_setup,
        }
    }
}

/// The open sessions, by our key and by the agent's id.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_key: HashMap<SessionKey, Session>,
    by_id: HashMap<String, SessionKey>,
    last: u64,
}

impl Sessions {
    /// Returns a key that was not used before.
    pub(crate) fn new_key(&mut self) -> SessionKey {
        self.last += 1;
        SessionKey(self.last)
    }

    /// Adds a session.
    pub(crate) fn add(&mut self, session: Session) {
        if let Some(id) = &session.id {
            self.by_id.insert(id.clone(), session.key);
        }
        self.by_key.insert(session.key, session);
    }

    /// Sets the agent's id of a session. Returns the key of another session that had this id until now.
    pub(crate) fn name(&mut self, key: SessionKey, id: &str) -> Option<SessionKey> {
        let session = self.by_key.get_mut(&key)?;
        session.id = Some(id.to_owned());
        self.by_id.insert(id.to_owned(), key).filter(|&before| before != key)
    }

    /// Returns the session with this key.
    pub(crate) fn get(&mut self, key: SessionKey) -> Option<&mut Session> {
        self.by_key.get_mut(&key)
    }

    /// Returns the key of the session with this id of the agent.
    pub(crate) fn key_of(&self, id: &str) -> Option<SessionKey> {
        self.by_id.get(id).copied()
    }

    /// Returns the session with this id of the agent.
    pub(crate) fn find(&mut self, id: &str) -> Option<&mut Session> {
        let key = self.by_id.get(id)?;
        self.by_key.get_mut(key)
    }

    /// Removes a session.
    pub(crate) fn remove(&mut self, key: SessionKey) -> Option<Session> {
        let session = self.by_key.remove(&key)?;
        if let Some(id) = &session.id
            && self.by_id.get(id) == Some(&key)
        {
            self.by_id.remove(id);
        }
        Some(session)
    }

    /// Returns all sessions, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        self.by_key.values()
    }

    /// Returns all sessions for changes, in no particular order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.by_key.values_mut()
    }
}
