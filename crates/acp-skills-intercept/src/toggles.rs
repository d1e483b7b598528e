//! Skills as switches of the client's own: each is a boolean among the
//! [configuration options](https://agentclientprotocol.com/protocol/v1/session-config-options) of its session, behind the
//! agent's, which pass as they are.
//!
//! Every list of options is a whole one, so ours are added to each of the agent's, and its last list is kept for the times
//! when ours change. Ids of ours begin with a word that no id of the agent's begins with: the agent may be another proxy.

use acp_skills_wire::{Edit, INVALID_PARAMS, Id, Message, Node, build};
use serde_json::{Value, json};
use skills_core::SkillName;

use crate::{
    Interceptor,
    keys::SessionKey,
    menu::spelling,
    outputs::{Actions, Pass},
    requests::Purpose,
    session::Session,
    version::Version,
};

/// How many skills have a switch, at most: clients show all options at once.
const MAX_TOGGLES: usize = 30;

/// What the client's options are called.
const LIST: &str = "configOptions";

/// The word that our ids begin with, beside this agent's list.
fn prefix(session: &Session, version: Version) -> String {
    let theirs = session.options.agent_options();
    let theirs: Vec<_> = Node::parse(theirs)
        .into_iter()
        .flat_map(|list| list.elements())
        .filter_map(|option| Some(option.str(version.option_id())?.into_owned()))
        .collect();
    let prefixes = (1_u32..)
        .map(|number| if number == 1 { "acp-skills:".to_owned() } else { format!("acp-skills-{number}:") });
    let mut free = prefixes.filter(|prefix| !theirs.iter().any(|id| id.starts_with(prefix.as_str())));
    free.next().unwrap_or_default()
}

/// Our options, as JSON.
fn entries(session: &Session, version: Version) -> Vec<Value> {
    let prefix = prefix(session, version);
    let entry = |skill: &std::sync::Arc<skills_core::Skill>| {
        json!({
            (version.option_id()): format!("{prefix}{}", skill.name),
            "name": format!("Skill: {}", skill.name),
            "description": spelling::description(skill),
            "category": "_skills",
            "type": "boolean",
            "currentValue": !session.switches.is_off(&skill.name),
        })
    };
    session.switches.all().iter().take(MAX_TOGGLES).map(entry).collect()
}

/// Adds our options to the array `list` of the agent's.
fn merge(edit: &mut Edit, list: Node<'_>, session: &Session, version: Version) {
    let ours: Vec<_> = entries(session, version).iter().map(ToString::to_string).collect();
    if !ours.is_empty() {
        edit.push(list, &ours.join(","));
    }
}

/// What the agent sent last, and ours.
fn union(session: &Session, version: Version) -> Option<String> {
    let theirs = session.options.agent_options();
    let mut edit = Edit::new();
    merge(&mut edit, Node::parse(theirs)?, session, version);
    String::from_utf8(edit.apply(theirs)).ok()
}

/// Adds our options to the list that `object` has, or should have, and keeps the agent's.
fn add(edit: &mut Edit, object: Node<'_>, session: &mut Session, version: Version) {
    let list = object.get(LIST);
    if let Some(list) = list.filter(Node::is_array) {
        session.options.set_agent_options(list.raw());
        session.options.shown();
        return merge(edit, list, session, version);
    }
    if session.switches.all().is_empty() {
        return;
    }
    let Some(all) = union(session, version) else { return };
    match list {
        Some(nothing) if nothing.is_null() => edit.replace(nothing.span(), all),
        None if object.is_object() => edit.insert(object, LIST, &all),
        None if object.is_null() => edit.replace(object.span(), format!("{{\"{LIST}\":{all}}}")),
        // What no protocol knows is left to the client, as it is.
        _ => return,
    }
    session.options.shown();
}

impl Interceptor {
    /// Whether the user wants switches, and the client shows them.
    fn has_toggles(&self) -> bool {
        self.policy.toggles && self.client.shows_booleans(self.agent.version)
    }

    /// A response that sets a session up, or answers a change of an option of the agent's: with our options.
    pub(crate) fn with_options(&mut self, key: SessionKey, message: &Message<'_>, pass: Pass) -> Pass {
        if !self.has_toggles() {
            return pass;
        }
        let version = self.agent.version;
        let Some(session) = self.sessions.get(key) else { return pass };
        let line = match &pass {
            Pass::Edited(line) => line.as_slice(),
            Pass::Untouched => message.line,
            Pass::Consumed => return pass,
        };
        let Some(message) = Message::parse(line) else { return pass };
        let Some(result) = message.result else { return pass };
        let mut edit = Edit::new();
        add(&mut edit, result, session, version);
        if edit.is_empty() {
            return pass;
        }
        Pass::Edited(edit.apply(line))
    }

    /// The agent's options have changed: ours are added.
    pub(crate) fn options_update(&mut self, message: &Message<'_>, update: Node<'_>) -> Pass {
        if !self.has_toggles() {
            return Pass::Untouched;
        }
        let version = self.agent.version;
        let session = message.session_id().and_then(|id| self.sessions.find(&id));
        let Some(session) = session.filter(|_| update.get(LIST).is_some_and(|list| list.is_array())) else {
            return Pass::Untouched;
        };
        let mut edit = Edit::new();
        add(&mut edit, update, session, version);
        if edit.is_empty() { Pass::Untouched } else { Pass::Edited(edit.apply(message.line)) }
    }

    /// The client sets an option: one of ours is answered here, any other is the agent's.
    pub(crate) fn set_option(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        actions: &mut Actions,
    ) -> Option<(Purpose, Pass)> {
        let untouched = Some((Purpose::Other, Pass::Untouched));
        if !self.has_toggles() {
            return untouched;
        }
        let version = self.agent.version;
        let session = message.session_id().and_then(|id| self.sessions.find(&id));
        let Some(session) = session else { return untouched };
        let key = session.key();
        let option = message.param(&["configId"]).and_then(|id| id.as_str()).unwrap_or_default();
        let prefix = prefix(session, version);
        let Some(name) = option.strip_prefix(prefix.as_str()).and_then(SkillName::new) else {
            return Some((Purpose::Option(key), Pass::Untouched));
        };
        let value = message.param(&["value"]).and_then(|value| value.as_bool());
        let is_known = session.switches.all().get(name.as_str()).is_some();
        let answer = match value {
            Some(on) if is_known => {
                self.turn(key, &[name], on, actions);
                let session = self.sessions.get(key)?;
                let all = union(session, version)?;
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"{LIST}\":{all}}}}}\n", id.to_json())
                    .into_bytes()
            }
            Some(_) => build::error(id, INVALID_PARAMS, &format!("there is no skill `{name}` any more")),
            None => build::error(id, INVALID_PARAMS, "`value` is `true` or `false`"),
        };
        actions.to_client.push(answer);
        None
    }

    /// The skills of a session, or what is on, have changed: the client is told, where it shows them.
    pub(crate) fn options_changed(&mut self, key: SessionKey, actions: &mut Actions) {
        if !self.has_toggles() {
            return;
        }
        let version = self.agent.version;
        let Some(session) = self.sessions.get(key) else { return };
        let (Some(id), Some(all), true) =
            (session.id(), union(session, version), session.options.were_shown())
        else {
            return;
        };
        let params =
            json!({ "sessionId": id, "update": { "sessionUpdate": "config_option_update", LIST: [] } });
        let line = build::notification("session/update", &params);
        let list = Message::parse(&line).and_then(|message| message.param(&["update", LIST]));
        let Some(list) = list else { return };
        let mut edit = Edit::new();
        // The agent's own, as they are.
        edit.replace(list.span(), all);
        actions.to_client.push(edit.apply(&line));
    }
}
