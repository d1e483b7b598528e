//! The runs on the page: the assertions, the transcript and the files of each, and a box for feedback on each task.

use std::{fs::File, io::Read, path::Path};

use askama::Template;

use acp_skills_eval::{AgentReport, Case, Evaluation, Outcome, Report, Status, Workspace};

use super::{super::summary, anchor};
use crate::words::count;

/// The maximum size of all texts of a page, so that it opens quickly.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;
/// The maximum size of a transcript or file.
const MAX_TEXT_BYTES: usize = 40 * 1024;
/// The maximum number of files of a run.
const MAX_FILES: usize = 20;

/// The statuses of the filter, with the class of each.
const STATUSES: [(Status, &str); 5] = [
    (Status::Passed, "passed"),
    (Status::Failed, "failed"),
    (Status::NotActivated, "not_activated"),
    (Status::Ungraded, "ungraded"),
    (Status::Error, "error"),
];

/// A section with all runs.
#[derive(Template)]
#[template(path = "commands/eval/page/runs.html")]
pub(super) struct Runs<'a> {
    agents: Vec<&'a str>,
    cases: Vec<CaseRuns<'a>>,
    /// True if there are boxes for feedback.
    has_tasks: bool,
}

/// The runs of a case.
struct CaseRuns<'a> {
    title: String,
    /// The prompt of a task.
    prompt: Option<&'a str>,
    /// The name of a task.
    task: Option<&'a str>,
    runs: Vec<Run<'a>>,
}

/// A run.
struct Run<'a> {
    outcome: &'a Outcome,
    id: String,
    class: &'static str,
    /// The text in the line of the run: its configuration, its number, its duration and other details.
    details: String,
    /// Problems, loaded skills, permissions and files outside of the run's directory.
    facts: Vec<String>,
    /// The transcript and the files, by their titles.
    texts: Vec<(String, String)>,
    /// The number of files that are left out.
    more_files: usize,
}

impl<'a> Runs<'a> {
    /// Reads the texts of all runs from the workspace. Texts that cannot be read are left out.
    pub(super) fn new(evaluation: &'a Evaluation, workspace: &Workspace, report: &'a Report) -> Self {
        let mut left = MAX_PAGE_BYTES;
        let mut runs_of = |case: &Case| -> Vec<Run<'a>> {
            let is_of_case = |outcome: &&Outcome| outcome.run.case == *case;
            let of_agent = |agent: &'a AgentReport| {
                report.outcomes.iter().filter(move |outcome| outcome.run.agent == agent.name)
            };
            let outcomes = report.agents.iter().flat_map(of_agent).filter(is_of_case);
            outcomes.map(|outcome| Run::new(workspace, outcome, &mut left)).collect()
        };
        let mut cases = Vec::new();
        for (place, query) in evaluation.queries.iter().enumerate() {
            if evaluation.is_held_out(&Case::Query(place)) {
                continue;
            }
            cases.push(CaseRuns {
                title: format!("Query {}: {}", place + 1, query.query),
                prompt: None,
                task: None,
                runs: runs_of(&Case::Query(place)),
            });
        }
        for task in &evaluation.evals {
            cases.push(CaseRuns {
                title: format!("Task {}", task.name),
                prompt: Some(&task.prompt),
                task: Some(&task.name),
                runs: runs_of(&Case::Eval(task.name.clone())),
            });
        }
        let agents = report.agents.iter().map(|agent| agent.name.as_str()).collect();
        Self { agents, cases, has_tasks: !evaluation.evals.is_empty() }
    }

    /// Returns a status in words.
    #[expect(clippy::unused_self, reason = "called as methods from templates")]
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
    fn word(&self, status: &Status) -> &'static str {
        summary::word(*status)
    }
}

impl<'a> Run<'a> {
    /// Reads the texts of a run. `left` is the size that the texts of this run and of all later ones may have.
    fn new(workspace: &Workspace, outcome: &'a Outcome, left: &mut usize) -> Self {
        let directory = workspace.of_run(&outcome.run);
        let transcript = (directory.join("transcript.md"), "Transcript".to_owned());
        let outputs = outcome.outputs.iter().take(MAX_FILES);
        let outputs = outputs.map(|output| (directory.join("outputs").join(output), output.clone()));
        let files = std::iter::once(transcript).chain(outputs);
        let class = STATUSES.iter().find(|(status, _)| *status == outcome.status);
        Self {
            outcome,
            id: anchor(outcome),
            class: class.map_or("failed", |(_, class)| class),
            details: details(outcome),
            facts: facts(outcome),
            texts: files.filter_map(|(path, title)| Some((title, text(&path, left)?))).collect(),
            more_files: outcome.outputs.len().saturating_sub(MAX_FILES),
        }
    }
}

fn details(outcome: &Outcome) -> String {
    #[expect(clippy::cast_precision_loss, reason = "durations are short")]
    let seconds = outcome.duration_ms as f64 / 1000.0;
    let configuration = outcome.run.configuration.as_str().replace('_', " ");
    let mut details = vec![configuration, format!("run {}", outcome.run.number), format!("{seconds:.1} s")];
    details.extend(outcome.tokens.map(|tokens| count(tokens.total, "token")));
    let (passed, total) = outcome.passed_of();
    if total > 0 {
        details.push(format!("{passed}/{total} assertions"));
    }
    details.join(" · ")
}

fn facts(outcome: &Outcome) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(outcome.problem());
    if !outcome.loaded.is_empty() {
        facts.push(format!("loaded: {}", outcome.loaded.join(", ")));
    }
    facts.extend(outcome.permissions.iter().map(|request| {
        let decision = if request.granted { "granted" } else { "refused" };
        format!("{decision}: {} ({}; {})", request.title, request.kind, request.why)
    }));
    facts.extend(outcome.outside.iter().map(|path| format!("changed outside the run directory: {path}")));
    facts
}

/// Reads the beginning of a file, and reduces `left` by its size. Returns `None` if the file cannot be read.
fn text(path: &Path, left: &mut usize) -> Option<String> {
    let mut bytes = Vec::new();
    let limit = MAX_TEXT_BYTES.min(*left);
    File::open(path).and_then(|file| file.take(limit as u64 + 1).read_to_end(&mut bytes)).ok()?;
    *left = left.saturating_sub(bytes.len());
    let is_cut = bytes.len() > limit;
    bytes.truncate(limit);
    if bytes.contains(&0) {
        return Some("(binary file)".to_owned());
    }
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if is_cut {
        text.push_str("\n… the rest is in the workspace");
    }
    Some(text)
}
