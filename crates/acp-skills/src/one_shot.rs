//! One prompt to one agent, with skills: the proxy and a small client in one call.
//!
//! [`OneShot`] takes what the prompt needs, and then the answer comes as a whole ([`OneShot::run`]), as it is said
//! ([`OneShot::stream`]), or as a Rust type ([`OneShot::parse`]).

pub(crate) mod parse;
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
use serde_json::Value;
use skills_core::{Skill, SkillSet, SkillTool, ToolError};

pub use self::{
    parse::NotParsed,
    turn::{Piece, Turn},
};

use crate::{
    activity::Activity,
    client::{Client, Line},
    component::SkillsProxy,
    demo,
    library::{Library, MakeToolbox},
    relay::{
        Ends, Relay,
        standalone::{self, Standalone},
    },
};
use acp_skills_intercept::Policy;

/// One prompt, the skills for it, and the agent that gets it.
///
/// ```
/// use acp_skills::one_shot::OneShot;
/// use skills_core::{Skill, SkillSet};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> anyhow::Result<()> {
/// let skill = Skill::builder("greet", "Greets people.").body("# Greeting\nSay hello.").build()?;
/// // Without a command it is the embedded agent that answers.
/// let answer = OneShot::new([skill].into_iter().collect()).prompt("Greet me").run().await?;
/// assert!(answer.text.contains("`greet`"));
/// # Ok(()) }
/// ```
#[must_use]
pub struct OneShot {
    proxy: SkillsProxy,
    line: Line,
    agent: Vec<OsString>,
    cwd: Option<PathBuf>,
    prompt: String,
    watch: Option<Watch>,
}

/// Sees what happens, as it happens.
pub type Watch = Arc<dyn Fn(Seen<'_>) + Send + Sync>;

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Seen<'a> {
    /// The agent received this message.
    ToAgent(&'a Value),
    /// Something happened on our server: the model called a tool, for example.
    Activity(&'a Activity),
    /// The agent said this.
    Update(&'a Value),
}

/// What came back.
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
            line: Line::default(),
            agent: Vec::new(),
            cwd: None,
            prompt: String::new(),
            watch: None,
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

    /// Shows what happens to `watch`, from several threads.
    pub fn watch(self, watch: Watch) -> Self {
        Self { watch: Some(watch), ..self }
    }

    /// Sends the prompt and waits for the answer. Needs a tokio runtime around it; dropping the future cancels the turn.
    ///
    /// # Errors
    /// The agent does not start, refuses, or goes away.
    pub async fn run(self) -> anyhow::Result<Answer> {
        self.stream().collect().await
    }

    /// Sends the prompt, and gives the answer as it is said. Needs a tokio runtime around it; dropping the stream
    /// cancels the turn.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> anyhow::Result<()> {
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
    pub async fn parse<T: DeserializeOwned + JsonSchema>(self) -> anyhow::Result<T> {
        let prompt = parse::request::<T>(&self.prompt);
        let answer = self.prompt(prompt).run().await?;
        Ok(parse::read(&answer.text)?)
    }

    /// Runs `talk` as the client of the proxied agent. Returns what it says, and the exit code of the agent's process.
    pub async fn converse<T: Send + 'static>(
        self,
        talk: impl FnOnce(&mut Client) -> T + Send + 'static,
    ) -> anyhow::Result<(T, Option<u8>)> {
        let mut proxy = self.proxy;
        if let Some(watch) = self.watch.clone() {
            let observer = move |activity: &Activity| watch(Seen::Activity(activity));
            proxy = proxy.observed_by(Arc::new(observer));
        }
        let (policy, host) = proxy.into_parts()?;
        let (client_reads, to_client) = io::pipe()?;
        let (from_client, client_writes) = io::pipe()?;
        let mut client = Client::new(client_reads, client_writes, self.line, self.watch.clone());
        // The client's pipes close when it is done, and that ends the rest.
        let talk = tokio::task::spawn_blocking(move || talk(&mut client));
        let ends = Ends::new(from_client, to_client);
        let tap = self.watch.map(tap);
        if self.agent.is_empty() {
            let (agent_reads, to_agent) = io::pipe()?;
            let (from_agent, agent_writes) = io::pipe()?;
            thread::spawn(move || drop(demo::serve(agent_reads, agent_writes)));
            let agent = Ends::new(from_agent, standalone::tapped(to_agent, tap));
            let relay = Relay::start(policy, host, ends, agent)?;
            let said = talk.await?;
            // The agent has its end of stdin, and stops.
            drop(relay.agent_done.await);
            return Ok((said, None));
        }
        let life = Standalone { command: self.agent, policy, host, client: ends, tap };
        let code = life.run().await?;
        Ok((talk.await?, Some(code)))
    }
}

/// Without a skill yet.
impl Default for OneShot {
    fn default() -> Self {
        Self::new(SkillSet::default())
    }
}

/// Sends one prompt and waits for the end of the turn.
fn talk(client: &mut Client, cwd: &Path, prompt: &str) -> anyhow::Result<Answer> {
    client.initialize()?;
    let session = client.new_session(cwd)?;
    let end = client.prompt(&session, prompt)?;
    let stop_reason = end["stopReason"].as_str().unwrap_or_default().to_owned();
    Ok(Answer { text: std::mem::take(&mut client.text), stop_reason })
}

/// Shows each message in a stream of bytes.
fn tap(watch: Watch) -> standalone::Tap {
    let mut line = Vec::new();
    Box::new(move |bytes| {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                if let Ok(message) = serde_json::from_slice(&line) {
                    watch(Seen::ToAgent(&message));
                }
                line.clear();
            }
        }
    })
}
