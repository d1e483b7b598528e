//! `eval`: evaluates a skill on agents. Queries check if the skill is loaded when it should be. Tasks check if results are better
//! with the skill than without. The library runs the evaluation, and this command has the flags and the output.
//!
//! | file | owns |
//! |---|---|
//! | `eval` | the flow |
//! | `args` | the flags |
//! | `agents` | agents by name |
//! | `progress` | the progress of runs |
//! | `summary` | the result as tables and as JSON |
//! | `page` | the result as an HTML page |

mod agents;
mod args;
mod page;
mod progress;
mod summary;

use std::{fmt::Write, process::ExitCode};

use acp_skills::{
    config::{LogLevel, Settings},
    skills_core::exec::Sandbox,
};
use acp_skills_eval::{EMBEDDED, Evaluation, EvaluationError, Grader, Options, Plan, Report, Workspace};
use acp_skills_runtime::agent::{self, Signal};
use skills_sources::disk::patient;

pub(crate) use self::args::EvalArgs;
use self::{
    agents::{named, words},
    args::{Only, SandboxArg, allow},
    progress::Bar,
};
use crate::{
    args::{ProxyArgs, ScriptArgs, SessionArgs},
    error::UsageError,
    log, output, runtime,
    words::count,
};

/// The exit code if a query or task failed, or if a rate is below `--fail-under`.
const EXIT_FAILED: u8 = 1;
/// The exit code if the evaluation was interrupted, which is that of a program that Ctrl-C ends.
const EXIT_INTERRUPTED: u8 = 130;

/// Evaluates the skill.
///
/// # Errors
/// Returns an error if an argument, the skill or a case is invalid, or if results cannot be written.
pub(crate) fn run(args: EvalArgs) -> anyhow::Result<ExitCode> {
    let results = args.results.clone();
    let runs = args.runs.clone();
    let evaluation = evaluation(args)?;
    let plan = evaluation.plan().map_err(usage_error)?;
    if !results.json || runs.dry_run {
        announce(&evaluation, &plan, results.json)?;
    }
    if runs.dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let root = results.workspace.unwrap_or_else(|| Workspace::beside(&evaluation));
    let workspace = if runs.resume {
        Workspace::resume(&root, &evaluation)
    } else {
        Workspace::create(&root, &evaluation)
    };
    let workspace = workspace.map_err(usage_error)?;
    let runtime = runtime::new()?;
    let (report, interrupted) = runtime.block_on(run_all(&evaluation, &workspace))?;
    runtime.shutdown_background();
    if let Some(path) = &results.html {
        let page = page::page(&evaluation, &workspace, &report);
        // The log is off by default, but the user has to know if we wait for a FIFO.
        log::with_warnings_on_stderr(|| patient::write(path, page))
            .map_err(|error| UsageError::failed(format_args!("cannot write {}", path.display()), error))?;
    }
    if results.json {
        output::print(&format!("{:#}\n", summary::json(&report, &workspace)))?;
    } else {
        output::print(&summary::text(&report))?;
        output::print(&format!("\nResults: {}\n", workspace.iteration().display()))?;
        if let Some(path) = &results.html {
            output::print(&format!("Page: {}\n", path.display()))?;
        }
    }
    if interrupted {
        output::note("interrupted, but finished runs are kept; use `--resume` to continue");
    }
    let is_passed = match results.fail_under {
        Some(_) if report.agents.iter().any(|agent| agent.undecided() > 0) => false,
        Some(rate) => report.complete && report.least_rate().is_some_and(|least| least >= rate),
        None => report.is_passed(),
    };
    Ok(match (interrupted, is_passed) {
        (true, _) => ExitCode::from(EXIT_INTERRUPTED),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::from(EXIT_FAILED),
    })
}

/// Runs the evaluation. Also returns true if a signal interrupted it.
async fn run_all(evaluation: &Evaluation, workspace: &Workspace) -> anyhow::Result<(Report, bool)> {
    let mut signals = agent::signals()?;
    let interrupted = std::cell::Cell::new(false);
    let stop = async {
        // Ctrl-C only sends the signal to us, because each agent runs in a separate process group.
        let _: Option<Signal> = signals.recv().await;
        interrupted.set(true);
    };
    let mut bar = Bar::new(evaluation, output::stderr_is_terminal());
    let report = evaluation.run(workspace, |progress| bar.show(progress), stop).await.map_err(usage_error)?;
    bar.finish();
    Ok((report, interrupted.get()))
}

/// Creates the evaluation from the flags.
fn evaluation(args: EvalArgs) -> anyhow::Result<Evaluation> {
    let EvalArgs { skill, agents, cases, runs, catalog, server, allow_scripts, log, command, .. } = args;
    let scripts = ScriptArgs { allow_scripts, ..ScriptArgs::default() };
    let session = SessionArgs { catalog, server, scripts, ..SessionArgs::default() };
    let mut config = ProxyArgs { session, log, ..ProxyArgs::default() }.config()?;
    // Turn the log off by default: errors are already included in the outcome of a run, and libraries also log an
    // error if an agent is stopped during a request.
    config.log.get_or_insert(LogLevel::Off);
    log::start(&config)?;
    let settings = Settings::resolve(config)?;
    let mut options = Options::default();
    options.runs = runs.runs;
    options.jobs = runs.jobs.into();
    options.timeout = runs.timeout;
    options.retries = runs.retries;
    options.threshold = runs.threshold;
    options.split = cases.split;
    options.seed = cases.seed;
    options.policy = settings.policy;
    options.allow = allow(&agents.allow);
    options.grader = match agents.grader {
        _ if agents.no_grader => Grader::Nobody,
        Some(command) => Grader::Command(words(&command)?),
        None => Grader::Same,
    };
    options.sandbox = match agents.sandbox {
        Some(SandboxArg::Bwrap) => Some(Sandbox::bwrap(true).map_err(|error| usage_error(error.into()))?),
        None => None,
    };
    let mut evaluation = Evaluation::new(&skill).map_err(usage_error)?;
    evaluation = evaluation.on(named(&agents.agent, command)?).map_err(usage_error)?;
    for dir in &cases.among {
        evaluation = evaluation.among(dir).map_err(usage_error)?;
    }
    if let Some(dir) = &cases.baseline {
        evaluation = evaluation.baseline(dir).map_err(usage_error)?;
    }
    if let Some(path) = &cases.queries {
        evaluation = evaluation.queries(path).map_err(usage_error)?;
    }
    match cases.only {
        Some(Only::Queries) => evaluation.evals.clear(),
        Some(Only::Tasks) => evaluation.queries.clear(),
        None => {}
    }
    Ok(evaluation.options(options).toolbox(settings.toolbox).program(std::env::current_exe()?))
}

/// Prints the number of runs and turns before they start.
fn announce(evaluation: &Evaluation, plan: &Plan, json: bool) -> anyhow::Result<()> {
    let turns: usize = plan.turns.values().sum();
    if json {
        let agents: Vec<_> = plan
            .turns
            .iter()
            .map(|(agent, turns)| serde_json::json!({ "agent": agent, "turns": turns }))
            .collect();
        let text = serde_json::json!({ "runs": plan.runs.len(), "turns": turns, "agents": agents });
        output::print(&format!("{text:#}\n"))?;
        return Ok(());
    }
    let queries = summary::queries(evaluation.queries.len());
    let times = match evaluation.options.runs {
        1 => "once".to_owned(),
        runs => format!("{runs} times"),
    };
    let mut text = format!(
        "{}: {queries} and {}, {times} each: {}, at most {}\n",
        evaluation.skill.name,
        count(evaluation.evals.len(), "task"),
        count(plan.runs.len(), "run"),
        count(turns, "turn")
    );
    for (agent, turns) in &plan.turns {
        let command = match agent {
            Some(name) if name == EMBEDDED => {
                "built-in, without a model; results do not rate the skill".to_owned()
            }
            Some(name) => {
                let found = evaluation.agents.iter().find(|agent| agent.name == *name);
                let words = found.into_iter().flat_map(|agent| &agent.command);
                words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
            }
            None => "grades assertions in prose".to_owned(),
        };
        let name = agent.as_deref().unwrap_or("grader");
        let _ = writeln!(text, "  {name}: {} ({command})", count(*turns, "turn"));
    }
    text.push('\n');
    output::print(&text)?;
    Ok(())
}

/// Returns the error to report. An error in the user's input gets a hint. An error about results that cannot be written is
/// returned as it is.
fn usage_error(error: EvaluationError) -> anyhow::Error {
    let hint = match &error {
        EvaluationError::NoCases(_) => Some(
            "add cases to evals/evals.json or evals/eval_queries.json of the skill, or use `acp-skills-proxy init \
             NAME` to create a skill with examples",
        ),
        EvaluationError::Resume { .. } => Some("remove `--resume` to start a new iteration"),
        EvaluationError::Unwritable { .. } => return error.into(),
        _ => None,
    };
    let usage = UsageError::of(error);
    match hint {
        Some(hint) => usage.hint(hint).into(),
        None => usage.into(),
    }
}
