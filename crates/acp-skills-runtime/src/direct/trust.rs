//! Asks the user about skills of a project, if the client shows forms. The log names these skills in any case.

use std::sync::Arc;

use acp_skills_intercept::{TrustForm, trust_decision};
use rmcp::{Peer, RoleServer};
use skills_core::set::Unapproved;

use super::{
    forms,
    sessions::{Session, Sessions},
};

/// Asks the user of a session about new skills, in the background.
pub(super) fn ask(sessions: &Sessions, session: &Arc<Session>) {
    let Some(client) = session.forms.client() else { return };
    let skills = sessions.to_ask_about(session);
    if skills.is_empty() {
        return;
    }
    let sessions = sessions.clone();
    // The question must not keep a session open that the client has left.
    let session = Arc::downgrade(session);
    tokio::spawn(async move {
        let Some(trusted) = answer(&client, &skills).await else { return };
        if let Some(session) = session.upgrade() {
            for changed in sessions.decide(&session, skills, trusted).await {
                ask(&sessions, &changed);
            }
        }
    });
}

/// Returns the user's decision. `None` if there is none, for example because the user closed the form.
async fn answer(client: &Peer<RoleServer>, skills: &[Unapproved]) -> Option<bool> {
    let params = TrustForm { skills, has_commands: false }.params();
    let (action, content) = forms::show(client, params.into()).await?;
    trust_decision(action, content.as_ref())
}
