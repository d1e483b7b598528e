//! Drafts of the protocol about skills, for clients that support them: `available_skills_update`, with which an agent
//! [lists the skills of a session](https://github.com/agentclientprotocol/agent-client-protocol/pull/370); `skills/list`, the same
//! as a request, from [a draft that was closed in favour of it](https://github.com/agentclientprotocol/agent-client-protocol/pull/509);
//! and `agentSkills`, with which [a client provides skills for a
//! session](https://github.com/agentclientprotocol/agent-client-protocol/pull/2163).
//!
//! They are off by default. If the user turns them on, the response to `initialize` announces the last two, even if the agent
//! supports neither. If the agent itself supports one of them, it still handles it: our skills are added to the agent's
//! list, and the client's skills go to the agent. Programs that are built with the SDK can only send and read fields
//! that the SDK knows, so each field can also be in `_meta`, and `_skills/list` is the same request as `skills/list`.

mod client_skills;
mod skill_updates;

use acp_skills_wire::{Edit, INVALID_PARAMS, Id, Message, Node, build};
use serde_json::{Value, json};
use skills_core::{Skill, SkillName, SkillSet, text::shown};

use self::client_skills::{AGENT_SKILLS, ClientSkills};
use crate::{
    Interceptor,
    keys::{SessionKey, Ticket},
    menu::spelling,
    outputs::{Actions, Pass},
    pending::Kind,
    queries::{Query, Reason},
    requests::{OpenRequest, Purpose},
    session::Session,
    workspace::Workspace,
};

/// The name of the capability to list skills.
const LIST: &str = "skills";
/// The name of the capability to use the client's skills.
const BRING: &str = "agentSkill";
/// The member for extensions of the protocol.
const META: &str = "_meta";

/// The parts of the drafts that the agent itself supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Offered {
    /// True if the agent lists its skills.
    list: bool,
    /// True if the agent reads skills in the field of the draft.
    field: bool,
    /// True if the agent reads skills in `_meta`, as another proxy of this kind does.
    meta: bool,
}

impl Offered {
    /// Reads the agent's session capabilities.
    pub(crate) fn read(session: Option<Node<'_>>) -> Self {
        let marked = |node: Option<Node<'_>>| {
            node.is_some_and(|node| {
                !node.is_null()
                    && node.as_bool() != Some(false)
                    && node.get("supported").and_then(|value| value.as_bool()) != Some(false)
            })
        };
        let at = |path: &[&str]| marked(session.and_then(|session| session.at(path)));
        Self { list: at(&[LIST]), field: at(&[BRING]), meta: at(&[META, BRING]) }
    }
}

impl Interceptor {
    /// Handles a request that sets up a session, and takes the client's skills out of it. Returns `None` if the request was
    /// answered here.
    pub(crate) fn setup_request(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        actions: &mut Actions,
    ) -> Option<(Purpose, Pass)> {
        if !self.policy.drafts {
            return Some(self.setup_request_with(message, id, None, actions));
        }
        let offered = self.agent.drafts;
        let provided = match ClientSkills::read(message, !offered.field, !offered.meta) {
            Ok(None) => return Some(self.setup_request_with(message, id, None, actions)),
            Ok(Some(provided)) => provided,
            Err(error) => {
                actions.to_client.push(build::error(
                    id,
                    INVALID_PARAMS,
                    &format!("`{AGENT_SKILLS}`: {error}"),
                ));
                return None;
            }
        };
        for warning in provided.warnings {
            actions.warn(warning);
        }
        let line = provided.edit.apply(message.line);
        let without = Message::parse(&line)?;
        let (purpose, pass) = self.setup_request_with(&without, id, Some(provided.skills), actions);
        Some((purpose, if pass == Pass::Untouched { Pass::Edited(line) } else { pass }))
    }

    fn setup_request_with(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        client_skills: Option<SkillSet>,
        actions: &mut Actions,
    ) -> (Purpose, Pass) {
        match message.method().as_ref() {
            "session/new" | "session/fork" => self.new_session(message, id, client_skills, actions),
            _ => self.enter_session(message, id, client_skills, actions),
        }
    }

    /// Adds our capabilities to the agent's response to `initialize`.
    pub(crate) fn announce(&self, message: &Message<'_>, result: Node<'_>) -> Pass {
        if !self.policy.drafts || !result.is_object() {
            return Pass::Untouched;
        }
        let offered = self.agent.drafts;
        let bring = json!({ "supported": true, "maxSkills": client_skills::MAX_SKILLS });
        let members = |bring_too: bool| {
            let list = (!offered.list).then(|| (LIST, json!({ "list": {} })));
            list.into_iter().chain(bring_too.then(|| (BRING, bring.clone()))).collect::<Vec<_>>()
        };
        let mut edit = Edit::new();
        let path = self.agent.version.paths().session;
        if let Some(session) = result.at(path).filter(Node::is_object) {
            add(&mut edit, session, &[], members(!offered.field));
            add(&mut edit, session, &[META], members(!offered.meta));
        } else {
            let mut all = members(true);
            all.push((META, Value::Object(members(true).into_iter().map(owned).collect())));
            add(&mut edit, result, path, all);
        }
        if edit.is_empty() { Pass::Untouched } else { Pass::Edited(edit.apply(message.line)) }
    }

    /// Handles `skills/list`. Returns `None` if the request was answered here.
    pub(crate) fn list_skills(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        actions: &mut Actions,
    ) -> Option<(Purpose, Pass)> {
        if !self.policy.drafts {
            return Some((Purpose::Other, Pass::Untouched));
        }
        let offers = self.agent.drafts.list;
        let name = message.param(&["sessionId"]).filter(|name| !name.is_null());
        let Some(name) = name else {
            if offers {
                return Some((Purpose::ListSkills(None), Pass::Untouched));
            }
            self.find_list(id.clone(), None, actions);
            return Some((Purpose::Pending, Pass::Consumed));
        };
        let name = name.as_str().unwrap_or_default();
        let session = self.sessions.find(&name);
        if offers {
            let key = session.map(|session| session.key());
            // If we don't know this session, the client gets the agent's list.
            return Some((key.map_or(Purpose::Other, |key| Purpose::ListSkills(Some(key))), Pass::Untouched));
        }
        actions.to_client.push(match session {
            Some(session) => build::result(id, &json!({ "skills": descriptors(&session.skills) })),
            None => build::error(id, INVALID_PARAMS, &format!("no session `{}` found", shown(&name))),
        });
        None
    }

    /// Asks the host for the skills of a session without a working directory. `agent_list` is the agent's response if it has a
    /// list of its own.
    fn find_list(&mut self, id: Id, agent_list: Option<Vec<u8>>, actions: &mut Actions) {
        let ticket = self.pending.new_ticket();
        self.pending.insert(ticket, None, Some(id), Kind::SkillList { agent_list });
        actions.ask(Query::Skills { workspaces: vec![Workspace::default()], reason: Reason::List(ticket) });
    }

    /// Adds our skills to the agent's list.
    pub(crate) fn skills_listed(
        &mut self,
        session: Option<SessionKey>,
        id: &Id,
        message: &Message<'_>,
        actions: &mut Actions,
    ) -> Pass {
        let Some(key) = session else {
            let open = OpenRequest::new("skills/list", Purpose::Pending);
            self.requests.insert(id.clone(), open);
            self.find_list(id.clone(), Some(message.line.to_vec()), actions);
            return Pass::Consumed;
        };
        let Some(session) = self.sessions.get(key) else { return Pass::Untouched };
        merged(id, message, &session.skills)
    }

    /// Answers a pending `skills/list` request that belongs to no session.
    pub(crate) fn list_found(&mut self, ticket: Ticket, found: &SkillSet, actions: &mut Actions) {
        let Some((id, agent_list)) = self.pending.take_list(ticket) else { return };
        // If the request isn't open anymore, the agent has already answered it, though we never forwarded it. So we don't answer
        // it here.
        if self.requests.remove(&id).is_none() {
            return;
        }
        actions.to_client.push(match agent_list.as_deref().and_then(Message::parse) {
            Some(message) => match merged(&id, &message, found) {
                Pass::Edited(line) => line,
                Pass::Untouched | Pass::Consumed => message.line.to_vec(),
            },
            None => build::result(&id, &json!({ "skills": descriptors(found) })),
        });
    }
}

impl Session {
    /// Sets the client's skills for this session. A skill of the library takes precedence over one of the client with the same
    /// name, because the user has configured the library.
    pub(crate) fn set_client_skills(&mut self, client_skills: SkillSet, actions: &mut Actions) {
        self.warn_of_names(client_skills.clone(), actions);
        self.skills = self.switches.set_client_skills(client_skills);
    }

    /// Warns the user of skills of the client that the library hides.
    pub(crate) fn warn_of_names(&mut self, skills: SkillSet, actions: &mut Actions) {
        for skill in skills.iter().filter(|skill| self.switches.library().get(skill.name.as_str()).is_some())
        {
            let name = &skill.name;
            actions.warn_user(self.key(), format!(
                "ignoring client skill `{name}`, because a proxy skill has the same name; rename the client skill to use both"
            ));
        }
    }
}

/// Adds our skills to the agent's answer. A skill of the agent takes precedence over one of ours with the same name. If the
/// agent's answer has no list, ours replaces it.
fn merged(id: &Id, message: &Message<'_>, ours: &SkillSet) -> Pass {
    let list =
        message.result.and_then(|result| if result.is_array() { Some(result) } else { result.get("skills") });
    let Some(list) = list.filter(Node::is_array) else {
        return Pass::Edited(build::result(id, &json!({ "skills": descriptors(ours) })));
    };
    let theirs: Vec<_> =
        list.elements().filter_map(|skill| Some(SkillName::key_of(&skill.str("name")?))).collect();
    let ours = ours.filtered(|skill| !theirs.contains(&skill.name.key()));
    let raw: Vec<_> = descriptors(&ours).iter().map(ToString::to_string).collect();
    if raw.is_empty() {
        return Pass::Untouched;
    }
    let mut edit = Edit::new();
    edit.push(list, &raw.join(","));
    Pass::Edited(edit.apply(message.line))
}

/// Returns the entries of a list: all skills that are not hidden from discovery.
fn descriptors(skills: &SkillSet) -> Vec<Value> {
    skills
        .iter()
        .filter(|skill| !skill.properties.hide_from_discovery)
        .map(|skill| descriptor(skill))
        .collect()
}

fn descriptor(skill: &Skill) -> Value {
    let properties = &skill.properties;
    let mut entry = json!({ "name": skill.name, "description": spelling::description(skill) });
    let texts = [("license", &properties.license), ("compatibility", &properties.compatibility)];
    for (key, text) in texts {
        if let Some(text) = text {
            entry[key] = Value::from(shown(text));
        }
    }
    if !properties.allowed_tools.is_empty() {
        entry["allowedTools"] = properties.allowed_tools.iter().map(|tool| shown(tool)).collect();
    }
    entry
}

fn owned((key, value): (&str, Value)) -> (String, Value) {
    (key.to_owned(), value)
}

/// Sets members of the object at `path` below `object`. Creates the object and its parents if they do not exist.
fn add(edit: &mut Edit, object: Node<'_>, path: &[&str], members: Vec<(&str, Value)>) {
    if members.is_empty() {
        return;
    }
    let Some((first, rest)) = path.split_first() else {
        for (key, value) in members {
            match object.get(key) {
                Some(other) => edit.set(other, &value),
                None => edit.insert(object, key, &value.to_string()),
            }
        }
        return;
    };
    match object.get(first) {
        Some(child) if child.is_object() => add(edit, child, rest, members),
        other => {
            let all = Value::Object(members.into_iter().map(owned).collect());
            let all = rest.iter().rev().fold(all, |inner, key| json!({ *key: inner }));
            match other {
                Some(other) => edit.set(other, &all),
                None => edit.insert(object, first, &all.to_string()),
            }
        }
    }
}
