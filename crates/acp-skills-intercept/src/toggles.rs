//! Skills as switches in the client: each skill is a boolean among the
//! [configuration options](https://agentclientprotocol.com/protocol/v1/session-config-options) of its session, after the
//! agent's own options, which are forwarded as they are.
//!
//! A list of options always replaces the previous list, so the skills are added to every list from the agent. We also keep the
//! agent's last list, to send it again when the skills change. The ids of skills begin with a prefix that the agent doesn't
//! use, because the agent may be another proxy that does the same.

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

/// The maximum number of skills with a switch. Clients show all options at once.
const MAX_TOGGLES: usize = 30;

/// The member with the list of options.
const LIST: &str = "configOptions";

/// Returns a prefix for the ids of skills. No id in the agent's list begins with this prefix.
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

/// Returns the options for skills as JSON.
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

/// Adds the options for skills to the agent's array `list`.
fn merge(edit: &mut Edit, list: Node<'_>, session: &Session, version: Version) {
    let ours: Vec<_> = entries(session, version).iter().map(ToString::to_string).collect();
    if !ours.is_empty() {
        edit.push(list, &ours.join(","));
    }
}

/// Returns the agent's last list together with the options for skills.
fn union(session: &Session, version: Version) -> Option<String> {
    let theirs = session.options.agent_options();
    let mut edit = Edit::new();
    merge(&mut edit, Node::parse(theirs)?, session, version);
    String::from_utf8(edit.apply(theirs)).ok()
}

/// Adds the options for skills to the list in `object`, and keeps a copy of the agent's list. If there is no list, this
/// function creates it.
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
        // The protocol doesn't allow this value, so we forward the message without adding our options.
        _ => return,
    }
    session.options.shown();
}

impl Interceptor {
    /// Returns true if the user wants switches, and the client shows boolean options.
    fn has_toggles(&self) -> bool {
        self.policy.toggles && self.client.shows_booleans(self.agent.version)
    }

    /// Adds the options for skills to a response of the agent: to a request that sets up a session, or that changes one
    /// of the agent's own options.
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

    /// Adds the options for skills to an update from the agent.
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

    /// Handles `session/set_config_option`. Returns `None` if the request was answered here, because the option belongs to the proxy.
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
            Some(_) => build::error(id, INVALID_PARAMS, &format!("skill `{name}` no longer exists")),
            None => build::error(id, INVALID_PARAMS, "`value` should be `true` or `false`"),
        };
        actions.to_client.push(answer);
        None
    }

    /// Sends the client an update of the options, because skills of a session have changed.
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
        // Insert the agent's options as raw JSON to avoid changing them.
        edit.replace(list.span(), all);
        actions.to_client.push(edit.apply(&line));
    }
}
