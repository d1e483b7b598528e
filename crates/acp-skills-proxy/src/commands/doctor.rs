//! `doctor`: starts the agent through the proxy and tests step by step if skills work with it.

mod conversation;
mod elsewhere;
mod login;
mod machine;
mod servers;
mod steps;

use std::{ffi::OsString, io, path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use clap::Args;
use serde::Serialize;

use self::{
    conversation::Conversation,
    elsewhere::Elsewhere,
    login::LoginNeeded,
    servers::Servers,
    steps::{Step, Steps},
};
use super::{permission, record, skills};
use crate::{
    args::{AgentArgs, LogArgs, ProxyArgs, SessionArgs, path, seconds},
    error, log, output, runtime,
    words::count,
};
use acp_skills::{
    config::Settings,
    intercept::McpMode,
    one_shot::{OneShot, Trace},
};
use acp_skills_runtime::{
    agent::{self, Signal},
    telemetry::Telemetry,
};

/// The timeout for the agent to fetch the list of our tools. It is longer than the time that a prompt waits for the tools.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// The flags of `doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy doctor --skill ./code-review -- claude-agent-acp
  acp-skills-proxy doctor --skill ./code-review --prompt hello -- some-agent
      Also send a prompt, because some agents connect to MCP servers only then, or when they call a tool.
  acp-skills-proxy doctor --skill ./code-review --mcp-servers .mcp.json
      Also show what the MCP servers of a project cost.

Exit codes: 0 if skills work, 1 if they don't, or if that could not be determined, 130 if interrupted.")]
pub(crate) struct DoctorArgs {
    /// Also send a prompt.
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Grant each permission request of the agent once. Without this flag, all requests are refused.
    #[arg(long)]
    yes: bool,
    /// The timeout for all steps together, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds(), default_value = "30")]
    timeout: Duration,
    /// Also start the MCP servers in this file, and show the tokens that their tools take with and without --mcp-on-demand. This can be the
    /// settings of an editor or MCP client with `mcpServers`, `servers` or `context_servers`.
    #[arg(long, value_name = "FILE", value_parser = path())]
    mcp_servers: Option<PathBuf>,
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

/// The conclusion of all steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Works,
    /// Unknown, because some agents connect to a server only when they call one of its tools.
    NotKnown,
    /// Unknown, because the agent asks the user to log in first.
    NotLoggedIn,
    Fails,
}

#[derive(Debug, Serialize)]
struct Report {
    works: bool,
    steps: Vec<Step>,
}

/// Starts the agent and prints each step, then the conclusion.
///
/// # Errors
/// Returns an error if an argument, the configuration or a skill is invalid, or if stdout can't be written. Errors of the agent are
/// steps that failed.
pub(crate) fn run(args: DoctorArgs) -> anyhow::Result<ExitCode> {
    let DoctorArgs { prompt, yes, timeout, mcp_servers, json, session, log, agent } = args;
    let servers = mcp_servers.as_deref().map(Servers::read).transpose()?;
    let config = ProxyArgs { session, log, agent, ..ProxyArgs::default() }.config()?;
    log::start(&config)?;
    let settings = Settings::resolve(config)?;
    let is_built_in = settings.agent.is_empty();
    let toolbox = settings.toolbox;
    let loaded = skills::load(settings.skills)?;
    if loaded.here.is_empty() {
        return Err(loaded.none().into());
    }
    let cwd = std::env::current_dir().context("cannot determine working directory")?;
    let stored = loaded.here.iter().filter(|skill| skill.dir().is_some()).count();
    let wants_tools = settings.policy.mcp != McpMode::Off;
    let elsewhere = Elsewhere::of(&settings.agent, &settings.policy);
    let (steps, tools) = Steps::start(!json, elsewhere.as_ref());
    let steps = Arc::new(steps);
    let telemetry = record::start_telemetry(settings.telemetry)?;
    let has_prompt = prompt.is_some();
    let connect_timeout = CONNECT_TIMEOUT.min(timeout / 2);
    let conversation = Conversation {
        steps: Arc::clone(&steps),
        tools,
        wants_tools,
        connect_timeout,
        prompt,
        command: settings.agent.clone(),
    };
    check_node(&settings.agent, &steps);
    let runtime = runtime::new()?;
    let measured = servers.map(|servers| (servers, settings.processes.clone(), cwd.clone()));
    let talk = OneShot::with_library(loaded.library.into_library())
        .toolbox(toolbox)
        .policy(settings.policy)
        .agent(settings.agent)
        .bridge(std::env::current_exe()?)
        .on_permission(permission::decide(yes))
        .trace(tracer(&steps, telemetry.as_ref()))
        .converse(move |client| conversation.run(client, &cwd));
    let outcome = runtime.block_on(until_signal(async {
        if let Some((servers, processes, cwd)) = measured {
            servers.measure(processes, &cwd, &steps).await;
        }
        tokio::time::timeout(timeout, talk).await
    }));
    runtime.shutdown_background();
    // Send everything before the command ends.
    drop(telemetry);
    let outcome = match outcome? {
        Ok(outcome) => outcome.map(|talked| talked.map_err(anyhow::Error::from)),
        Err(signal) => return Ok(ExitCode::from(signal.exit_code())),
    };
    let (verdict, mut hint) = match outcome {
        Ok(Ok((Ok(connected), _))) => {
            let elsewhere = elsewhere.filter(|_| !connected);
            let advice = elsewhere.as_ref().map(Elsewhere::advice);
            let (verdict, detail) = elsewhere.map_or_else(
                || judge(connected, wants_tools, stored, has_prompt),
                |elsewhere| (Verdict::Works, elsewhere.without_tools().to_owned()),
            );
            steps.step("skills", verdict == Verdict::Works, detail);
            let how_to_know = (verdict == Verdict::NotKnown).then(|| how_to_know(has_prompt).to_owned());
            (verdict, how_to_know.or(advice))
        }
        Ok(Ok((Err(error), _)) | Err(error)) => failed(&error, &steps),
        Err(_) => {
            let seconds = timeout.as_secs_f64();
            steps.step("failed", false, format!("timed out after {seconds} s while {}", steps.current()));
            (Verdict::Fails, Some("use `--timeout SECONDS` to wait longer".to_owned()))
        }
    };
    let works = verdict == Verdict::Works;
    if !works {
        hint = steps.advised(hint);
    }
    let report = Report { works, steps: steps.finish() };
    print(&report, &conclusion(verdict, is_built_in, hint.as_deref()), json)?;
    Ok(ExitCode::from(u8::from(!works)))
}

/// Returns the callback that adds the steps and sends telemetry.
fn tracer(steps: &Arc<Steps>, telemetry: Option<&Telemetry>) -> impl Fn(Trace<'_>) + Send + Sync + use<> {
    let (steps, record) = (Arc::clone(steps), record::observer(None, telemetry));
    move |trace| {
        if let (Trace::Activity(activity), Some(record)) = (&trace, &record) {
            record(activity);
        }
        steps.trace(&trace);
    }
}

fn print(report: &Report, conclusion: &str, json: bool) -> anyhow::Result<()> {
    if json {
        output::print_json(report)?;
    } else {
        output::print(conclusion)?;
    }
    Ok(())
}

/// Adds a step if the agent runs with a version of Node.js that is too old.
fn check_node(agent: &[OsString], steps: &Steps) {
    if let Some(old) = machine::old_node(agent) {
        steps.step("node", false, old);
        steps.advise("update Node.js: https://nodejs.org".to_owned());
    }
}

/// Returns the hint for an unknown verdict.
fn how_to_know(has_prompt: bool) -> &'static str {
    if has_prompt {
        "use `acp-skills-proxy try --prompt TEXT` with a task for a skill to check if the model reads the files"
    } else {
        "some agents only connect to a server to call a tool; use `--prompt TEXT` with a task for a skill to test this"
    }
}

/// Adds the step for an error of the conversation. Returns the verdict and a hint.
fn failed(error: &anyhow::Error, steps: &Steps) -> (Verdict, Option<String>) {
    if let Some(login) = LoginNeeded::of(error) {
        steps.step("login", false, login.to_string());
        return (Verdict::NotLoggedIn, Some(login.hint()));
    }
    steps.step("failed", false, error::message(error));
    (Verdict::Fails, error::hint(error))
}

/// Runs `work` until a signal asks this process to end.
///
/// # Errors
/// Returns an error if signals can't be received.
async fn until_signal<T>(work: impl Future<Output = T>) -> io::Result<Result<T, Signal>> {
    let mut signals = agent::signals()?;
    Ok(tokio::select! {
        biased;
        // The agent also receives the signal, and its end would look like an error.
        Some(signal) = signals.recv() => Err(signal),
        done = work => Ok(done),
    })
}

/// Decides if skills work, and explains why. `stored` is the number of skills on disk.
fn judge(connected: bool, wants_tools: bool, stored: usize, had_prompt: bool) -> (Verdict, String) {
    let skills = count(stored, "skill");
    let fallback =
        format!("the model receives paths to {skills} and may use the agent's tools to read the files");
    match (connected, wants_tools, stored) {
        (true, ..) => (Verdict::Works, "tools are available to the model".to_owned()),
        (false, false, 0) => {
            (Verdict::Fails, "tools are disabled, and no skill has files on disk".to_owned())
        }
        (false, false, _) => {
            (Verdict::Works, format!("the model reads {skills} from disk, because of `--mcp off`"))
        }
        (false, true, _) if !had_prompt => {
            (Verdict::NotKnown, format!("agent did not connect to the tools without a prompt; {fallback}"))
        }
        (false, true, 0) => (
            Verdict::Fails,
            "agent did not connect to the tools, and no skill has files on disk to use instead".to_owned(),
        ),
        // From the answer, a user may see that the model has read the files, but we can't check that in code.
        (false, true, _) => (
            Verdict::NotKnown,
            format!("agent did not connect to the tools, even after a prompt; {fallback}"),
        ),
    }
}

fn conclusion(verdict: Verdict, is_built_in: bool, hint: Option<&str>) -> String {
    let hint = hint.map_or_else(String::new, |hint| format!("hint: {hint}\n"));
    match (verdict, is_built_in) {
        (Verdict::Works, true) => format!(
            "\nSkills work with the built-in agent. To test your agent, put the agent command after \
             `--`:\nacp-skills-proxy doctor … -- claude-agent-acp\n{hint}"
        ),
        (Verdict::Works, false) => format!("\nSkills work with this agent.\n{hint}"),
        (Verdict::NotKnown, _) => {
            format!("\nCould not determine if skills work with this agent.\n{hint}")
        }
        (Verdict::NotLoggedIn, _) => {
            format!("\nCould not determine if skills work with this agent: log in first.\n{hint}")
        }
        (Verdict::Fails, _) => format!("\nSkills do not work with this agent.\n{hint}"),
    }
}
