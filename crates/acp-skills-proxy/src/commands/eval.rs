//! `eval`: does a skill work, on any agent? Queries tell whether it is loaded when it should be, tasks whether results are
//! better with it than without. The library does all of that; here are the flags, and what people see.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | the flow |
//! | `args` | the flags |
//! | `agents` | agents by name |
//! | `progress` | what is told while it goes on |
//! | `summary` | what is told at the end |
//! | `page` | the same as a page |

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

pub(crate) use self::args::EvalArgs;
use self::{
    agents::{named, words},
    args::{Only, SandboxArg, allow},
    progress::Bar,
};
use crate::{
    args::{ProxyArgs, ScriptArgs},
    error::UsageError,
    log, output, runtime,
    words::count,
};

/// Something fell short.
const EXIT_FELL_SHORT: u8 = 1;

/// Evaluates the skill.
///
/// # Errors
/// The command line, the skill or a case is wrong, or results cannot be written.
pub(crate) fn run(args: EvalArgs) -> anyhow::Result<ExitCode> {
    let (json, html, fail_under, dry_run, resume) = (
        args.results.json,
        args.results.html.clone(),
        args.results.fail_under,
        args.runs.dry_run,
        args.runs.resume,
    );
    let root = args.results.workspace.clone();
    let evaluation = evaluation(args)?;
    let plan = evaluation.plan().map_err(told)?;
    if !json || dry_run {
        announce(&evaluation, &plan, json)?;
    }
    if dry_run {
        return Ok(ExitCode::SUCCESS);
    }
    let root = root.unwrap_or_else(|| Workspace::beside(&evaluation));
    let workspace =
        if resume { Workspace::resume(&root, &evaluation) } else { Workspace::create(&root, &evaluation) };
    let workspace = workspace.map_err(told)?;
    let runtime = runtime::new()?;
    let (report, interrupted) = runtime.block_on(make(&evaluation, &workspace))?;
    runtime.shutdown_background();
    if let Some(path) = &html {
        let page = page::page(&evaluation, &workspace, &report);
        std::fs::write(path, page)
            .map_err(|error| UsageError::failed(format_args!("cannot write {}", path.display()), error))?;
    }
    if json {
        output::print(&format!("{:#}\n", summary::json(&report, &workspace)))?;
    } else {
        output::print(&summary::text(&report))?;
        output::print(&format!("\nResults: {}\n", workspace.iteration().display()))?;
        if let Some(path) = &html {
            output::print(&format!("Page: {}\n", path.display()))?;
        }
    }
    if interrupted {
        output::note("interrupted; what is done is kept, and --resume goes on with it");
    }
    let fine = match fail_under {
        Some(rate) => report.complete && report.least_rate().is_some_and(|least| least >= rate),
        None => report.is_passed(),
    };
    Ok(if fine && !interrupted { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FELL_SHORT) })
}

/// Makes the runs. Also says whether somebody ended it early.
async fn make(evaluation: &Evaluation, workspace: &Workspace) -> anyhow::Result<(Report, bool)> {
    let mut signals = agent::signals()?;
    let interrupted = std::cell::Cell::new(false);
    let stop = async {
        // Agents have groups of their own, so a terminal's Ctrl-C reaches us alone.
        let _: Option<Signal> = signals.recv().await;
        interrupted.set(true);
    };
    let mut bar = Bar::new(evaluation.options.jobs, output::stderr_is_terminal());
    let report = evaluation.run(workspace, |progress| bar.show(progress), stop).await.map_err(told)?;
    bar.finish();
    Ok((report, interrupted.get()))
}

/// What the flags come to.
fn evaluation(args: EvalArgs) -> anyhow::Result<Evaluation> {
    let EvalArgs { skill, agents, cases, runs, catalog, server, allow_scripts, log, command, .. } = args;
    let scripts = ScriptArgs { allow_scripts, ..ScriptArgs::default() };
    let mut config = ProxyArgs { catalog, server, scripts, log, ..ProxyArgs::default() }.config()?;
    // What goes wrong in a run is part of its outcome; and libraries complain when an agent is ended in the middle.
    config.log.get_or_insert(LogLevel::Off);
    log::start(&config)?;
    let settings = Settings::resolve(config)?;
    let mut options = Options::default();
    (options.runs, options.jobs) = (runs.runs, runs.jobs.into());
    (options.timeout, options.threshold) = (runs.timeout, runs.threshold);
    (options.split, options.seed) = (cases.split, cases.seed);
    options.policy = settings.policy;
    options.allow = allow(&agents.allow);
    options.grader = match agents.grader {
        _ if agents.no_grader => Grader::Nobody,
        Some(command) => Grader::Command(words(&command)?),
        None => Grader::Same,
    };
    options.sandbox = match agents.sandbox {
        Some(SandboxArg::Bwrap) => Some(Sandbox::bwrap(true).map_err(|error| told(error.into()))?),
        None => None,
    };
    let mut evaluation = Evaluation::new(&skill).map_err(told)?;
    evaluation = evaluation.on(named(&agents.agent, command)?).map_err(told)?;
    for dir in &cases.among {
        evaluation = evaluation.among(dir).map_err(told)?;
    }
    if let Some(dir) = &cases.baseline {
        evaluation = evaluation.baseline(dir).map_err(told)?;
    }
    if let Some(path) = &cases.queries {
        evaluation = evaluation.queries(path).map_err(told)?;
    }
    match cases.only {
        Some(Only::Queries) => evaluation.evals.clear(),
        Some(Only::Tasks) => evaluation.queries.clear(),
        None => {}
    }
    Ok(evaluation.options(options).toolbox(settings.toolbox).program(std::env::current_exe()?))
}

/// What it takes, before anything is done.
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
    let (queries, tasks, runs) = (evaluation.queries.len(), evaluation.evals.len(), evaluation.options.runs);
    let queries = if queries == 1 { "1 query".to_owned() } else { format!("{queries} queries") };
    let times = if runs == 1 { "once".to_owned() } else { format!("{runs} times") };
    let mut text = format!(
        "{}: {queries} and {}, {times} each: {}, at most {}\n",
        evaluation.skill.name,
        count(tasks, "task"),
        count(plan.runs.len(), "run"),
        count(turns, "turn")
    );
    for (agent, turns) in &plan.turns {
        let command = match agent {
            Some(name) if name == EMBEDDED => {
                "built in, without a model: it says nothing of the skill".to_owned()
            }
            Some(name) => {
                let found = evaluation.agents.iter().find(|agent| agent.name == *name);
                let words = found.into_iter().flat_map(|agent| &agent.command);
                words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
            }
            None => "judges sentences".to_owned(),
        };
        let name = agent.as_deref().unwrap_or("grader");
        let _ = writeln!(text, "  {name}: {} ({command})", count(*turns, "turn"));
    }
    text.push('\n');
    output::print(&text)?;
    Ok(())
}

/// An error of the user's world, unless it is ours.
fn told(error: EvaluationError) -> anyhow::Error {
    let hint = match &error {
        EvaluationError::NoCases(_) => Some(
            "cases are in evals/evals.json and evals/eval_queries.json of the skill; `acp-skills-proxy init NAME` makes a \
             skill with examples",
        ),
        EvaluationError::Resume { .. } => Some("leave out --resume to begin a new iteration"),
        EvaluationError::Unwritable { .. } => return error.into(),
        _ => None,
    };
    let usage = UsageError::of(error);
    match hint {
        Some(hint) => usage.hint(hint).into(),
        None => usage.into(),
    }
}
