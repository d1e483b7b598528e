//! What is recorded, and what is remembered of a session.

use skills_core::SkillName;

use super::{Actions, Effect, Interceptor};
use crate::{
    events::{EventKind, Outcome, SessionOrigin},
    session::{By, Session, SessionKey},
};

impl Interceptor {
    /// The agent opened a session: its id is known.
    pub(super) fn started(&mut self, key: SessionKey, method: &str, actions: &mut Actions) {
        let agent = self.agent.name.clone();
        let Some(session) = self.sessions.get(key) else { return };
        let what = EventKind::SessionStarted {
            how: SessionOrigin::of(method),
            agent,
            proxy: env!("CARGO_PKG_VERSION").to_owned(),
            skills: session.skills.iter().map(|skill| skill.name.to_string()).collect(),
        };
        actions.effects.push(Effect::Record { session: session.id.clone(), what });
        // A fork begins with what was active, and an early call can come before the id.
        if !session.active.is_empty() {
            remember(session, actions);
        }
    }

    /// Somebody activated a skill.
    pub(super) fn activated(&mut self, key: SessionKey, skill: &SkillName, by: By, actions: &mut Actions) {
        if let Some(session) = self.sessions.get(key)
            && session.activate(skill, by)
        {
            remember(session, actions);
        }
    }

    /// Something for the record happened in a session.
    pub(super) fn recorded(&mut self, key: SessionKey, what: EventKind, actions: &mut Actions) {
        let session = self.sessions.get(key).and_then(|session| session.id.clone());
        actions.effects.push(Effect::Record { session, what });
    }
}

/// The proxy has put a skill in front of a prompt, unless it could not.
pub(super) fn fits(session: &mut Session, what: &EventKind, actions: &mut Actions) {
    let is_ok = what.end().is_some_and(|end| end.outcome == Outcome::Ok);
    if let Some(skill) = what.skill().filter(|_| is_ok).and_then(SkillName::new)
        && session.activate(&skill, By::Prompt)
    {
        remember(session, actions);
    }
}

fn remember(session: &Session, actions: &mut Actions) {
    if let Some(id) = session.id.clone() {
        actions.effects.push(Effect::Remember { id, active: session.active.clone() });
    }
}
