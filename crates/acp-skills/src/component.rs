//! [`SkillsProxy`]: the proxy as a component of the ACP SDK.

mod attached;
mod frames;

use std::{path::PathBuf, sync::Arc, thread};

use acp_skills_intercept::Policy;
use acp_skills_runtime::{
    activity::{self, Observer},
    demo,
    host::Host,
    library::{Library, MakeToolbox},
    relay::{
        Relay,
        chain::{self, ChainEnd},
    },
    telemetry::Telemetry,
};
use acp_skills_servers::processes::Processes;
use agent_client_protocol::{Agent, Client, Conductor, ConnectTo, ConnectionDriver, Error, Proxy};
use futures::{
    FutureExt,
    future::{self, Either},
};
use skills_core::{Skill, SkillSet, SkillTool, Toolbox, exec::Sandbox};

pub use self::attached::AttachError;
use self::attached::Attached;
use crate::config::{Config, ConfigError, Settings};

/// The proxy as a component of an ACP chain, or directly in front of an agent.
///
/// Under the SDK's conductor, use `ProxiesAndAgent::new(agent).proxy(SkillsProxy::new(skills))`. Without a conductor, use
/// [`SkillsProxy::in_front_of`]. Both need a tokio runtime.
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
    /// The observer that sends telemetry.
    telemetry: Option<Observer>,
    sandbox: Option<Sandbox>,
    processes: Processes,
    secret_in: Option<PathBuf>,
}

impl SkillsProxy {
    /// Creates a proxy with these skills and default settings.
    pub fn new(skills: SkillSet) -> Self {
        Self::with_library(Arc::new(skills))
    }

    /// Creates a proxy with skills that depend on the session's working directory.
    pub fn with_library(library: Library) -> Self {
        Self {
            library,
            attached: Attached::default(),
            toolbox: Arc::new(Toolbox::new),
            policy: Policy::default(),
            bridge: None,
            observer: None,
            telemetry: None,
            sandbox: None,
            processes: Processes::default(),
            secret_in: None,
        }
    }

    /// Creates a proxy from a configuration, for example [from a file](Config::read).
    ///
    /// The agent, the log and the record of the configuration are ignored. The state directory only holds the user's trust, and the
    /// secret of the marks around our text.
    ///
    /// # Errors
    /// Returns the errors of [`Settings::resolve`] and [`SkillSources::load`](crate::config::SkillSources::load), and
    /// [`ConfigError::Unstartable`] if the thread for telemetry can't be started.
    pub fn from_config(config: Config) -> Result<Self, ConfigError> {
        let settings = Settings::resolve(config)?;
        let telemetry = settings.telemetry.map(Telemetry::start).transpose();
        let telemetry = telemetry.map_err(ConfigError::Unstartable)?;
        let library = settings.skills.load()?.into_library();
        let proxy = Self::with_library(library).toolbox(settings.toolbox).policy(settings.policy);
        Ok(Self {
            telemetry: telemetry.map(Telemetry::into_observer),
            sandbox: settings.sandbox,
            processes: settings.processes,
            secret_in: settings.state,
            ..proxy
        })
    }

    /// Attaches the skill in a directory. It takes precedence over skills with the same name in the library.
    ///
    /// A missing or invalid skill is an error when the proxy starts.
    pub fn skill_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.attached.dir(dir.into());
        self
    }

    /// Attaches a skill that is defined in code. It takes precedence over skills with the same name in the library.
    pub fn skill(mut self, skill: Skill) -> Self {
        self.attached.skill(skill);
        self
    }

    /// Attaches a function that the model can call without loading a skill first. It becomes another tool of our MCP server.
    ///
    /// See [`SkillTool::typed`] for the types of the input and the output.
    pub fn tool(mut self, tool: SkillTool) -> Self {
        self.attached.tool(tool);
        self
    }

    /// Sets the function that creates the tools for a set of skills. The default is [`Toolbox::new`].
    pub fn toolbox(self, toolbox: MakeToolbox) -> Self {
        Self { toolbox, ..self }
    }

    /// Sets the proxy's policy, such as where the catalog is placed.
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Sets the path of the `acp-skills-proxy` program, which agents without MCP over HTTP start as a bridge to our tools.
    ///
    /// Without it, those agents read the files of the skills and don't get the tools.
    pub fn bridge(self, program: impl Into<PathBuf>) -> Self {
        Self { bridge: Some(program.into()), ..self }
    }

    /// Calls `observer` whenever the model uses the skills. It must not block.
    pub fn observed_by(self, observer: Observer) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Puts the proxy in front of `agent`. The result is an agent with skills.
    pub fn in_front_of<A: ConnectTo<Client>>(self, agent: A) -> SkilledAgent<A> {
        SkilledAgent { proxy: self, agent }
    }

    /// Returns the parts for starting a relay.
    ///
    /// # Errors
    /// Returns [`AttachError`] if a skill or a tool can't be attached.
    pub(crate) fn into_parts(self) -> Result<(Policy, Host), AttachError> {
        let library = self.attached.in_front_of(self.library)?;
        let observer = activity::both(self.observer, self.telemetry);
        let host = Host::new(library).toolbox(self.toolbox).observer(observer);
        let mut host = host.sandbox(self.sandbox).processes(self.processes).secret_in(self.secret_in);
        if let Some(program) = self.bridge {
            host = host.bridge(program);
        }
        Ok((self.policy, host))
    }
}

/// Creates a proxy without skills.
impl Default for SkillsProxy {
    fn default() -> Self {
        Self::new(SkillSet::default())
    }
}

/// Returns the error for the other side of a connection, with all of its sources in one line.
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
                .data("received a message for a `SkillsProxy` without an agent: use `in_front_of`, or run the proxy under a conductor")),
            Err(error) => Err(Error::into_internal_error(error)),
        });
        drive(run, driver).await
    }
}

/// An agent with skills. It is created by [`SkillsProxy::in_front_of`].
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
                _ = &mut relay.agent_done => break ("agent closed the connection".to_owned(), Ok(())),
                driven = driven(&mut agent_driver) => {
                    agent_driver = None;
                    if let Err(error) = driven {
                        break (format!("agent failed: {error}"), Err(error));
                    }
                }
                driven = driven(&mut client_driver) => {
                    client_driver = None;
                    driven?;
                }
            }
        };
        relay.agent_gone(&why);
        // This never blocks, because the queue is unbounded.
        relay.close_client()();
        match client_driver {
            Some(driver) => finish(driver).await.and(end),
            None => end,
        }
    }
}

/// Waits for the driver of an endpoint. If there is none, this never returns.
async fn driven(driver: &mut Option<ConnectionDriver>) -> Result<(), Error> {
    match driver {
        Some(driver) => driver.await,
        None => future::pending().await,
    }
}

/// Lets a transport write its queued messages. A driver that can't be asked to finish is dropped.
async fn finish(mut driver: ConnectionDriver) -> Result<(), Error> {
    if driver.request_finish() { driver.await } else { Ok(()) }
}

/// The built-in scripted agent, for demos and tests. It uses the skills that it is offered, and needs neither an account nor a
/// network.
#[derive(Debug, Clone, Copy, Default)]
pub struct DemoAgent;

impl ConnectTo<Client> for DemoAgent {
    async fn connect_to(self, client: impl ConnectTo<Agent>) -> Result<(), Error> {
        let (channel, driver) = client.into_channel_and_future();
        let ends = frames::ends(channel);
        let (done, served) = futures::channel::oneshot::channel();
        thread::Builder::new()
            .name("demo-agent".to_owned())
            .spawn(move || {
                let _ = done.send(demo::serve(ends.reader, ends.writer));
            })
            .map_err(Error::into_internal_error)?;
        let served = served.map(|end| match end {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Error::into_internal_error(error)),
            Err(gone) => Err(Error::into_internal_error(gone)),
        });
        drive(served, driver).await
    }
}

/// Runs `work` and the driver of an endpoint, if it has one, until both have finished.
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
