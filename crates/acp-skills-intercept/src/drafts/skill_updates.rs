//! [`available_skills_update`](https://github.com/agentclientprotocol/agent-client-protocol/pull/370): the list of a session's skills,
//! which the client gets when the session was set up, and again whenever it changes.
//!
//! If the agent sends such a list itself, our skills are added to it. Like a list of commands, each list replaces the one before.

use std::collections::HashSet;

use acp_skills_wire::{Edit, Message, Node, build};
use serde_json::{Value, json};
use skills_core::SkillName;

use super::descriptors;
use crate::{
    Interceptor,
    keys::SessionKey,
    menu::spelling,
    outputs::{Actions, Pass},
    session::Session,
};

/// The name of the update.
const UPDATE: &str = "available_skills_update";
/// The member with the list.
const LIST: &str = "availableSkills";

/// Returns the edit that adds our entries to the agent's list, without those whose names the agent uses. Our entries are made once for
/// each set of skills, because the agent can send its list as often as it likes.
fn merged(session: &Session, list: Node<'_>) -> Edit {
    let names = list.elements().filter_map(|skill| Some(SkillName::key_of(&skill.str("name")?)));
    let theirs: HashSet<String> = names.collect();
    let words = spelling::spelled(&session.skills);
    let all = words.descriptors.get_or_init(|| {
        let key = |entry: &Value| entry["name"].as_str().map(SkillName::key_of).unwrap_or_default();
        descriptors(&session.skills).iter().map(|entry| (key(entry), entry.to_string())).collect()
    });
    let mut edit = Edit::new();
    let ours: Vec<_> =
        all.iter().filter(|(key, _)| !theirs.contains(key)).map(|(_, entry)| &**entry).collect();
    if !ours.is_empty() {
        edit.push(list, &ours.join(","));
    }
    edit
}

/// Builds an update with the agent's latest list and our skills.
fn update(session: &Session) -> Option<Vec<u8>> {
    let id = session.id()?;
    let update = json!({ "sessionUpdate": UPDATE, LIST: [] });
    let line = build::notification("session/update", &json!({ "sessionId": id, "update": update }));
    let place = Message::parse(&line)?.param(&["update", LIST])?;
    // The entries of the agent stay as they are.
    let theirs = session.agent_skills.as_deref().unwrap_or(b"[]");
    let mut edit = Edit::new();
    edit.replace(place.span(), merged(session, Node::parse(theirs)?).apply(theirs));
    Some(edit.apply(&line))
}

impl Interceptor {
    /// Adds our skills to the agent's list.
    pub(crate) fn skills_update(&mut self, message: &Message<'_>, update: Node<'_>) -> Pass {
        let list = update.get(LIST).filter(Node::is_array).filter(|_| self.policy.drafts);
        let (Some(list), Some(id)) = (list, message.session_id()) else { return Pass::Untouched };
        let Some(session) = self.sessions.find(&id) else {
            // This may be a new session whose response has not arrived yet.
            if self.is_setting_up() {
                self.memory.early_skills.keep(id.into_owned(), list.raw());
            }
            return Pass::Untouched;
        };
        session.agent_skills = Some(list.raw().to_vec());
        session.shows_skills = true;
        let edit = merged(session, list);
        if edit.is_empty() { Pass::Untouched } else { Pass::Edited(edit.apply(message.line)) }
    }

    /// Sends the list after the response that sets up a session.
    pub(crate) fn skills_after_response(&mut self, key: SessionKey, actions: &mut Actions) {
        if let Some(session) = self.sessions.get(key)
            && let Some(early) = session.id().and_then(|id| self.memory.early_skills.take(id))
        {
            session.agent_skills = Some(early);
        }
        self.forget_early_skills();
        let line = self.skill_list(key);
        actions.after.extend(line);
    }

    /// Drops the lists for sessions that are not set up yet, unless one is being set up.
    pub(crate) fn forget_early_skills(&mut self) {
        if !self.is_setting_up() {
            self.memory.early_skills.clear();
        }
    }

    /// Sends the list again, because the skills have changed.
    pub(crate) fn skill_list_changed(&mut self, key: SessionKey, actions: &mut Actions) {
        let line = self.skill_list(key);
        actions.to_client.extend(line);
    }

    /// Returns the update with the list. Returns `None` if the client gets none: there is no skill, and there never was one.
    fn skill_list(&mut self, key: SessionKey) -> Option<Vec<u8>> {
        let session = self.sessions.get(key).filter(|_| self.policy.drafts)?;
        session.shows_skills |= !session.skills.is_empty();
        update(session).filter(|_| session.shows_skills)
    }
}
