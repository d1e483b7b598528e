//! `eval`: evaluates a skill on agents. Queries check if the skill is loaded when it should be. Tasks check if results are better
//! with the skill than without. The library runs the evaluation, and this command has the flags and the output.
//!
//! | file | owns |
//! |---|---|
//! | `eval` | the flow |
//! | `args` | the flags, and the subcommands with their flags |
//! | `agents` | agents by name |
//! | `progress` | the progress of runs |
//! | `results` | showing and writing the result, and deciding if it passed |
//! | `summary` | the result as tables and as JSON |
//! | `junit`, `markdown` | the result for CI systems |
//! | `history` | the trend over iterations |
//! | `skills` | notes about skills that agents load themselves |
//! | `improve`, `cases` | descriptions and cases that an agent writes |
//! | `page` | the result as an HTML page |

mod agents;
mod args;
mod cases;
mod history;
mod improve;
mod junit;
mod markdown;
mod page;
mod progress;
mod results;
mod skills;
mod summary;

use std::{
    fmt::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use acp_skills::{
    config::{LogLevel, Settings, describe_load_error, shorten_home},
    skills_core::{
        discovery::{Discovery, Root},
        exec::Sandbox,
    },
};
use acp_skills_eval::{
    Allow, EMBEDDED, Evaluation, EvaluationError, Grader, Options, Plan, Report, Workspace,
};
use acp_skills_runtime::agent::{self, Signal};
use acp_skills_setup::shell::shell_word;
use skills_sources::policy::{Policy, Refusal, Scripts};

pub(crate) use self::args::EvalArgs;
use self::{
    agents::{named, with_models, with_styles, words},
    args::{Action, MergeArgs, Only, SandboxArg, allow},
    progress::Bar,
    results::Evaluated,
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
    match args.action {
        Some(Action::History(args)) => return history::run(&args),
        Some(Action::Merge(args)) => return merge(&args),
        Some(Action::Improve(args)) => return improve::run(*args),
        Some(Action::Cases(args)) => return cases::run(args),
        None => {}
    }
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
    skills::note(&evaluation);
    let root =
        results.workspace.clone().map_or_else(|| Workspace::beside(&evaluation), Ok).map_err(usage_error)?;
    let workspace = if runs.resume {
        Workspace::resume(&root, &evaluation)
    } else {
        Workspace::create(&root, &evaluation)
    };
    let workspace = workspace.map_err(usage_error)?;
    let runtime = runtime::new()?;
    let (report, interrupted) = runtime.block_on(run_all(&evaluation, &workspace))?;
    runtime.shutdown_background();
    let result = Evaluated { evaluation: &evaluation, workspace: &workspace, report: &report };
    let is_passed = results::show(&result, &results)?;
    if interrupted {
        output::note("interrupted, but finished runs are kept; use `--resume` to continue");
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    Ok(if is_passed { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

/// Merges the results of parts.
fn merge(args: &MergeArgs) -> anyhow::Result<ExitCode> {
    let merged = acp_skills_eval::merge(&args.parts, args.results.workspace.as_deref());
    let (evaluation, workspace, report) = merged.map_err(usage_error)?;
    let result = Evaluated { evaluation: &evaluation, workspace: &workspace, report: &report };
    let is_passed = results::show(&result, &args.results)?;
    Ok(if is_passed { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

/// Runs the evaluation. Also returns true if a signal interrupted it.
async fn run_all(evaluation: &Evaluation, workspace: &Workspace) -> anyhow::Result<(Report, bool)> {
    // If the system doesn't support it, processes that leave the process group of their agent keep running.
    let _adopted = acp_skills_eval::adopt_orphans();
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

/// Checks that the policy of this machine allows the programs that the author of the skill chose, such as the commands of assertions.
/// They belong to the skill like its scripts.
fn permit(allow: Allow, allow_scripts: bool) -> anyhow::Result<()> {
    let flag = match allow {
        Allow { checks: true, .. } => Some("`--allow checks`"),
        Allow { settings: true, .. } => Some("`--allow settings`"),
        _ => None,
    };
    if flag.is_none() && !allow_scripts {
        return Ok(());
    }
    let Some(policy) = Policy::load()? else { return Ok(()) };
    match (policy.scripts(), flag) {
        (Scripts::Never | Scripts::Sandbox, Some(flag)) => {
            Err(policy.script(flag, "the programs cannot run in the sandbox of scripts").into())
        }
        (Scripts::Never, None) => Err(policy.script("`--allow-scripts`", "").into()),
        _ => Ok(()),
    }
}

/// Creates the evaluation from the flags.
fn evaluation(args: EvalArgs) -> anyhow::Result<Evaluation> {
    let EvalArgs {
        skill, agents, cases, runs, results, catalog, server, allow_scripts, log, command, ..
    } = args;
    permit(allow(&agents.allow), allow_scripts)?;
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
    options.second_grader = agents.second_grader.map(|command| words(&command)).transpose()?;
    options.shard = runs.shard;
    options.isolate = agents.isolate;
    let mut evaluation = Evaluation::new(&skill.unwrap_or_default()).map_err(usage_error)?;
    let mut rows = named(&agents.agent, command)?;
    if !agents.models.is_empty() {
        if rows.is_empty() {
            return Err(UsageError::new("--models needs an agent")
                .hint("add the agent: `--models opus,haiku -- claude-agent-acp`")
                .into());
        }
        rows = with_models(rows, &agents.models)?;
    }
    if agents.compare_styles {
        if rows.is_empty() {
            return Err(UsageError::new("--compare-styles needs an agent")
                .hint("add the agent: `--compare-styles -- claude-agent-acp`")
                .into());
        }
        rows = with_styles(rows);
    }
    evaluation = evaluation.on(rows).map_err(usage_error)?;
    for dir in &cases.among {
        evaluation = evaluation.among(dir).map_err(usage_error)?;
    }
    if let Some(named) = &cases.baseline {
        let root =
            results.workspace.map_or_else(|| Workspace::beside(&evaluation), Ok).map_err(usage_error)?;
        evaluation = evaluation.baseline(&version(named, &root)?).map_err(usage_error)?;
    }
    if let Some(path) = &cases.queries {
        // The log is off by default, but the user has to know what the command waits for.
        evaluation = log::with_warnings_on_stderr(|| evaluation.queries(path)).map_err(usage_error)?;
    }
    match cases.only {
        Some(Only::Queries) => evaluation.evals.clear(),
        Some(Only::Tasks) => evaluation.queries.clear(),
        None => {}
    }
    Ok(evaluation.options(options).toolbox(settings.toolbox).program(std::env::current_exe()?))
}

/// Returns the directory of an older version of the skill: the directory that the user names, or the copy of the skill in an
/// iteration.
fn version(named: &Path, root: &Path) -> Result<PathBuf, UsageError> {
    let text = named.to_string_lossy();
    let number = text.strip_prefix("iteration-").unwrap_or(&text).parse::<u64>().ok();
    let iteration = match number {
        Some(number) if !named.exists() => root.join(format!("iteration-{number}")),
        _ => named.to_owned(),
    };
    if iteration.join("SKILL.md").exists() || !iteration.join("evaluation.json").exists() && number.is_none()
    {
        return Ok(iteration);
    }
    acp_skills_eval::kept_skill(&iteration).ok_or_else(|| {
        UsageError::new(format!("no copy of the skill: {}", iteration.display()))
            .hint("use the number of an iteration in the workspace, or the directory of an older version")
    })
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
        let announced = serde_json::json!({ "runs": plan.runs.len(), "turns": turns, "agents": agents });
        output::print_json(&announced)?;
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

/// Returns a hint if `dir` is not a skill, but contains one.
fn skill_below(dir: &Path) -> Option<String> {
    let found = Discovery::new([Root::scanned(dir)]).find();
    let skill = found.iter().find_map(|skill| skill.dir())?;
    Some(format!(
        "`eval` takes one skill, for example `acp-skills-proxy eval {}`",
        shell_word(&shorten_home(skill))
    ))
}

/// Returns the error to report. An error in the user's input gets a hint. An error about results that cannot be written is
/// returned as it is.
fn usage_error(error: EvaluationError) -> anyhow::Error {
    let hint = match &error {
        EvaluationError::NoCases(_) => Some(
            "add cases to evals/evals.json or evals/eval_queries.json of the skill, or use `acp-skills-proxy init \
             NAME` to create a skill with examples"
                .to_owned(),
        ),
        EvaluationError::TooFewQueries(_) => Some(
            "add more queries to evals/eval_queries.json of the skill, or draft some with `eval cases`".to_owned(),
        ),
        EvaluationError::Description(_) => Some(
            "write the frontmatter with one field per line, such as `description: Reviews code.`".to_owned(),
        ),
        EvaluationError::IsSkill(_) => Some("choose another directory with `--workspace`".to_owned()),
        EvaluationError::Link(_) => Some("remove it, or choose another directory with `--workspace`".to_owned()),
        EvaluationError::Resume { .. } => Some("remove `--resume` to start a new iteration".to_owned()),
        EvaluationError::Refused(_) => Some(Refusal::HINT.to_owned()),
        EvaluationError::Policy(error) => Some(error.hint().to_owned()),
        EvaluationError::Skill { path, .. } => skill_below(path),
        EvaluationError::Unwritable { .. } => return error.into(),
        _ => None,
    };
    let usage = match error {
        EvaluationError::Skill { source, .. } => UsageError::new(describe_load_error(&source)),
        EvaluationError::Unreadable { path, source } => UsageError::at("cannot read", &path, source),
        error => UsageError::of(error),
    };
    match hint {
        Some(hint) => usage.hint(hint).into(),
        None => usage.into(),
    }
}
