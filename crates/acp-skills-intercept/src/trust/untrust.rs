//! `/skills untrust`: takes the trust in skills of a project back.

use std::{fmt::Write, sync::Arc};

use acp_skills_wire::{Id, Message};
use skills_core::{
    Scope, Skill, SkillName,
    text::{markdown, markdown_code, markdown_message},
};

use super::{MAX_NAMED, TrustError, named::unquoted};
use crate::{
    Interceptor,
    keys::SessionKey,
    menu::{self, names::PREFIX},
    outputs::Actions,
    overview,
    queries::{Query, TrustOutcome},
    session::Session,
};

/// The maximum number of names in a command. Each unknown name adds a sentence to the answer, so further ones are ignored.
const MAX_WORDS: usize = 100;
/// The word after `/skills`.
const UNTRUST: &str = "untrust";

/// Returns true if the words after `/skills` are this command, so that it can't be meant for the agent. Another proxy may know the skills
/// if none of them is one of ours. But a trusted skill can be missing at the moment, so no agent gets the command.
pub(super) fn is_ours(session: &Session, verb: &str, words: &str) -> bool {
    let is_trusted = |name: &SkillName| trusted(session).any(|skill| skill.name.key() == name.key());
    verb == UNTRUST
        && !words.trim().is_empty()
        && (named(session, words).iter().any(is_trusted) || !menu::has_other_proxy(session))
}

/// Returns the trusted skills of the project, in all directories of the session. A skill that has changed since it was trusted is one of
/// them, because its trusted version could come back.
fn trusted(session: &Session) -> impl Iterator<Item = &Arc<Skill>> {
    let skills = session.switches.all();
    let changed = skills.unapproved().iter().filter(|unapproved| unapproved.has_changed);
    let trusted = skills.iter().filter(|skill| skill.scope == Scope::Project || skill.service().is_some());
    trusted.chain(changed.map(|unapproved| &unapproved.skill))
}

/// Returns the names in the words after `/skills untrust`. They need not be names of skills of the session: the directory of a trusted
/// skill can be missing, invalid or shadowed at the moment. All of the words are one name if they are in quotes, or if a skill has it.
fn named(session: &Session, words: &str) -> Vec<SkillName> {
    let name = |word: &str| {
        let word = word.trim_start_matches('/');
        let word = word.strip_prefix(PREFIX).unwrap_or(word);
        let key = SkillName::key_of(word);
        let known = trusted(session).find(|skill| skill.name.key() == key);
        known.map_or_else(|| SkillName::new(word), |skill| Some(skill.name.clone()))
    };
    let whole = unquoted(words.trim()).and_then(name).or_else(|| {
        let whole = name(&words.split_whitespace().collect::<Vec<_>>().join(" "))?;
        trusted(session).any(|skill| skill.name == whole).then_some(whole)
    });
    let each = || words.split_whitespace().take(MAX_WORDS).filter_map(name).collect();
    whole.map_or_else(each, |whole| vec![whole])
}

/// Returns the answer if there was no trust in a skill with this name.
fn not_trusted(session: &Session, name: &str) -> String {
    let names: Vec<_> =
        trusted(session).take(MAX_NAMED).map(|skill| markdown_code(skill.name.as_str())).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    TrustError::NotTrusted { word: markdown_code(name), names }.to_string()
}

impl Interceptor {
    /// Handles `/skills untrust`: takes the trust in skills of the project back. Returns `None` if `words` is another command, and
    /// true if the answer is held until the host has saved the decision.
    pub(crate) fn untrust_command(
        &mut self,
        key: SessionKey,
        prompt: &Message<'_>,
        id: &Id,
        words: &str,
        actions: &mut Actions,
    ) -> Option<bool> {
        let (verb, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        if verb != UNTRUST {
            return None;
        }
        let session = self.sessions.get(key)?;
        let names = named(session, rest);
        if names.is_empty() {
            let text = not_trusted(session, "");
            self.reply(key, prompt, id, &text, actions);
            return Some(false);
        }
        let is_named = |skill: &&Arc<Skill>| names.iter().any(|name| name.key() == skill.name.key());
        let skills = trusted(session).filter(is_named).cloned().collect();
        let workspace = session.workspace.clone();
        let workspaces = self.workspaces().into_iter().collect();
        let ticket = self.pending.new_ticket();
        self.hold_command(key, ticket, id, prompt);
        actions.ask(Query::Untrust { session: key, ticket, workspace, names, skills, workspaces });
        Some(true)
    }
}

/// Answers `/skills untrust` in a session. `session` is `None` if it has ended.
pub(super) fn outcome(session: Option<&Session>, outcome: &TrustOutcome) -> String {
    let mut text = String::new();
    let names: Vec<_> = outcome.done.iter().map(overview::code).collect();
    if !outcome.done.is_empty() {
        let are = if outcome.done.len() == 1 { "is" } else { "are" };
        let _ = write!(
            text,
            "{} {are} no longer trusted. The agent keeps what it has already read.",
            names.join(", ")
        );
    }
    for name in &outcome.absent {
        let name = overview::code(name);
        let _ = write!(
            text,
            " No project of this session that your configuration trusts has a skill {name} at the moment. If one appears, it waits for your trust."
        );
    }
    for (name, place) in &outcome.remaining {
        let name = overview::code(name);
        let _ = write!(
            text,
            " But a skill {name} {} is still in use, because it needs no such trust. Use `/skills off` with its name to turn it off.",
            markdown(place)
        );
    }
    for (name, why) in &outcome.failed {
        let _ = write!(
            text,
            " Could not change the trust in {}: {}.",
            overview::code(name),
            markdown_message(why)
        );
    }
    if let Err(error) = &outcome.saved {
        let _ = write!(
            text,
            " Could not save this decision, so it applies until the proxy ends: {}.",
            markdown_message(&error.0)
        );
    }
    for why in outcome.unknown.iter().filter_map(|name| Some(not_trusted(session?, name.as_str()))) {
        let _ = write!(text, " {why}");
    }
    text.trim_start().to_owned()
}
