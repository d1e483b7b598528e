//! Warnings for the user, as [notices](https://agentclientprotocol.com/rfds/session-notices) of their session. Only clients that
//! announce `session.notices` get them. All others have the log.

use acp_skills_wire::build;
use serde_json::json;
use skills_core::text::shown;

use crate::{
    Interceptor,
    keys::SessionKey,
    outputs::Actions,
    requests::{Purpose, Setup},
    session::Session,
};

/// The maximum number of notices that are kept until a session is set up.
const MAX_KEPT: usize = 16;

/// Builds a notice. Returns `None` if the agent's id of the session is not known.
fn notice(session: &Session, text: &str) -> Option<Vec<u8>> {
    let title = format!("Agent Skills: {}", shown(text));
    let update = json!({ "sessionUpdate": "notice", "severity": "warning", "title": title });
    Some(build::notification("session/update", &json!({ "sessionId": session.id()?, "update": update })))
}

impl Interceptor {
    /// Sends the notices of this decision. Those of a session that is being set up are kept until the response.
    pub(crate) fn send_notices(&mut self, actions: &mut Actions) {
        for (key, text) in std::mem::take(&mut actions.notices) {
            if !self.client.shows_notices() {
                continue;
            }
            let is_setting_up = self.requests.values().any(
                |open| matches!(&open.purpose, Purpose::SetUp(Setup { session, .. }) if *session == key),
            );
            let Some(session) = self.sessions.get(key) else { continue };
            if !is_setting_up {
                actions.to_client.extend(notice(session, &text));
            } else if session.notices.len() < MAX_KEPT {
                session.notices.push(text);
            }
        }
    }

    /// Sends the notices that were kept until the session was set up, after the response.
    pub(crate) fn notices_after_response(&mut self, key: SessionKey, actions: &mut Actions) {
        let Some(session) = self.sessions.get(key) else { return };
        for text in std::mem::take(&mut session.notices) {
            actions.after.extend(notice(session, &text));
        }
    }
}
