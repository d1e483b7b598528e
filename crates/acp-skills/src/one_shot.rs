//! One prompt to one agent, with skills: the proxy and a small client in one call.
//!
//! [`OneShot`] takes what the prompt needs, and then the answer comes as a whole ([`OneShot::run`]), piece by piece
//! ([`OneShot::stream`]), or as a Rust type ([`OneShot::parse`]).

mod error;
pub mod parse;
mod turn;

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use skills_core::{Skill, SkillSet, SkillTool, ToolError};
use tokio::task::JoinHandle;

pub use self::{
    error::OneShotError,
    parse::NotParsed,
    turn::{Piece, Turn},
};
pub use acp_skills_runtime::agent::StartError;
use acp_skills_runtime::{
    activity::Activity,
    demo,
    library::{Library, MakeToolbox},
    relay::{
        Ends, Relay,
        standalone::{Standalone, Tap, tapped},
    },
};

use crate::{client::ClientWriter, component::SkillsProxy};
pub use crate::{
    client::{Client, ClientError},
    component::AttachError,
    permission::{PermissionDecision, PermissionHandler, PermissionOption, PermissionRequest},
    trace::{Trace, Tracer},
};
use acp_skills_intercept::Policy;

/// One prompt, the skills for it, and the agent that gets it.
///
/// What the agent asks permission for is refused, unless [`on_permission`](Self::on_permission) decides otherwise.
///
/// ```
/// use acp_skills::one_shot::OneShot;
/// use skills_core::{Skill, SkillSet};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let skill = Skill::builder("greet", "Greets people.").body("# Greeting\nSay hello.").build()?;
/// // Without a command it is the embedded agent that answers.
/// let answer = OneShot::new([skill].into_iter().collect()).prompt("Greet me").run().await?;
/// assert!(answer.text.contains("`greet`"));
/// # Ok(()) }
/// ```
#[must_use]
pub struct OneShot {
    proxy: SkillsProxy,
    writer: ClientWriter,
    agent: Vec<OsString>,
    cwd: Option<PathBuf>,
    prompt: String,
    tracer: Option<Tracer>,
    on_permission: Option<PermissionHandler>,
}

/// The agent's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The agent's message.
    pub text: String,
    /// Why the turn ended, for example `end_turn`.
    pub stop_reason: String,
}

impl OneShot {
    /// With these skills, and nothing else decided.
    pub fn new(skills: SkillSet) -> Self {
        Self::with_library(Arc::new(skills))
    }

    /// With skills that depend on the working directory.
    pub fn with_library(library: Library) -> Self {
        Self {
            proxy: SkillsProxy::with_library(library),
            writer: ClientWriter::default(),
            agent: Vec::new(),
            cwd: None,
            prompt: String::new(),
            tracer: None,
            on_permission: None,
        }
    }

    /// Attaches the skill in a directory, before all others. One that is not there, or broken, is an error.
    pub fn skill_dir(self, dir: impl Into<PathBuf>) -> Self {
        Self { proxy: self.proxy.skill_dir(dir), ..self }
    }

    /// Attaches a skill that is defined in code.
    pub fn skill(self, skill: Skill) -> Self {
        Self { proxy: self.proxy.skill(skill), ..self }
    }

    /// Attaches a function that the model may call as it is, without a skill around it; see [`SkillTool::typed`]. It is
    /// one of the tools of our MCP server, beside those for skills.
    pub fn tool<I, O, F, Fut>(
        self,
        name: impl Into<String>,
        description: impl Into<String>,
        handler: F,
    ) -> Self
    where
        I: DeserializeOwned + JsonSchema + 'static,
        O: Serialize + 'static,
        F: Fn(I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        self.add_tool(SkillTool::typed(name, description, handler))
    }

    /// The same for a tool that is there already.
    pub fn add_tool(self, tool: SkillTool) -> Self {
        Self { proxy: self.proxy.tool(tool), ..self }
    }

    /// The agent's command; without one the embedded agent answers.
    pub fn agent(self, command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { agent: command.into_iter().map(Into::into).collect(), ..self }
    }

    /// How the tools over the skills are made.
    pub fn toolbox(self, toolbox: MakeToolbox) -> Self {
        Self { proxy: self.proxy.toolbox(toolbox), ..self }
    }

    /// What the interceptor does.
    pub fn policy(self, policy: Policy) -> Self {
        Self { proxy: self.proxy.policy(policy), ..self }
    }

    /// The program that agents without HTTP start as a bridge: `acp-skills-proxy`. Without it they get none of the tools.
    pub fn bridge(self, program: impl Into<PathBuf>) -> Self {
        Self { proxy: self.proxy.bridge(program), ..self }
    }

    /// The working directory of the session; ours by default.
    pub fn cwd(self, cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: Some(cwd.into()), ..self }
    }

    /// The prompt.
    pub fn prompt(self, text: impl Into<String>) -> Self {
        Self { prompt: text.into(), ..self }
    }

    /// Calls `tracer` with everything that happens, from several threads.
    pub fn trace(self, tracer: impl Fn(Trace<'_>) + Send + Sync + 'static) -> Self {
        Self { tracer: Some(Arc::new(tracer)), ..self }
    }

    /// Has `decide` answer what the agent asks permission for. Without it everything is refused: what a skill or a model
    /// wants to run is nobody's wish yet.
    ///
    /// ```
    /// use acp_skills::one_shot::{OneShot, PermissionDecision};
    ///
    /// let may_read = OneShot::default().on_permission(|request| match request.kind.as_deref() {
    ///     Some("read" | "search") => PermissionDecision::AllowOnce,
    ///     _ => PermissionDecision::Refuse,
    /// });
    /// # drop(may_read);
    /// ```
    pub fn on_permission(
        self,
        decide: impl Fn(&PermissionRequest) -> PermissionDecision + Send + Sync + 'static,
    ) -> Self {
        Self { on_permission: Some(Arc::new(decide)), ..self }
    }

    /// Sends the prompt and waits for the answer. Needs a tokio runtime around it; dropping the future cancels the turn.
    ///
    /// # Errors
    /// Something cannot be attached; the agent does not start, refuses, or goes away.
    pub async fn run(self) -> Result<Answer, OneShotError> {
        self.stream().collect().await
    }

    /// Sends the prompt, and gives the answer piece by piece. Needs a tokio runtime around it; dropping the stream
    /// cancels the turn.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use acp_skills::one_shot::{OneShot, Piece};
    /// use skills_core::Skill;
    ///
    /// let skill = Skill::builder("greet", "Greets people.").body("# Greeting\nSay hello.").build()?;
    /// let mut turn = OneShot::default().skill(skill).prompt("Greet me").stream();
    /// let mut text = String::new();
    /// while let Some(piece) = turn.next().await {
    ///     if let Piece::Text(more) = piece? {
    ///         text += &more;
    ///     }
    /// }
    /// assert_eq!(turn.answer().unwrap().text, text);
    /// # Ok(()) }
    /// ```
    pub fn stream(self) -> Turn {
        Turn::start(self)
    }

    /// Sends the prompt with the JSON schema of `T`, and reads the answer as a `T`. Its JSON may stand in a fenced block
    /// or between other words.
    ///
    /// # Errors
    /// As for [`OneShot::run`], and [`NotParsed`], which holds the answer, when there is no `T` in it.
    pub async fn parse<T: DeserializeOwned + JsonSchema>(self) -> Result<T, OneShotError> {
        let prompt = parse::request::<T>(&self.prompt);
        let answer = self.prompt(prompt).run().await?;
        Ok(parse::read(&answer.text)?)
    }

    /// Runs `conversation` as the client of the proxied agent, on a thread where it may block. Returns what it returns, and
    /// the exit code of the agent's process.
    ///
    /// # Errors
    /// Something cannot be attached, or the agent does not start.
    pub async fn converse<T: Send + 'static>(
        self,
        conversation: impl FnOnce(&mut Client) -> T + Send + 'static,
    ) -> Result<(T, Option<i32>), OneShotError> {
        let mut proxy = self.proxy;
        if let Some(tracer) = self.tracer.clone() {
            let observer = move |activity: &Activity| tracer(Trace::Activity(activity));
            proxy = proxy.observed_by(Arc::new(observer));
        }
        let (policy, host) = proxy.into_parts()?;
        let (client_reads, to_client) = io::pipe()?;
        let (from_client, client_writes) = io::pipe()?;
        let (writer, tracer) = (self.writer, self.tracer.clone());
        let mut client = Client::new(client_reads, client_writes, writer, tracer, self.on_permission);
        // The client's pipes close when it is done, and that ends the rest.
        let conversation = tokio::task::spawn_blocking(move || conversation(&mut client));
        let ends = Ends::new(from_client, to_client);
        let tap = self.tracer.map(tap);
        if self.agent.is_empty() {
            let (agent_reads, to_agent) = io::pipe()?;
            let (from_agent, agent_writes) = io::pipe()?;
            // Not `thread::spawn`, which panics when there can be no more threads.
            thread::Builder::new().spawn(move || drop(demo::serve(agent_reads, agent_writes)))?;
            let agent = Ends::new(from_agent, tapped(to_agent, tap));
            let relay = Relay::start(policy, host, ends, agent)?;
            let outcome = finished(conversation).await?;
            // The agent has its end of stdin, and stops.
            drop(relay.agent_done.await);
            return Ok((outcome, None));
        }
        let code = Standalone::new(self.agent, policy, host, ends).tap(tap).run().await?;
        Ok((finished(conversation).await?, Some(code)))
    }
}

/// Without a skill yet.
impl Default for OneShot {
    fn default() -> Self {
        Self::new(SkillSet::default())
    }
}

/// Waits for the end of a conversation; a panic in it is one here.
async fn finished<T>(conversation: JoinHandle<T>) -> Result<T, OneShotError> {
    conversation.await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => OneShotError::Client(ClientError::Cancelled),
    })
}

/// Sends one prompt and waits for the end of the turn.
fn ask(client: &mut Client, cwd: &Path, prompt: &str) -> Result<Answer, ClientError> {
    client.initialize()?;
    let session = client.new_session(cwd)?;
    let end = client.prompt(&session, prompt)?;
    let stop_reason = end["stopReason"].as_str().unwrap_or_default().to_owned();
    Ok(Answer { text: client.take_text(), stop_reason })
}

/// Traces each message in a stream of bytes.
fn tap(tracer: Tracer) -> Tap {
    let mut line = Vec::new();
    Box::new(move |bytes| {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                if let Ok(message) = serde_json::from_slice(&line) {
                    tracer(Trace::ToAgent(&message));
                }
                line.clear();
            }
        }
    })
}
