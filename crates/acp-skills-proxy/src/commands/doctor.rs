//! `doctor`: starts the agent through the proxy and tells, step by step, whether skills would work with it.

mod conversation;
mod steps;

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use self::{
    conversation::Conversation,
    steps::{Step, Steps},
};
use super::{permission, skills};
use crate::{
    args::{AgentArgs, LogArgs, ProxyArgs, SessionArgs, seconds},
    error, log, output, runtime,
    words::count,
};
use acp_skills::{config::Settings, intercept::McpMode, one_shot::OneShot};

/// How long the agent may take to fetch our tools before that counts as never. Longer than a prompt would wait.
const PATIENCE: Duration = Duration::from_secs(8);

/// Flags of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 0 when skills would work, 1 when not, or when only a prompt can tell.

Examples:
  acp-skills-proxy doctor --skill ./code-review -- claude-agent-acp
  acp-skills-proxy doctor --skill ./code-review --prompt hello -- some-agent
      Also sends a prompt, for agents that connect to MCP servers only then, or when they call a tool.")]
pub(crate) struct DoctorArgs {
    /// Also send this prompt.
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Allow, once each, everything that the agent asks permission for; without this it is refused.
    #[arg(long)]
    yes: bool,
    /// How many seconds all of it may take.
    #[arg(long, value_name = "SECONDS", value_parser = seconds(), default_value = "30")]
    timeout: Duration,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    session: SessionArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    agent: AgentArgs,
}

/// Whether skills would work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Works,
    /// Some agents connect to a server only when they call one of its tools.
    NotKnown,
    Fails,
}

#[derive(Debug, Serialize)]
struct Report {
    works: bool,
    steps: Vec<Step>,
}

/// Starts the agent, and tells whether skills would work with it.
///
/// # Errors
/// As the proxy itself.
pub(crate) fn run(args: DoctorArgs) -> anyhow::Result<ExitCode> {
    let DoctorArgs { prompt, yes, timeout, json, session, log, agent } = args;
    let config = ProxyArgs { session, log, agent, ..ProxyArgs::default() }.config()?;
    log::start(&config)?;
    let settings = Settings::resolve(config)?;
    let is_built_in = settings.agent.is_empty();
    let toolbox = settings.toolbox;
    let loaded = skills::load(settings.skills)?;
    if loaded.here.is_empty() {
        return Err(loaded.none("look for").into());
    }
    let cwd = std::env::current_dir().context("cannot tell the current directory")?;
    let stored = loaded.here.iter().filter(|skill| skill.dir().is_some()).count();
    let wants_tools = settings.policy.mcp != McpMode::Off;
    let (steps, tools) = Steps::start(!json);
    let steps = Arc::new(steps);
    let seen = Arc::clone(&steps);
    let has_prompt = prompt.is_some();
    let patience = PATIENCE.min(timeout / 2);
    let conversation = Conversation { steps: Arc::clone(&steps), tools, wants_tools, patience, prompt };
    let runtime = runtime::new()?;
    let talk = OneShot::with_library(loaded.library.into_library())
        .toolbox(toolbox)
        .policy(settings.policy)
        .agent(settings.agent)
        .bridge(std::env::current_exe()?)
        .on_permission(permission::decide(yes))
        .trace(move |trace| seen.trace(&trace))
        .converse(move |client| conversation.run(client, &cwd));
    let outcome = runtime.block_on(async { tokio::time::timeout(timeout, talk).await });
    let outcome = outcome.map(|talked| talked.map_err(anyhow::Error::from));
    runtime.shutdown_background();
    let mut hint = None;
    let verdict = match outcome {
        Ok(Ok((Ok(connected), _))) => {
            let (verdict, detail) = judge(connected, wants_tools, stored, has_prompt);
            steps.step("skills", verdict == Verdict::Works, detail);
            if verdict == Verdict::NotKnown {
                hint = Some(if has_prompt {
                    "`acp-skills-proxy try` with a task for a skill shows what the model does with the files"
                        .to_owned()
                } else {
                    "some agents connect to a server only when they call one of its tools: `--prompt TEXT` with a task for a \
                     skill shows whether this one does"
                        .to_owned()
                });
            }
            verdict
        }
        Ok(Ok((Err(error), _)) | Err(error)) => {
            hint = error::hint(&error);
            steps.step("failed", false, error::message(&error));
            Verdict::Fails
        }
        Err(_) => {
            let (waited, waiting) = (timeout.as_secs_f64(), steps.waiting());
            steps.step("failed", false, format!("not done after {waited} s: {waiting}"));
            hint = Some("`--timeout SECONDS` waits longer".to_owned());
            Verdict::Fails
        }
    };
    let works = verdict == Verdict::Works;
    let report = Report { works, steps: steps.finish() };
    if json {
        output::print_json(&report)?;
    } else {
        output::print(&conclusion(verdict, is_built_in, hint.as_deref()))?;
    }
    Ok(ExitCode::from(u8::from(!works)))
}

/// Whether skills would work when the agent is `connected` to our tools, or not even after a prompt, and why.
fn judge(connected: bool, wants_tools: bool, stored: usize, had_prompt: bool) -> (Verdict, String) {
    let files = format!("the files of {}", count(stored, "skill"));
    let named =
        format!("the model is told where {files} are; whether it can read them is the agent's affair");
    match (connected, wants_tools, stored) {
        (true, ..) => (Verdict::Works, "the model has the tools".to_owned()),
        (false, false, 0) => {
            (Verdict::Fails, "there are no tools, and none of the skills is a file".to_owned())
        }
        (false, false, _) => {
            (Verdict::Works, format!("the model reads {files} itself, as `--mcp off` wants"))
        }
        (false, true, _) if !had_prompt => (
            Verdict::NotKnown,
            format!("the agent has not connected to the tools by itself; until it does, {named}"),
        ),
        (false, true, 0) => (Verdict::Fails, "there is no fallback: none of the skills is a file".to_owned()),
        // Whether it has read them is in its answer, which a program cannot judge.
        (false, true, _) => (
            Verdict::NotKnown,
            format!("the agent has not connected to the tools, also with a prompt; {named}"),
        ),
    }
}

fn conclusion(verdict: Verdict, is_built_in: bool, hint: Option<&str>) -> String {
    let hint = hint.map_or_else(String::new, |hint| format!("hint: {hint}\n"));
    match (verdict, is_built_in) {
        (Verdict::Works, true) => format!(
            "\nSkills work with the built-in agent. To look at yours, put its command after `--`:\n\
             acp-skills-proxy doctor … -- claude-agent-acp\n{hint}"
        ),
        (Verdict::Works, false) => format!("\nSkills work with this agent.\n{hint}"),
        (Verdict::NotKnown, _) => {
            format!("\nWhether skills work with this agent is not known yet.\n{hint}")
        }
        (Verdict::Fails, _) => format!("\nSkills do not work with this agent.\n{hint}"),
    }
}
