//! `/skills off NAME` and `/skills on NAME`.
//!
//! The skills of the session change as on a reload. With `--here`, the host saves the change for new sessions of the same
//! directory, other open sessions of the directory change too, and the answer is held until the host has saved the change.

use std::{path::Path, time::Duration};

use acp_skills_wire::{Id, Message};
use skills_core::{SkillName, order, text::markdown_code};
use thiserror::Error;

use crate::{
    Interceptor,
    keys::{SessionKey, Ticket},
    menu::{names::PREFIX, spelling},
    outputs::Actions,
    overview,
    queries::{HostError, Query, SavedSwitches},
    session::Session,
};

/// The flag of a command that should also apply to new sessions of the same directory.
const HERE: &str = "--here";

/// The maximum number of skills that an error names.
const MAX_NAMED: usize = 20;

/// A command to turn skills on or off.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    /// The skills, in the spelling of the session.
    names: Vec<SkillName>,
    on: bool,
    here: bool,
}

impl Switch {
    /// Reads the words after `/skills`. Returns `None` if they are another command.
    ///
    /// # Errors
    /// Returns [`SwitchError::NoName`] without a name, and [`SwitchError::Unknown`] if a name is not that of a skill.
    pub(crate) fn read(session: &Session, words: &str) -> Option<Result<Self, SwitchError>> {
        let (verb, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let on = match verb {
            "on" => true,
            "off" => false,
            _ => return None,
        };
        let words: Vec<_> = rest.split_whitespace().filter(|&word| word != HERE).collect();
        let here = rest.split_whitespace().any(|word| word == HERE);
        if words.is_empty() {
            return Some(Err(SwitchError::NoName { on }));
        }
        Some(match names(&words, |word| session.find_name(word)) {
            Ok(names) => Ok(Self { names, on, here }),
            Err(word) => Err(SwitchError::unknown(session, word)),
        })
    }

    /// Returns true if the command turns skills on.
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Returns true if the words after `/skills` are a command that names one of our skills, so that it cannot be meant for another
    /// proxy.
    pub(crate) fn is_ours(session: &Session, words: &str) -> bool {
        match Self::read(session, words) {
            Some(Ok(_)) => true,
            Some(Err(SwitchError::Unknown { .. })) => {
                words.split_whitespace().skip(1).any(|word| session.find_name(word).is_some())
            }
            _ => false,
        }
    }
}

/// Reads the names of skills. `find` returns the skill that a text names. A name can contain spaces, so all of the words are first
/// tried as one name.
///
/// # Errors
/// Returns the first word that is no name.
pub(crate) fn names<'w>(
    words: &[&'w str],
    find: impl Fn(&str) -> Option<SkillName>,
) -> Result<Vec<SkillName>, &'w str> {
    match find(&words.join(" ")) {
        Some(name) => Ok(vec![name]),
        None => words.iter().map(|&word| find(word).ok_or(word)).collect(),
    }
}

impl Session {
    /// Returns the skill that `word` names: by its name, or by its word in the menu.
    pub(crate) fn find_name(&self, word: &str) -> Option<SkillName> {
        let word = word.trim_start_matches('/');
        let word = word.strip_prefix(PREFIX).unwrap_or(word);
        let all = self.switches.all();
        if let Some(skill) = all.get(word) {
            return Some(skill.name.clone());
        }
        let spelled = spelling::spelled(all).skill(word).map(|skill| skill.name.clone());
        spelled.or_else(|| self.switches.name_of(word).cloned())
    }
}

/// The reason why a command cannot turn a skill on or off, as sentences for the user in Markdown.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum SwitchError {
    /// The command names no skill.
    #[error("Missing skill name. Use `/skills {0} NAME` to turn a skill {0}, or `/skills` to list all skills.", if *on { "on" } else { "off" })]
    NoName {
        /// True for `/skills on`.
        on: bool,
    },
    /// The prompt has other text, which may come from a file.
    #[error(
        "Nothing was turned on, because the message contains other text. Send `/skills on NAME` as a separate message."
    )]
    OtherText,
    /// The session has no such skill.
    #[error("No skill {word} found. {known}")]
    Unknown {
        /// The word in the command, as Markdown.
        word: String,
        /// A sentence that names the skills of the session, as Markdown.
        known: String,
    },
}

impl SwitchError {
    fn unknown(session: &Session, word: &str) -> Self {
        let names: Vec<_> =
            session.switches.all().iter().map(|skill| markdown_code(skill.name.as_str())).collect();
        let known = match names.as_slice() {
            [] => "This session has no skills.".to_owned(),
            names if names.len() <= MAX_NAMED => format!("Available skills: {}.", names.join(", ")),
            _ => "Use `/skills` to list all skills.".to_owned(),
        };
        Self::Unknown { word: markdown_code(word), known }
    }
}

impl Interceptor {
    /// Carries out a command, and answers it. Returns true if the answer is held until the host has saved the change.
    pub(crate) fn switch(
        &mut self,
        key: SessionKey,
        prompt: &Message<'_>,
        id: &Id,
        switch: Switch,
        actions: &mut Actions,
    ) -> bool {
        let Switch { mut names, on, here } = switch;
        if let Some(session) = self.sessions.get(key).filter(|_| on) {
            names = session.switches.names_to_enable(&names);
        }
        self.turn(key, &names, on, actions);
        self.options_changed(key, actions);
        let ticket = self.pending.new_ticket();
        let Some(session) = self.sessions.get(key) else { return false };
        if let Some(cwd) = session.workspace.cwd.clone().filter(|_| here) {
            self.hold_command(key, ticket, id, prompt);
            actions.ask(Query::SaveSwitches { session: key, ticket, cwd, names, on });
            return true;
        }
        let saved = here.then(|| Err(HostError("no directory for this session".to_owned())));
        let text = overview::switched(session, &names, on, saved.as_ref());
        self.reply(key, prompt, id, &text, actions);
        false
    }

    /// Turns skills on or off. Tools and the menu change immediately; the model gets the change with its next prompt.
    pub(crate) fn turn(&mut self, key: SessionKey, names: &[SkillName], on: bool, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        let mut differs = false;
        for name in names {
            differs |= session.switches.turn(name, on);
        }
        if differs {
            let skills = session.switches.on();
            if session.set_skills(skills, Duration::ZERO, actions) {
                self.menu_changed(key, actions);
                self.skill_list_changed(key, actions);
            }
        }
    }

    /// Applies a command with `--here` to the other open sessions of the directory.
    fn turn_everywhere(
        &mut self,
        said_in: SessionKey,
        cwd: Option<&Path>,
        names: &[SkillName],
        on: bool,
        actions: &mut Actions,
    ) {
        let Some(cwd) = cwd else { return };
        let others = self
            .sessions
            .iter_mut()
            .filter(|session| session.key() != said_in && session.workspace.cwd.as_deref() == Some(cwd));
        let mut others: Vec<_> = others
            .map(|session| {
                for name in names {
                    session.switches.remember(name, on);
                }
                session.key()
            })
            .collect();
        order::sort(&mut others);
        for other in others {
            self.turn(other, names, on, actions);
            self.options_changed(other, actions);
        }
    }

    /// Answers a command with `--here` once the host has saved the change, or could not.
    pub(crate) fn switches_saved(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        saved: SavedSwitches,
        actions: &mut Actions,
    ) {
        let SavedSwitches { names, on, saved } = saved;
        let Some(session) = self.sessions.get(key) else { return };
        if saved.is_ok() {
            for name in &names {
                session.switches.remember(name, on);
            }
        }
        let text = overview::switched(session, &names, on, Some(&saved));
        let cwd = session.workspace.cwd.clone().filter(|_| saved.is_ok());
        self.turn_everywhere(key, cwd.as_deref(), &names, on, actions);
        self.answer_command(key, ticket, &text, actions);
    }
}
