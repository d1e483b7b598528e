//! Servers and handlers of a session for tests.

use std::sync::Arc;

use acp_skills_intercept::SessionKey;
use skills_core::{CallContext, Skill, Toolbox};
use tokio::sync::mpsc::unbounded_channel;

use super::{
    Servers,
    handler::{Handler, Reports},
    serving::Serving,
};
use crate::spans::Spans;

pub(super) const REVISION: &str = "2025-06-18";

pub(super) fn skill(name: &str) -> Skill {
    Skill::builder(name, "Reviews.").body("Do it.").build().unwrap()
}

pub(super) fn handler(skill: Skill) -> Handler {
    let toolbox = Toolbox::new([skill].into_iter().collect());
    let serving = Serving::new(toolbox, CallContext::default());
    let inputs = unbounded_channel().0;
    Handler::new(SessionKey(1), serving, Reports { inputs, observer: None, spans: Spans::default() })
}

/// Replaces the skills and notifies the clients.
pub(super) async fn serve(handler: &Handler, names: &[&str]) {
    let skills = names.iter().map(|name| skill(name)).collect();
    handler.listeners.notify(handler.serve(&skills, CallContext::default(), false)).await;
}

/// Returns servers with one session.
pub(super) fn servers() -> Servers {
    let make = Arc::new(Toolbox::new);
    let servers = Servers::new(make, None, unbounded_channel().0, None, Spans::default());
    let skills = [skill("review")].into_iter().collect();
    servers.serve(SessionKey(1), &skills, CallContext::default(), true);
    servers
}
