//! The result as one HTML page that opens from disk. Nothing is loaded from anywhere, the only script is ours, and a strict
//! policy holds the page to that: what agents said is in it, and all of it is escaped.
//!
//! | file | owns |
//! |---|---|
//! | `mod` | the page, its head, agents and cases as a heat map |
//! | `tables` | rates with their intervals, with against without |
//! | `runs` | each run, to open; the boxes for feedback |

mod runs;
mod tables;

use std::fmt::Write;

use acp_skills_eval::{AgentReport, Case, Configuration, Evaluation, Outcome, Report, Workspace};

use crate::html::{escape, fill, source_of};

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// The page.
pub(super) fn page(evaluation: &Evaluation, workspace: &Workspace, report: &Report) -> String {
    let policy = format!(
        "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
        source_of(STYLE),
        source_of(SCRIPT)
    );
    let sections = [
        tiles(report),
        heat_map(evaluation, report),
        tables::triggers(report, evaluation.options.threshold),
        tables::tasks(report, evaluation.compared_with()),
        tables::notes(report),
        runs::runs(evaluation, workspace, report),
    ];
    let parts = [
        ("policy", policy.as_str()),
        ("style", STYLE),
        ("script", SCRIPT),
        ("version", env!("CARGO_PKG_VERSION")),
        ("title", &escape(&report.skill_name)),
        ("head", &head(evaluation, workspace, report)),
        ("sections", &sections.concat()),
    ];
    fill(TEMPLATE, &parts)
}

fn percent(rate: f64) -> String {
    format!("{:.0} %", rate * 100.0)
}

fn shown(rate: Option<f64>) -> String {
    rate.map_or_else(|| "–".to_owned(), percent)
}

/// The class of a rate's colour.
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

fn head(evaluation: &Evaluation, workspace: &Workspace, report: &Report) -> String {
    let when = report.outcomes.iter().map(|outcome| outcome.started).min();
    let when = when.map(|when| when.strftime("%Y-%m-%d %H:%M UTC").to_string()).unwrap_or_default();
    let agents: Vec<_> = report
        .agents
        .iter()
        .map(|agent| match &agent.agent_info {
            Some(info) => format!("{} <span class=\"soft\">({})</span>", escape(&agent.name), escape(info)),
            None => escape(&agent.name),
        })
        .collect();
    let incomplete = if report.complete { "" } else { " · not every run was made" };
    format!(
        "<p>{}</p>\n<p class=\"soft\">{when} · {} runs{incomplete} · <code>{}</code></p>\n<p>{}</p>\n",
        escape(&evaluation.skill.description),
        report.outcomes.len(),
        escape(&workspace.iteration().to_string_lossy()),
        agents.join(" · "),
    )
}

fn tiles(report: &Report) -> String {
    let mut tiles = Vec::new();
    for agent in &report.agents {
        let name =
            if report.agents.len() > 1 { format!(" · {}", escape(&agent.name)) } else { String::new() };
        if let Some(triggers) = &agent.triggers {
            let summary = &triggers.summary;
            tiles.push((format!("{}/{}", summary.passed, summary.total), format!("queries pass{name}")));
        }
        if let Some(benchmark) = &agent.benchmark {
            let all = &benchmark.run_summary;
            let rate = |spread: Option<acp_skills_eval::Spread>| shown(spread.map(|spread| spread.mean));
            tiles.push((rate(all.with_skill.pass_rate), format!("of assertions hold with it{name}")));
            let delta =
                all.delta.pass_rate.map_or_else(|| "–".to_owned(), |it| format!("{:+.0}", it * 100.0));
            tiles.push((delta, format!("points more than without{name}")));
        }
    }
    let errors: u64 = report.agents.iter().map(|agent| agent.errors).sum();
    tiles.push((errors.to_string(), "runs in which the agent failed".to_owned()));
    let mut html = "<ul class=\"tiles\">\n".to_owned();
    for (number, what) in tiles {
        let _ = writeln!(html, "<li><b>{number}</b>{what}</li>");
    }
    html + "</ul>\n"
}

/// The place of a run on the page.
fn anchor(outcome: &Outcome) -> String {
    let run = &outcome.run;
    let case = match &run.case {
        Case::Query(place) => format!("query-{}", place + 1),
        Case::Eval(name) => format!("eval-{name}"),
        _ => String::new(),
    };
    escape(&format!("{}-{case}-{}-{}", run.agent, run.configuration.as_str(), run.number))
}

/// Agents and cases: how often each was right.
fn heat_map(evaluation: &Evaluation, report: &Report) -> String {
    let compared = evaluation.compared_with();
    let without = if compared == Configuration::OldSkill { "older" } else { "without" };
    let has_tasks = !evaluation.evals.is_empty();
    let mut html = "<section>\n<h2>Agents and cases</h2>\n<p class=\"note\">For a query, the share of runs that were right; for a \
                    task, the mean share of assertions that hold. A cell leads to a run, the first \
                    one that fell short if there is one.</p>\n<div class=\"scroll\"><table \
                    class=\"heat\">\n<thead><tr><th scope=\"col\">Case</th>"
        .to_owned();
    for agent in &report.agents {
        let name = escape(&agent.name);
        let _ = write!(html, "<th scope=\"col\">{name}</th>");
        if has_tasks {
            let _ = write!(html, "<th scope=\"col\">{name}, {without}</th>");
        }
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    let cell = |agent: &AgentReport, case: &Case, configuration: Configuration| {
        let runs: Vec<_> = report
            .outcomes_of(&agent.name, case)
            .filter(|it| it.run.configuration == configuration)
            .collect();
        let Some(first) = runs.first() else { return "<td class=\"rn\">–</td>".to_owned() };
        let rates: Vec<f64> = match case {
            Case::Query(_) => runs.iter().map(|it| if it.is_passed() { 1.0 } else { 0.0 }).collect(),
            _ => runs.iter().filter_map(|it| it.pass_rate()).collect(),
        };
        #[expect(clippy::cast_precision_loss, reason = "there are never that many runs")]
        let rate = (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64);
        let worst = runs.iter().find(|it| !it.is_passed()).unwrap_or(first);
        format!("<td class=\"{}\"><a href=\"#{}\">{}</a></td>", heat(rate), anchor(worst), shown(rate))
    };
    for (place, query) in evaluation.queries.iter().enumerate() {
        let should = if query.should_trigger { "should load" } else { "should not load" };
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{} <span class=\"soft\">· {should}</span></th>",
            escape(&query.query)
        );
        for agent in &report.agents {
            html.push_str(&cell(agent, &Case::Query(place), Configuration::WithSkill));
            if has_tasks {
                let older = evaluation.baseline.is_some();
                let other = older.then(|| cell(agent, &Case::Query(place), compared));
                html.push_str(&other.unwrap_or_else(|| "<td></td>".to_owned()));
            }
        }
        html.push_str("</tr>\n");
    }
    for case in &evaluation.evals {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(&case.name));
        for agent in &report.agents {
            for configuration in [Configuration::WithSkill, compared] {
                html.push_str(&cell(agent, &Case::Eval(case.name.clone()), configuration));
            }
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody></table></div>\n</section>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_place() {
        assert_eq!(escape("<script>\"&'\u{202e}"), "&lt;script&gt;&quot;&amp;&#39;\u{fffd}");
        // The script would end early, and its digest would differ.
        assert!(!SCRIPT.contains("</") && !STYLE.contains("</"));
        for text in [SCRIPT, STYLE] {
            assert!(!text.contains("http"), "nothing is loaded");
        }
    }
}
