//! One prompt to one agent, with skills: the proxy and a small client in one call.

use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write},
    path::PathBuf,
    sync::Arc,
    thread,
};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use skills_core::{SkillSet, Toolbox};

use crate::{
    activity::{Observer, ToolCall},
    demo,
    intercept::Policy,
    mcp::{Library, Servers},
    relay::{
        Ends, Relay,
        standalone::{self, Standalone},
    },
};

/// One prompt, the skills for it, and the agent that gets it.
///
/// ```
/// use acp_skills_proxy::one_shot::OneShot;
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
    library: Library,
    policy: Policy,
    agent: Vec<OsString>,
    bridge: Option<PathBuf>,
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
    /// The model called one of our tools.
    Called(&'a ToolCall),
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
        Self::with_library(Arc::new(move |_| skills.clone()))
    }

    /// With skills that depend on the working directory.
    pub fn with_library(library: Library) -> Self {
        Self {
            library,
            policy: Policy::default(),
            agent: Vec::new(),
            bridge: None,
            cwd: None,
            prompt: String::new(),
            watch: None,
        }
    }

    /// The agent's command; without one the embedded agent answers.
    pub fn agent(self, command: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { agent: command.into_iter().map(Into::into).collect(), ..self }
    }

    /// What the interceptor does.
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// The program that agents without HTTP start as a bridge: `acp-skills-proxy`. Without it they get none of the tools.
    pub fn bridge(self, program: impl Into<PathBuf>) -> Self {
        Self { bridge: Some(program.into()), ..self }
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

    /// Sends the prompt and waits for the answer. Needs a tokio runtime around it.
    ///
    /// # Errors
    /// The agent does not start, refuses, or goes away.
    pub async fn run(self) -> anyhow::Result<Answer> {
        let cwd = match self.cwd {
            Some(cwd) => std::path::absolute(cwd)?,
            None => std::env::current_dir()?,
        };
        let observer: Option<Observer> = self.watch.clone().map(|watch| {
            let observer: Observer = Arc::new(move |call: &ToolCall| watch(Seen::Called(call)));
            observer
        });
        let bridge = self.bridge.unwrap_or_default();
        let servers = Servers::new(self.library, Arc::new(Toolbox::new), bridge).observed_by(observer);
        let (client_reads, to_client) = io::pipe()?;
        let (from_client, client_writes) = io::pipe()?;
        let client = Client {
            reader: BufReader::new(client_reads),
            writer: client_writes,
            watch: self.watch.clone(),
            text: String::new(),
        };
        let talk = tokio::task::spawn_blocking(move || client.talk(&cwd, &self.prompt));
        let ends = Ends::new(from_client, to_client);
        let tap = self.watch.map(tap);
        if self.agent.is_empty() {
            let (agent_reads, to_agent) = io::pipe()?;
            let (from_agent, agent_writes) = io::pipe()?;
            thread::spawn(move || drop(demo::serve(agent_reads, agent_writes)));
            let agent = Ends::new(from_agent, standalone::tapped(to_agent, tap));
            let relay = Relay::start(self.policy, servers, ends, agent)?;
            let answer = talk.await??;
            // The relay ends with the client's pipe, which the client has closed by now.
            drop(relay.agent_done.await);
            return Ok(answer);
        }
        let life = Standalone { command: self.agent, policy: self.policy, servers, client: ends, tap };
        let code = life.run().await?;
        talk.await?.with_context(|| format!("the agent ended with code {code}"))
    }
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

/// A client that sends one prompt.
struct Client {
    reader: BufReader<PipeReader>,
    writer: PipeWriter,
    watch: Option<Watch>,
    text: String,
}

impl Client {
    fn talk(mut self, cwd: &std::path::Path, prompt: &str) -> anyhow::Result<Answer> {
        self.ask(1, "initialize", &json!({
            "protocolVersion": 1,
            "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
            "clientInfo": { "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") },
        }))?;
        let session = self.ask(2, "session/new", &json!({ "cwd": cwd, "mcpServers": [] }))?;
        let prompt =
            json!({ "sessionId": session["sessionId"], "prompt": [{ "type": "text", "text": prompt }] });
        let end = self.ask(3, "session/prompt", &prompt)?;
        let stop_reason = end["stopReason"].as_str().unwrap_or_default().to_owned();
        Ok(Answer { text: self.text, stop_reason })
    }

    fn ask(&mut self, id: u64, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.reader.read_line(&mut line)? == 0 {
                bail!("the agent is gone before it answered `{method}`");
            }
            let message: Value =
                serde_json::from_str(&line).with_context(|| format!("no message: {line}"))?;
            match (message.get("method"), message["id"] == id) {
                (Some(_), _) => self.hear(&message)?,
                (None, true) => {
                    return message
                        .get("result")
                        .cloned()
                        .with_context(|| format!("the agent refuses `{method}`: {}", message["error"]));
                }
                (None, false) => {}
            }
        }
    }

    fn hear(&mut self, message: &Value) -> anyhow::Result<()> {
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "session/update" => {
                let update = &params["update"];
                if update["sessionUpdate"] == "agent_message_chunk" {
                    self.text += update["content"]["text"].as_str().unwrap_or_default();
                }
                if let Some(watch) = &self.watch {
                    watch(Seen::Update(update));
                }
                Ok(())
            }
            // Nobody is there to ask: only this once, and only what was offered for it.
            "session/request_permission" => {
                let options = params["options"].as_array().into_iter().flatten();
                let allow = options.into_iter().find(|option| option["kind"] == "allow_once");
                let outcome = match allow {
                    Some(option) => json!({ "outcome": "selected", "optionId": option["optionId"] }),
                    None => json!({ "outcome": "cancelled" }),
                };
                self.write(
                    &json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "outcome": outcome } }),
                )
            }
            method if message.get("id").is_some() => {
                let error = json!({ "code": -32601, "message": format!("no method `{method}`") });
                self.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "error": error }))
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, message: &Value) -> anyhow::Result<()> {
        writeln!(self.writer, "{message}").context("the agent is gone")
    }
}
