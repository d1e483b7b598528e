//! `try`: one prompt through the proxy, and everything that happens on the way, for people to read.

use std::{
    ffi::OsString,
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

use clap::Args;
use serde_json::Value;
use skills_core::toolbox::Content;

use super::permission;
use crate::{
    args::{CatalogArgs, LogArgs, ProxyArgs, ScriptArgs, ServerArgs, SkillArgs, UserArgs},
    error::UsageError,
    log,
};
use acp_skills::{
    activity::{Activity, ToolCall},
    config::Settings,
    one_shot::{OneShot, Trace},
};

/// The prompt when there is none.
const PROMPT: &str = "Please use the skill that fits best.";

/// How many lines of a tool's result are shown, unless everything is asked for.
const SHOWN_LINES: usize = 24;

/// Flags of `try`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy try --skill ./code-review --prompt 'Review src/main.rs'
  acp-skills-proxy try --skill ./code-review --prompt 'Review src/main.rs' -- claude-agent-acp")]
pub(crate) struct TryArgs {
    /// What to ask the agent for.
    #[arg(long, value_name = "TEXT", default_value = PROMPT)]
    prompt: String,
    /// Show results of tools in full.
    #[arg(long)]
    full: bool,
    /// Allow, once each, everything that the agent asks permission for; without this it is refused.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    skills: SkillArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    scripts: ScriptArgs,
    #[command(flatten)]
    user: UserArgs,
    #[command(flatten)]
    log: LogArgs,
    /// The agent; without one a built-in scripted agent answers, which needs no account and no network.
    #[arg(last = true, value_name = "AGENT")]
    agent: Vec<OsString>,
}

/// Runs the prompt and prints what happens.
///
/// # Errors
/// As the proxy itself; also when the agent refuses.
pub(crate) fn run(args: TryArgs) -> anyhow::Result<ExitCode> {
    let TryArgs { prompt, full, yes, skills, catalog, server, scripts, user, log, agent } = args;
    let config =
        ProxyArgs { skills, catalog, server, scripts, user, log, agent, ..ProxyArgs::default() }.config()?;
    log::start(&config)?;
    let settings = Settings::resolve(config)?;
    let toolbox = settings.toolbox;
    let skills = settings.skills.load()?;
    if skills.at(std::env::current_dir().ok().as_deref()).is_empty() {
        return Err(UsageError::new("there is no skill to try")
            .hint("name one with `--skill DIR`, or a directory to look in with `--skills DIR`")
            .into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let show = Show { full, last: Mutex::new(Kind::Nothing) };
    let answer = runtime.block_on(
        OneShot::with_library(skills.into_library())
            .toolbox(toolbox)
            .policy(settings.policy)
            .agent(settings.agent)
            .bridge(std::env::current_exe()?)
            .prompt(prompt)
            .on_permission(permission::decide(yes))
            .trace(move |trace| show.trace(&trace))
            .run(),
    )?;
    println!("\n\n── the turn ended: {}", answer.stop_reason);
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

struct Show {
    full: bool,
    last: Mutex<Kind>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Received,
    Call,
    Answer,
    Thought,
    Permission,
}

impl Show {
    fn trace(&self, trace: &Trace<'_>) {
        match trace {
            Trace::ToAgent(message) => self.received(message),
            Trace::Activity(Activity::Called(call)) => self.called(call),
            Trace::Update(update) => self.update(update),
            Trace::Permission(request, chosen) => {
                self.section(Kind::Permission, &permission::describe(request, *chosen));
            }
            _ => {}
        }
    }

    /// Begins a section, unless it goes on.
    fn section(&self, kind: Kind, title: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != kind || matches!(kind, Kind::Call | Kind::Permission) {
            let space = if *last == Kind::Nothing { "" } else { "\n" };
            println!("{space}── {title}");
        }
        *last = kind;
    }

    fn received(&self, message: &Value) {
        let params = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "session/new" => {
                self.section(Kind::Received, "the agent received session/new, with");
                for server in params["mcpServers"].as_array().into_iter().flatten() {
                    let how = server["type"].as_str().unwrap_or("stdio");
                    println!("   MCP server `{}` ({how})", server["name"].as_str().unwrap_or_default());
                }
                for block in params["systemPrompt"]["content"].as_array().into_iter().flatten() {
                    println!("   in the system prompt:");
                    indented(block["text"].as_str().unwrap_or_default(), usize::MAX);
                }
                if let Some(text) = params["_meta"]["systemPrompt"]["append"].as_str() {
                    println!("   in the system prompt:");
                    indented(text, usize::MAX);
                }
            }
            "session/prompt" => {
                self.section(Kind::Nothing, "the agent received the prompt");
                for block in params["prompt"].as_array().into_iter().flatten() {
                    match block["text"].as_str() {
                        Some(text) => indented(text, usize::MAX),
                        None => indented(&block.to_string(), usize::MAX),
                    }
                }
                self.section(Kind::Received, "the agent works");
            }
            _ => {}
        }
    }

    fn called(&self, call: &ToolCall) {
        let how = if call.output.is_error { " failed" } else { "" };
        let arguments = Value::Object(call.arguments.clone());
        let time = call.duration.as_secs_f64() * 1000.0;
        self.section(Kind::Call, &format!("tool call: {} {arguments}{how} ({time:.1} ms)", call.tool));
        let lines = if self.full { usize::MAX } else { SHOWN_LINES };
        for content in &call.output.content {
            match content {
                Content::Text(text) => indented(text, lines),
                Content::Image { media_type, data } => println!("   ({media_type}, {} bytes)", data.len()),
                _ => println!("   (something that cannot be shown here)"),
            }
        }
    }

    fn update(&self, update: &Value) {
        use std::io::Write;
        let text = update["content"]["text"].as_str().unwrap_or_default();
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => {
                self.section(Kind::Answer, "the answer");
                print!("{text}");
            }
            "agent_thought_chunk" => {
                self.section(Kind::Thought, "a thought");
                print!("{text}");
            }
            _ => return,
        }
        // Chunks are shown as they come; whoever closed stdout does not want them.
        drop(std::io::stdout().flush());
    }
}

fn indented(text: &str, lines: usize) {
    let all: Vec<_> = text.trim_end().lines().collect();
    for line in all.iter().take(lines) {
        println!("   {line}");
    }
    if all.len() > lines {
        println!("   … {} more lines (--full shows all)", all.len() - lines);
    }
}
