//! [`Forms`]: forms that a client shows to the user, with an
//! [elicitation](https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation).

use std::{collections::HashSet, path::PathBuf};

use parking_lot::Mutex;
use rmcp::{
    Peer, RoleServer,
    model::{
        ClientCapabilities, ClientResult, ElicitRequestParams, ElicitationAction, Request, ServerRequest,
    },
};
use serde_json::Value;

/// The place and the version of a skill that a form was about.
pub(super) type AskedAbout = (Option<PathBuf>, String);

/// The forms of one session.
#[derive(Default)]
pub(super) struct Forms {
    /// Guards the client, if it shows forms to the user. No other lock is taken while it is held.
    client: Mutex<Option<Peer<RoleServer>>>,
    /// Guards the tools of servers that the user has allowed: the identity of the skill with the directories of the session, and the name of
    /// the tool. No other lock is taken while it is held.
    allowed: Mutex<HashSet<(String, String)>>,
}

impl Forms {
    /// Uses a client for forms, if it has these capabilities. A client that names no mode shows forms.
    pub(super) fn connect(&self, client: &Peer<RoleServer>, capabilities: &ClientCapabilities) {
        let modes = capabilities.elicitation.as_ref();
        if modes.is_some_and(|modes| modes.form.is_some() || modes.url.is_none()) {
            *self.client.lock() = Some(client.clone());
        }
    }

    /// Returns the client, if it shows forms.
    pub(super) fn client(&self) -> Option<Peer<RoleServer>> {
        self.client.lock().clone()
    }

    /// Remembers that the user has allowed all calls of a tool. `skill` is the [identity](skills_core::Skill::identity) of the skill with
    /// the directories of the session, because another skill can get its name.
    pub(super) fn allow_always(&self, skill: String, tool: String) {
        self.allowed.lock().insert((skill, tool));
    }

    /// Returns true if the user has allowed all calls of a tool.
    pub(super) fn is_allowed(&self, skill: &str, tool: &str) -> bool {
        self.allowed.lock().iter().any(|allowed| allowed.0 == skill && allowed.1 == tool)
    }
}

/// Shows a form. Returns the action of the user, and the content of the form. `None` if the client did not answer.
pub(super) async fn show(client: &Peer<RoleServer>, params: Value) -> Option<(&'static str, Option<Value>)> {
    let params: ElicitRequestParams = serde_json::from_value(params).ok()?;
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
    Some((action, result.content))
}
