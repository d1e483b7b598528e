//! `/skills off NAME` and `/skills on NAME`: what they mean, and what becomes of the session. Its skills change as on a
//! reload; with `--here` the host keeps it for new sessions of the same directory, the open ones follow, and the answer waits
//! for that.

use std::{path::Path, time::Duration};

use acp_skills_wire::{Id, Message};
use skills_core::SkillName;

use crate::{
    Interceptor,
    keys::{SessionKey, Ticket},
    menu::{self, spelling},
    outputs::Actions,
    overview,
    queries::{Query, Switched},
    session::Session,
};

/// What remembers a switch.
const HERE: &str = "--here";

/// A command to turn skills on or off.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    /// Which, as the session spells them.
    names: Vec<SkillName>,
    on: bool,
    here: bool,
}

impl Switch {
    /// What the words behind `/skills` say; `None` when they say something else.
    ///
    /// # Errors
    /// A sentence for the user: what is not known, or not said.
    pub(crate) fn read(session: &Session, words: &str) -> Option<Result<Self, String>> {
        let (verb, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let on = match verb {
            "on" => true,
            "off" => false,
            _ => return None,
        };
        let words: Vec<_> = rest.split_whitespace().filter(|&word| word != HERE).collect();
        let here = rest.split_whitespace().any(|word| word == HERE);
        if words.is_empty() {
            return Some(Err(format!(
                "Which skill? `/skills {verb} NAME` turns it {verb}; `/skills` lists them."
            )));
        }
        // A name may have spaces.
        let names = match find(session, &words.join(" ")) {
            Some(name) => Ok(vec![name]),
            None => words.iter().map(|word| find(session, word).ok_or(*word)).collect(),
        };
        Some(match names {
            Ok(names) => Ok(Self { names, on, here }),
            Err(word) => Err(unknown(session, word)),
        })
    }

    /// Whether the words behind `/skills` name skills of ours alone, so that no other `/skills` is meant.
    pub(crate) fn is_ours(session: &Session, words: &str) -> bool {
        matches!(Self::read(session, words), Some(Ok(_)))
    }
}

/// The skill that `word` names: by its name, or as it is spelled in the menu.
fn find(session: &Session, word: &str) -> Option<SkillName> {
    let word = word.trim_start_matches('/');
    let word = word.strip_prefix(menu::PREFIX).unwrap_or(word);
    let all = session.switches.all();
    if let Some(skill) = all.get(word) {
        return Some(skill.name.clone());
    }
    let key = SkillName::key_of(word);
    let spelled = spelling::spelled(all).into_iter().find(|(word, _)| SkillName::key_of(word) == key);
    spelled.map(|(_, skill)| skill.name.clone()).or_else(|| session.switches.name_of(word).cloned())
}

fn unknown(session: &Session, word: &str) -> String {
    let word = skills_core::text::shown(word);
    let names: Vec<_> = session.switches.all().iter().map(|skill| format!("`{}`", skill.name)).collect();
    match names.as_slice() {
        [] => format!("There is no skill `{word}`, and no other."),
        names if names.len() <= 20 => format!("There is no skill `{word}`. There are {}.", names.join(", ")),
        _ => format!("There is no skill `{word}`. `/skills` lists those that are."),
    }
}

impl Interceptor {
    /// Does what the user wants, and says so. Returns whether the answer has to wait.
    pub(crate) fn switch(
        &mut self,
        key: SessionKey,
        prompt: &Message<'_>,
        id: &Id,
        switch: Switch,
        actions: &mut Actions,
    ) -> bool {
        let Switch { names, on, here } = switch;
        self.turn(key, &names, on, actions);
        self.options_changed(key, actions);
        let ticket = self.pending.new_ticket();
        let Some(session) = self.sessions.get(key) else { return false };
        if let Some(cwd) = session.cwd.clone().filter(|_| here) {
            self.hold_command(key, ticket, id, prompt);
            actions.ask(Query::Remember { session: key, ticket, cwd, names, on });
            return true;
        }
        let kept = here.then(|| Err("this session has no directory".to_owned()));
        let text = overview::switched(session, &names, on, kept.as_ref());
        self.reply(key, prompt, id, &text, actions);
        false
    }

    /// Turns skills on or off. Whatever serves them follows, and so does the menu; the model hears of it with its next
    /// prompt.
    pub(crate) fn turn(&mut self, key: SessionKey, names: &[SkillName], on: bool, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        let mut differs = false;
        for name in names {
            differs |= session.switches.turn(name, on);
        }
        if differs {
            let skills = session.switches.on();
            if session.equip(skills, Duration::ZERO, actions) {
                self.menu_changed(key, actions);
            }
        }
    }

    /// The other open sessions of a directory follow what was said for all of it in one.
    fn turn_everywhere(
        &mut self,
        said_in: SessionKey,
        cwd: Option<&Path>,
        names: &[SkillName],
        on: bool,
        actions: &mut Actions,
    ) {
        let Some(cwd) = cwd else { return };
        let others =
            self.sessions.iter_mut().filter(|it| it.key() != said_in && it.cwd.as_deref() == Some(cwd));
        let mut others: Vec<_> = others
            .map(|session| {
                for name in names {
                    session.switches.remember(name, on);
                }
                session.key()
            })
            .collect();
        others.sort_unstable();
        for other in others {
            self.turn(other, names, on, actions);
            self.options_changed(other, actions);
        }
    }

    /// The host has kept a switch for new sessions, or could not.
    pub(crate) fn switched(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        switched: Switched,
        actions: &mut Actions,
    ) {
        let Switched { names, on, kept } = switched;
        let Some(session) = self.sessions.get(key) else { return };
        if kept.is_ok() {
            for name in &names {
                session.switches.remember(name, on);
            }
        }
        let text = overview::switched(session, &names, on, Some(&kept));
        let cwd = session.cwd.clone().filter(|_| kept.is_ok());
        self.turn_everywhere(key, cwd.as_deref(), &names, on, actions);
        self.answer_command(key, ticket, &text, actions);
    }
}
