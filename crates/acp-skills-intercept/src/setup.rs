//! Requests that set up a session. The skills server and the catalog are added to them. If the agent refuses a request,
//! it is retried.
//!
//! The host provides the skills of the session, the address of its server and its saved state, which can take long.
//! Until then the request is held, and later messages of the client about the same session are queued. All other
//! messages are forwarded, so requests for different sessions can overtake each other, but the messages of one session
//! never do.

mod queue;
mod refused;

use std::{mem, time::Duration};

use acp_skills_wire::{Edit, Id, Message, Node};
use skills_core::{Scope, SkillSet};

use crate::{
    Interceptor,
    events::{EventKind, FallbackReason},
    keys::{SessionKey, Ticket},
    outputs::{Actions, Effect, Level, Pass},
    pending::{HeldSetup, Kind, Target},
    permission,
    queries::{Needs, Provisions, Query, Reason, Transport},
    requests::{OpenRequest, Purpose, Setup, SetupKind},
    servers,
    session::{Activations, Session, Switches},
    trace_context::TraceContext,
    workspace::Workspace,
};

impl Interceptor {
    /// Handles `session/new` and `session/fork`. `client_skills` are the skills that the client provides.
    pub(crate) fn new_session(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        client_skills: Option<SkillSet>,
        actions: &mut Actions,
    ) -> (Purpose, Pass) {
        let is_fork = message.method() == "session/fork";
        let parent = message.session_id().filter(|_| is_fork);
        let parent_key = parent.as_ref().and_then(|id| self.sessions.key_of(id));
        let parent_session = parent_key.and_then(|key| self.sessions.get(key));
        let before = parent_session.as_deref().map(|parent| &parent.workspace);
        let (workspace, warnings) = Workspace::read(message, before);
        let is_same = before == Some(&workspace);
        let switches = parent_session.map(|parent| &parent.switches);
        let skills = switches.filter(|_| is_same).map(|switches| switches.library().clone());
        let inherited = switches.map(|switches| switches.client_skills().clone());
        let needed = client_skills.clone().or(inherited).unwrap_or_default();
        let needs = Needs { workspace, skills, client_skills: needed, ..Needs::default() };
        for warning in warnings {
            actions.warn(warning);
        }
        let session = self.sessions.new_key();
        let target = Target::New;
        let about = parent.map(std::borrow::Cow::into_owned);
        self.wait_for(message, id, session, target, parent_key, about, client_skills, needs, actions)
    }

    /// Handles `session/load` and `session/resume`. `client_skills` are the skills that the client provides.
    pub(crate) fn enter_session(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        client_skills: Option<SkillSet>,
        actions: &mut Actions,
    ) -> (Purpose, Pass) {
        let Some(about) = message.session_id().map(std::borrow::Cow::into_owned) else {
            return (Purpose::Other, Pass::Untouched);
        };
        let Some(key) = self.sessions.key_of(&about) else {
            let (workspace, warnings) = Workspace::read(message, None);
            for warning in warnings {
                actions.warn(warning);
            }
            let recall = Some(about.clone());
            let client_skills_here = client_skills.clone().unwrap_or_default();
            let needs = Needs { workspace, recall, client_skills: client_skills_here, ..Needs::default() };
            let session = self.sessions.new_key();
            let target = Target::New;
            return self.wait_for(
                message,
                id,
                session,
                target,
                None,
                Some(about),
                client_skills,
                needs,
                actions,
            );
        };
        let transport = servers::choose(&self.policy, &self.agent);
        let Some(session) = self.sessions.get(key) else { return (Purpose::Other, Pass::Untouched) };
        if let Some(client_skills) = client_skills {
            session.set_client_skills(client_skills, actions);
        }
        let has_servers = !servers::of_client(message.params, &self.policy).is_empty();
        if !has_servers {
            // The client has withdrawn the servers of an earlier request.
            session.set_client_servers(SkillSet::default(), actions);
        }
        let (workspace, warnings) = Workspace::read(message, Some(&session.workspace));
        for warning in warnings {
            actions.warn(warning);
        }
        let target = if workspace == session.workspace { Target::Known } else { Target::Moved };
        let is_open = transport.is_none_or(|transport| session.server.endpoint(transport).is_some());
        if target == Target::Moved
            || has_servers
            || (!is_open && !session.switches.all().will_offer_nothing())
        {
            let skills = (target == Target::Known).then(|| session.switches.library().clone());
            let client_skills = session.switches.client_skills().clone();
            let needs = Needs { workspace, skills, client_skills, ..Needs::default() };
            return self.wait_for(message, id, key, target, None, Some(about), None, needs, actions);
        }
        // We already have everything we need for this session, so we don't have to ask the host.
        let Some(mut session) = self.sessions.remove(key) else { return (Purpose::Other, Pass::Untouched) };
        // If the agent has accepted the skills server before, it won't refuse the session because of it, and it could be using it
        // right now.
        let was_offered = session.server.is_offered();
        let pass = self.set_up(&mut session, message, transport, actions);
        let retry = (session.server.is_offered() && !was_offered).then(|| message.line.to_vec());
        let kind = SetupKind::Reopen { known: true };
        self.sessions.add(session);
        (Purpose::SetUp(Setup { session: key, kind, retry }), pass)
    }

    /// Holds a request until the host has provided what its session needs.
    #[expect(clippy::too_many_arguments, reason = "all parts of a single request")]
    fn wait_for(
        &mut self,
        message: &Message<'_>,
        id: &Id,
        session: SessionKey,
        target: Target,
        parent: Option<SessionKey>,
        about: Option<String>,
        client_skills: Option<SkillSet>,
        needs: Needs,
        actions: &mut Actions,
    ) -> (Purpose, Pass) {
        if !message.params.is_some_and(|params| params.is_object()) {
            return (Purpose::Other, Pass::Untouched);
        }
        let ticket = self.pending.new_ticket();
        let transport = servers::choose(&self.policy, &self.agent);
        let open_names = self.agent.quirks.checks_names;
        // Without our server, the model could not call the tools.
        let servers = match transport {
            Some(_) => servers::of_client(message.params, &self.policy),
            None => Vec::new(),
        };
        let listen = self.policy.listen.clone();
        let agent = self.agent.identity();
        let trace = TraceContext::of(message);
        let needs = Needs { servers, transport, listen, open_names, agent, trace, ..needs };
        let setup = HeldSetup {
            method: message.method().into_owned(),
            line: message.line.to_vec(),
            target,
            workspace: needs.workspace.clone(),
            parent,
            transport,
            refreshes: self.memory.refreshes,
            client_skills,
            about,
        };
        actions.ask(Query::SetUp { session, ticket, needs });
        self.pending.insert(ticket, Some(session), Some(id.clone()), Kind::Setup(setup));
        (Purpose::Pending, Pass::Consumed)
    }

    /// Resumes a held setup request once the host has provided what its session needs, then the messages queued behind it.
    pub(crate) fn provisioned(
        &mut self,
        key: SessionKey,
        ticket: Ticket,
        mut provisions: Provisions,
        actions: &mut Actions,
    ) {
        let Some((id, mut setup)) = self.pending.take_setup(ticket) else {
            // If the session is gone, the request was cancelled, so only close the server.
            if self.sessions.get(key).is_none() {
                actions.effects.push(Effect::CloseServer(key));
            }
            self.release_workspace(provisions.workspace, actions);
            return;
        };
        if provisions.never_connects {
            // If we already know this from the current run, we don't use what earlier runs have observed.
            self.memory.agent_connects.get_or_insert(false);
        }
        let known = match setup.target {
            Target::Known | Target::Moved => self.sessions.remove(key),
            Target::New => None,
        };
        let is_new = known.is_none();
        let names_itself = matches!(setup.method.as_str(), "session/new" | "session/fork");
        let mut session = known
            .unwrap_or_else(|| Session::new(key, setup.about.clone().filter(|_| !names_itself), self.marks));
        if is_new {
            self.fill(&mut session, &mut setup, &mut provisions, actions);
        } else if setup.target == Target::Moved {
            if session.workspace.cwd != setup.workspace.cwd {
                session.switches.moved(provisions.off);
            }
            let before = mem::replace(&mut session.workspace, setup.workspace);
            self.release_workspace(before, actions);
            let skills = session.switches.replace(provisions.skills);
            session.set_skills(skills, Duration::ZERO, actions);
        }
        session.set_client_servers(provisions.servers, actions);
        if setup.target != Target::Known {
            session.awaited.set_real(provisions.real);
        }
        match (setup.transport, provisions.endpoint) {
            (Some(transport), Some(Ok(endpoint))) => session.server.opened(transport, endpoint),
            (_, Some(Err(why))) => {
                let kind = EventKind::Fallback { reason: FallbackReason::NoServer, ms: None };
                actions.effects.push(Effect::Record { session: session.id().map(str::to_owned), kind });
                actions.warn_user(key, format!("no MCP server for this session: {why}"));
            }
            _ => {}
        }
        let was_offered = session.server.is_offered();
        let pass = match Message::parse(&setup.line) {
            Some(message) => self.set_up(&mut session, &message, setup.transport, actions),
            None => Pass::Untouched,
        };
        let parent = setup.parent.and_then(|parent| self.sessions.get(parent));
        if self.agent.quirks.copies_servers && parent.is_some_and(|parent| parent.server.has_tools()) {
            session.server.listed();
        }
        let retry = (session.server.is_offered() && !was_offered).then(|| setup.line.clone());
        let kind = if names_itself { SetupKind::New } else { SetupKind::Reopen { known: !is_new } };
        let purpose = Purpose::SetUp(Setup { session: key, kind, retry });
        self.requests.insert(id, OpenRequest::new(&setup.method, purpose));
        actions.to_agent.push(match pass {
            Pass::Edited(line) => line,
            Pass::Untouched | Pass::Consumed => setup.line,
        });
        if setup.refreshes != self.memory.refreshes {
            // The skills were refreshed after we asked the host, so this answer could be out of date.
            let workspaces = vec![session.workspace.clone()];
            actions.ask(Query::Skills { workspaces, reason: Reason::CatchUp(Duration::ZERO) });
        }
        self.sessions.add(session);
        let queue = self.pending.take_queue(ticket);
        self.resume(queue, actions);
    }

    /// Fills a session that is new to us with its part of `setup` and `provisions`, and with the state of its parent if it is a copy.
    fn fill(
        &mut self,
        session: &mut Session,
        setup: &mut HeldSetup,
        provisions: &mut Provisions,
        actions: &mut Actions,
    ) {
        session.without_tools = self.without_tools();
        session.switches = Switches::remembering(provisions.off.clone());
        session.activations = Activations::recalled(mem::take(&mut provisions.active));
        session.workspace = mem::take(&mut setup.workspace);
        if let Some(parent) = setup.parent.and_then(|parent| self.sessions.get(parent)) {
            let is_elsewhere = parent.workspace.cwd != session.workspace.cwd;
            session.fork(parent);
            if is_elsewhere {
                session.switches.moved(mem::take(&mut provisions.off));
            }
        }
        session.skills = session.switches.replace(mem::take(&mut provisions.skills));
        if let Some(client_skills) = setup.client_skills.take() {
            session.set_client_skills(client_skills, actions);
        }
        // A copy has lost the same content as its parent.
        if session.compaction.lost().is_some() {
            session.remind(actions);
        }
    }

    /// Adds the skills server to a request that sets up `session`, and the catalog if the agent supports a system prompt.
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
        if message.method() != "session/new" {
            session.shell.reopened();
        }
        if matches!(message.method().as_ref(), "session/load" | "session/resume") {
            session.compaction.reopened();
            session.server_calls.reopened();
            self.reader.usage_scanner.forget(session.key());
        }
        // If there are no skills or tools, we don't need to add a server or any text to this session. Note that disabled skills
        // count, because the user can enable them later.
        if session.switches.all().will_offer_nothing() {
            return Pass::Untouched;
        }
        actions.effects.push(session.serve(true));
        session.menu.is_due_again();
        let mut edit = Edit::new();
        let had_tools = session.server.withdraw();
        let transport = transport.filter(|_| servers::has_room(params));
        let endpoint =
            transport.and_then(|transport| Some((transport, session.server.endpoint(transport)?.clone())));
        if let Some((transport, endpoint)) = endpoint {
            let wanted = session.server.name().map_or_else(|| self.server_name(session.key()), str::to_owned);
            let name = servers::free_name(&wanted, params.get("mcpServers"));
            let text = format!("{}: MCP server `{name}` over {}", message.method(), transport.name());
            actions.log(Level::Info, text);
            let policy = &self.policy.mcp_on_demand;
            let is_taken = |server: Node<'_>| {
                let name = server.str("name").filter(|name| servers::takes(policy, name));
                name.is_some_and(|name| session.has_client_server(&name))
            };
            let entry = servers::entry(&name, &endpoint, self.agent.version);
            servers::inject(&mut edit, params, &entry, is_taken);
            session.server.offer(name, transport, had_tools);
            self.hold_on(session, actions);
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
        let number = if self.memory.needs_own_server_names || self.agent.quirks.shares_servers {
            format!("-{}", session.0)
        } else {
            String::new()
        };
        format!("{}{number}", servers::SERVER_NAME)
    }
}

impl Session {
    /// Sets the skills of the client's MCP servers. They replace those of an earlier request.
    fn set_client_servers(&mut self, servers: SkillSet, actions: &mut Actions) {
        let before = self.switches.servers();
        let is_nothing =
            |set: &SkillSet| set.is_empty() && set.skipped().is_empty() && set.unapproved().is_empty();
        if servers.ptr_eq(before) || is_nothing(&servers) && is_nothing(before) {
            return;
        }
        self.warn_of_names(servers.filtered(|skill| skill.provider.is_some()), actions);
        self.skills = self.switches.set_servers(servers);
    }

    /// Returns true if a skill stands for the client's MCP server with this name.
    fn has_client_server(&self, name: &str) -> bool {
        // The lookup ignores case, but the agent may have two servers whose names differ only in case.
        let skill = self.switches.all().get(name).filter(|skill| skill.name.as_str() == name);
        skill.is_some_and(|skill| skill.provider.is_some() && skill.scope == Scope::Session)
    }
}
