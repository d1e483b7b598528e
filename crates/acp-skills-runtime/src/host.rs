//! [`Host`]: the world outside of the interceptor. It says which skills sessions have, serves them, and keeps what is to be
//! kept.
//!
//! A host is a description until the relay starts it. Then it answers queries, each for as long as it takes and without
//! anybody's lock, and carries out what the interceptor decides at once.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use acp_skills_intercept::{
    Effect, HostError, Input, Level, Needs, Provisions, Query, Reason, Refreshed, Resolved, SavedSwitches,
    SessionKey, TrustOutcome,
};
use skills_core::{CallContext, SkillName, Toolbox, exec::Sandbox};
use skills_sources::trust;
use tokio::{
    sync::{
        Mutex as AsyncMutex,
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    },
    task::spawn_blocking,
};

use crate::{
    activation_store::ActivationStore,
    activity::{Activity, Observer},
    agent_store::AgentStore,
    events::Record,
    library::{Library, MakeToolbox},
    mcp::Servers,
    paths,
    processes::Processes,
    switch_store::SwitchStore,
};

/// Where the skills of sessions come from, how they are served, and who is told.
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
}

impl Host {
    /// With skills from `library`, and nothing else decided.
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
        }
    }

    /// How the tools over the skills are made.
    pub fn toolbox(self, toolbox: MakeToolbox) -> Self {
        Self { toolbox, ..self }
    }

    /// The program that agents without MCP over HTTP start as a bridge: `acp-skills-proxy`. Without it those agents are
    /// told where the files of the skills are, and get none of the tools.
    pub fn bridge(self, program: impl Into<PathBuf>) -> Self {
        Self { bridge: Some(program.into()), ..self }
    }

    /// Has `observer` told of what happens.
    pub fn observed_by(self, observer: Option<Observer>) -> Self {
        Self { observer, ..self }
    }

    /// Has `activations` keep which skills are active in a session.
    pub fn remembering(self, activations: Option<ActivationStore>) -> Self {
        Self { activations, ..self }
    }

    /// Has `switches` keep which skills are off in a directory.
    pub fn switches(self, switches: Option<SwitchStore>) -> Self {
        Self { switches, ..self }
    }

    /// Has `agents` keep which agents never come to our server.
    pub fn knowing(self, agents: Option<AgentStore>) -> Self {
        Self { agents, ..self }
    }

    /// Has a person told what there is to know of the directories of sessions, in which scripts work in `sandbox`.
    pub fn sandbox(self, sandbox: Option<Sandbox>) -> Self {
        Self { sandbox, ..self }
    }

    /// Where the programs register that the tools run.
    pub fn processes(self, processes: Processes) -> Self {
        Self { processes, ..self }
    }

    pub(crate) fn own_processes(&self) -> &Processes {
        &self.processes
    }

    /// Our own program, when it is known.
    pub(crate) fn own_program(&self) -> Option<&Path> {
        self.bridge.as_deref()
    }

    /// Begins to serve. The receiver gets what happens. Needs a tokio runtime around it.
    pub(crate) fn start(self) -> (RunningHost, UnboundedReceiver<Input>) {
        if let Some(program) = self.own_program() {
            self.processes.prepare(program);
        }
        let (inputs, receiver) = unbounded_channel();
        let changes: UnboundedSender<Input> = inputs.clone();
        Arc::clone(&self.library).watch(Box::new(move |reloaded| {
            // Nobody listens any more only when the relay is being taken down.
            drop(changes.send(Input::SkillsChanged(reloaded.took)));
        }));
        let servers = Servers::new(self.toolbox, self.bridge, inputs, self.observer.clone());
        let (library, observer, activations) = (self.library, self.observer, self.activations);
        let (switches, agents) = (self.switches, self.agents);
        let sandbox = self.sandbox.map(|sandbox| (sandbox, Mutex::default()));
        let refreshing = AsyncMutex::new(());
        let inner = Inner { library, servers, observer, activations, switches, agents, sandbox, refreshing };
        (RunningHost(Arc::new(inner)), receiver)
    }
}

/// A host at work. All clones are the same.
#[derive(Clone)]
pub(crate) struct RunningHost(Arc<Inner>);

struct Inner {
    library: Library,
    servers: Servers,
    observer: Option<Observer>,
    activations: Option<ActivationStore>,
    switches: Option<SwitchStore>,
    agents: Option<AgentStore>,
    /// The sandbox of scripts, and the directories that it was asked about. Taken alone.
    sandbox: Option<(Sandbox, Mutex<HashSet<PathBuf>>)>,
    /// Held from looking for the skills of sessions until the interceptor has them, so that no answer is older than the
    /// one before it. Nobody holds another lock meanwhile.
    refreshing: AsyncMutex<()>,
}

impl RunningHost {
    /// Does what the interceptor decided. Never blocks.
    pub(crate) fn carry_out(&self, effect: Effect) {
        match effect {
            Effect::Log(Level::Warn, text) => tracing::warn!("{text}"),
            Effect::Log(Level::Info, text) => tracing::info!("{text}"),
            Effect::Log(Level::Debug, text) => tracing::debug!("{text}"),
            Effect::Record { session, kind } => {
                if let Some(observer) = &self.0.observer {
                    observer(&Activity::Recorded(Arc::new(Record::now(session, kind))));
                }
            }
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
            Effect::Serve { session, skills, unlocked, cwd } => {
                let context = cwd.as_deref().map(CallContext::in_directory).unwrap_or_default();
                self.0.servers.serve(session, &skills, context.unlock(unlocked.as_slice()));
            }
            Effect::CloseServer(session) => self.0.servers.close(session),
            Effect::ReleaseDirectory(cwd) => self.0.library.leave(&cwd),
        }
    }

    /// Answers a query with `tell`, whenever the answer is there.
    pub(crate) async fn answer(&self, query: Query, tell: impl FnOnce(Input)) {
        match query {
            Query::SetUp { session, ticket, needs } => {
                let host = self.clone();
                let work = spawn_blocking(move || host.provide(session, needs));
                // Without an answer the request would wait for ever.
                let provisions = work.await.unwrap_or_default();
                tell(Input::SetUp { session, ticket, provisions });
            }
            Query::Fetch { session, ticket, wanted } => {
                tell(match self.0.servers.fetch(session, wanted).await {
                    Ok(fetched) => Input::Fetched { session, ticket, fetched },
                    Err(why) => Input::NotFetched { session, ticket, why },
                });
            }
            Query::Resolve { ticket, path, cwd, .. } => {
                let work = spawn_blocking(move || resolve(&path, cwd));
                tell(Input::Resolved { ticket, resolved: work.await.unwrap_or_default() });
            }
            Query::SaveSwitches { session, ticket, cwd, names, on } => {
                let (host, keep) = (self.clone(), names.clone());
                let work = spawn_blocking(move || host.keep(&cwd, &keep, on));
                let saved = work.await.unwrap_or_else(|error| Err(HostError(error.to_string())));
                tell(Input::SwitchesSaved { session, ticket, saved: SavedSwitches { names, on, saved } });
            }
            Query::Trust { session, ticket, cwd, skills, trusted, directories } => {
                let _refreshing = self.0.refreshing.lock().await;
                let (host, reason) = (self.clone(), Reason::Changed(Duration::ZERO));
                let work = spawn_blocking(move || {
                    let decided = host.0.library.decide(cwd.as_deref(), &skills, trusted);
                    (decided, host.refresh(directories, reason))
                });
                let (decided, refreshed) =
                    work.await.unwrap_or_else(|_| (trust::Decided::default(), Refreshed::nothing(reason)));
                let saved = decided.unsaved.map_or(Ok(()), |error| Err(HostError(error)));
                let outcome = TrustOutcome { done: decided.done, failed: decided.failed, saved };
                tell(Input::TrustSaved { session, ticket, trusted, outcome, refreshed });
            }
            Query::Skills { directories, reason } => {
                let _refreshing = self.0.refreshing.lock().await;
                let host = self.clone();
                let work = spawn_blocking(move || host.refresh(directories, reason));
                // A search that panicked found nothing new; whoever waits for it must not wait for ever.
                let refreshed = work.await.unwrap_or_else(|_| Refreshed::nothing(reason));
                tell(Input::Skills(refreshed));
            }
        }
    }

    /// Answers an `mcp/message` request of the agent's; `say` gets the lines for the agent.
    pub(crate) async fn over_acp(
        &self,
        session: SessionKey,
        line: &[u8],
        say: &mut (dyn FnMut(Vec<u8>) + Send),
    ) {
        self.0.servers.over_acp(session, line, say).await;
    }

    /// What a session needs. Blocks for as long as the disk takes.
    fn provide(&self, session: SessionKey, needs: Needs) -> Provisions {
        let Needs { cwd, skills, client_skills, recall, transport, agent } = needs;
        self.check_directory(cwd.as_deref());
        let kept = self.0.activations.as_ref().zip(recall);
        let active = kept.map(|(activations, id)| activations.load(&id)).unwrap_or_default();
        let skills = skills.unwrap_or_else(|| self.0.library.at(cwd.as_deref()));
        let all = skills.with(&client_skills);
        let transport = transport.filter(|_| !all.will_offer_nothing());
        let endpoint = transport.map(|transport| {
            let context = cwd.as_deref().map(CallContext::in_directory).unwrap_or_default();
            let opened = self.0.servers.open(session, transport, &all, context);
            opened.map_err(|error| HostError(error.to_string()))
        });
        let kept = self.0.switches.as_ref().zip(cwd.as_deref());
        let off = kept.map(|(switches, cwd)| switches.load(cwd)).unwrap_or_default();
        let known = self.0.agents.as_ref().zip(agent);
        let never_connects = known.is_some_and(|(agents, agent)| agents.never_connects(&agent));
        Provisions { skills, off, active, endpoint, never_connects }
    }

    /// Keeps which skills are on or off in a directory. Blocks for as long as the disk takes.
    fn keep(&self, cwd: &Path, names: &[SkillName], on: bool) -> Result<(), HostError> {
        match &self.0.switches {
            Some(switches) => switches.save(cwd, names, on).map_err(|error| HostError(error.to_string())),
            None => Err(HostError("the proxy was started without `--state DIR`".to_owned())),
        }
    }

    /// Tells, once, what there is to know of scripts in this directory.
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

    /// The skills of these directories. Blocks for as long as the disk takes.
    fn refresh(&self, directories: Vec<Option<PathBuf>>, reason: Reason) -> Refreshed {
        let started = Instant::now();
        if matches!(reason, Reason::Reload(..)) {
            self.0.library.reload();
        }
        let took = match reason {
            Reason::Reload(..) => started.elapsed(),
            Reason::Changed(took) | Reason::CatchUp(took) => took,
            Reason::List(_) => Duration::ZERO,
        };
        let skills = directories.into_iter().map(|cwd| {
            let skills = self.0.library.at(cwd.as_deref());
            (cwd, skills)
        });
        Refreshed { skills: skills.collect(), took, reason }
    }
}

/// Resolves a path of a tool call in the working directory of its session. Blocks while the disk is read.
fn resolve(path: &Path, cwd: Option<PathBuf>) -> Resolved {
    let cwd = cwd.map(|cwd| dunce::canonicalize(&cwd).unwrap_or(cwd));
    Resolved { path: paths::resolve(path, cwd.as_deref()), cwd }
}
