//! `/skills active` and `/skills drop NAME`.
//!
//! The answer to `/skills active` contains the sizes of the current instructions, so it is held until the host has read them. A
//! dropped skill is no longer active, and is not restored after a compaction. The model keeps the instructions that it already has.

use std::fmt::Write;

use acp_skills_wire::{Id, Message};
use skills_core::{SkillName, estimate_tokens, text::markdown_code};

use crate::{
    Interceptor,
    keys::{SessionKey, Ticket},
    outputs::Actions,
    overview::{RESTORED, code},
    queries::{Instructions, Query, Wanted},
    record,
    session::Session,
    switches,
};

/// The command that lists the active skills.
pub(crate) const ACTIVE: &str = "active";
/// The command that ends the activation of a skill.
const DROP: &str = "drop";

/// The help for these commands.
pub(crate) const USAGE: &str =
    "`/skills active` lists the active skills, `/skills drop NAME` stops restoring one after a compaction.";

/// The maximum number of skills in a list.
const MAX_LISTED: usize = 100;

/// Returns true if the words after `/skills` drop skills that are active here, so that the command cannot be meant for another
/// proxy.
pub(crate) fn is_ours(session: &Session, words: &str) -> bool {
    matches!(to_drop(session, words), Some(Dropping::Skills(_)))
}

/// The meaning of `/skills drop` with its words.
enum Dropping {
    /// The activations of these skills end.
    Skills(Vec<SkillName>),
    /// The words name no active skill. The value is the answer to the user.
    Nothing(String),
}

/// Reads the words after `/skills`. Returns `None` if they are another command.
fn to_drop(session: &Session, words: &str) -> Option<Dropping> {
    let (verb, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    if verb != DROP {
        return None;
    }
    let words: Vec<_> = rest.split_whitespace().collect();
    if words.is_empty() {
        let answer = "Missing skill name. Use `/skills drop NAME` to end the activation of a skill, or `/skills active` to list \
                      the active skills.";
        return Some(Dropping::Nothing(answer.to_owned()));
    }
    Some(match switches::names(&words, |word| find(session, word)) {
        Ok(names) => Dropping::Skills(names),
        Err(word) => {
            let active = session.activations.iter().rev().take(MAX_LISTED).map(|(name, _)| code(name));
            let active: Vec<_> = active.collect();
            let known = match active.as_slice() {
                [] => "No skill is active in this session.".to_owned(),
                names => format!("Active skills: {}.", names.join(", ")),
            };
            Dropping::Nothing(format!("{} is not active. {known}", markdown_code(word)))
        }
    })
}

/// Returns the active skill that `word` names. The skill itself may be gone.
fn find(session: &Session, word: &str) -> Option<SkillName> {
    let key = session.find_name(word).map_or_else(|| SkillName::key_of(word), |name| name.key());
    session.activations.iter().map(|(name, _)| name).find(|name| name.key() == key).cloned()
}

impl Interceptor {
    /// Answers `/skills active`. Returns true if the answer is held until the host has read the instructions.
    pub(crate) fn list_active(
        &mut self,
        key: SessionKey,
        prompt: &Message<'_>,
        id: &Id,
        actions: &mut Actions,
    ) -> bool {
        let Some(session) = self.sessions.get(key) else { return false };
        let active = session.activations.iter().rev().take(MAX_LISTED).map(|(name, _)| name);
        let names: Vec<_> =
            active.filter(|name| session.skills.get(name.as_str()).is_some()).cloned().collect();
        if names.is_empty() {
            let text = list(session, &Instructions::new());
            self.reply(key, prompt, id, &text, actions);
            return false;
        }
        let guide = session.guide();
        let ticket = self.pending.new_ticket();
        self.hold_command(key, ticket, id, prompt);
        let wanted = Wanted::Active { names, guide, best_for: None };
        actions.ask(Query::Fetch { session: key, ticket, wanted });
        true
    }

    /// Answers `/skills active` with the instructions that the host has read.
    pub(crate) fn active_listed(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        instructions: &Instructions,
        actions: &mut Actions,
    ) {
        let Some(session) = self.sessions.get(key) else { return };
        let text = list(session, instructions);
        self.answer_command(key, ticket, &text, actions);
    }

    /// Carries out `/skills drop`. Returns the answer, or `None` if the words after `/skills` are another command.
    pub(crate) fn drop_active(
        &mut self,
        key: SessionKey,
        words: &str,
        actions: &mut Actions,
    ) -> Option<String> {
        let session = self.sessions.get(key)?;
        let names = match to_drop(session, words)? {
            Dropping::Skills(names) => names,
            Dropping::Nothing(answer) => return Some(answer),
        };
        for name in &names {
            session.activations.remove(name);
        }
        record::remember(session, actions);
        session.remind(actions);
        // The model can no longer use a skill that only the user can invoke.
        actions.effects.push(session.serve(false));
        let are = if names.len() == 1 { "is" } else { "are" };
        let names: Vec<_> = names.iter().map(code).collect();
        Some(format!(
            "{} {are} no longer active, and will not be restored after a compaction.",
            names.join(", ")
        ))
    }
}

/// Lists the active skills, the last used one first.
fn list(session: &Session, instructions: &Instructions) -> String {
    let count = session.activations.iter().count();
    let mut text = match count {
        0 => return "No skill is active in this session.".to_owned(),
        1 => "**1 active skill in this session**\n\n".to_owned(),
        _ => format!("**{count} active skills in this session**\n\n"),
    };
    for (name, by) in session.activations.iter().rev().take(MAX_LISTED) {
        let mut notes = vec![by.reason().to_owned()];
        if session.skills.get(name.as_str()).is_none() {
            notes.push("not available".to_owned());
        } else if let Some((_, text)) = instructions.iter().find(|(other, _)| other.key() == name.key()) {
            notes.push(format!("about {} tokens", estimate_tokens(text)));
        }
        if session.compaction.was_restored(name) {
            notes.push(RESTORED.to_owned());
        }
        let _ = writeln!(text, "- {} ({})", code(name), notes.join(", "));
    }
    if count > MAX_LISTED {
        let _ = writeln!(text, "- and {} more", count - MAX_LISTED);
    }
    text.push_str(
        "\nAfter a compaction, these skills are restored. `/skills drop NAME` ends the activation of one.",
    );
    text
}
