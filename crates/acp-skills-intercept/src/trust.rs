//! Skills of a project wait until their user has approved them: `/skills trust`, and the question that a client puts to its
//! user where it has forms ([elicitation](https://agentclientprotocol.com/protocol/v1/elicitation)).
//!
//! A question is asked once for each version of a skill. Yes and no are kept; a dialog that was closed is neither. What was
//! decided about is what was shown: whoever keeps it compares the files.

use std::path::{Path, PathBuf};

use acp_skills_wire::{Id, Message, Node};
use serde_json::json;
use skills_core::{
    SkillName,
    set::Unapproved,
    text::{shown, shown_path},
};

use crate::{
    Interceptor,
    keys::{SessionKey, Ticket},
    menu::{self, spelling},
    outputs::{Actions, Pass},
    overview,
    pending::{Kind, Question},
    queries::{Decided, Query, Refreshed},
    session::Session,
};

/// The word behind `/skills`.
pub(crate) const TRUST: &str = "trust";

/// How many skills a question names.
const MAX_NAMED: usize = 20;

/// The member of the form.
const ANSWER: &str = "trust";

/// A version of a skill: its directory and the checksum of its files.
pub(crate) type SkillVersion = (Option<PathBuf>, String);

/// The waiting skills that the words behind `/skills trust` name: all, without words.
///
/// # Errors
/// A sentence for the user.
pub(crate) fn named(session: &Session, words: &str) -> Result<Vec<Unapproved>, String> {
    let waiting = session.switches.all().unapproved();
    if waiting.is_empty() {
        return Err("No skill of this project waits for your trust.".to_owned());
    }
    if words.is_empty() {
        return Ok(waiting.to_vec());
    }
    let of = |word: &str| -> Vec<Unapproved> {
        let word = word.trim_start_matches('/');
        let key = SkillName::key_of(word.strip_prefix(menu::PREFIX).unwrap_or(word));
        waiting.iter().filter(|it| it.skill.name.key() == key).cloned().collect()
    };
    // A name may have spaces.
    let whole = of(words);
    if !whole.is_empty() {
        return Ok(whole);
    }
    let mut all = Vec::new();
    for word in words.split_whitespace() {
        let found = of(word);
        if found.is_empty() {
            let names: Vec<_> =
                waiting.iter().take(MAX_NAMED).map(|it| format!("`{}`", it.skill.name)).collect();
            return Err(format!("No skill `{}` waits. There are {}.", shown(word), names.join(", ")));
        }
        all.extend(found);
    }
    Ok(all)
}

/// Whether the words behind `/skills` are about skills that wait here, so that no other `/skills` is meant.
pub(crate) fn is_ours(session: &Session, words: &str) -> bool {
    let (verb, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    verb == TRUST && named(session, rest.trim()).is_ok()
}

impl Interceptor {
    /// The user trusts these. Returns that the answer has to wait.
    pub(crate) fn trust_command(
        &mut self,
        key: SessionKey,
        prompt: &Message<'_>,
        id: &Id,
        skills: Vec<Unapproved>,
        actions: &mut Actions,
    ) -> bool {
        let ticket = self.pending.new_ticket();
        self.hold_command(key, ticket, id, prompt);
        self.decide(key, ticket, skills, true, actions);
        true
    }

    fn decide(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        skills: Vec<Unapproved>,
        trusted: bool,
        actions: &mut Actions,
    ) {
        let cwd = self.sessions.get(key).and_then(|session| session.cwd.clone());
        let directories = self.directories().into_iter().collect();
        actions.ask(Query::Trust { session: key, ticket, cwd, skills, trusted, directories });
    }

    /// A decision is kept, or is not, and these are the skills of all sessions now.
    pub(crate) fn decided(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        trusted: bool,
        decided: &Decided,
        refreshed: Refreshed,
        actions: &mut Actions,
    ) {
        self.refreshed(refreshed, actions);
        let text = overview::decided(decided);
        // A decision in a form has no command to answer.
        if !self.answer_command(key, ticket, &text, actions)
            && trusted
            && !(decided.failed.is_empty() && decided.kept.is_ok())
        {
            actions.warn(text);
        }
    }

    /// What a session's user is to be asked now, as a request to the client.
    pub(crate) fn question(&mut self, key: SessionKey) -> Option<Vec<u8>> {
        if !self.client.shows_forms() {
            return None;
        }
        let session = self.sessions.get(key)?;
        let id = session.id()?.to_owned();
        let waiting = session.switches.all().unapproved().iter();
        let new: Vec<_> = waiting
            .filter(|it| !it.is_refused && !self.memory.asked_about.contains(&version(it)))
            .take(MAX_NAMED)
            .cloned()
            .collect();
        if new.is_empty() {
            return None;
        }
        self.memory.asked_about.extend(new.iter().map(version));
        let request = self.ids.new_question();
        let params = json!({
            "sessionId": id,
            "mode": "form",
            "message": message(&new),
            "requestedSchema": {
                "type": "object",
                "properties": { ANSWER: {
                    "type": "boolean",
                    "title": if new.len() == 1 { "Trust this skill" } else { "Trust these skills" },
                    "default": false,
                } },
                "required": [ANSWER],
            },
        });
        let ticket = self.pending.new_ticket();
        let question = Kind::Question(Question { id: request.clone(), skills: new });
        self.pending.insert(ticket, Some(key), None, question);
        Some(acp_skills_wire::build::request(&request, "elicitation/create", &params))
    }

    /// A response of the client's: perhaps to a question of ours, which the agent knows nothing of.
    pub(crate) fn user_answered(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(Id::Text(id)) = message.id() else { return Pass::Untouched };
        let Some((key, skills)) = self.pending.take_question(id.as_str()) else { return Pass::Untouched };
        let action = message.result.and_then(|result| result.str("action"));
        let is_ticked = message.result.and_then(|result| result.at(&["content", ANSWER]));
        let trusted = match action.as_deref() {
            Some("accept") => is_ticked.and_then(|it: Node<'_>| it.as_bool()) == Some(true),
            Some("decline") => false,
            // Closed, or not understood: nobody has decided.
            _ => return Pass::Consumed,
        };
        let ticket = self.pending.new_ticket();
        self.decide(key, ticket, skills, trusted, actions);
        Pass::Consumed
    }
}

/// Tells a version of a skill from others, and from the same in another project.
fn version(waiting: &Unapproved) -> SkillVersion {
    (waiting.skill.dir().map(Path::to_owned), waiting.digest.clone())
}

/// What the user reads.
fn message(skills: &[Unapproved]) -> String {
    let mut lines = vec![match skills {
        [_] => "This project brings a skill, which your agent would follow as it follows you:".to_owned(),
        _ => format!(
            "This project brings {} skills, which your agent would follow as it follows you:",
            skills.len()
        ),
    }];
    for it in skills {
        let skill = &it.skill;
        let place = skill.dir().map(shown_path).unwrap_or_default();
        let changed = if it.has_changed { ", changed since you trusted it" } else { "" };
        lines.push(format!("- {} ({place}{changed}): {}", skill.name, shown(&spelling::description(skill))));
    }
    lines.push("Look at the files before you agree. `/skills trust NAME` trusts a single one.".to_owned());
    lines.join("\n")
}
