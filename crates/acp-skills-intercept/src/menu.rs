//! Adds our commands to the agent's list of slash commands, which the client shows as a menu.
//!
//! An `available_commands_update` replaces the whole list ([slash
//! commands](https://agentclientprotocol.com/protocol/v1/slash-commands)), so we add ours to each list of the agent. The first
//! `MAX_FIRST` come before the agent's commands, so that users see them, and the rest come after. We keep the agent's last list and send it again if our
//! commands change. If the agent sends no list within `AGENT_TIMEOUT` after the session was set up, we send one.

pub(crate) mod names;
mod reflections;
pub(crate) mod spelling;

use std::{borrow::Cow, time::Duration};

use acp_skills_wire::{Edit, Message, Node, build};
use serde_json::json;
use skills_core::{Skill, text::shown};

use self::names::{Names, SKILLS};
use crate::{
    Interceptor,
    keys::SessionKey,
    outputs::{Actions, Pass, Task},
    policy::CommandNames,
    session::Session,
    version::Version,
};

/// The time that the agent has to send its commands after the session was set up.
pub(crate) const AGENT_TIMEOUT: Duration = Duration::from_millis(300);

/// The maximum number of skill commands at the start of the list. More entries would hide the agent's commands.
const MAX_FIRST: usize = 10;
/// The maximum number of skills in the list, because editors show it as a menu. Users can still type the names of other skills.
const MAX_LISTED: usize = 500;

/// The description of `/skills`.
pub(crate) const SKILLS_DESCRIPTION: &str =
    "List the skills of this session, look for new ones, search them, or turn them on and off";

/// The form of our entries.
#[derive(Clone, Copy)]
struct Form {
    version: Version,
    names: CommandNames,
}

/// Returns true if the agent's list has the `/skills` of another proxy.
pub(crate) fn has_other_proxy(session: &Session) -> bool {
    let list = Node::parse(session.menu.agent_commands());
    let is_skills = |entry: Node<'_>| entry.str("description").is_some_and(|text| text == SKILLS_DESCRIPTION);
    list.is_some_and(|list| list.elements().any(is_skills))
}

/// Returns our entries as JSON. An agent can send its list as often as it likes, so only the entries of skills whose names are also
/// commands of the agent are made anew.
fn entries<'n>(names: &'n Names<'_>, version: Version) -> Vec<Cow<'n, str>> {
    let mut entries = Vec::new();
    if !names.are_agents(SKILLS) {
        let hint = "[reload | search WORDS | on NAME | off NAME | active | drop NAME]";
        entries.push(version.command(SKILLS, SKILLS_DESCRIPTION, Some(hint)).to_string().into());
    }
    let words = names.words();
    let make = || {
        words
            .iter()
            .take(MAX_LISTED)
            .map(|(word, skill)| entry(word, &spelling::description(skill), skill, version))
            .collect()
    };
    let kept = words.entries(version, make);
    for (index, (word, skill)) in words.iter().take(MAX_LISTED).enumerate() {
        entries.push(match kept {
            Some(kept) if names.is_free(word) => kept[index].as_str().into(),
            _ => {
                let (name, description) = names.entry(word, skill);
                entry(&name, &description, skill, version).into()
            }
        });
    }
    entries
}

/// Returns the entry of a skill as JSON.
fn entry(name: &str, description: &str, skill: &Skill, version: Version) -> String {
    let hint = skill.hint().map(|hint| shown(&hint).into_owned());
    version.command(name, description, hint.as_deref()).to_string()
}

/// Adds our entries to the agent's array `list`, removes reflections of them, and renames commands of the agent if a skill gets
/// their names.
fn merge(edit: &mut Edit, list: Node<'_>, session: &Session, form: Form) {
    let names = Names::of(session, form.names);
    let ours = entries(&names, form.version);
    let (first, last) = ours.split_at(ours.len().min(MAX_FIRST));
    let is_ours = |entry: &Node<'_>| names.is_reflection(*entry);
    if !list.elements().any(|entry| is_ours(&entry)) {
        list.elements().for_each(|entry| names.rename(edit, entry));
        for (ours, add) in [(first, Edit::unshift as fn(&mut Edit, Node<'_>, &str)), (last, Edit::push)] {
            if !ours.is_empty() {
                add(edit, list, &ours.join(","));
            }
        }
        return;
    }
    let theirs = list.elements().filter(|entry| !is_ours(entry)).filter_map(|entry| {
        let entry = Node::parse(entry.raw())?;
        let mut edit = Edit::new();
        names.rename(&mut edit, entry);
        Some(Cow::from(String::from_utf8_lossy(&edit.apply(entry.raw())).into_owned()))
    });
    let all = first.iter().cloned().chain(theirs).chain(last.iter().cloned()).collect::<Vec<_>>().join(",");
    edit.replace(list.span(), format!("[{all}]"));
}

/// Returns the latest list from the agent, with skill commands added.
fn union(session: &Session, form: Form) -> Option<Vec<u8>> {
    let theirs = session.menu.agent_commands();
    let mut edit = Edit::new();
    merge(&mut edit, Node::parse(theirs)?, session, form);
    Some(edit.apply(theirs))
}

/// Adds our entries to the list in `object`, or adds the list if it is missing.
fn add(edit: &mut Edit, object: Node<'_>, session: &Session, form: Form) {
    let list = object.get("availableCommands");
    if let Some(list) = list.filter(Node::is_array) {
        return merge(edit, list, session, form);
    }
    let Some(all) = union(session, form) else { return };
    match list {
        Some(nothing) if nothing.is_null() => edit.replace(nothing.span(), all),
        None if object.is_object() => {
            edit.insert(object, "availableCommands", &String::from_utf8_lossy(&all));
        }
        // We treat `null` as an empty object here.
        None if object.is_null() => {
            let result = [br#"{"availableCommands":"#.as_slice(), &all, b"}"].concat();
            edit.replace(object.span(), result);
        }
        // The protocol doesn't allow any other type, so forward the message and let the client handle it.
        _ => {}
    }
}

/// Builds an update from the latest list of the agent, with skill commands added.
fn update(session: &Session, form: Form) -> Option<Vec<u8>> {
    let id = session.id()?;
    let params = json!({
        "sessionId": id,
        "update": { "sessionUpdate": "available_commands_update", "availableCommands": [] },
    });
    let line = build::notification("session/update", &params);
    let place = Message::parse(&line)?.param(&["update", "availableCommands"])?;
    let mut edit = Edit::new();
    edit.replace(place.span(), union(session, form)?);
    Some(edit.apply(&line))
}

impl Interceptor {
    fn menu_form(&self) -> Form {
        Form { version: self.agent.version, names: self.policy.commands }
    }

    /// Adds our entries to an update of the agent's commands.
    pub(crate) fn commands_update(&mut self, message: &Message<'_>, update: Node<'_>) -> Pass {
        let form = self.menu_form();
        let Some(id) = message.session_id() else { return Pass::Untouched };
        let list = update.get("availableCommands").filter(Node::is_array);
        let raw = list.map(|list| list.raw());
        let Some(session) = self.sessions.find(&id) else {
            // This may be a new session, but we haven't seen the response yet. So we forward the list, and keep it until the
            // response arrives.
            if let Some(raw) = raw.filter(|_| self.is_setting_up()) {
                self.memory.early_commands.keep(id.into_owned(), raw);
            }
            return Pass::Untouched;
        };
        session.menu.set_agent_commands(raw.map(<[u8]>::to_vec));
        if !session.has_menu() {
            return Pass::Untouched;
        }
        let mut edit = Edit::new();
        add(&mut edit, update, session, form);
        session.menu.sent();
        Pass::Edited(edit.apply(message.line))
    }

    /// Adds our entries to the response that sets up a session, in versions of the protocol where it lists the first commands.
    pub(crate) fn menu_in_response(
        &mut self,
        key: SessionKey,
        message: &Message<'_>,
        result: Node<'_>,
    ) -> Pass {
        let form = self.menu_form();
        let Some(session) = self.sessions.get(key) else { return Pass::Untouched };
        let early = session.id().and_then(|id| self.memory.early_commands.take(id));
        let list = result.get("availableCommands").filter(Node::is_array);
        if let Some(theirs) = list.map(|list| list.raw().to_vec()).or(early) {
            session.menu.set_agent_commands(Some(theirs));
        }
        let is_due = session.has_menu() && (list.is_some() || !session.menu.was_sent());
        let mut edit = Edit::new();
        if is_due {
            session.menu.sent();
            add(&mut edit, result, session, form);
        }
        self.forget_early_commands();
        if edit.is_empty() { Pass::Untouched } else { Pass::Edited(edit.apply(message.line)) }
    }

    /// Sends our menu, or starts the timer for it, when a session was set up.
    pub(crate) fn menu_after_response(&mut self, key: SessionKey, actions: &mut Actions) {
        let form = self.menu_form();
        let Some(session) = self.sessions.get(key) else { return };
        let early = session.id().and_then(|id| self.memory.early_commands.take(id));
        let has_sent = early.is_some();
        if has_sent {
            session.menu.set_agent_commands(early);
        }
        if session.has_menu() && !session.menu.was_sent() {
            if has_sent {
                session.menu.sent();
                actions.after.extend(update(session, form));
            } else {
                actions.tasks.push(Task::MenuTimer { session: key, time: AGENT_TIMEOUT });
            }
        }
        self.forget_early_commands();
    }

    /// Drops the lists for sessions that are not set up yet, once none is being set up.
    pub(crate) fn forget_early_commands(&mut self) {
        if !self.is_setting_up() {
            self.memory.early_commands.clear();
        }
    }

    /// Sends the menu if the agent has not sent a list in time.
    pub(crate) fn menu_timer_ended(&mut self, key: SessionKey, actions: &mut Actions) {
        let form = self.menu_form();
        let Some(session) = self.sessions.get(key) else { return };
        if session.has_menu() && !session.menu.was_sent() {
            session.menu.sent();
            actions.to_client.extend(update(session, form));
        }
    }

    /// Sends the menu again, because our commands have changed.
    pub(crate) fn menu_changed(&mut self, key: SessionKey, actions: &mut Actions) {
        let form = self.menu_form();
        let Some(session) = self.sessions.get(key) else { return };
        if let Some(update) = update(session, form) {
            session.menu.sent();
            actions.to_client.push(update);
        }
    }
}
