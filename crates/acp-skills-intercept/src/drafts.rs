//! The drafts of the protocol about skills, for clients that know them: `skills/list`, which
//! [an agent answers with its skills](https://github.com/agentclientprotocol/agent-client-protocol/pull/509), and
//! `agentSkills`, which [a client brings for a session](https://github.com/agentclientprotocol/agent-client-protocol/pull/2163).
//!
//! Nothing of it is seen unless the user wants it. Then `initialize` says that both work, whatever the agent can do. An
//! agent that offers one of the two itself keeps it: its list gets our skills behind its own, and what a client brings is
//! for the agent. Programs that are built with the SDK can neither send nor read fields that it does not have, so that each
//! of them may stand in `_meta` beside where it belongs, and `_skills/list` is the same request.

mod brought;

use acp_skills_wire::{Edit, INVALID_PARAMS, Id, Message, Node, build};
use serde_json::{Value, json};
use skills_core::{Skill, SkillName, SkillSet, text::shown};

use self::brought::{AGENT_SKILLS, Brought};
use crate::{
    Interceptor,
    keys::{SessionKey, Ticket},
    menu::spelling,
    outputs::{Actions, Pass},
    pending::Kind,
    queries::{Query, Reason},
    requests::{OpenRequest, Purpose},
    session::Session,
};

/// The capability to list skills.
const LIST: &str = "skills";
/// The capability to take those that a client brings.
const BRING: &str = "agentSkill";
/// Where the protocol has room for what it does not know.
const META: &str = "_meta";

/// What an agent offers of the drafts by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Offered {
    /// It lists its skills.
    list: bool,
    /// It takes skills in the field of the draft.
    field: bool,
    /// It takes them in `_meta`: another proxy like this one.
    meta: bool,
}

impl Offered {
    /// What an agent says of its sessions.
    pub(crate) fn read(session: Option<Node<'_>>) -> Self {
        let marked = |node: Option<Node<'_>>| {
            node.is_some_and(|node| {
                !node.is_null()
                    && node.as_bool() != Some(false)
                    && node.get("supported").and_then(|it| it.as_bool()) != Some(false)
            })
        };
        let at = |path: &[&str]| marked(session.and_then(|session| session.at(path)));
        Self { list: at(&[LIST]), field: at(&[BRING]), meta: at(&[META, BRING]) }
    }
}

impl Interceptor {
    /// The client sets up a session; what it brings for it stays here. Nothing when the request is answered already.
    pub(crate) fn begin(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        actions: &mut Actions,
    ) -> Option<(Purpose, Pass)> {
        if !self.policy.drafts {
            return Some(self.begin_with(message, id, None, actions));
        }
        let offered = self.agent.drafts;
        let brought = match Brought::read(message, !offered.field, !offered.meta) {
            Ok(None) => return Some(self.begin_with(message, id, None, actions)),
            Ok(Some(brought)) => brought,
            Err(why) => {
                actions.to_client.push(build::error(id, INVALID_PARAMS, &format!("`{AGENT_SKILLS}`: {why}")));
                return None;
            }
        };
        for warning in brought.warnings {
            actions.warn(warning);
        }
        let line = brought.edit.apply(message.line);
        let without = Message::parse(&line)?;
        let (purpose, pass) = self.begin_with(&without, id, Some(brought.skills), actions);
        Some((purpose, if pass == Pass::Untouched { Pass::Edited(line) } else { pass }))
    }

    fn begin_with(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        brought: Option<SkillSet>,
        actions: &mut Actions,
    ) -> (Purpose, Pass) {
        match message.method().as_ref() {
            "session/new" | "session/fork" => self.new_session(message, id, brought, actions),
            _ => self.enter_session(message, id, brought, actions),
        }
    }

    /// The agent says what it can do: what we add to that is said, too.
    pub(crate) fn announce(&self, message: &Message<'_>, result: Node<'_>) -> Pass {
        if !self.policy.drafts || !result.is_object() {
            return Pass::Untouched;
        }
        let offered = self.agent.drafts;
        let bring = json!({ "supported": true, "maxSkills": brought::MAX_SKILLS });
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

    /// The client wants to know which skills there are. Nothing when the request is answered already.
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
            // Of a session that is not known here, the agent's own are all that there are.
            return Some((key.map_or(Purpose::Other, |key| Purpose::ListSkills(Some(key))), Pass::Untouched));
        }
        actions.to_client.push(match session {
            Some(session) => build::result(id, &json!({ "skills": descriptors(&session.skills) })),
            None => build::error(id, INVALID_PARAMS, &format!("there is no session `{}`", shown(&name))),
        });
        None
    }

    /// Has the skills looked for that a session without a directory would have.
    fn find_list(&mut self, id: Id, agent_list: Option<Vec<u8>>, actions: &mut Actions) {
        let ticket = self.pending.new_ticket();
        self.pending.insert(ticket, None, Some(id), Kind::SkillList { agent_list });
        actions.ask(Query::Skills { directories: vec![None], reason: Reason::List(ticket) });
    }

    /// The agent has listed its own skills: ours come behind them.
    pub(crate) fn skills_listed(
        &mut self,
        session: Option<SessionKey>,
        id: &Id,
        message: &Message<'_>,
        actions: &mut Actions,
    ) -> Pass {
        let Some(key) = session else {
            let open = OpenRequest { method: "skills/list".to_owned(), purpose: Purpose::Pending };
            self.requests.insert(id.clone(), open);
            self.find_list(id.clone(), Some(message.line.to_vec()), actions);
            return Pass::Consumed;
        };
        let Some(session) = self.sessions.get(key) else { return Pass::Untouched };
        merged(id, message, &session.skills)
    }

    /// The skills are here that a list of no session has.
    pub(crate) fn list_found(&mut self, ticket: Ticket, found: &SkillSet, actions: &mut Actions) {
        let Some((id, agent_list)) = self.pending.take_list(ticket) else { return };
        // The agent may have answered a request that it never got.
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
    /// From now on it has these skills of the client's. Names of the library's stay the library's: what the user set up is
    /// not replaced by what a program sends.
    pub(crate) fn bring(&mut self, brought: SkillSet, actions: &mut Actions) {
        for skill in brought.iter().filter(|skill| self.switches.library().get(skill.name.as_str()).is_some())
        {
            let name = &skill.name;
            actions.warn(format!(
                "the client's skill `{name}` is left out: there is one of this name already; the client can give it another"
            ));
        }
        self.skills = self.switches.bring(brought);
    }
}

/// The agent's answer with our skills behind its own, whose names stay its own. Where it has none to give, ours are the
/// answer.
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

/// What a list says of each skill that a person or the model may use by knowing of it.
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
            entry[key] = Value::from(&**text);
        }
    }
    if !properties.allowed_tools.is_empty() {
        entry["allowedTools"] = properties.allowed_tools.clone().into();
    }
    entry
}

fn owned((key, value): (&str, Value)) -> (String, Value) {
    (key.to_owned(), value)
}

/// Adds members to the object at `path` below `object`, instead of those that it has of these names; makes what is not
/// there.
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
