//! `eval cases`: drafts cases with an agent, for a person to edit.

use std::{fs, process::ExitCode};

use acp_skills::config::LogLevel;
use acp_skills_eval::{Evaluation, OUTPUT_CASES, TRIGGER_CASES};
use acp_skills_runtime::agent;
use serde_json::Value;
use skills_sources::disk::Resolved;
use tokio::sync::watch;

use super::{EXIT_INTERRUPTED, agents::named, args::CasesArgs, summary, usage_error};
use crate::{args::ProxyArgs, error::UsageError, log, output, runtime, words::count};

/// Drafts the cases.
///
/// # Errors
/// Returns an error if the skill is invalid or has all cases, if the agent fails, or if a file can't be written.
pub(super) fn run(args: CasesArgs) -> anyhow::Result<ExitCode> {
    let mut config = ProxyArgs { log: args.log, ..ProxyArgs::default() }.config()?;
    config.log.get_or_insert(LogLevel::Off);
    log::start(&config)?;
    let agents: Vec<_> = args.agent.into_iter().collect();
    let evaluation = Evaluation::new(&args.skill).map_err(usage_error)?;
    let evaluation = evaluation.on(named(&agents, args.command)?).map_err(usage_error)?;
    let evaluation = evaluation.program(std::env::current_exe()?);
    let writer = evaluation.agents[0].clone();
    // A script of a session could exchange a directory for a link later.
    let [queries_file, tasks_file] = [TRIGGER_CASES[0], OUTPUT_CASES].map(|file| {
        let path = evaluation.dir.join(file);
        Resolved::new(&path).map_err(|error| UsageError::at("cannot write", &path, error))
    });
    let (queries_file, tasks_file) = (queries_file?, tasks_file?);
    let has_queries = TRIGGER_CASES.iter().any(|file| evaluation.dir.join(file).exists());
    let has_tasks = evaluation.dir.join(OUTPUT_CASES).exists();
    if has_queries && has_tasks {
        return Err(UsageError::new(format!("{} already has cases", evaluation.skill.name))
            .hint("move away evals/eval_queries.json or evals/evals.json to draft it again")
            .into());
    }
    let runtime = runtime::new()?;
    let drafts = runtime.block_on(async {
        // If the system doesn't support this, processes that leave the process group of their agent keep running.
        let _adopted = acp_skills_eval::adopt_orphans();
        let mut signals = agent::signals()?;
        let (stopper, stop) = watch::channel(false);
        let mut drafting = std::pin::pin!(evaluation.draft(&writer, args.queries, args.tasks, stop));
        loop {
            tokio::select! {
                drafts = &mut drafting => break drafts.map_err(usage_error),
                _ = signals.recv(), if !*stopper.borrow() => {
                    stopper.send_replace(true);
                }
            }
        }
    })?;
    runtime.shutdown_background();
    let Some(drafts) = drafts else { return Ok(ExitCode::from(EXIT_INTERRUPTED)) };
    let length = |value: &Value| value.as_array().map_or(0, Vec::len);
    let queries = summary::queries(length(&drafts.queries));
    let tasks = count(length(&drafts.tasks["evals"]), "task");
    for (is_there, file, name, value, what) in [
        (has_queries, queries_file, TRIGGER_CASES[0], &drafts.queries, queries),
        (has_tasks, tasks_file, OUTPUT_CASES, &drafts.tasks, tasks),
    ] {
        let path = evaluation.dir.join(name);
        if is_there {
            output::print(&format!("Kept {}\n", path.display()))?;
        } else if !what.starts_with("0 ") {
            let text = format!("{value:#}\n");
            // Create `evals` here, because `write` would create it for its owner only. If this fails, `write` reports it.
            let _ = fs::create_dir_all(path.parent().unwrap_or(&path));
            file.write(&text).map_err(|error| UsageError::at("cannot write", &path, error))?;
            output::print(&format!("Drafted {what} in {}\n", path.display()))?;
        }
    }
    output::print(
        "Edit each case, and remove its `drafted` key. Drafted queries often repeat the words of the description.\n",
    )?;
    Ok(ExitCode::SUCCESS)
}
