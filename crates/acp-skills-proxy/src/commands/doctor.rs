//! `doctor`: starts the agent through the proxy and tells, step by step, whether skills would work with it.

mod look;
mod visit;

use std::{ffi::OsString, process::ExitCode, sync::Arc, time::Duration};

use clap::Args;
use serde::Serialize;

use self::{
    look::{Look, Step},
    visit::Visit,
};
use super::{permission, skills};
use crate::{
    args::{CatalogArgs, LogArgs, ProxyArgs, ScriptArgs, ServerArgs, SkillArgs, seconds},
    error, log, output,
    words::count,
};
use acp_skills::{config::Settings, intercept::McpMode, one_shot::OneShot};

/// How long the agent may take to fetch our tools before that counts as never. Longer than a prompt would wait.
const PATIENCE: Duration = Duration::from_secs(8);

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
    /// How many seconds all of it may take.
    #[arg(long, value_name = "SECONDS", value_parser = seconds(), default_value = "30")]
    timeout: Duration,
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
    let DoctorArgs { prompt, yes, timeout, json, skills, catalog, server, scripts, log, agent } = args;
    let config =
        ProxyArgs { skills, catalog, server, scripts, log, agent, ..ProxyArgs::default() }.config()?;
    log::start(&config)?;
    let settings = Settings::resolve(config)?;
    let is_built_in = settings.agent.is_empty();
    let toolbox = settings.toolbox;
    let loaded = skills::load(settings.skills)?;
    if loaded.here.is_empty() {
        return Err(loaded.none("look for").into());
    }
    let cwd = std::env::current_dir()?;
    let stored = loaded.here.iter().filter(|skill| skill.dir().is_some()).count();
    let wants_tools = settings.policy.mcp != McpMode::Off;
    let (look, tools) = Look::start(!json);
    let look = Arc::new(look);
    let seen = Arc::clone(&look);
    let patience = PATIENCE.min(timeout / 2);
    let visit = Visit { look: Arc::clone(&look), tools, wants_tools, patience, prompt };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let talk = OneShot::with_library(loaded.library.into_library())
        .toolbox(toolbox)
        .policy(settings.policy)
        .agent(settings.agent)
        .bridge(std::env::current_exe()?)
        .on_permission(permission::decide(yes))
        .trace(move |trace| seen.trace(&trace))
        .converse(move |client| visit.run(client, &cwd));
    let outcome = runtime.block_on(async { tokio::time::timeout(timeout, talk).await });
    let outcome = outcome.map(|talked| talked.map_err(anyhow::Error::from));
    runtime.shutdown_background();
    let mut hint = None;
    let works = match outcome {
        Ok(Ok((Ok(connected), _))) => {
            let (works, detail) = verdict(connected, wants_tools, stored);
            look.step("skills", works, detail);
            works
        }
        Ok(Ok((Err(error), _)) | Err(error)) => {
            hint = error::hint(&error);
            look.step("failed", false, error::message(&error));
            false
        }
        Err(_) => {
            let (waited, waiting) = (timeout.as_secs_f64(), look.waiting());
            look.step("failed", false, format!("not done after {waited} s: {waiting}"));
            hint = Some("`--timeout SECONDS` waits longer".to_owned());
            false
        }
    };
    let report = Report { works, steps: look.finish() };
    if json {
        output::print_json(&report)?;
    } else {
        output::print(&conclusion(works, is_built_in, hint.as_deref()))?;
    }
    Ok(ExitCode::from(u8::from(!works)))
}

/// Whether skills would work when the agent is `connected` to our tools, and why.
fn verdict(connected: bool, wants_tools: bool, stored: usize) -> (bool, String) {
    let files = format!("the files of {}", count(stored, "skill"));
    match (connected, wants_tools, stored) {
        (true, ..) => (true, "the model has the tools".to_owned()),
        (false, _, 0) => (false, "there is no fallback: none of the skills is a file".to_owned()),
        (false, false, _) => (true, format!("the model reads {files} itself, as `--mcp off` wants")),
        (false, true, _) => (
            false,
            format!(
                "the proxy would fall back to naming {files}; whether the model can read them is the agent's affair"
            ),
        ),
    }
}

fn conclusion(works: bool, is_built_in: bool, hint: Option<&str>) -> String {
    let hint = hint.map_or_else(String::new, |hint| format!("hint: {hint}\n"));
    match (works, is_built_in) {
        (true, true) => format!(
            "\nSkills work with the built-in agent. To look at yours, put its command after `--`:\n\
             acp-skills-proxy doctor … -- claude-agent-acp\n{hint}"
        ),
        (true, false) => format!("\nSkills work with this agent.\n{hint}"),
        (false, _) => format!("\nSkills do not work with this agent.\n{hint}"),
    }
}
