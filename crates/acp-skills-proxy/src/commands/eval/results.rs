//! Shows the result of an evaluation and writes it to files.

use std::{env, fmt::Write, fs::OpenOptions, io::Write as _, path::Path};

use acp_skills_eval::{Evaluation, Grader, OutputCase, Report, Workspace};
use skills_sources::disk::patient;

use super::{args::ResultArgs, junit, markdown, page, summary};
use crate::{error::UsageError, log, output, words::count};

/// The variable with the file for the summary of a job in GitHub Actions.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// An evaluation with its result.
#[derive(Clone, Copy)]
pub(super) struct Evaluated<'a> {
    pub(super) evaluation: &'a Evaluation,
    pub(super) workspace: &'a Workspace,
    pub(super) report: &'a Report,
}

/// Prints the result and writes the requested files. Returns true if the evaluation passed.
///
/// # Errors
/// Returns an error if a file can't be written.
pub(super) fn show(result: &Evaluated<'_>, args: &ResultArgs) -> anyhow::Result<bool> {
    let Evaluated { evaluation, workspace, report } = *result;
    if let Some(path) = &args.html {
        write(path, page::page(evaluation, workspace, report))?;
    }
    if let Some(path) = &args.junit {
        write(path, junit::xml(evaluation, report))?;
    }
    if let Some(path) = &args.summary {
        write(path, markdown::summary(evaluation, report))?;
    }
    if let Some(path) = env::var_os(STEP_SUMMARY).filter(|path| !path.is_empty()) {
        let added = OpenOptions::new().create(true).append(true).open(&path);
        let text = markdown::summary(evaluation, report);
        if let Err(error) = added.and_then(|mut file| file.write_all(text.as_bytes())) {
            output::note(&format!("cannot add to the summary of the job: {error}"));
        }
    }
    if args.json {
        output::print_json(&summary::json(report, workspace))?;
    } else {
        output::print(&summary::text(report))?;
        output::print(&advice(evaluation))?;
        output::print(&format!("\nResults: {}\n", workspace.iteration().display()))?;
        for (title, path) in [("Page", &args.html), ("JUnit", &args.junit), ("Summary", &args.summary)] {
            if let Some(path) = path {
                output::print(&format!("{title}: {}\n", path.display()))?;
            }
        }
    }
    Ok(is_passed(evaluation, report, args.fail_under))
}

/// Returns true if the evaluation passed. A part of an evaluation has no verdict, so it passes if all of its runs have a result.
fn is_passed(evaluation: &Evaluation, report: &Report, fail_under: Option<f64>) -> bool {
    if evaluation.options.shard.is_some() {
        return report.complete && report.agents.iter().all(|agent| agent.errors == 0);
    }
    match fail_under {
        Some(_) if report.agents.iter().any(|agent| agent.undecided() > 0) => false,
        Some(rate) => report.complete && report.least_rate().is_some_and(|least| least >= rate),
        None => report.is_passed(),
    }
}

/// Returns what the reader has to know about the cases and the grader.
fn advice(evaluation: &Evaluation) -> String {
    let mut text = String::new();
    if evaluation.options.grader == Grader::Same && evaluation.evals.iter().any(OutputCase::has_sentences) {
        text.push_str(
            "The agent graded its own work. To let another agent grade it, use --grader COMMAND.\n",
        );
    }
    let drafts = evaluation.queries.iter().filter(|case| case.drafted).count()
        + evaluation.evals.iter().filter(|case| case.drafted).count();
    if drafts > 0 {
        let cases = count(drafts, "case");
        let _ =
            writeln!(text, "{cases} drafted by an agent: edit each of them, and remove its `drafted` key.");
    }
    text
}

/// Writes a file.
pub(super) fn write(path: &Path, text: String) -> Result<(), UsageError> {
    log::with_warnings_on_stderr(|| patient::write(path, text))
        .map_err(|error| UsageError::at("cannot write", path, error))
}
