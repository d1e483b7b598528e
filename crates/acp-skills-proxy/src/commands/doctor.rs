//! `doctor`: starts the agent through the proxy and tells, step by step, whether skills would work with it.

use std::{
    ffi::OsString,
    process::ExitCode,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::permission;
use crate::{
    args::{CatalogArgs, LogArgs, ProxyArgs, ScriptArgs, ServerArgs, SkillArgs},
    error::UsageError,
    log,
};
use acp_skills::{
    activity::Activity,
    config::Settings,
    intercept::{McpMode, OPEN, SERVER_NAME},
    one_shot::{Client, OneShot, Trace},
};

/// How long the agent may take to fetch our tools before that counts as never. Longer than a prompt would wait.
const PATIENCE: Duration = Duration::from_secs(8);

const OVER_ACP: &str = "the ACP connection";

/// How long all of it may take.
const SILENCE: Duration = Duration::from_mins(1);

/// Flags of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 0 when skills would work, 1 when not.

Examples:
  acp-skills-proxy doctor --skill ./code-review -- claude-agent-acp
  acp-skills-proxy doctor --skill ./code-review --prompt hello -- some-agent
      Also sends a prompt, for agents that connect to MCP servers only then.")]
pub(crate) struct DoctorArgs {
    /// Also send this prompt.
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Allow, once each, everything that the agent asks permission for; without this it is refused.
    #[arg(long)]
    yes: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    skills: SkillArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    scripts: ScriptArgs,
    #[command(flatten)]
    log: LogArgs,
    /// The agent; without one the built-in scripted agent is looked at.
    #[arg(last = true, value_name = "AGENT")]
    agent: Vec<OsString>,
}

/// One step.
#[derive(Debug, Clone, Serialize)]
struct Step {
    #[serde(rename = "step")]
    name: &'static str,
    ok: bool,
    /// Since the start.
    ms: u128,
    detail: String,
}

#[derive(Debug, Serialize)]
struct Report {
    works: bool,
    steps: Vec<Step>,
}

/// Looks at the agent.
///
/// # Errors
/// As the proxy itself.
pub(crate) fn run(args: DoctorArgs) -> anyhow::Result<ExitCode> {
    let DoctorArgs { prompt, yes, json, skills, catalog, server, scripts, log, agent } = args;
    let config =
        ProxyArgs { skills, catalog, server, scripts, log, agent, ..ProxyArgs::default() }.config()?;
    log::start(&config)?;
    let settings = Settings::resolve(config)?;
    let toolbox = settings.toolbox;
    let skills = settings.skills.load()?;
    let cwd = std::env::current_dir()?;
    let found = skills.at(Some(&cwd));
    if found.is_empty() {
        return Err(UsageError::new("there is no skill to look for")
            .hint("name one with `--skill DIR`, or a directory to look in with `--skills DIR`")
            .into());
    }
    let stored = found.iter().filter(|skill| skill.dir().is_some()).count();
    let wants_tools = settings.policy.mcp != McpMode::Off;
    let (listed, tools) = mpsc::channel();
    let look = Arc::new(Look { start: Instant::now(), steps: Mutex::default(), listed: Mutex::new(listed) });
    let seen = Arc::clone(&look);
    let visit = Visit { look: Arc::clone(&look), tools, wants_tools, prompt };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let talk = OneShot::with_library(skills.into_library())
        .toolbox(toolbox)
        .policy(settings.policy)
        .agent(settings.agent)
        .bridge(std::env::current_exe()?)
        .on_permission(permission::decide(yes))
        .trace(move |trace| seen.trace(&trace))
        .converse(move |client| visit.run(client, &cwd));
    let outcome = runtime.block_on(async {
        let silent = || anyhow::anyhow!("the agent does not answer within {} s", SILENCE.as_secs());
        match tokio::time::timeout(SILENCE, talk).await {
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err(silent()),
        }
    });
    runtime.shutdown_background();
    let works = match outcome {
        Ok((Ok(connected), _)) => {
            let (ok, detail) = match (connected, wants_tools, stored) {
                (true, _, _) => (true, "the model has the tools".to_owned()),
                (false, false, 1..) => (
                    true,
                    format!("the model reads the files of {stored} skills itself, as `--mcp off` wants"),
                ),
                (false, true, 1..) => (
                    false,
                    format!(
                        "the proxy would fall back to naming the files of {stored} skills; whether the model can read them is the agent's affair"
                    ),
                ),
                (false, _, 0) => (false, "there is no fallback: none of the skills is a file".to_owned()),
            };
            look.step("skills", ok, detail);
            ok
        }
        Ok((Err(error), _)) | Err(error) => {
            look.step("failed", false, format!("{error:#}"));
            false
        }
    };
    let report = Report { works, steps: look.steps().clone() };
    if json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print(&report);
    }
    Ok(ExitCode::from(u8::from(!works)))
}

fn print(report: &Report) {
    for step in &report.steps {
        let mark = if step.ok { "ok  " } else { "FAIL" };
        println!("{mark} {:>6} ms  {:<12} {}", step.ms, step.name, step.detail);
    }
    println!(
        "\n{}",
        if report.works { "Skills work with this agent." } else { "Skills do not work with this agent." }
    );
}

/// What is seen from outside.
struct Look {
    start: Instant,
    steps: Mutex<Vec<Step>>,
    listed: Mutex<mpsc::Sender<()>>,
}

impl Look {
    fn steps(&self) -> MutexGuard<'_, Vec<Step>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, step: &'static str, ok: bool, detail: impl Into<String>) {
        self.steps().push(Step {
            name: step,
            ok,
            ms: self.start.elapsed().as_millis(),
            detail: detail.into(),
        });
    }

    fn trace(&self, trace: &Trace<'_>) {
        match trace {
            Trace::ToAgent(message) if message["method"] == "session/new" => self.set_up(&message["params"]),
            Trace::ToAgent(message) if message["method"] == "session/prompt" => {
                let blocks = message["params"]["prompt"].as_array().into_iter().flatten();
                if blocks
                    .into_iter()
                    .any(|block| block["text"].as_str().is_some_and(|text| text.starts_with(OPEN)))
                {
                    self.step("catalog", true, "in front of the prompt");
                }
            }
            Trace::Activity(Activity::Listed { revision, .. }) => {
                let revision = revision.as_deref().unwrap_or("of an unknown revision");
                self.step("tools", true, format!("the agent fetched the list of tools (MCP {revision})"));
                // The visit may be over.
                let _ = self.listed.lock().unwrap_or_else(PoisonError::into_inner).send(());
            }
            Trace::Activity(Activity::Called(call)) => {
                self.step("call", !call.output.is_error, format!("the model called {}", call.tool));
            }
            Trace::Permission(request, chosen) => {
                self.step("permission", true, permission::describe(request, *chosen));
            }
            _ => {}
        }
    }

    /// Whether the server is reached over the connection that is there: then there is nothing to wait for.
    fn over_acp(&self) -> bool {
        self.steps().iter().any(|step| step.name == "transport" && step.detail.starts_with(OVER_ACP))
    }

    /// What we put into `session/new`.
    fn set_up(&self, params: &Value) {
        let servers = params["mcpServers"].as_array().into_iter().flatten();
        let ours = servers
            .into_iter()
            .find(|server| server["name"].as_str().is_some_and(|name| name.starts_with(SERVER_NAME)));
        match ours {
            Some(server) => {
                let (transport, why) = match server["type"].as_str() {
                    Some("acp") => (OVER_ACP, "the agent advertises it"),
                    Some("http") => ("HTTP on loopback", "the agent advertises it"),
                    _ => ("stdio, through a bridge process", "the agent advertises neither ACP nor HTTP"),
                };
                self.step("transport", true, format!("{transport}: {why}, or a flag says so"));
            }
            None => self.step("transport", true, "none: switched off, or the agent refused it"),
        }
        let place = if params.get("systemPrompt").is_some() {
            "in the system prompt"
        } else if params["_meta"].get("systemPrompt").is_some() {
            "in the system prompt, the way of older versions of Claude's adapter"
        } else {
            return self.step("placement", true, "the catalog goes in front of the first prompt");
        };
        self.step("placement", true, format!("the catalog is {place}"));
    }
}

/// The conversation.
struct Visit {
    look: Arc<Look>,
    tools: mpsc::Receiver<()>,
    wants_tools: bool,
    prompt: Option<String>,
}

impl Visit {
    /// Returns whether the agent has our tools.
    fn run(self, client: &mut Client, cwd: &std::path::Path) -> anyhow::Result<bool> {
        let answer = client.initialize().context("initialize")?;
        let info = &answer["agentInfo"];
        let name = info["name"].as_str().unwrap_or("an agent without a name");
        let version = info["version"].as_str().unwrap_or_default();
        self.look.step(
            "initialize",
            true,
            format!("{name} {version}, protocol version {}", answer["protocolVersion"]),
        );
        let capabilities = &answer["agentCapabilities"];
        let detail = format!(
            "mcpCapabilities {}, systemPrompt {}, loadSession {}",
            capabilities["mcpCapabilities"],
            capabilities["sessionCapabilities"]["systemPrompt"],
            capabilities["loadSession"],
        );
        self.look.step("capabilities", true, detail);
        let session =
            client.new_session(cwd).context("session/new (does the agent want you to log in first?)")?;
        self.look.step("session/new", true, "the agent opened a session");
        let mut connected =
            self.wants_tools && (self.look.over_acp() || self.tools.recv_timeout(PATIENCE).is_ok());
        if let Some(prompt) = &self.prompt {
            let end = client.prompt(&session, prompt).context("session/prompt")?;
            self.look.step("prompt", true, format!("the turn ended: {}", end["stopReason"]));
            connected |= self.tools.try_recv().is_ok();
        }
        if self.wants_tools && !connected {
            let text = format!("the agent did not fetch the list of tools within {} s", PATIENCE.as_secs());
            self.look.step("tools", false, text);
        }
        Ok(connected)
    }
}
