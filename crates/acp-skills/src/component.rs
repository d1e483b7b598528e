//! [`SkillsProxy`]: the proxy as a component for programs that are built with the ACP SDK.

mod attached;
mod frames;

use std::{path::PathBuf, sync::Arc, thread};

use agent_client_protocol::{Agent, Client, Conductor, ConnectTo, ConnectionDriver, Error, Proxy};
use futures::{
    FutureExt,
    future::{self, Either},
};
use skills_core::{Skill, SkillSet, SkillTool, Toolbox, exec::Sandbox};

pub use self::attached::AttachError;
use self::attached::Attached;
use acp_skills_runtime::{
    activity::Observer,
    demo,
    host::Host,
    library::{Library, MakeToolbox},
    processes::Processes,
    relay::{
        Relay,
        chain::{self, ChainEnd},
    },
};

use crate::config::{Config, ConfigError, Settings};
use acp_skills_intercept::Policy;

/// The proxy as one of the components of an ACP chain, or right in front of an agent.
///
/// Under the SDK's conductor it is `ProxiesAndAgent::new(agent).proxy(SkillsProxy::new(skills))`; without one,
/// [`SkillsProxy::in_front_of`] makes an agent with skills of any agent. Both need a tokio runtime around them.
///
/// ```
/// use acp_skills::SkillsProxy;
/// use agent_client_protocol::{Channel, Client, ConnectTo};
/// use skills_core::Skill;
///
/// # fn main() -> Result<(), skills_core::BuildError> {
/// # let (agent, _other_end) = Channel::duplex();
/// let skill = Skill::builder("greet", "Greets people.").body("# Greeting\nSay hello.").build()?;
/// let agent_with_skills = SkillsProxy::new([skill].into_iter().collect()).in_front_of(agent);
/// # fn is_an_agent(_: impl ConnectTo<Client>) {}
/// is_an_agent(agent_with_skills);
/// # Ok(()) }
/// ```
#[must_use]
#[derive(Clone)]
pub struct SkillsProxy {
    library: Library,
    attached: Attached,
    toolbox: MakeToolbox,
    policy: Policy,
    bridge: Option<PathBuf>,
    observer: Option<Observer>,
    sandbox: Option<Sandbox>,
    processes: Processes,
}

impl SkillsProxy {
    /// With these skills.
    pub fn new(skills: SkillSet) -> Self {
        Self::with_library(Arc::new(skills))
    }

    /// With skills that depend on the working directory of a session.
    pub fn with_library(library: Library) -> Self {
        Self {
            library,
            attached: Attached::default(),
            toolbox: Arc::new(Toolbox::new),
            policy: Policy::default(),
            bridge: None,
            observer: None,
            sandbox: None,
            processes: Processes::default(),
        }
    }

    /// As a configuration says, for example [that of a file](Config::read): its skills, and all else that concerns them.
    /// The agent in it is left aside, and so are the log and the record.
    ///
    /// # Errors
    /// A value is wrong, or a skill that it names is.
    pub fn from_config(config: Config) -> Result<Self, ConfigError> {
        let settings = Settings::resolve(config)?;
        let library = settings.skills.load()?.into_library();
        let proxy = Self::with_library(library).toolbox(settings.toolbox).policy(settings.policy);
        Ok(Self { sandbox: settings.sandbox, processes: settings.processes, ..proxy })
    }

    /// Attaches the skill in a directory, before all others. One that is not there, or broken, is an error when the
    /// proxy starts.
    pub fn skill_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.attached.dir(dir.into());
        self
    }

    /// Attaches a skill that is defined in code.
    pub fn skill(mut self, skill: Skill) -> Self {
        self.attached.skill(skill);
        self
    }

    /// Attaches a function that the model may call as it is, without a skill around it; see [`SkillTool::typed`]. It is
    /// one of the tools of our MCP server, beside those for skills.
    pub fn tool(mut self, tool: SkillTool) -> Self {
        self.attached.tool(tool);
        self
    }

    /// How the tools over the skills are made.
    pub fn toolbox(self, toolbox: MakeToolbox) -> Self {
        Self { toolbox, ..self }
    }

    /// What the interceptor does.
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// The program that agents without MCP over HTTP start as a bridge: `acp-skills-proxy`. Without it those agents are
    /// told where the files of the skills are, and get none of the tools.
    pub fn bridge(self, program: impl Into<PathBuf>) -> Self {
        Self { bridge: Some(program.into()), ..self }
    }

    /// Has `observer` told of what the model does with the skills.
    pub fn observed_by(self, observer: Observer) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// `agent`, with the skills.
    pub fn in_front_of<A: ConnectTo<Client>>(self, agent: A) -> SkilledAgent<A> {
        SkilledAgent { proxy: self, agent }
    }

    /// What the relay needs. Needs a tokio runtime around it.
    ///
    /// # Errors
    /// Something that is attached cannot be.
    pub(crate) fn into_parts(self) -> Result<(Policy, Host), AttachError> {
        let library = self.attached.in_front_of(self.library)?;
        let host = Host::new(library).toolbox(self.toolbox).observer(self.observer);
        let mut host = host.sandbox(self.sandbox).processes(self.processes);
        if let Some(program) = self.bridge {
            host = host.bridge(program);
        }
        Ok((self.policy, host))
    }
}

/// Without a skill yet.
impl Default for SkillsProxy {
    fn default() -> Self {
        Self::new(SkillSet::default())
    }
}

/// The error for the other side of a connection, with all that is behind it.
fn internal(error: AttachError) -> Error {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    Error::internal_error().data(text)
}

impl ConnectTo<Conductor> for SkillsProxy {
    async fn connect_to(self, conductor: impl ConnectTo<Proxy>) -> Result<(), Error> {
        let (channel, driver) = conductor.into_channel_and_future();
        let (policy, host) = self.into_parts().map_err(internal)?;
        let run = chain::run(policy, host, frames::ends(channel)).map(|end| match end {
            Ok(ChainEnd::Closed) => Ok(()),
            Ok(ChainEnd::NoConductor) => Err(Error::invalid_request()
                .data("a client spoke to a `SkillsProxy` that is in front of no agent")),
            Err(error) => Err(Error::into_internal_error(error)),
        });
        drive(run, driver).await
    }
}

/// An agent with skills. Made by [`SkillsProxy::in_front_of`].
#[must_use]
pub struct SkilledAgent<A> {
    proxy: SkillsProxy,
    agent: A,
}

impl<A: ConnectTo<Client>> ConnectTo<Client> for SkilledAgent<A> {
    async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<(), Error> {
        let (client, mut client_driver) = client.into_channel_and_future();
        let (agent, mut agent_driver) = self.agent.into_channel_and_future();
        let (policy, host) = self.proxy.into_parts().map_err(internal)?;
        let mut relay = Relay::start(policy, host, frames::ends(client), frames::ends(agent))
            .map_err(Error::into_internal_error)?;
        let (why, end) = loop {
            tokio::select! {
                _ = &mut relay.agent_done => break ("the agent closed the connection".to_owned(), Ok(())),
                driven = driven(&mut agent_driver) => {
                    agent_driver = None;
                    if let Err(error) = driven {
                        break (format!("the agent failed: {error}"), Err(error));
                    }
                }
                driven = driven(&mut client_driver) => {
                    client_driver = None;
                    driven?;
                }
            }
        };
        relay.agent_gone(&why);
        // Into a queue without bounds: nothing blocks.
        relay.close_client()();
        match client_driver {
            Some(driver) => finish(driver).await.and(end),
            None => end,
        }
    }
}

/// What an endpoint's own work comes to; never, when it has none.
async fn driven(driver: &mut Option<ConnectionDriver>) -> Result<(), Error> {
    match driver {
        Some(driver) => driver.await,
        None => future::pending().await,
    }
}

/// Lets a transport write what it has accepted. Work that cannot be asked to end is dropped.
async fn finish(mut driver: ConnectionDriver) -> Result<(), Error> {
    if driver.request_finish() { driver.await } else { Ok(()) }
}

/// The scripted agent that is built into this crate, for trying things out: it uses the skills that it is offered, and
/// needs no account and no network.
#[derive(Debug, Clone, Copy, Default)]
pub struct DemoAgent;

impl ConnectTo<Client> for DemoAgent {
    async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<(), Error> {
        let (channel, driver) = client.into_channel_and_future();
        let ends = frames::ends(channel);
        let (done, served) = futures::channel::oneshot::channel();
        thread::Builder::new()
            .name("demo-agent".to_owned())
            .spawn(move || drop(done.send(demo::serve(ends.reader, ends.writer))))
            .map_err(Error::into_internal_error)?;
        let served = served.map(|end| match end {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Error::into_internal_error(error)),
            Err(gone) => Err(Error::into_internal_error(gone)),
        });
        drive(served, driver).await
    }
}

/// Does `work` at an endpoint that may have work of its own, until both are done.
async fn drive(
    work: impl Future<Output = Result<(), Error>>,
    driver: Option<ConnectionDriver>,
) -> Result<(), Error> {
    let Some(driver) = driver else { return work.await };
    match future::select(Box::pin(work), driver).await {
        Either::Left((end, driver)) => finish(driver).await.and(end),
        Either::Right((driven, work)) => driven.and(work.await),
    }
}
