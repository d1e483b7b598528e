//! `/skills untrust`: takes the trust in skills of a project back.

use std::{fmt::Write, sync::Arc};

use acp_skills_wire::{Id, Message};
use skills_core::{
    Scope, Skill, SkillName,
    text::{markdown_code, markdown_message},
};

use super::{MAX_NAMED, TrustError};
use crate::{
    Interceptor,
    keys::SessionKey,
    menu::names::PREFIX,
    outputs::Actions,
    overview,
    queries::{Query, TrustOutcome},
    session::Session,
    switches,
};

/// The word after `/skills`.
const UNTRUST: &str = "untrust";

/// Returns true if the words after `/skills` name trusted skills of this proxy.
pub(super) fn is_ours(session: &Session, verb: &str, words: &str) -> bool {
    verb == UNTRUST && trusted(session, words).is_ok()
}

/// Returns the trusted skills of the project that the words after `/skills untrust` name, in all directories of the session. A skill that
/// has changed since it was trusted is one of them, because its trusted version could come back.
///
/// # Errors
/// Returns [`TrustError::NotTrusted`] if there is no word, or if a word does not name such a skill.
fn trusted(session: &Session, words: &str) -> Result<Vec<Arc<Skill>>, TrustError> {
    let all = || {
        let skills = session.switches.all();
        let changed = skills.unapproved().iter().filter(|unapproved| unapproved.has_changed);
        let trusted =
            skills.iter().filter(|skill| skill.scope == Scope::Project || skill.service().is_some());
        trusted.chain(changed.map(|unapproved| &unapproved.skill))
    };
    let named = |word: &str| {
        let key = SkillName::key_of(without_prefix(word));
        all().filter(move |skill| skill.name.key() == key)
    };
    let quoted: Vec<_> = words.split_whitespace().collect();
    let names = switches::names(&quoted, |word| named(word).next().map(|skill| skill.name.clone()));
    let not_trusted = |word: &str| {
        let names = all().take(MAX_NAMED).map(|skill| markdown_code(skill.name.as_str()));
        let names: Vec<_> = names.collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        TrustError::NotTrusted { word: markdown_code(word), names }
    };
    if quoted.is_empty() {
        return Err(not_trusted(""));
    }
    let names = names.map_err(not_trusted)?;
    Ok(names.iter().flat_map(|name| named(name.as_str())).cloned().collect())
}

/// Returns the names of skills after `/skills untrust`.
fn names(words: &str) -> Vec<SkillName> {
    words.split_whitespace().filter_map(|word| SkillName::new(without_prefix(word))).collect()
}

fn without_prefix(word: &str) -> &str {
    let word = word.trim_start_matches('/');
    word.strip_prefix(PREFIX).unwrap_or(word)
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
        let (skills, names) = match trusted(session, rest) {
            Ok(skills) => (skills, Vec::new()),
            // The host also finds trusted skills that are missing or invalid at the moment.
            Err(error) => match names(rest) {
                names if names.is_empty() => {
                    self.reply(key, prompt, id, &error.to_string(), actions);
                    return Some(false);
                }
                names => (Vec::new(), names),
            },
        };
        let workspace = session.workspace.clone();
        let workspaces = self.workspaces().into_iter().collect();
        let ticket = self.pending.new_ticket();
        self.hold_command(key, ticket, id, prompt);
        actions.ask(Query::Untrust { session: key, ticket, workspace, skills, names, workspaces });
        Some(true)
    }
}

/// Answers `/skills untrust`.
pub(super) fn outcome(outcome: &TrustOutcome) -> String {
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
    text.trim_start().to_owned()
}
