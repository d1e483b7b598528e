//! The menu: our commands in the list that the agent gives the client.
//!
//! An `available_commands_update` replaces the whole list
//! ([slash commands](https://agentclientprotocol.com/protocol/v1/slash-commands)), so ours are added to each of the
//! agent's: some in front of them, where a user sees them, the rest behind. The agent's last list is kept for the times when
//! ours change. An agent that sends none within `PATIENCE` after the session is set up gets one from us.

mod reflections;
pub(crate) mod spelling;

use std::time::Duration;

use acp_skills_wire::{Edit, Message, Node, build};
use serde_json::{Value, json};
use skills_core::SkillName;

use crate::{
    Interceptor,
    keys::SessionKey,
    outputs::{Actions, Pass, Task},
    session::{Session, menu::AgentCommands},
    version::Version,
};

/// How long the agent may take to send its commands once the session is set up.
pub(crate) const PATIENCE: Duration = Duration::from_millis(300);

/// The command that the proxy itself answers.
pub(crate) const SKILLS: &str = "skills";
/// What stands before the name of a skill when the name alone is another command.
pub(crate) const PREFIX: &str = "skill:";

/// How many entries of ours stand in front of the agent's: more would hide those.
const MAX_FIRST: usize = 10;
/// How many skills are listed at most: editors show the list in a menu. The others can still be typed.
const MAX_LISTED: usize = 500;
/// Lists of sessions that are not known yet: more than these are nobody's.
const MAX_EARLY: usize = 64;

/// Whether `/word` is another command than that of the skill.
pub(crate) fn is_taken(theirs: &AgentCommands, word: &str) -> bool {
    theirs.has(word) || SkillName::key_of(word) == SKILLS
}

/// Our entries, as JSON.
fn entries(session: &Session, version: Version) -> Vec<Value> {
    let theirs = agent_commands(session);
    let mut entries = Vec::new();
    if !theirs.has(SKILLS) {
        let what = "List the skills of this session, look for new ones, search them, or turn them on and off";
        entries.push(version.command(SKILLS, what, Some("[reload | search WORDS | on NAME | off NAME]")));
    }
    for (word, skill) in spelling::spelled(&session.skills).into_iter().take(MAX_LISTED) {
        let name = if is_taken(&theirs, &word) { format!("{PREFIX}{word}") } else { word };
        entries.push(version.command(&name, &spelling::description(skill), skill.hint().as_deref()));
    }
    entries
}

/// The words that are commands of the agent's own.
pub(crate) fn agent_commands(session: &Session) -> AgentCommands {
    AgentCommands::of(&session.menu, |entry| !reflections::is_reflection(entry, session))
}

/// Adds our entries to the array `list` of the agent's.
fn merge(edit: &mut Edit, list: Node<'_>, session: &Session, version: Version) {
    let ours: Vec<_> = entries(session, version).iter().map(ToString::to_string).collect();
    let (first, last) = ours.split_at(ours.len().min(MAX_FIRST));
    let is_ours = |entry: &Node<'_>| reflections::is_reflection(*entry, session);
    if !list.elements().any(|entry| is_ours(&entry)) {
        for (ours, add) in [(first, Edit::unshift as fn(&mut Edit, Node<'_>, &str)), (last, Edit::push)] {
            if !ours.is_empty() {
                add(edit, list, &ours.join(","));
            }
        }
        return;
    }
    let theirs = list.elements().filter(|entry| !is_ours(entry));
    let theirs = theirs.map(|entry| String::from_utf8_lossy(entry.raw()).into_owned());
    let all = first.iter().cloned().chain(theirs).chain(last.iter().cloned()).collect::<Vec<_>>().join(",");
    edit.replace(list.span(), format!("[{all}]"));
}

/// What the agent sent last, and ours.
fn union(session: &Session, version: Version) -> Option<Vec<u8>> {
    let theirs = session.menu.agent_commands();
    let mut edit = Edit::new();
    merge(&mut edit, Node::parse(theirs)?, session, version);
    Some(edit.apply(theirs))
}

/// Adds our entries to the list that `object` has, or should have.
fn add(edit: &mut Edit, object: Node<'_>, session: &Session, version: Version) {
    let list = object.get("availableCommands");
    if let Some(list) = list.filter(Node::is_array) {
        return merge(edit, list, session, version);
    }
    let Some(all) = union(session, version) else { return };
    match list {
        Some(nothing) if nothing.is_null() => edit.replace(nothing.span(), all),
        None if object.is_object() => {
            edit.insert(object, "availableCommands", &String::from_utf8_lossy(&all));
        }
        // A result of nothing is as good as an empty one.
        None if object.is_null() => {
            let result = [br#"{"availableCommands":"#.as_slice(), &all, b"}"].concat();
            edit.replace(object.span(), result);
        }
        // What no protocol knows is left to the client, as it is.
        _ => {}
    }
}

/// The update that we send ourselves: what the agent sent last, and ours.
fn update(session: &Session, version: Version) -> Option<Vec<u8>> {
    let id = session.id()?;
    let params = json!({
        "sessionId": id,
        "update": { "sessionUpdate": "available_commands_update", "availableCommands": [] },
    });
    let line = build::notification("session/update", &params);
    let place = Message::parse(&line)?.param(&["update", "availableCommands"])?;
    let mut edit = Edit::new();
    edit.replace(place.span(), union(session, version)?);
    Some(edit.apply(&line))
}

impl Interceptor {
    /// The agent's commands: ours are added.
    pub(crate) fn commands_update(&mut self, message: &Message<'_>, update: Node<'_>) -> Pass {
        let Some(id) = message.session_id() else { return Pass::Untouched };
        let list = update.get("availableCommands").filter(Node::is_array);
        let raw = list.map(|list| list.raw().to_vec());
        let Some(session) = self.sessions.find(&id) else {
            // Perhaps of a session whose response is still on its way; it goes on, and is kept for then.
            if self.memory.early_commands.len() < MAX_EARLY && self.is_setting_up() {
                self.memory.early_commands.extend(raw.map(|raw| (id.into_owned(), raw)));
            }
            return Pass::Untouched;
        };
        session.menu.set_agent_commands(raw);
        if !session.has_menu() {
            return Pass::Untouched;
        }
        let mut edit = Edit::new();
        add(&mut edit, update, session, self.agent.version);
        session.menu.sent();
        Pass::Edited(edit.apply(message.line))
    }

    /// The session is set up, and its response is about to go on with the first commands of the agent.
    pub(crate) fn menu_in_response(
        &mut self,
        key: SessionKey,
        message: &Message<'_>,
        result: Node<'_>,
    ) -> Pass {
        let Some(session) = self.sessions.get(key) else { return Pass::Untouched };
        let early = session.id().and_then(|id| self.memory.early_commands.remove(id));
        let list = result.get("availableCommands").filter(Node::is_array);
        if let Some(theirs) = list.map(|list| list.raw().to_vec()).or(early) {
            session.menu.set_agent_commands(Some(theirs));
        }
        let is_due = session.has_menu() && (list.is_some() || !session.menu.was_sent());
        let mut edit = Edit::new();
        if is_due {
            session.menu.sent();
            add(&mut edit, result, session, self.agent.version);
        }
        if !self.is_setting_up() {
            self.memory.early_commands.clear();
        }
        if edit.is_empty() { Pass::Untouched } else { Pass::Edited(edit.apply(message.line)) }
    }

    /// The session is set up, and its response is about to go on.
    pub(crate) fn menu_after_response(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        let early = session.id().and_then(|id| self.memory.early_commands.remove(id));
        let has_sent = early.is_some();
        if has_sent {
            session.menu.set_agent_commands(early);
        }
        if session.has_menu() && !session.menu.was_sent() {
            if has_sent {
                session.menu.sent();
                actions.after.extend(update(session, self.agent.version));
            } else {
                actions.tasks.push(Task::MenuTimer { session: key, time: PATIENCE });
            }
        }
        if !self.is_setting_up() {
            self.memory.early_commands.clear();
        }
    }

    /// The agent has had its time.
    pub(crate) fn menu_timer_ended(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        if session.has_menu() && !session.menu.was_sent() {
            session.menu.sent();
            actions.to_client.extend(update(session, self.agent.version));
        }
    }

    /// Our commands have changed.
    pub(crate) fn menu_changed(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        if let Some(update) = update(session, self.agent.version) {
            session.menu.sent();
            actions.to_client.push(update);
        }
    }
}
