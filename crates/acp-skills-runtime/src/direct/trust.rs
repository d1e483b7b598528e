//! Asks the user about skills of a project, with an [elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation)
//! of a client that shows forms. The log names these skills in any case.

use std::sync::Arc;

use acp_skills_intercept::{TrustForm, trust_decision};
use rmcp::{
    Peer, RoleServer,
    model::{
        ClientCapabilities, ClientResult, ElicitRequestParams, ElicitationAction, Request, ServerRequest,
    },
};
use skills_core::set::Unapproved;

use super::sessions::{Session, Sessions};

/// Returns true if a client shows forms. A client that names no mode shows forms.
pub(super) fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    let modes = capabilities.elicitation.as_ref();
    modes.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Asks the user of a session about new skills, in the background.
pub(super) fn ask(sessions: &Sessions, session: &Arc<Session>) {
    let Some(client) = session.forms.lock().clone() else { return };
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
    let params: ElicitRequestParams = serde_json::from_value(params.into()).ok()?;
    let result = match client.send_request(ServerRequest::ElicitRequest(Request::new(params))).await {
        Ok(ClientResult::ElicitResult(result)) => result,
        Ok(_) => return None,
        Err(error) => {
            tracing::debug!(%error, "client did not answer a form");
            return None;
        }
    };
    let action = match result.action {
        ElicitationAction::Accept => "accept",
        ElicitationAction::Decline => "decline",
        _ => "cancel",
    };
    trust_decision(action, result.content.as_ref())
}
