//! What becomes of a session that the agent refuses to set up.

use acp_skills_wire::{AUTH_REQUIRED, Id, Message, Node, REQUEST_CANCELLED};

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
    /// A session could not be set up. Perhaps the agent does not take our server: it gets a second chance with another
    /// name, when the name is what it complains of, or without.
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
        // It wants a login, or the client has changed its mind: neither is about our server.
        let is_about_us = message.error.is_some() && !is(AUTH_REQUIRED) && !is(REQUEST_CANCELLED);
        if let Some(line) = retry.filter(|_| is_about_us)
            && let Some(mut session) = self.sessions.remove(key)
            && let Some(again) = Message::parse(&line)
        {
            let name_is_taken = self.name_is_taken(&session, message);
            let transport = servers::choose(self.policy.mcp, &self.agent).filter(|_| name_is_taken);
            if name_is_taken {
                let text = format!("{method} failed: the agent wants another name for each skills server");
                actions.log(Level::Info, text);
                self.memory.needs_own_server_names = true;
                session.server.forget_name();
            } else {
                let kind = EventKind::Fallback { reason: FallbackReason::Refused, ms: None };
                actions.effects.push(Effect::Record { session: session.id().map(str::to_owned), kind });
                actions
                    .log(Level::Info, format!("{method} failed with the skills server; trying without it"));
                actions.effects.push(Effect::Close(key));
                session.server.closed();
                session.briefing.forget();
            }
            let pass = self.set_up(&mut session, &again, transport, actions);
            self.sessions.add(session);
            let retry = name_is_taken.then(|| line.clone());
            actions.to_agent.push(match pass {
                Pass::Edited(edited) => edited,
                Pass::Untouched | Pass::Consumed => line,
            });
            let purpose = Purpose::SetUp(Setup { session: key, kind, retry });
            self.requests.insert(id, OpenRequest { method, purpose });
            return Pass::Consumed;
        }
        if kind != (SetupKind::Enter { known: true }) {
            self.close_session(key, actions);
        }
        Pass::Untouched
    }

    /// A prompt is answered. An agent that took our server and fails now because of it gets another transport in the next
    /// session, in the end none; this one cannot be had again.
    pub(crate) fn judge_transport(&mut self, key: SessionKey, answer: &Message<'_>, actions: &mut Actions) {
        let Some(error) = answer.error else { return };
        let mode = self.policy.mcp;
        let Some(session) = self.sessions.get(key) else { return };
        let (Some(transport), Some(name)) = (session.server.transport(), session.server.name()) else {
            return;
        };
        // What has come to our server does not fail on the way to it.
        let is_about_us =
            mode == McpMode::Auto && !session.server.is_connected() && names_server(error, name);
        if !is_about_us || servers::choose(mode, &self.agent) != Some(transport) {
            return;
        }
        self.agent.fails_on(transport);
        let kind = EventKind::Fallback { reason: FallbackReason::Refused, ms: None };
        actions.effects.push(Effect::Record { session: session.id().map(str::to_owned), kind });
        let (next, flag) = match servers::choose(mode, &self.agent) {
            Some(next) => (format!("gets it over {}", next.name()), next.name()),
            None => ("gets none, and is told where the files are".to_owned(), "off"),
        };
        actions.warn(format!(
            "the agent fails on the skills server over {}; the next session {next} (`--mcp {flag}` does so from the start)",
            transport.name()
        ));
    }

    /// Whether the agent refused `session` because another session has a server of the same name: fast-agent has one
    /// list of servers for all its sessions.
    fn name_is_taken(&self, session: &Session, message: &Message<'_>) -> bool {
        let Some(name) = session.server.name() else { return false };
        let error = message.error.map(|error| error.raw()).unwrap_or_default();
        memchr::memmem::find(error, name.as_bytes()).is_some()
            && self.sessions.iter().any(|other| other.server.name() == Some(name))
    }
}

/// Whether an error is about the server `name`, or about what an agent makes of the list of MCP servers.
fn names_server(error: Node<'_>, name: &str) -> bool {
    let text = String::from_utf8_lossy(error.raw()).to_lowercase();
    let is_about_mcp = ["mcpconfig", "mcpserver", "mcp server", "mcp_server", "mcp config"];
    text.contains(name) || is_about_mcp.iter().any(|words| text.contains(words))
}
