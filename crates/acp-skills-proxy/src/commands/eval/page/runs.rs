//! Each run, to open: what was asserted, what was said, what was made; and a box for each task, for what a person thinks of
//! it.

use std::{fmt::Write, fs::File, io::Read};

use acp_skills_eval::{Case, Evaluation, Outcome, Report, Status, Workspace};

use super::anchor;
use crate::html::escape;

/// How much of all texts a page holds: it is to open at once.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;
/// How much of a transcript, and of a file.
const MAX_TEXT_BYTES: usize = 40 * 1024;
/// How many files of a run.
const MAX_FILES: usize = 20;

const STATUSES: [(Status, &str); 5] = [
    (Status::Passed, "passed"),
    (Status::Failed, "failed"),
    (Status::NotActivated, "not_activated"),
    (Status::Ungraded, "ungraded"),
    (Status::Error, "error"),
];

fn class(status: Status) -> &'static str {
    STATUSES.iter().find(|it| it.0 == status).map_or("failed", |it| it.1)
}

/// All runs.
pub(super) fn runs(evaluation: &Evaluation, workspace: &Workspace, report: &Report) -> String {
    let mut html = "<section>\n<h2>Runs</h2>\n<p class=\"note\">Everything that was said and made. What is cut here is whole in \
                    the workspace.</p>\n<div class=\"filters\">\n<label>Agent <select id=\"agent\"><option \
                    value=\"\">all</option>"
        .to_owned();
    for agent in &report.agents {
        let name = escape(&agent.name);
        let _ = write!(html, "<option value=\"{name}\">{name}</option>");
    }
    html.push_str("</select></label>\n<label>Status <select id=\"status\"><option value=\"\">all</option>");
    for (status, class) in STATUSES {
        let _ = write!(html, "<option value=\"{class}\">{}</option>", super::super::summary::word(status));
    }
    html.push_str(
        "</select></label>\n<label>Text <input id=\"text\" type=\"search\"></label>\n<span id=\"shown\" \
         class=\"soft\"></span>\n</div>\n",
    );
    let mut left = MAX_PAGE_BYTES;
    let mut section = |case: &Case, html: &mut String| {
        for agent in &report.agents {
            for outcome in report.outcomes_of(&agent.name, case) {
                html.push_str(&run(workspace, outcome, &mut left));
            }
        }
    };
    for (place, query) in evaluation.queries.iter().enumerate() {
        let _ = writeln!(html, "<h3>Query {}: {}</h3>", place + 1, escape(&query.query));
        section(&Case::Query(place), &mut html);
    }
    for case in &evaluation.evals {
        let name = escape(&case.name);
        let _ = writeln!(html, "<h3>Task {name}</h3>\n<p class=\"note\">{}</p>", escape(&case.prompt));
        section(&Case::Eval(case.name.clone()), &mut html);
        let _ = writeln!(
            html,
            "<label class=\"feedback\">Your feedback on {name}, empty when it is fine<textarea \
             data-case=\"eval-{name}\"></textarea></label>"
        );
    }
    if !evaluation.evals.is_empty() {
        html.push_str("<button id=\"save\" type=\"button\">Save feedback.json</button>\n");
    }
    html + "</section>\n"
}

fn run(workspace: &Workspace, outcome: &Outcome, left: &mut usize) -> String {
    let class = class(outcome.status);
    #[expect(clippy::cast_precision_loss, reason = "times are not that long")]
    let seconds = outcome.duration_ms as f64 / 1000.0;
    let tokens = outcome.tokens.map_or_else(String::new, |tokens| format!(" · {} tokens", tokens.total));
    let (passed, total) = outcome.passed_of();
    let assertions = if total > 0 { format!(" · {passed}/{total} assertions") } else { String::new() };
    let mut html = format!(
        "<details class=\"run\" id=\"{}\" data-agent=\"{}\" data-status=\"{class}\"><summary><span class=\"status \
         {class}\">{}</span> {} <span class=\"soft\">{} · run {} · {seconds:.1} s{tokens}{assertions}</span></summary>\n<div>\n",
        anchor(outcome),
        escape(&outcome.run.agent),
        super::super::summary::word(outcome.status),
        escape(&outcome.run.agent),
        outcome.run.configuration.as_str().replace('_', " "),
        outcome.run.number,
    );
    let mut facts = Vec::new();
    facts.extend(outcome.problem());
    if !outcome.loaded.is_empty() {
        facts.push(format!("loaded: {}", outcome.loaded.join(", ")));
    }
    facts.extend(outcome.permissions.iter().map(|request| {
        let became = if request.granted { "granted" } else { "refused" };
        format!("{became}: {} ({}; {})", request.title, request.kind, request.why)
    }));
    facts
        .extend(outcome.outside.iter().map(|path| format!("changed outside of the run's directory: {path}")));
    if !facts.is_empty() {
        html.push_str("<ul class=\"notes\">");
        for fact in &facts {
            let _ = write!(html, "<li>{}</li>", escape(fact));
        }
        html.push_str("</ul>\n");
    }
    if !outcome.grades.is_empty() {
        html.push_str("<table><tbody>\n");
        for grade in &outcome.grades {
            let (class, word) = match (grade.passed, grade.ungraded) {
                (_, true) => ("ungraded", "ungraded"),
                (true, false) => ("passed", "holds"),
                (false, false) => ("failed", "does not"),
            };
            let _ = writeln!(
                html,
                "<tr><th scope=\"row\">{}</th><td class=\"told {class}\">{word}</td><td>{}</td></tr>",
                escape(&grade.text),
                escape(&grade.evidence)
            );
        }
        html.push_str("</tbody></table>\n");
    }
    let place = workspace.of_run(&outcome.run);
    html.push_str(&text(&place.join("transcript.md"), "Transcript", left));
    for output in outcome.outputs.iter().take(MAX_FILES) {
        html.push_str(&text(&place.join("outputs").join(output), output, left));
    }
    if outcome.outputs.len() > MAX_FILES {
        let _ = writeln!(html, "<p class=\"note\">and {} more files</p>", outcome.outputs.len() - MAX_FILES);
    }
    if !outcome.stderr.trim().is_empty() {
        let _ = writeln!(
            html,
            "<details><summary>stderr</summary><pre>{}</pre></details>",
            escape(&outcome.stderr)
        );
    }
    html + "</div></details>\n"
}

/// A file, to open.
fn text(path: &std::path::Path, title: &str, left: &mut usize) -> String {
    let mut bytes = Vec::new();
    let limit = MAX_TEXT_BYTES.min(*left);
    let read = File::open(path).and_then(|file| file.take(limit as u64 + 1).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    *left = left.saturating_sub(bytes.len());
    let is_cut = bytes.len() > limit;
    bytes.truncate(limit);
    let shown = match String::from_utf8_lossy(&bytes) {
        text if text.contains('\0') => "(not text)".to_owned(),
        text => text.into_owned(),
    };
    let rest = if is_cut { "\n… the rest is in the workspace" } else { "" };
    format!("<details><summary>{}</summary><pre>{}{rest}</pre></details>\n", escape(title), escape(&shown))
}
