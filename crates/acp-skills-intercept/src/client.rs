//! What becomes of a message from the client.

use std::{collections::VecDeque, mem, path::PathBuf};

use super::{
    Actions, AgentKind, Approve, Effect, Endpoint, Interceptor, Level, Open, Pass, Purpose, permission,
    placement, placement::Placement, servers,
};
use crate::{
    events::{EventKind, Reason},
    session::{Held, Mcp, Session, SessionKey, Told},
};
use acp_skills_wire::{Edit, Kind, Message, Node, REQUEST_CANCELLED, build};

impl Interceptor {
    pub(super) fn client_message(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        match message.kind() {
            Kind::Response => Pass::Untouched,
            Kind::Notification => match message.method().as_ref() {
                "session/cancel" => self.cancel(message, actions),
                "$/cancel_request" => self.cancel_request(message, actions),
                _ => Pass::Untouched,
            },
            Kind::Request => self.request(message, actions),
        }
    }

    fn request(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(id) = message.id() else { return Pass::Untouched };
        let method = message.method();
        let (purpose, pass) = match method.as_ref() {
            "initialize" => (Purpose::Initialize, Pass::Untouched),
            "session/new" => self.new_session(message, None, actions),
            "session/fork" => {
                let parent =
                    message.session_id().and_then(|id| self.sessions.find(&id).map(|found| found.key));
                self.new_session(message, parent, actions)
            }
            "session/load" | "session/resume" => self.enter_session(message, actions),
            "session/close" | "session/delete" => match message.session_id() {
                Some(id) => (Purpose::Leave { id: id.into_owned() }, Pass::Untouched),
                None => (Purpose::Other, Pass::Untouched),
            },
            "session/list" => (Purpose::List, Pass::Untouched),
            "session/prompt" => self.prompt(message, &id, actions),
            _ => (Purpose::Other, Pass::Untouched),
        };
        if !matches!(purpose, Purpose::Answered) {
            self.open.insert(id, Open { method: method.into_owned(), purpose });
        }
        pass
    }

    fn new_session(
        &mut self,
        message: &Message<'_>,
        parent: Option<SessionKey>,
        actions: &mut Actions,
    ) -> (Purpose, Pass) {
        let key = self.sessions.new_key();
        let cwd = cwd(message);
        let mut session = Session::new(key, cwd.clone(), self.host.skills(cwd.as_deref()));
        if let Some(parent) = parent.and_then(|parent| self.sessions.get(parent)) {
            session.cwd = session.cwd.or_else(|| parent.cwd.clone());
            session.skills = parent.skills.clone();
            session.catalog.clone_from(&parent.catalog);
            session.told = parent.told;
            session.known.clone_from(&parent.known);
            session.first_words.clone_from(&parent.first_words);
            session.active.clone_from(&parent.active);
        }
        let pass = self.set_up(&mut session, message, true, actions);
        let retry = retry_line(&session, message);
        self.sessions.add(session);
        (Purpose::Name { session: key, retry }, pass)
    }

    fn enter_session(&mut self, message: &Message<'_>, actions: &mut Actions) -> (Purpose, Pass) {
        let Some(id) = message.session_id() else { return (Purpose::Other, Pass::Untouched) };
        let known = self.sessions.find(&id).map(|session| session.key);
        let mut session = if let Some(session) = known.and_then(|key| self.sessions.remove(key)) {
            session
        } else {
            let key = self.sessions.new_key();
            let cwd = cwd(message);
            let skills = self.host.skills(cwd.as_deref());
            let active = self.host.recall(&id);
            Session { id: Some(id.into_owned()), active, ..Session::new(key, cwd, skills) }
        };
        // An agent that has taken our server once does not refuse because of it, and may be using it now.
        let was_taken = session.mcp != Mcp::Off;
        let pass = self.set_up(&mut session, message, true, actions);
        let purpose = Purpose::Enter {
            session: session.key,
            known: known.is_some(),
            retry: retry_line(&session, message).filter(|_| !was_taken),
        };
        self.sessions.add(session);
        (purpose, pass)
    }

    /// Adds the server and, where the agent takes one, the system prompt to a request that sets up `session`.
    pub(super) fn set_up(
        &mut self,
        session: &mut Session,
        message: &Message<'_>,
        with_server: bool,
        actions: &mut Actions,
    ) -> Pass {
        let Some(params) = message.params.filter(Node::is_object) else {
            return Pass::Untouched;
        };
        // Without a skill or a tool there is no server, no text, nothing.
        if session.skills.offers_nothing() {
            return Pass::Untouched;
        }
        self.host.serve(session.key, &session.skills, &session.unlocked(), session.cwd.as_deref());
        session.menu_sent = false;
        let mut edit = Edit::new();
        let had = mem::replace(&mut session.mcp, Mcp::Off);
        session.server_id = None;
        let name = session.server_name.take().unwrap_or_else(|| {
            let number = if self.own_names { format!("-{}", session.key.0) } else { String::new() };
            format!("{}{number}", servers::SERVER_NAME)
        });
        if let Some(transport) = servers::choose(self.policy.mcp, &self.agent).filter(|_| with_server) {
            match self.host.open(session.key, transport, &session.skills, session.cwd.as_deref()) {
                Ok(endpoint) => {
                    let name = servers::free_name(&name, params.get("mcpServers"));
                    let text = format!("{}: MCP server `{name}` over {}", message.method(), transport.name());
                    actions.effects.push(Effect::Log(Level::Info, text));
                    servers::inject(&mut edit, params, &servers::entry(&name, &endpoint, self.agent.version));
                    session.server_name = Some(name);
                    // Over the ACP connection there is nothing to connect, and an agent that still has the session
                    // need not connect to the same address again.
                    let is_there = matches!(endpoint, Endpoint::Acp { .. }) || had == Mcp::Listed;
                    session.mcp = if is_there { Mcp::Listed } else { Mcp::Expected };
                    if let Endpoint::Acp { server_id } = endpoint {
                        session.server_id = Some(server_id);
                    }
                }
                Err(why) => {
                    let what = EventKind::Fallback { reason: Reason::NoServer, ms: None };
                    actions.effects.push(Effect::Record { session: session.id.clone(), what });
                    Self::warn(actions, format!("no MCP server for this session: {why}"));
                }
            }
        }
        let placement = placement::choose(self.policy.catalog_in, &self.agent);
        if matches!(placement, Placement::SystemPrompt | Placement::ClaudeMeta) {
            let told = if session.mcp == Mcp::Off { Told::Files } else { Told::Tools };
            // The same text for as long as the session lives: an agent that compares it would start over.
            let text = session.catalog.clone().or_else(|| {
                let text = placement::text(session, &self.agent, &self.policy.catalog, told)?;
                session.known = Some(session.skills.clone());
                Some(text.into())
            });
            if let Some(text) = text {
                match placement {
                    Placement::SystemPrompt => placement::into_system_prompt(&mut edit, params, &text),
                    _ => placement::into_claude_meta(&mut edit, params, &text),
                }
                session.catalog = Some(text);
                session.told = told;
            }
        }
        if edit.is_empty() {
            return Pass::Untouched;
        }
        let line = edit.apply(message.line);
        let allow = self.agent.kind == AgentKind::Claude && self.policy.approve == Approve::Own;
        let server = session.server_name.as_deref().filter(|_| allow);
        Pass::Edited(server.and_then(|server| permission::allow_ours(&line, server)).unwrap_or(line))
    }

    /// A prompt that waits is answered here; the agent has never heard of it.
    fn cancel(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(session) = message.session_id().and_then(|id| self.sessions.find(&id)) else {
            return Pass::Untouched;
        };
        let held = mem::take(&mut session.held);
        let agent_works = session.in_flight > 0 || session.busy || held.is_empty();
        self.cancel_held(held, actions);
        if agent_works { Pass::Untouched } else { Pass::Consumed }
    }

    /// Answers prompts that were never sent.
    pub(super) fn cancel_held(&mut self, held: VecDeque<Held>, actions: &mut Actions) {
        for prompt in held {
            self.open.remove(&prompt.id);
            actions.to_client.push(self.agent.version.cancelled(&prompt.id));
        }
    }

    fn cancel_request(&mut self, message: &Message<'_>, actions: &mut Actions) -> Pass {
        let Some(id) = message.param(&["requestId"]).and_then(acp_skills_wire::Id::of) else {
            return Pass::Untouched;
        };
        let waiting = self.sessions.iter_mut().find_map(|session| {
            let index = session.held.iter().position(|held| held.id == id)?;
            session.held.remove(index);
            Some(session.key)
        });
        let Some(key) = waiting else { return Pass::Untouched };
        self.open.remove(&id);
        actions.to_client.push(build::error(&id, REQUEST_CANCELLED, "cancelled"));
        // Those behind it may have waited for nothing else.
        self.release(key, actions);
        Pass::Consumed
    }
}

fn cwd(message: &Message<'_>) -> Option<PathBuf> {
    Some(PathBuf::from(message.param(&["cwd"])?.as_str()?.into_owned()))
}

/// The request as it came, for a second try without our entry.
fn retry_line(session: &Session, message: &Message<'_>) -> Option<Vec<u8>> {
    (session.mcp != Mcp::Off).then(|| message.line.to_vec())
}
