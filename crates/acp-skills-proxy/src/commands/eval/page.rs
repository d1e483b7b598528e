//! The result of an evaluation as an HTML page that opens from disk. The page loads nothing, its only script is ours, and
//! its policy enforces that. The templates escape everything that agents wrote.
//!
//! | file | owns |
//! |---|---|
//! | `verdict` | the result in sentences, and what to do next |
//! | `page.html` | the page, its header, and the cases of all agents as a heat map |
//! | `tables` | rates with their intervals; results with the skill compared to results without |
//! | `runs` | each run with its transcript and files; the boxes for feedback |

mod runs;
mod tables;
mod verdict;

use askama::Template;

use acp_skills_eval::{
    AgentReport, Case, Configuration, Effect, Evaluation, Outcome, Report, Spread, Status, Workspace,
};

use self::{
    runs::Runs,
    tables::{Tasks, Triggers},
    verdict::Verdict,
};
use crate::{html::Frame, words::count};

const SCRIPT: &str = include_str!("page/page.js");

#[derive(Template)]
#[template(path = "commands/eval/page.html")]
struct Page<'a> {
    frame: Frame,
    evaluation: &'a Evaluation,
    report: &'a Report,
    /// The start of the first run, or nothing if there are no runs.
    started: String,
    /// The number of runs, in words.
    runs_made: String,
    /// The directory of the results.
    workspace: String,
    verdict: Verdict<'a>,
    /// Figures with their labels.
    tiles: Vec<(String, String)>,
    heat_map: HeatMap,
    triggers: Option<Triggers<'a>>,
    tasks: Option<Tasks<'a>>,
    /// Notes on the cases, with the agent's name if there are several agents.
    notes: Vec<(Option<&'a str>, &'a str)>,
    runs: Runs<'a>,
}

/// Renders the page.
pub(super) fn page(evaluation: &Evaluation, workspace: &Workspace, report: &Report) -> String {
    let started = report.outcomes.iter().map(|outcome| outcome.started).min();
    let frame = Frame {
        title: format!("Evaluation of {}", report.skill_name),
        command: "eval",
        note: "This page loads no other files.",
        script: Some(SCRIPT),
    };
    let page = Page {
        frame,
        evaluation,
        report,
        started: started.map(|time| time.strftime("%Y-%m-%d %H:%M UTC").to_string()).unwrap_or_default(),
        runs_made: count(report.outcomes.len(), "run"),
        workspace: workspace.iteration().to_string_lossy().into_owned(),
        verdict: Verdict::new(evaluation, report),
        tiles: tiles(report),
        heat_map: heat_map(evaluation, report),
        triggers: Triggers::new(report, evaluation.options.threshold),
        tasks: Tasks::new(report, evaluation.compared_with()),
        notes: notes(report),
        runs: Runs::new(evaluation, workspace, report),
    };
    page.to_string()
}

fn percent(rate: f64) -> String {
    format!("{:.0} %", rate * 100.0)
}

/// Returns the rate in percent, or a dash if there is none.
fn shown(rate: Option<f64>) -> String {
    rate.map_or_else(dash, percent)
}

fn dash() -> String {
    "–".to_owned()
}

/// Returns the figures at the top of the page, with a label each.
fn tiles(report: &Report) -> Vec<(String, String)> {
    let mut tiles = Vec::new();
    for agent in &report.agents {
        let suffix = if report.agents.len() > 1 { format!(" · {}", agent.name) } else { String::new() };
        if let Some(triggers) = &agent.triggers {
            tiles.push((super::summary::passed(&triggers.summary), format!("queries passed{suffix}")));
        }
        if let Some(benchmark) = &agent.benchmark {
            let all = &benchmark.run_summary;
            let mean = |spread: Option<Spread>| shown(spread.map(|spread| spread.mean));
            let delta = all.delta.pass_rate.map_or_else(dash, |delta| format!("{:+.0}", delta * 100.0));
            tiles
                .push((mean(all.with_skill.pass_rate), format!("of assertions hold with the skill{suffix}")));
            let effect = match all.delta.effect {
                Effect::NotShown => "points compared to without, which shows no difference",
                _ => "points compared to without",
            };
            tiles.push((delta, format!("{effect}{suffix}")));
        }
    }
    let errors: u64 = report.agents.iter().map(|agent| agent.errors).sum();
    tiles.push((errors.to_string(), "runs in which the agent failed".to_owned()));
    tiles
}

fn notes(report: &Report) -> Vec<(Option<&str>, &str)> {
    let are_named = report.agents.len() > 1;
    let mut notes = Vec::new();
    for agent in &report.agents {
        let name = are_named.then_some(agent.name.as_str());
        let of_agent = agent.benchmark.iter().flat_map(|benchmark| &benchmark.notes);
        notes.extend(of_agent.map(|note| (name, note.as_str())));
    }
    notes
}

/// Returns the `id` of a run on the page.
fn anchor(outcome: &Outcome) -> String {
    let run = &outcome.run;
    let case = match &run.case {
        Case::Query(place) => format!("query-{}", place + 1),
        Case::Eval(name) => format!("eval-{name}"),
        _ => String::new(),
    };
    format!("{}-{case}-{}-{}", run.agent, run.configuration.as_str(), run.number)
}

/// The cases in rows and the agents in columns, with the rate of each.
struct HeatMap {
    titles: Vec<String>,
    rows: Vec<HeatRow>,
}

/// A case.
struct HeatRow {
    /// The query, or the name of the task.
    case: String,
    /// The expected result of a query, in words. `None` for a task.
    expected: Option<&'static str>,
    cells: Vec<Cell>,
}

/// A case on an agent in a configuration.
enum Cell {
    /// The rate, with the class of its color, the run that the cell links to, and the runs in words.
    Rate { class: &'static str, anchor: String, rate: String, meaning: String },
    /// There are no runs.
    NoRuns,
    /// The case is not run in this configuration.
    Empty,
}

fn heat_map(evaluation: &Evaluation, report: &Report) -> HeatMap {
    let compared = evaluation.compared_with();
    let without = if compared == Configuration::OldSkill { "older" } else { "without" };
    let has_tasks = !evaluation.evals.is_empty();
    let mut titles = Vec::new();
    for agent in &report.agents {
        titles.push(agent.name.clone());
        if has_tasks {
            titles.push(format!("{}, {without}", agent.name));
        }
    }
    let queries = evaluation.queries.iter().enumerate();
    let queries =
        queries.filter(|(place, _)| !evaluation.is_held_out(&Case::Query(*place))).map(|(place, query)| {
            let case = Case::Query(place);
            let mut cells = Vec::new();
            for agent in &report.agents {
                cells.push(cell(report, agent, &case, Configuration::WithSkill));
                if has_tasks {
                    let is_run = evaluation.baseline.is_some();
                    cells.push(if is_run { cell(report, agent, &case, compared) } else { Cell::Empty });
                }
            }
            let expected = if query.should_trigger { "should load" } else { "should not load" };
            HeatRow { case: query.query.clone(), expected: Some(expected), cells }
        });
    let tasks = evaluation.evals.iter().map(|task| {
        let case = Case::Eval(task.name.clone());
        let both = [Configuration::WithSkill, compared];
        let of_agent = |agent| both.map(|configuration| cell(report, agent, &case, configuration));
        let cells = report.agents.iter().flat_map(of_agent).collect();
        HeatRow { case: task.name.clone(), expected: None, cells }
    });
    HeatMap { titles, rows: queries.chain(tasks).collect() }
}

fn cell(report: &Report, agent: &AgentReport, case: &Case, configuration: Configuration) -> Cell {
    let outcomes = report.outcomes_of(&agent.name, case);
    let runs: Vec<_> = outcomes.filter(|outcome| outcome.run.configuration == configuration).collect();
    let Some(first) = runs.first() else { return Cell::NoRuns };
    let decided = || runs.iter().filter(|run| run.status != Status::Error);
    let rates: Vec<f64> = match case {
        Case::Query(_) => decided().map(|run| if run.is_passed() { 1.0 } else { 0.0 }).collect(),
        _ => runs.iter().filter_map(|run| run.pass_rate()).collect(),
    };
    #[expect(clippy::cast_precision_loss, reason = "run counts are small")]
    let rate = (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64);
    let linked = runs.iter().find(|run| !run.is_passed()).unwrap_or(first);
    let right = runs.iter().filter(|run| run.is_passed()).count();
    // Runs without a result don't count.
    let meaning = match (case, rates.len()) {
        (_, 0) => "no run has a result".to_owned(),
        (Case::Query(_), decided) => format!("{right} of {} right", count(decided, "run")),
        (_, decided) => format!("the mean of {}, {right} passed", count(decided, "run")),
    };
    Cell::Rate { class: heat(rate), anchor: anchor(linked), rate: shown(rate), meaning }
}

/// Returns the class of a rate's color.
fn heat(rate: Option<f64>) -> &'static str {
    match rate {
        None => "rn",
        Some(rate) if rate >= 1.0 => "r5",
        Some(rate) if rate >= 0.75 => "r4",
        Some(rate) if rate >= 0.5 => "r3",
        Some(rate) if rate >= 0.25 => "r2",
        Some(rate) if rate > 0.0 => "r1",
        Some(_) => "r0",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_self_contained() {
        assert!(!SCRIPT.contains("</"), "the element would end early, and the hash would differ");
        assert!(!SCRIPT.contains("http"), "the page loads nothing");
    }
}
