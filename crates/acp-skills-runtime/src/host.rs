//! [`Host`]: the interface between the interceptor and the outside world. It finds the skills of sessions, serves
//! them, and persists state.
//!
//! The relay starts the host. From then on, the host responds to queries, which may take a long time and don't hold
//! any lock of the relay. It also carries out effects, which never block.

mod decisions;
mod observation;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use acp_skills_intercept::{
    Effect, HostError, Input, Level, MarkKey, Needs, Provisions, Query, Reason, Refreshed, SavedSwitches,
    SessionKey, Workspace,
};
use acp_skills_servers::{ClientServers, processes::Processes};
use parking_lot::Mutex;
use skills_core::{CallContext, Toolbox, exec::Sandbox};
use tokio::sync::{
    Mutex as AsyncMutex,
    mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
};
use tracing::{Instrument, Span};

use crate::{
    activation_store::ActivationStore,
    activity::{Observer, SessionStep},
    agent_store::AgentStore,
    events::short_id,
    library::{Library, MakeToolbox},
    mark_secret,
    mcp::Servers,
    paths,
    spans::{Spans, blocking},
    switch_store::SwitchStore,
};

/// The configuration of a host: the source of skills, the tools, the stores for state, and the observer.
#[must_use]
#[derive(Clone)]
pub struct Host {
    library: Library,
    toolbox: MakeToolbox,
    bridge: Option<PathBuf>,
    observer: Option<Observer>,
    activations: Option<ActivationStore>,
    switches: Option<SwitchStore>,
    agents: Option<AgentStore>,
    sandbox: Option<Sandbox>,
    processes: Processes,
    secret_in: Option<PathBuf>,
}

impl Host {
    /// Creates a host that takes skills from `library`, and has the defaults for everything else.
    pub fn new(library: Library) -> Self {
        Self {
            library,
            toolbox: Arc::new(Toolbox::new),
            bridge: None,
            observer: None,
            activations: None,
            switches: None,
            agents: None,
            sandbox: None,
            processes: Processes::default(),
            secret_in: None,
        }
    }

    /// Sets the function that creates the tools for a set of skills. The default is [`Toolbox::new`].
    pub fn toolbox(self, toolbox: MakeToolbox) -> Self {
        Self { toolbox, ..self }
    }

    /// Sets the program that agents without MCP over HTTP start as a bridge: `acp-skills-proxy` itself. The default
    /// is none. In this case, these agents don't get any tools, and the catalog contains the paths of the skills
    /// instead.
    pub fn bridge(self, program: impl Into<PathBuf>) -> Self {
        Self { bridge: Some(program.into()), ..self }
    }

    /// Sets the observer of tool calls and events. The default is none.
    pub fn observer(self, observer: Option<Observer>) -> Self {
        Self { observer, ..self }
    }

    /// Sets the store for the active skills of sessions. The default is none.
    pub fn activation_store(self, activations: Option<ActivationStore>) -> Self {
        Self { activations, ..self }
    }

    /// Sets the store for the skills that are off in a directory. The default is none.
    pub fn switch_store(self, switches: Option<SwitchStore>) -> Self {
        Self { switches, ..self }
    }

    /// Sets the store for the agents that never connect to our MCP server. The default is none.
    pub fn agent_store(self, agents: Option<AgentStore>) -> Self {
        Self { agents, ..self }
    }

    /// Sets the sandbox of scripts. It is only used to log a warning if a working directory is not suitable for it.
    pub fn sandbox(self, sandbox: Option<Sandbox>) -> Self {
        Self { sandbox, ..self }
    }

    /// Sets the registry of child processes, in which scripts and the programs of tools are registered.
    pub fn processes(self, processes: Processes) -> Self {
        Self { processes, ..self }
    }

    /// Sets the directory of the secret from which the marks around texts for the model are derived, and of the descriptions of
    /// the client's MCP servers. It is created if necessary.
    /// The default is none, which means that the same text has other marks in each process, and that the provider of the model
    /// can't reuse what it has cached for an earlier process.
    pub fn secret_in(self, dir: Option<PathBuf>) -> Self {
        Self { secret_in: dir, ..self }
    }

    /// Returns the secret of the marks. This may block, because it reads from disk.
    pub(crate) fn marks(&self) -> MarkKey {
        mark_secret::load(self.secret_in.as_deref())
    }

    pub(crate) fn own_processes(&self) -> &Processes {
        &self.processes
    }

    /// Returns the path of our own program, if it is known.
    pub(crate) fn own_program(&self) -> Option<&Path> {
        self.bridge.as_deref()
    }

    /// Starts the host. The receiver gets the inputs for the interceptor. Must be called within a tokio runtime.
    pub(crate) fn start(self) -> (RunningHost, UnboundedReceiver<Input>) {
        if let Some(program) = self.own_program() {
            self.processes.prepare(program);
        }
        let (inputs, receiver) = unbounded_channel();
        let changes: UnboundedSender<Input> = inputs.clone();
        Arc::clone(&self.library).watch(Box::new(move |reloaded| {
            // This fails if the relay is being shut down, so we can ignore the error.
            let _ = changes.send(Input::SkillsChanged(reloaded.took));
        }));
        let offering = self.library.servers();
        let spans = Spans::default();
        let servers = Servers::new(self.toolbox, self.bridge, inputs, self.observer.clone(), spans.clone());
        let inner = Inner {
            library: self.library,
            servers,
            observer: self.observer,
            activations: self.activations,
            switches: self.switches,
            agents: self.agents,
            client_servers: ClientServers::new(self.processes.clone(), self.secret_in.as_deref(), offering),
            sandbox: self.sandbox.map(|sandbox| (sandbox, Mutex::default())),
            refreshing: AsyncMutex::new(()),
            spans,
        };
        (RunningHost(Arc::new(inner)), receiver)
    }
}

/// A host that was started. Cheap to clone; all clones share their state.
#[derive(Clone)]
pub(crate) struct RunningHost(Arc<Inner>);

struct Inner {
    library: Library,
    servers: Servers,
    observer: Option<Observer>,
    activations: Option<ActivationStore>,
    switches: Option<SwitchStore>,
    agents: Option<AgentStore>,
    client_servers: ClientServers,
    /// The sandbox of scripts, and the directories that were checked already. No other lock is taken while it is held.
    sandbox: Option<(Sandbox, Mutex<HashSet<PathBuf>>)>,
    /// Held while we search for the skills of sessions and pass them to the interceptor, so that an older result
    /// can't replace a newer one. No other lock is held at the same time.
    refreshing: AsyncMutex<()>,
    spans: Spans,
}

impl RunningHost {
    /// Carries out an effect of the interceptor. Never blocks.
    pub(crate) fn carry_out(&self, effect: Effect) {
        match effect {
            Effect::Log(Level::Warn, text) => tracing::warn!("{text}"),
            Effect::Log(Level::Info, text) => tracing::info!("{text}"),
            Effect::Log(Level::Debug, text) => tracing::debug!("{text}"),
            Effect::Record { session, kind } => self.record(session, kind),
            Effect::SaveActiveSkills { id, active } => {
                if let Some(activations) = &self.0.activations {
                    activations.save(&id, active);
                }
            }
            Effect::SaveAgentConnects { agent, connects } => {
                if let Some(agents) = &self.0.agents {
                    agents.save(agent, connects);
                }
            }
            Effect::Serve { session, skills, unlocked, workspace, is_setup } => {
                self.0.spans.open(session);
                let context = context(&workspace).unlock(unlocked.as_slice());
                self.0.servers.serve(session, &skills, context, is_setup);
                self.0.servers.set_workspace(session, &workspace);
            }
            Effect::Remind { session, skills } => self.0.servers.remind(session, skills),
            Effect::Opened { session, id } => {
                let id = short_id(id);
                self.0.spans.open(session);
                self.0.spans.set_id(session, &id);
                let _span = self.0.spans.current(session).entered();
                tracing::debug!("agent opened the session");
                self.observe(session, SessionStep::Opened(id));
            }
            Effect::TurnStarted { session, request, trace } => {
                self.0.spans.start_turn(session, &request);
                self.observe(session, SessionStep::TurnStarted(trace));
            }
            Effect::TurnEnded(session) => {
                self.0.spans.end_turn(session);
                self.observe(session, SessionStep::TurnEnded);
            }
            Effect::TurnCancelled(session) => self.0.servers.drop_queued(session),
            Effect::CloseServer(session) => {
                self.0.servers.close(session);
                self.0.client_servers.close(session);
                self.0.spans.close(session);
                self.observe(session, SessionStep::Closed);
            }
            Effect::AnswerServer { session, number, answer } => {
                self.0.servers.answer_server(session, number, answer);
            }
            Effect::ReleaseWorkspace(workspace) => self.0.library.leave(&workspace),
        }
    }

    /// Returns the span of the session that an input belongs to. It is disabled if there is none.
    pub(crate) fn span_of(&self, input: &Input) -> Span {
        input.session().map_or_else(Span::none, |session| self.0.spans.current(session))
    }

    /// Answers a query with a call of `answer`, within the span of its session.
    pub(crate) async fn answer(&self, query: Query, answer: impl FnOnce(Input)) {
        let session = query.session();
        if let (Query::SetUp { needs, .. }, Some(session)) = (&query, session) {
            self.0.spans.open(session);
            self.observe(session, SessionStep::Requested(needs.trace.clone()));
        }
        let span = session.map_or_else(Span::none, |session| self.0.spans.current(session));
        self.answer_within_span(query, answer).instrument(span).await;
    }

    async fn answer_within_span(&self, query: Query, answer: impl FnOnce(Input)) {
        let host = self.clone();
        match query {
            Query::SetUp { session, ticket, needs } => {
                let work = blocking(move || host.provide(session, needs));
                // If this panics, continue with no skills. Otherwise, the request would wait for an answer forever.
                let provisions = work.await.unwrap_or_default();
                answer(Input::SetUp { session, ticket, provisions });
            }
            Query::Fetch { session, ticket, wanted } => {
                answer(match self.0.servers.fetch(session, wanted).await {
                    Ok(fetched) => Input::Fetched { session, ticket, fetched },
                    Err(why) => Input::NotFetched { session, ticket, why },
                });
            }
            Query::Resolve { ticket, path, workspace, .. } => {
                let work = blocking(move || paths::resolved(&path, &workspace));
                answer(Input::Resolved { ticket, resolved: work.await.unwrap_or_default() });
            }
            Query::SaveSwitches { session, ticket, cwd, names, on } => {
                let saved_names = names.clone();
                let work = blocking(move || host.save_switches(&cwd, &saved_names, on));
                let saved = work.await.unwrap_or_else(|error| Err(error.into()));
                let saved = saved.map_err(|error| HostError(error.to_string()));
                answer(Input::SwitchesSaved { session, ticket, saved: SavedSwitches { names, on, saved } });
            }
            Query::Trust { session, ticket, workspace, skills, trusted, workspaces } => {
                let decide = move |host: &Self| host.0.library.decide(&workspace, &skills, trusted);
                let (outcome, refreshed) = self.decided(workspaces, decide).await;
                answer(Input::TrustSaved { session, ticket, trusted, outcome, refreshed });
            }
            Query::Untrust { session, ticket, workspace, names, skills, workspaces } => {
                let revoke = move |host: &Self| host.0.library.revoke(&workspace, &names, &skills);
                let (outcome, refreshed) = self.decided(workspaces, revoke).await;
                answer(Input::TrustSaved { session, ticket, trusted: false, outcome, refreshed });
            }
            Query::Skills { workspaces, reason } => {
                let _refreshing = self.0.refreshing.lock().await;
                let work = blocking(move || host.refresh(workspaces, reason));
                // If the search panics, report no changes. Otherwise, requests would wait for an answer forever.
                let refreshed = work.await.unwrap_or_else(|_| Refreshed::nothing(reason));
                answer(Input::Skills(refreshed));
            }
        }
    }

    /// Removes what must not stay on disk after this process: the socket for bridges.
    pub(crate) fn clean_up(&self) {
        self.0.servers.close_socket();
    }

    /// Returns the MCP servers of all sessions.
    pub(crate) fn servers(&self) -> &Servers {
        &self.0.servers
    }

    /// Provides the skills, the MCP server and the saved state of a session. This may block, because it reads from
    /// disk.
    fn provide(&self, session: SessionKey, needs: Needs) -> Provisions {
        let Needs { workspace, skills, client_skills, servers, recall, transport, listen, .. } = needs;
        let cwd = workspace.cwd.as_deref();
        self.check_directory(cwd);
        let saved = self.0.activations.as_ref().zip(recall);
        let active = saved.map(|(activations, id)| activations.load(&id)).unwrap_or_default();
        let skills = skills.unwrap_or_else(|| self.0.library.at(&workspace));
        let servers = self.0.client_servers.open(session, &servers, cwd);
        let all = skills.with(&client_skills).with(&servers);
        let transport = transport.filter(|_| !all.will_offer_nothing());
        let endpoint = transport.map(|transport| {
            let address = (transport, listen.as_ref());
            let opened = self.0.servers.open(session, address, &all, context(&workspace), needs.open_names);
            opened.map_err(|error| HostError(error.to_string()))
        });
        let saved = self.0.switches.as_ref().zip(cwd);
        // Without the list, keep all skills off, because the user may have turned any of them off.
        let all_off = |_| all.iter().map(|skill| skill.name.clone()).collect();
        let off = saved.map(|(switches, cwd)| switches.load(cwd).unwrap_or_else(all_off)).unwrap_or_default();
        let known = self.0.agents.as_ref().zip(needs.agent);
        let never_connects = known.is_some_and(|(agents, agent)| agents.never_connects(&agent));
        let real = paths::without_links(&workspace);
        Provisions { skills, servers, off, active, endpoint, never_connects, real, workspace }
    }

    /// Logs the sandbox's warning about a working directory, once per directory.
    fn check_directory(&self, cwd: Option<&Path>) {
        let Some(((sandbox, checked), cwd)) = self.0.sandbox.as_ref().zip(cwd) else { return };
        if !checked.lock().insert(cwd.to_owned()) {
            return;
        }
        match sandbox.check_directory(cwd) {
            Ok(None) => {}
            Ok(Some(warning)) => tracing::warn!("{warning}"),
            Err(error) => tracing::warn!("{error}"),
        }
    }

    /// Returns the current skills of these workspaces. This may block, because it reads from disk.
    fn refresh(&self, workspaces: Vec<Workspace>, reason: Reason) -> Refreshed {
        let started = Instant::now();
        if matches!(reason, Reason::Reload(..) | Reason::Listing(..)) {
            self.0.library.reload();
        }
        let took = match reason {
            Reason::Reload(..) | Reason::Listing(..) => started.elapsed(),
            Reason::Changed(took) | Reason::CatchUp(took) => took,
            Reason::List(_) => Duration::ZERO,
        };
        let skills = workspaces.into_iter().map(|workspace| {
            let skills = self.0.library.at(&workspace);
            (workspace, skills)
        });
        let skills = skills.collect();
        Refreshed { skills, servers: self.0.client_servers.current(), took, reason }
    }
}

/// Returns the context of tool calls in a session.
fn context(workspace: &Workspace) -> CallContext {
    workspace.cwd.as_deref().map(CallContext::in_directory).unwrap_or_default()
}
