//! Requests that set up a session: what they wait for, what is added to them, and a second try when the agent refuses.
//!
//! Which skills a session has, where its server is and what was active in it is for the world outside to say, and may
//! take long. Until then the request waits, and so does what the client says later about the same session. Everything
//! else goes on, so requests for different sessions may overtake each other; the messages of one session never do.

use std::{collections::VecDeque, path::PathBuf, time::Duration};

use acp_skills_wire::{AUTH_REQUIRED, Edit, Id, Kind, Message, Node, REQUEST_CANCELLED, build};

use crate::{
    Interceptor,
    events::{EventKind, FallbackReason},
    outputs::{Actions, Effect, Level, Pass},
    permission,
    queries::{Needs, Provisions, Query, Reason, Ticket, Transport},
    requests::{OpenRequest, Purpose, Setup, SetupKind},
    servers,
    session::{Activations, Session, SessionKey},
};

/// Requests that wait for what their session needs.
#[derive(Debug, Default)]
pub(crate) struct WaitingSetups {
    setups: VecDeque<WaitingSetup>,
    last_ticket: u64,
}

/// One of them.
#[derive(Debug)]
struct WaitingSetup {
    ticket: Ticket,
    id: Id,
    method: String,
    line: Vec<u8>,
    target: Target,
    /// The session that it is a copy of.
    parent: Option<SessionKey>,
    transport: Option<Transport>,
    /// How often the skills of all sessions had been looked up when this was asked for.
    refreshes: u64,
    /// The agent's id of the session whose later messages wait.
    about: Option<String>,
    /// Those messages, in order.
    behind: VecDeque<Vec<u8>>,
}

/// Whose setup it is.
#[derive(Debug)]
enum Target {
    /// A session that is not known yet, and where it works.
    New(SessionKey, Option<PathBuf>),
    /// One that goes on meanwhile.
    Known(SessionKey),
}

impl Target {
    fn key(&self) -> SessionKey {
        match self {
            Self::New(key, _) | Self::Known(key) => *key,
        }
    }
}

impl WaitingSetups {
    pub(crate) fn is_empty(&self) -> bool {
        self.setups.is_empty()
    }

    /// Nobody can be asked any more.
    pub(crate) fn forget(&mut self) {
        self.setups.clear();
    }

    /// Takes a message whose session waits. Returns whether it did.
    fn hold_back(&mut self, message: &Message<'_>) -> bool {
        let about = message.session_id();
        let mut waiting = self.setups.iter_mut().rev();
        let found = waiting.find(|setup| about.is_some() && setup.about.as_deref() == about.as_deref());
        let is_held = found.is_some();
        if let Some(setup) = found {
            setup.behind.push_back(message.line.to_vec());
        }
        is_held
    }

    /// Takes out the prompts that wait for this session. Returns their ids.
    fn take_prompts(&mut self, session: &str) -> Vec<Id> {
        let mut ids = Vec::new();
        for setup in self.setups.iter_mut().filter(|setup| setup.about.as_deref() == Some(session)) {
            setup.behind.retain(|line| {
                let message = Message::parse(line).filter(|message| message.method() == "session/prompt");
                let prompt = message.and_then(|message| message.id());
                let stays = prompt.is_none();
                ids.extend(prompt);
                stays
            });
        }
        ids
    }

    /// Takes out the request with this id, when it waits behind another.
    fn take_behind(&mut self, id: &Id) -> bool {
        self.setups.iter_mut().any(|setup| {
            let is_it =
                |line: &Vec<u8>| Message::parse(line).and_then(|message| message.id()).as_ref() == Some(id);
            let index = setup.behind.iter().position(is_it);
            index.is_some_and(|index| setup.behind.remove(index).is_some())
        })
    }

    fn take(&mut self, is_it: impl Fn(&WaitingSetup) -> bool) -> Option<WaitingSetup> {
        let index = self.setups.iter().position(is_it)?;
        self.setups.remove(index)
    }

    /// Where those sessions work that are not known yet.
    pub(crate) fn directories(&self) -> impl Iterator<Item = &Option<PathBuf>> {
        self.setups.iter().filter_map(|setup| match &setup.target {
            Target::New(_, cwd) => Some(cwd),
            Target::Known(_) => None,
        })
    }
}

impl Interceptor {
    /// Whether a message of the client's waits because its session is being set up.
    pub(crate) fn waits_for_setup(&mut self, message: &Message<'_>) -> bool {
        if self.waiting.is_empty() || message.kind() == Kind::Response {
            return false;
        }
        let method = message.method();
        // Whoever cancels does not want to wait for what is to be cancelled.
        if matches!(method.as_ref(), "session/cancel" | "$/cancel_request")
            || !self.waiting.hold_back(message)
        {
            return false;
        }
        if let Some(id) = message.id() {
            let method = method.into_owned();
            self.open.insert(id, OpenRequest { method, purpose: Purpose::Waiting });
        }
        true
    }

    /// The client asks for a new session, or for a copy of another.
    pub(crate) fn new_session(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        actions: &mut Actions,
    ) -> (Purpose, Pass) {
        let is_fork = message.method() == "session/fork";
        let parent = message.session_id().filter(|_| is_fork);
        let parent_key = parent.as_ref().and_then(|id| self.sessions.key_of(id));
        let cwd = cwd(message);
        let skills = parent_key.and_then(|key| self.sessions.get(key)).map(|parent| parent.skills.clone());
        let needs = Needs { cwd: cwd.clone(), skills, ..Needs::default() };
        let target = Target::New(self.sessions.new_key(), cwd);
        let about = parent.map(std::borrow::Cow::into_owned);
        self.wait_for(message, id, target, parent_key, about, needs, actions)
    }

    /// The client opens a session again that the agent has.
    pub(crate) fn enter_session(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        actions: &mut Actions,
    ) -> (Purpose, Pass) {
        let Some(about) = message.session_id().map(std::borrow::Cow::into_owned) else {
            return (Purpose::Other, Pass::Untouched);
        };
        let Some(key) = self.sessions.key_of(&about) else {
            let cwd = cwd(message);
            let needs = Needs { cwd: cwd.clone(), recall: Some(about.clone()), ..Needs::default() };
            let target = Target::New(self.sessions.new_key(), cwd);
            return self.wait_for(message, id, target, None, Some(about), needs, actions);
        };
        let transport = servers::choose(self.policy.mcp, &self.agent);
        let Some(session) = self.sessions.get(key) else { return (Purpose::Other, Pass::Untouched) };
        let is_open = transport.is_none_or(|transport| session.server.endpoint(transport).is_some());
        if !is_open && !session.skills.offers_nothing() {
            let skills = Some(session.skills.clone());
            let needs = Needs { cwd: session.cwd.clone(), skills, ..Needs::default() };
            return self.wait_for(message, id, Target::Known(key), None, Some(about), needs, actions);
        }
        // All that it needs is here.
        let Some(mut session) = self.sessions.remove(key) else { return (Purpose::Other, Pass::Untouched) };
        // An agent that has taken our server once does not refuse because of it, and may be using it now.
        let was_offered = session.server.is_offered();
        let pass = self.set_up(&mut session, message, transport, actions);
        let retry = (session.server.is_offered() && !was_offered).then(|| message.line.to_vec());
        let kind = SetupKind::Enter { known: true };
        self.sessions.add(session);
        (Purpose::SetUp(Setup { session: key, kind, retry }), pass)
    }

    /// Keeps a request until there is what its session needs.
    #[expect(clippy::too_many_arguments, reason = "the parts of one request, from the two that make it wait")]
    fn wait_for(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        target: Target,
        parent: Option<SessionKey>,
        about: Option<String>,
        needs: Needs,
        actions: &mut Actions,
    ) -> (Purpose, Pass) {
        if !message.params.is_some_and(|params| params.is_object()) {
            return (Purpose::Other, Pass::Untouched);
        }
        self.waiting.last_ticket += 1;
        let (ticket, session) = (Ticket(self.waiting.last_ticket), target.key());
        let transport = servers::choose(self.policy.mcp, &self.agent);
        let needs = Needs { transport, ..needs };
        actions.ask(Query::SetUp { session, ticket, needs });
        self.waiting.setups.push_back(WaitingSetup {
            ticket,
            id: id.clone(),
            method: message.method().into_owned(),
            line: message.line.to_vec(),
            target,
            parent,
            transport,
            refreshes: self.refreshes,
            about,
            behind: VecDeque::new(),
        });
        (Purpose::Waiting, Pass::Consumed)
    }

    /// There is what a session needs: its request goes on, and what waited behind it.
    pub(crate) fn provisioned(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        provisions: Provisions,
        actions: &mut Actions,
    ) {
        let Some(waiting) = self.waiting.take(|setup| setup.ticket == ticket) else {
            // Nobody waits for it any more.
            if self.sessions.get(key).is_none() {
                actions.effects.push(Effect::Close(key));
            }
            return;
        };
        let known = match &waiting.target {
            Target::Known(key) => self.sessions.remove(*key),
            Target::New(..) => None,
        };
        let is_new = known.is_none();
        let names_itself = matches!(waiting.method.as_str(), "session/new" | "session/fork");
        let mut session =
            known.unwrap_or_else(|| Session::new(key, waiting.about.clone().filter(|_| !names_itself)));
        if is_new {
            session.skills = provisions.skills;
            session.activations = Activations::recalled(provisions.active);
            if let Target::New(_, cwd) = waiting.target {
                session.cwd = cwd;
            }
            if let Some(parent) = waiting.parent.and_then(|parent| self.sessions.get(parent)) {
                session.fork(parent);
            }
        }
        match (waiting.transport, provisions.endpoint) {
            (Some(transport), Some(Ok(endpoint))) => session.server.opened(transport, endpoint),
            (_, Some(Err(why))) => {
                let kind = EventKind::Fallback { reason: FallbackReason::NoServer, ms: None };
                actions.effects.push(Effect::Record { session: session.id().map(str::to_owned), kind });
                actions.warn(format!("no MCP server for this session: {why}"));
            }
            _ => {}
        }
        let was_offered = session.server.is_offered();
        let pass = match Message::parse(&waiting.line) {
            Some(message) => self.set_up(&mut session, &message, waiting.transport, actions),
            None => Pass::Untouched,
        };
        let retry = (session.server.is_offered() && !was_offered).then(|| waiting.line.clone());
        let kind = if names_itself { SetupKind::New } else { SetupKind::Enter { known: !is_new } };
        let purpose = Purpose::SetUp(Setup { session: key, kind, retry });
        self.open.insert(waiting.id, OpenRequest { method: waiting.method, purpose });
        actions.to_agent.push(match pass {
            Pass::Edited(line) => line,
            Pass::Untouched | Pass::Consumed => waiting.line,
        });
        if waiting.refreshes != self.refreshes {
            // What it got may be older than what the others have.
            let directories = vec![session.cwd.clone()];
            actions.ask(Query::Skills { directories, reason: Reason::CatchUp(Duration::ZERO) });
        }
        self.sessions.add(session);
        self.resume(waiting.behind, actions);
    }

    /// Goes on with messages of the client's that waited.
    fn resume(&mut self, lines: VecDeque<Vec<u8>>, actions: &mut Actions) {
        for line in lines {
            let pass = self.from_client(&line, actions);
            actions.to_agent.extend(match pass {
                Pass::Untouched => Some(line),
                Pass::Edited(line) => Some(line),
                Pass::Consumed => None,
            });
            let mut after = std::mem::take(&mut actions.after);
            actions.to_agent.append(&mut after);
        }
    }

    /// Answers the prompts that wait for this session to be set up. Returns whether there were any.
    pub(crate) fn cancel_waiting_prompts(&mut self, session: &str, actions: &mut Actions) -> bool {
        let ids = self.waiting.take_prompts(session);
        for id in &ids {
            self.open.remove(id);
            actions.to_client.push(self.agent.version.cancelled(id));
        }
        !ids.is_empty()
    }

    /// Answers a request that waits to set up a session, or behind one that does. Returns whether there was one.
    pub(crate) fn cancel_waiting_request(&mut self, id: &Id, actions: &mut Actions) -> bool {
        let setup = self.waiting.take(|setup| setup.id == *id);
        if setup.is_none() && !self.waiting.take_behind(id) {
            return false;
        }
        self.open.remove(id);
        actions.to_client.push(build::error(id, REQUEST_CANCELLED, "cancelled"));
        if let Some(setup) = setup {
            self.resume(setup.behind, actions);
        }
        true
    }

    /// Nobody waits any longer: the agent gets what the client said, as it was said.
    pub(crate) fn release_waiting(&mut self, actions: &mut Actions) {
        for setup in std::mem::take(&mut self.waiting.setups) {
            actions.to_agent.push(setup.line);
            actions.to_agent.extend(setup.behind);
        }
    }

    /// Adds the server and, where the agent takes one, the system prompt to a request that sets up `session`.
    fn set_up(
        &mut self,
        session: &mut Session,
        message: &Message<'_>,
        transport: Option<Transport>,
        actions: &mut Actions,
    ) -> Pass {
        let Some(params) = message.params.filter(Node::is_object) else {
            return Pass::Untouched;
        };
        // Without a skill or a tool there is no server, no text, nothing.
        if session.skills.offers_nothing() {
            return Pass::Untouched;
        }
        actions.effects.push(session.serve());
        session.menu.is_due_again();
        let mut edit = Edit::new();
        let had_tools = session.server.withdraw();
        let endpoint = transport.and_then(|it| Some((it, session.server.endpoint(it)?.clone())));
        if let Some((transport, endpoint)) = endpoint {
            let wanted = session.server.name().map_or_else(|| self.server_name(session.key()), str::to_owned);
            let name = servers::free_name(&wanted, params.get("mcpServers"));
            let text = format!("{}: MCP server `{name}` over {}", message.method(), transport.name());
            actions.log(Level::Info, text);
            servers::inject(&mut edit, params, &servers::entry(&name, &endpoint, self.agent.version));
            session.server.offer(name, transport, had_tools);
        }
        session.brief_at_setup(&mut edit, params, &self.agent, &self.policy);
        if edit.is_empty() {
            return Pass::Untouched;
        }
        let line = edit.apply(message.line);
        let server = session.server.name().filter(|_| session.server.is_offered());
        let allowed =
            server.and_then(|server| permission::allow_ours(&line, server, &self.agent, &self.policy));
        Pass::Edited(allowed.unwrap_or(line))
    }

    fn server_name(&self, session: SessionKey) -> String {
        let number = if self.own_names { format!("-{}", session.0) } else { String::new() };
        format!("{}{number}", servers::SERVER_NAME)
    }

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
                self.own_names = true;
                session.server.forget_name();
            } else {
                let kind = EventKind::Fallback { reason: FallbackReason::Refused, ms: None };
                actions.effects.push(Effect::Record { session: session.id().map(str::to_owned), kind });
                actions.warn(format!("{method} failed with the skills server; trying without it"));
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
            self.open.insert(id, OpenRequest { method, purpose });
            return Pass::Consumed;
        }
        if kind != (SetupKind::Enter { known: true }) {
            self.drop_session(key, actions);
        }
        Pass::Untouched
    }

    /// Whether the agent refused `session` because another session has a server of the same name: fast-agent has one
    /// list of servers for all its sessions.
    fn name_is_taken(&self, session: &Session, message: &Message<'_>) -> bool {
        let Some(name) = session.server.name() else { return false };
        let error = message.error.map(|error| error.raw()).unwrap_or_default();
        memchr::memmem::find(error, name.as_bytes()).is_some()
            && self.sessions.iter().any(|other| other.server.name() == Some(name))
    }

    /// Forgets a session. Prompts that waited in it have nowhere to go.
    pub(crate) fn drop_session(&mut self, key: SessionKey, actions: &mut Actions) {
        actions.effects.push(Effect::Close(key));
        let Some(mut session) = self.sessions.remove(key) else { return };
        if let Some(cwd) = session.cwd.take()
            && !self.sessions.iter().any(|other| other.cwd.as_ref() == Some(&cwd))
        {
            actions.effects.push(Effect::Leave(cwd));
        }
        self.cancel_held(session.turns.take_held(), actions);
    }
}

fn cwd(message: &Message<'_>) -> Option<PathBuf> {
    Some(PathBuf::from(message.param(&["cwd"])?.as_str()?.into_owned()))
}
