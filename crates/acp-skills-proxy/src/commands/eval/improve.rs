//! `eval improve`: tries descriptions that an agent writes, and writes the best one to the skill if the user agrees.

use std::{cell::RefCell, fmt::Write, path::Path, process::ExitCode};

use acp_skills_eval::{
    AgentCommand, EMBEDDED, Evaluation, Improvement, Limits, Progress, Stopped, Workspace,
};
use acp_skills_runtime::agent;
use skills_sources::disk::{Resolved, patient};
use tokio::sync::watch;

use super::{
    super::table::{Align, Table, terminal_width},
    EXIT_FAILED, EXIT_INTERRUPTED,
    agents::words,
    args::{AgentArgs, CaseArgs, EvalArgs, ImproveArgs, Only},
    evaluation,
    progress::Bar,
    skills, summary, usage_error,
};
use crate::{error::UsageError, output, runtime, words::count};

/// Improves the description.
///
/// # Errors
/// Returns an error if an argument, the skill or a case is invalid, or if a file can't be written.
pub(super) fn run(args: ImproveArgs) -> anyhow::Result<ExitCode> {
    let mut limits = Limits::default();
    limits.rounds = args.rounds;
    limits.max_turns = args.max_turns;
    limits.max_cost = args.max_cost;
    let yes = args.yes;
    let json = args.json;
    let is_dry = args.runs.dry_run;
    let workspace = args.workspace.clone();
    let writer = args.writer.as_deref().map(words).transpose()?;
    if args.runs.resume || args.runs.shard.is_some() {
        return Err(UsageError::new("--resume and --shard are not for `eval improve`").into());
    }
    let evaluation = evaluation(as_evaluation(args))?;
    let before = evaluation.file_text();
    let path = evaluation.dir.join(evaluation.file_name());
    // A script of a session could exchange the directory for a link later.
    let file = Resolved::new(&path).map_err(|error| UsageError::at("cannot read", &path, error))?;
    // Find out before the first run if the description can be replaced.
    evaluation.replace_description(&before, "Another description.").map_err(usage_error)?;
    let writer = match writer {
        Some(command) => AgentCommand::new("writer", command),
        None => evaluation.agents[0].clone(),
    };
    if !json {
        output::print(&announcement(&evaluation, &limits)?)?;
    }
    if is_dry {
        if json {
            let most = most_turns(&evaluation, &limits)?;
            output::print_json(&serde_json::json!({ "rounds": limits.rounds, "turns": most }))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    skills::note(&evaluation);
    let root = workspace.map_or_else(|| Workspace::beside(&evaluation), Ok).map_err(usage_error)?;
    let name = evaluation.skill.name.to_string();
    let runtime = runtime::new()?;
    let result = runtime.block_on(improve(&evaluation, &root, &writer, &limits))?;
    if json {
        output::print_json(&result)?;
    } else {
        output::print(&text(&result))?;
    }
    if result.stopped == Stopped::Interrupted {
        return Ok(ExitCode::from(EXIT_INTERRUPTED));
    }
    let code = exit_code(&result);
    if result.best == 0 {
        return Ok(code);
    }
    let answer = match (yes, json) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        _ => runtime.block_on(ask(format!("Write this description to {}?", path.display())))?,
    };
    // Do not wait for the thread that reads the answer.
    runtime.shutdown_background();
    match answer {
        None => return Ok(ExitCode::from(EXIT_INTERRUPTED)),
        Some(false) => return Ok(code),
        Some(true) => {}
    }
    let description = &result.rounds[result.best].description;
    let text = evaluation.replace_description(&before, description).map_err(usage_error)?;
    replace(&file, &path, &before, &text)?;
    if !json {
        output::print(&format!("Wrote the description of {name}.\n"))?;
    }
    Ok(code)
}

/// Writes the new text of a file. The user may have edited the file during the rounds, and then it is not replaced.
fn replace(file: &Resolved, path: &Path, before: &str, text: &str) -> Result<(), UsageError> {
    let now = file
        .within(|_, file| patient::read_text(file, u64::MAX))
        .map_err(|error| UsageError::at("cannot read", path, error))?;
    if now != before {
        let why = format!("not written, because the file has changed: {}", path.display());
        return Err(UsageError::new(why));
    }
    file.write(text).map_err(|error| UsageError::at("cannot write", path, error))
}

/// Returns the exit code of an improvement that was not interrupted.
fn exit_code(result: &Improvement) -> ExitCode {
    match &result.stopped {
        Stopped::AgentFailed | Stopped::Writer(_) => ExitCode::from(EXIT_FAILED),
        // If the writer had other descriptions before, it just has no more of them.
        Stopped::Repeated if result.rounds.len() < 2 => ExitCode::from(EXIT_FAILED),
        _ => ExitCode::SUCCESS,
    }
}

/// Asks the user. Returns `None` if a signal arrives first, because the handlers for signals stay installed after the rounds.
async fn ask(question: String) -> anyhow::Result<Option<bool>> {
    let mut signals = agent::signals()?;
    // A thread that reads from a terminal cannot be cancelled. It ends with the program.
    let answer = tokio::task::spawn_blocking(move || output::ask(&question));
    tokio::select! {
        answer = answer => Ok(Some(answer?)),
        _ = signals.recv() => Ok(None),
    }
}

async fn improve(
    evaluation: &Evaluation,
    root: &Path,
    writer: &AgentCommand,
    limits: &Limits,
) -> anyhow::Result<Improvement> {
    // If the system doesn't support this, processes that leave the process group of their agent keep running.
    let _adopted = acp_skills_eval::adopt_orphans();
    let mut signals = agent::signals()?;
    let (stopper, stop) = watch::channel(false);
    let bar = RefCell::new(Bar::new(evaluation, output::stderr_is_terminal()));
    let result = {
        let show = |progress: &Progress<'_>| bar.borrow_mut().show(progress);
        let mut improving = std::pin::pin!(evaluation.improve(root, writer, limits, show, stop));
        loop {
            tokio::select! {
                result = &mut improving => break result,
                _ = signals.recv(), if !*stopper.borrow() => {
                    stopper.send_replace(true);
                }
            }
        }
    };
    bar.into_inner().finish();
    result.map_err(usage_error)
}

/// Returns the flags of the same evaluation.
fn as_evaluation(args: ImproveArgs) -> EvalArgs {
    let agents =
        AgentArgs { agent: args.agent, models: args.models, isolate: args.isolate, ..AgentArgs::default() };
    let cases = CaseArgs {
        queries: args.queries,
        among: args.among,
        only: Some(Only::Queries),
        split: Some(args.split),
        seed: args.seed,
        ..CaseArgs::default()
    };
    EvalArgs {
        skill: Some(args.skill),
        agents,
        cases,
        runs: args.runs,
        results: results_in(args.workspace),
        catalog: crate::args::CatalogArgs::default(),
        server: crate::args::ServerArgs::default(),
        allow_scripts: false,
        log: args.log,
        command: args.command,
        action: None,
    }
}

fn results_in(workspace: Option<std::path::PathBuf>) -> super::args::ResultArgs {
    super::args::ResultArgs { workspace, ..super::args::ResultArgs::default() }
}

/// Returns the maximum number of turns of all rounds.
fn most_turns(evaluation: &Evaluation, limits: &Limits) -> anyhow::Result<usize> {
    let plan = evaluation.plan().map_err(usage_error)?;
    let turns: usize = plan.turns.values().sum();
    let rounds = limits.rounds as usize;
    let all = turns * (rounds + 1) + 2 * rounds;
    Ok(limits.max_turns.map_or(all, |max| max.min(all)))
}

/// Returns the number of rounds and turns as text, before they start.
fn announcement(evaluation: &Evaluation, limits: &Limits) -> anyhow::Result<String> {
    let mut text = format!(
        "{}: {}, at most {} and {}\n",
        evaluation.skill.name,
        summary::queries(evaluation.queries.len()),
        count(limits.rounds as usize, "round"),
        count(most_turns(evaluation, limits)?, "turn")
    );
    if evaluation.agents.iter().any(|agent| agent.name == EMBEDDED) {
        text.push_str("The built-in agent has no model, so its descriptions are only examples.\n");
    }
    text.push('\n');
    Ok(text)
}

fn text(result: &Improvement) -> String {
    let mut table = Table::new([
        ("Round", Align::Right),
        ("Training", Align::Right),
        ("Validation", Align::Right),
        ("Description", Align::Left),
    ]);
    let percent =
        |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), |rate| format!("{:.0} %", rate * 100.0));
    for (number, round) in result.rounds.iter().enumerate() {
        let best = if number == result.best { "* " } else { "" };
        table.row([
            format!("{best}{number}"),
            percent(round.train),
            percent(round.validation),
            round.description.clone(),
        ]);
    }
    let mut text = table.render(terminal_width());
    let reason = match &result.stopped {
        Stopped::Rounds => "The maximum number of rounds was reached.".to_owned(),
        Stopped::NoFailures => {
            "No query of the training part failed, so there is nothing to improve.".to_owned()
        }
        Stopped::MaxTurns => "The next round would exceed --max-turns.".to_owned(),
        Stopped::MaxCost => "The costs have reached --max-cost.".to_owned(),
        Stopped::Writer(why) => format!("The writer returned no valid description: {why}."),
        Stopped::Repeated => "The writer repeated a description that was already tried.".to_owned(),
        Stopped::AgentFailed => "The agent failed in some runs. Use `eval` to find out why.".to_owned(),
        Stopped::Interrupted => "Interrupted.".to_owned(),
        _ => String::new(),
    };
    let costs: Vec<_> =
        result.costs.iter().map(|(currency, amount)| format!("{currency} {amount:.2}")).collect();
    let costs = if costs.is_empty() { "not reported".to_owned() } else { costs.join(", ") };
    let _ = writeln!(text, "\n{reason} At most {}; costs: {costs}.", count(result.turns, "turn"));
    if let [first, .., _] = result.rounds.as_slice() {
        match result.best {
            0 => text.push_str("No description was better than that of the skill.\n"),
            best => {
                let best = &result.rounds[best].description;
                let _ = write!(text, "\n- {}\n+ {best}\n\n", first.description);
            }
        }
    }
    text
}
