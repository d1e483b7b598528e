//! Setup requests that the agent refuses, and agents that fail on the skills server later.

use acp_skills_wire::{AUTH_REQUIRED, Id, Message, Node, REQUEST_CANCELLED};
use skills_core::catalog::Guide;

use crate::{
    Interceptor,
    events::{EventKind, FallbackReason},
    keys::SessionKey,
    outputs::{Actions, Effect, Level, Pass},
    policy::McpMode,
    requests::{OpenRequest, Purpose, Setup, SetupKind},
    servers,
    session::Session,
};

impl Interceptor {
    /// Handles an error for a setup request. The agent may have refused the skills server, so the request is retried:
    /// with another name for the server if the error is about the name, otherwise without the skills server.
    pub(crate) fn refused(
        &mut self,
        id: Id,
        method: String,
        setup: Setup,
        message: &Message<'_>,
        actions: &mut Actions,
    ) -> Pass {
        let Setup { session: key, kind, retry } = setup;
        let code = message.error.and_then(|error| error.get("code")).map(|code| code.raw().to_vec());
        let is = |other: i64| code.as_deref() == Some(other.to_string().as_bytes());
        // We only want to retry if the error may be about the skills server. This can't be the case if the user isn't logged
        // in, or if the request was cancelled.
        let is_about_us = message.error.is_some() && !is(AUTH_REQUIRED) && !is(REQUEST_CANCELLED);
        if let Some(line) = retry.filter(|_| is_about_us)
            && let Some(mut session) = self.sessions.remove(key)
            && let Some(again) = Message::parse(&line)
        {
            let name_is_taken = self.name_is_taken(&session, message);
            let transport = servers::choose(&self.policy, &self.agent).filter(|_| name_is_taken);
            if name_is_taken {
                let text =
                    format!("{method} failed because of the MCP server name; retrying with another name");
                actions.log(Level::Info, text);
                self.memory.needs_own_server_names = true;
                session.server.forget_name();
            } else {
                let kind = EventKind::Fallback { reason: FallbackReason::Refused, ms: None };
                actions.effects.push(Effect::Record { session: session.id().map(str::to_owned), kind });
                let text = format!("{method} failed with the skills server; retrying without skills server");
                actions.log(Level::Info, text);
                actions.effects.push(Effect::CloseServer(key));
                session.server.closed();
                session.briefing.reset();
            }
            let pass = self.set_up(&mut session, &again, transport, actions);
            self.sessions.add(session);
            let retry = name_is_taken.then(|| line.clone());
            actions.to_agent.push(match pass {
                Pass::Edited(edited) => edited,
                Pass::Untouched | Pass::Consumed => line,
            });
            let purpose = Purpose::SetUp(Setup { session: key, kind, retry });
            self.requests.insert(id, OpenRequest::new(&method, purpose));
            return Pass::Consumed;
        }
        if kind != (SetupKind::Reopen { known: true }) {
            self.close_session(key, actions);
        }
        Pass::Untouched
    }

    /// Looks for failures of the skills server in the answer to a prompt. Some agents accept the server and fail on it with every
    /// prompt. They get another transport in the next session, and finally none. This session cannot be repaired.
    pub(crate) fn judge_transport(&mut self, key: SessionKey, answer: &Message<'_>, actions: &mut Actions) {
        let Some(error) = answer.error else { return };
        let mode = self.policy.mcp;
        let Some(session) = self.sessions.get(key) else { return };
        let (Some(transport), Some(name)) = (session.server.transport(), session.server.name()) else {
            return;
        };
        // If the agent has already connected to the skills server, we know that the transport works.
        let is_about_us =
            mode == McpMode::Auto && !session.server.is_connected() && names_server(error, name);
        if !is_about_us || servers::choose(&self.policy, &self.agent) != Some(transport) {
            return;
        }
        self.agent.fails_on(transport);
        let kind = EventKind::Fallback { reason: FallbackReason::Refused, ms: None };
        actions.effects.push(Effect::Record { session: session.id().map(str::to_owned), kind });
        let (next, flag) = match servers::choose(&self.policy, &self.agent) {
            Some(next) => (format!("uses {}", next.name()), next.name()),
            None if self.without_tools() == Guide::Prompts => {
                ("uses no skills server, but adds the skills that match to prompts".to_owned(), "off")
            }
            None => ("uses no skills server, but gives paths to skill files to the model".to_owned(), "off"),
        };
        actions.warn_user(key, format!(
            "agent failed to use the skills server over {}; next session {next} (to use this from the start: `--mcp {flag}`)",
            transport.name()
        ));
    }

    /// Returns true if the agent refused `session` because another session has a server of the same name: fast-agent has one
    /// list of servers for all sessions.
    fn name_is_taken(&self, session: &Session, message: &Message<'_>) -> bool {
        let Some(name) = session.server.name() else { return false };
        let error = message.error.map(|error| error.raw()).unwrap_or_default();
        memchr::memmem::find(error, name.as_bytes()).is_some()
            && self.sessions.iter().any(|other| other.server.name() == Some(name))
    }
}

/// Returns true if an error is about the server `name`, or about the configuration of MCP servers.
fn names_server(error: Node<'_>, name: &str) -> bool {
    let text = String::from_utf8_lossy(error.raw()).to_lowercase();
    let is_about_mcp = ["mcpconfig", "mcpserver", "mcp server", "mcp_server", "mcp config"];
    text.contains(name) || is_about_mcp.iter().any(|words| text.contains(words))
}
