//! One prompt to one agent, with skills: a proxy and a client in one call.
//!
//! Configure a [`OneShot`], then choose how to receive the answer: as a whole with [`OneShot::run`], in pieces with
//! [`OneShot::stream`], or as a Rust type with [`OneShot::parse`]. [`OneShot::converse`] is for conversations with more than
//! one prompt.

mod error;
mod turn;

use std::{
    ffi::OsString,
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use acp_skills_intercept::Policy;
use acp_skills_runtime::{
    activity::Activity,
    demo,
    library::{Library, MakeToolbox},
    relay::{
        Ends, Relay,
        standalone::{Standalone, Tap, tapped},
    },
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use skills_core::{Skill, SkillSet, SkillTool, ToolError};
use tokio::{runtime::Handle, sync::oneshot};

pub use self::{
    error::OneShotError,
    turn::{Piece, Turn},
};
pub use crate::trace::{Trace, Tracer};
use crate::{client::ClientWriter, component::SkillsProxy, structured_output};
#[doc(no_inline)]
pub use crate::{
    client::{
        Client, ClientError, PermissionDecision, PermissionHandler, PermissionOption, PermissionRequest,
    },
    component::AttachError,
    structured_output::NotParsed,
};
pub use acp_skills_runtime::agent::StartError;

/// A prompt, the skills for it, and the agent that receives it.
///
/// Permission requests of the agent are refused unless [`on_permission`](Self::on_permission) allows them.
///
/// ```
/// use acp_skills::one_shot::OneShot;
/// use skills_core::{Skill, SkillSet};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let skill = Skill::builder("greet", "Greets people.").body("# Greeting\nSay hello.").build()?;
/// // Without a command, the built-in scripted agent answers.
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
    keeps_text: bool,
}

/// The agent's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// The text of all messages that the agent sent in the turn. Empty with [`OneShot::discard_text`].
    pub text: String,
    /// The reason why the turn ended, for example `end_turn`. Empty if the agent didn't send one.
    pub stop_reason: String,
}

impl OneShot {
    /// Creates a prompt with these skills and default settings.
    pub fn new(skills: SkillSet) -> Self {
        Self::with_library(Arc::new(skills))
    }

    /// Creates a prompt with skills that depend on the working directory.
    pub fn with_library(library: Library) -> Self {
        Self {
            proxy: SkillsProxy::with_library(library),
            writer: ClientWriter::default(),
            agent: Vec::new(),
            cwd: None,
            prompt: String::new(),
            tracer: None,
            on_permission: None,
            keeps_text: true,
        }
    }

    /// Attaches the skill in a directory. It takes precedence over skills with the same name in the library.
    ///
    /// A missing or invalid skill makes [`run`](Self::run) fail with [`AttachError`].
    pub fn skill_dir(self, dir: impl Into<PathBuf>) -> Self {
        Self { proxy: self.proxy.skill_dir(dir), ..self }
    }

    /// Attaches a skill that is defined in code. It takes precedence over skills with the same name in the library.
    pub fn skill(self, skill: Skill) -> Self {
        Self { proxy: self.proxy.skill(skill), ..self }
    }

    /// Attaches a function that the model can call without loading a skill first. It becomes another tool of our MCP server.
    ///
    /// See [`SkillTool::typed`] for the types of the input and the output.
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

    /// Attaches an existing tool that the model can call without loading a skill first.
    pub fn add_tool(self, tool: SkillTool) -> Self {
        Self { proxy: self.proxy.tool(tool), ..self }
    }

    /// Sets the agent's command: the program and its arguments. By default, the built-in scripted agent answers.
    pub fn agent(self, command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { agent: command.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets the function that creates the tools for a set of skills. The default is
    /// [`Toolbox::new`](skills_core::Toolbox::new).
    pub fn toolbox(self, toolbox: MakeToolbox) -> Self {
        Self { proxy: self.proxy.toolbox(toolbox), ..self }
    }

    /// Sets the proxy's policy, such as where the catalog is placed.
    pub fn policy(self, policy: Policy) -> Self {
        Self { proxy: self.proxy.policy(policy), ..self }
    }

    /// Sets the path of the `acp-skills-proxy` program, which agents without MCP over HTTP start as a bridge to our tools.
    ///
    /// Without it, those agents read the files of the skills and don't get the tools.
    pub fn bridge(self, program: impl Into<PathBuf>) -> Self {
        Self { proxy: self.proxy.bridge(program), ..self }
    }

    /// Sets the session's working directory. The default is the current directory of this process.
    pub fn cwd(self, cwd: impl Into<PathBuf>) -> Self {
        Self { cwd: Some(cwd.into()), ..self }
    }

    /// Sets the prompt.
    pub fn prompt(self, text: impl Into<String>) -> Self {
        Self { prompt: text.into(), ..self }
    }

    /// Calls `tracer` for each visible step of the prompt, from several threads.
    pub fn trace(self, tracer: impl Fn(Trace<'_>) + Send + Sync + 'static) -> Self {
        Self { tracer: Some(Arc::new(tracer)), ..self }
    }

    /// Lets `decide` answer the agent's permission requests. By default, all of them are refused, because the user hasn't
    /// seen what the skill or the model wants to run.
    ///
    /// ```
    /// use acp_skills::one_shot::{OneShot, PermissionDecision};
    ///
    /// let may_read = OneShot::default().on_permission(|request| match request.kind.as_deref() {
    ///     Some("read" | "search") => PermissionDecision::AllowOnce,
    ///     _ => PermissionDecision::Refuse,
    /// });
    /// # let _ = may_read;
    /// ```
    pub fn on_permission(
        self,
        decide: impl Fn(&PermissionRequest) -> PermissionDecision + Send + Sync + 'static,
    ) -> Self {
        Self { on_permission: Some(Arc::new(decide)), ..self }
    }

    /// Doesn't keep the agent's text: [`Answer::text`] is empty, and the text can have any length. Use this if
    /// [`trace`](Self::trace) or [`stream`](Self::stream) already provides the text. By default, up to 64 MiB are kept.
    pub fn discard_text(self) -> Self {
        Self { keeps_text: false, ..self }
    }

    /// Sends the prompt and waits for the answer. Dropping the future cancels the turn.
    ///
    /// # Errors
    /// - [`OneShotError::Attach`] if a skill or a tool can't be attached.
    /// - [`OneShotError::Start`] if the agent does not start.
    /// - [`OneShotError::Client`] if the agent answers with an error or ends early.
    /// - [`OneShotError::Io`] if the system has no pipes or threads left.
    ///
    /// # Panics
    /// Panics if it is called outside of a tokio runtime.
    pub async fn run(self) -> Result<Answer, OneShotError> {
        self.stream().collect().await
    }

    /// Sends the prompt and returns the answer as a stream of pieces. Dropping the stream cancels the turn.
    ///
    /// # Panics
    /// Panics if it is called outside of a tokio runtime.
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

    /// Sends the prompt with the JSON schema of `T` and parses the answer. The JSON can be in a fenced block or between other
    /// text; see [`structured_output`].
    ///
    /// # Errors
    /// Returns [`OneShotError::NotParsed`] with the answer if it doesn't contain a `T`. For other errors, see
    /// [`run`](Self::run).
    pub async fn parse<T: DeserializeOwned + JsonSchema>(self) -> Result<T, OneShotError> {
        let prompt = structured_output::prompt_for::<T>(&self.prompt);
        let answer = self.prompt(prompt).run().await?;
        Ok(structured_output::parse(&answer.text)?)
    }

    /// Starts the agent behind the proxy and runs `conversation` as its client, on a thread where it can block.
    ///
    /// Returns the value of `conversation` and the exit code of the agent. The code is `None` for the built-in agent. The
    /// [`prompt`](Self::prompt) is not sent.
    ///
    /// # Errors
    /// - [`OneShotError::Attach`] if a skill or a tool can't be attached.
    /// - [`OneShotError::Start`] if the agent does not start.
    /// - [`OneShotError::Io`] if the system has no pipes or threads left.
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
        let tracer = self.tracer.clone();
        let mut client = Client::new(client_reads, client_writes, self.writer, tracer, self.on_permission);
        client.keeps_text = self.keeps_text;
        // When the conversation ends, the client is dropped, which closes its pipes. This ends the relay and the
        // agent.
        let conversation = start(move || conversation(&mut client))?;
        let ends = Ends::new(from_client, to_client);
        let tap = self.tracer.map(tap);
        if self.agent.is_empty() {
            let (agent_reads, to_agent) = io::pipe()?;
            let (from_agent, agent_writes) = io::pipe()?;
            // We can't use `thread::spawn` here, because it panics when there are no threads left.
            thread::Builder::new().spawn(move || {
                let _ = demo::serve(agent_reads, agent_writes);
            })?;
            let agent = Ends::new(from_agent, tapped(to_agent, tap));
            let relay = Relay::start(policy, host, ends, agent)?;
            let outcome = finished(conversation).await?;
            // We closed the agent's input above, so just wait for it to end.
            let _ = relay.agent_done.await;
            return Ok((outcome, None));
        }
        let code = Standalone::new(self.agent, policy, host, ends).tap(tap).run().await?;
        Ok((finished(conversation).await?, Some(code)))
    }
}

/// Creates a prompt without skills.
impl Default for OneShot {
    fn default() -> Self {
        Self::new(SkillSet::default())
    }
}

/// The result of a conversation: its value, or the panic that ended it.
type End<T> = oneshot::Receiver<thread::Result<T>>;

/// Starts a conversation on a thread of its own.
///
/// The runtime's pool must not run it: the proxy reads skills there. If the system refuses further threads, the runtime queues
/// this work, and then the conversation and the proxy would wait for each other.
fn start<T: Send + 'static>(conversation: impl FnOnce() -> T + Send + 'static) -> io::Result<End<T>> {
    let (sender, end) = oneshot::channel();
    let runtime = Handle::current();
    thread::Builder::new().name("conversation".to_owned()).spawn(move || {
        let _inside = runtime.enter();
        // The caller continues the panic, so it is not hidden.
        let result = catch_unwind(AssertUnwindSafe(conversation));
        // This fails if the caller was dropped.
        let _ = sender.send(result);
    })?;
    Ok(end)
}

/// Waits for the end of a conversation. A panic in it continues in the caller.
async fn finished<T>(conversation: End<T>) -> Result<T, OneShotError> {
    match conversation.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => Err(OneShotError::Client(ClientError::Cancelled)),
    }
}

/// Sends one prompt and waits for the end of the turn.
fn ask(client: &mut Client, cwd: &Path, prompt: &str) -> Result<Answer, ClientError> {
    client.initialize()?;
    let session = client.new_session(cwd)?;
    let end = client.prompt(&session, prompt)?;
    let stop_reason = end["stopReason"].as_str().unwrap_or_default().to_owned();
    Ok(Answer { text: client.take_text(), stop_reason })
}

/// Returns a tap that traces each message in a stream of bytes.
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
