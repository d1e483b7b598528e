//! Events for the record, and the active skills that are saved for a session.

use acp_skills_wire::Id;
use skills_core::SkillName;

use crate::{
    Interceptor,
    active_skills::ActivatedBy,
    events::{EventKind, Outcome, SessionOrigin},
    keys::SessionKey,
    outputs::{Actions, Effect},
    session::Session,
};

impl Interceptor {
    /// Records that a session was opened by the agent. The id should be known at this time.
    pub(crate) fn started(&mut self, key: SessionKey, method: &str, actions: &mut Actions) {
        let agent = self.agent.name.clone();
        let Some(session) = self.sessions.get(key) else { return };
        if let Some(id) = session.id() {
            actions.effects.push(Effect::Opened { session: key, id: id.to_owned() });
        }
        let kind = EventKind::SessionStarted {
            how: SessionOrigin::of(method),
            agent,
            proxy: env!("CARGO_PKG_VERSION").to_owned(),
            skills: session.skills.iter().map(|skill| skill.name.to_string()).collect(),
            saved_tokens: EventKind::saved_tokens(&session.skills),
        };
        let kinds = std::iter::once(kind).chain(EventKind::refusals(&session.skills));
        let id = session.id().map(str::to_owned);
        actions.effects.extend(kinds.map(|kind| Effect::Record { session: id.clone(), kind }));
        // A copy starts out with active skills, and a skill can be activated before we know the id. So we save them here.
        if session.activations.iter().next().is_some() {
            remember(session, actions);
        }
    }

    /// Records that the model has activated a skill.
    pub(crate) fn activated(&mut self, key: SessionKey, skill: &SkillName, actions: &mut Actions) {
        let key = self.caller(key);
        if let Some(session) = self.sessions.get(key) {
            activate(session, skill, ActivatedBy::Model, actions);
            received(session, skill, None, actions);
        }
    }

    /// Returns the session whose model has called the skills server of the session `key`.
    ///
    /// OpenCode uses the server of the session that was opened last for all sessions of a directory. So if that session is idle, and
    /// only one other session of the directory works, the call belongs to the other one.
    fn caller(&self, key: SessionKey) -> SessionKey {
        let Some(session) = self.sessions.iter().find(|session| session.key() == key) else { return key };
        if session.turns.agent_works() {
            return key;
        }
        let is_other = |other: &&Session| other.turns.agent_works() && other.workspace == session.workspace;
        let mut others = self.sessions.iter().filter(is_other);
        match (others.next(), others.next()) {
            (Some(other), None) => other.key(),
            _ => key,
        }
    }

    /// Records an event of a session's MCP server.
    pub(crate) fn recorded(&mut self, key: SessionKey, kind: EventKind, actions: &mut Actions) {
        if kind.is_reading_call() {
            self.agent.has_called = true;
        }
        let key = self.caller(key);
        let session = self.sessions.get(key).and_then(|session| {
            if let Some(skill) = used_skill(&kind) {
                session.activations.used(&skill);
            }
            Some(session.id()?.to_owned())
        });
        actions.effects.push(Effect::Record { session, kind });
    }
}

/// Records that the proxy adds a skill to a prompt, if the activation succeeded.
pub(crate) fn put_in_front(
    session: &mut Session,
    kind: &EventKind,
    prompt: Option<Id>,
    actions: &mut Actions,
) {
    if let Some(skill) = used_skill(kind) {
        activate(session, &skill, ActivatedBy::Prompt, actions);
        received(session, &skill, prompt, actions);
    }
}

/// Returns the skill that was used successfully.
fn used_skill(kind: &EventKind) -> Option<SkillName> {
    let is_ok = kind.end().is_some_and(|end| end.outcome == Outcome::Ok);
    kind.skill().filter(|_| is_ok).and_then(SkillName::new)
}

/// Adds a skill to the active ones.
pub(crate) fn activate(session: &mut Session, skill: &SkillName, by: ActivatedBy, actions: &mut Actions) {
    if session.activations.add(skill, by, &session.skills, session.workspace.cwd.as_deref()) {
        remember(session, actions);
    }
}

/// Notes that the model receives the instructions of a skill. `prompt` is the prompt that contains them, or `None` if they are in
/// the result of a tool.
pub(crate) fn received(session: &mut Session, skill: &SkillName, prompt: Option<Id>, actions: &mut Actions) {
    session.compaction.activated(skill, prompt);
    if session.compaction.lost().is_some() {
        session.remind(actions);
    }
}

/// Saves the active skills of a session.
pub(crate) fn remember(session: &Session, actions: &mut Actions) {
    if let Some(id) = session.id() {
        let active = session.activations.to_remember();
        actions.effects.push(Effect::SaveActiveSkills { id: id.to_owned(), active });
    }
}
