//! The result as a summary in Markdown, for the page of a job in CI.

use std::fmt::{self, Write};

use acp_skills_eval::{AgentReport, Evaluation, Report, Spread};

use super::summary::{headline, passed, queries};
use crate::words::count;

/// The maximum number of failed cases in the summary.
const MAX_CASES: usize = 50;
/// The maximum length of a query.
const MAX_CHARS: usize = 200;

/// Returns the summary. Queries for validation are only part of rates.
pub(super) fn summary(evaluation: &Evaluation, report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string never fails.
    let _ = write_summary(&mut text, evaluation, report);
    text
}

fn write_summary(text: &mut String, evaluation: &Evaluation, report: &Report) -> fmt::Result {
    writeln!(text, "## Evaluation of {}\n", escaped(&report.skill_name))?;
    let result = match (&evaluation.options.shard, report.complete, report.is_passed()) {
        (Some(shard), _, _) => format!("Part {shard} of the runs."),
        (None, false, _) => "Incomplete: some runs are missing.".to_owned(),
        (None, true, true) => "Everything passed.".to_owned(),
        (None, true, false) => "Some cases failed.".to_owned(),
    };
    writeln!(text, "{result} {} in all.\n", count(report.outcomes.len(), "run"))?;
    if report.agents.iter().any(|agent| agent.triggers.is_some()) {
        text.push_str("| Agent | Queries passed | Right runs | 95 % | Precision | Recall |\n");
        text.push_str("|---|--:|--:|--:|--:|--:|\n");
        for agent in &report.agents {
            let Some(triggers) = &agent.triggers else { continue };
            let rates = &triggers.summary;
            let interval = rates
                .interval
                .map_or_else(dash, |[low, high]| format!("{}–{}", percent(Some(low)), percent(Some(high))));
            writeln!(
                text,
                "| {} | {} | {} | {interval} | {} | {} |",
                escaped(&agent.name),
                passed(rates),
                percent(rates.accuracy),
                percent(rates.precision),
                percent(rates.recall)
            )?;
        }
        text.push('\n');
    }
    if report.agents.iter().any(|agent| agent.benchmark.is_some()) {
        let other = if evaluation.baseline.is_some() { "Older version" } else { "Without" };
        writeln!(text, "| Agent | With the skill | {other} | Effect |\n|---|--:|--:|---|")?;
        for agent in &report.agents {
            let Some(benchmark) = &agent.benchmark else { continue };
            let all = &benchmark.run_summary;
            let mean = |spread: Option<Spread>| percent(spread.map(|spread| spread.mean));
            writeln!(
                text,
                "| {} | {} | {} | {} |",
                escaped(&agent.name),
                mean(all.with_skill.pass_rate),
                mean(all.without_skill.pass_rate),
                headline(Some(&all.delta))
            )?;
        }
        text.push('\n');
    }
    let failed: Vec<_> = report.agents.iter().flat_map(failed).collect();
    if !failed.is_empty() {
        text.push_str("| Agent | Failed | Result |\n|---|---|---|\n");
        for row in failed.iter().take(MAX_CASES) {
            writeln!(text, "{row}")?;
        }
        text.push('\n');
    }
    if failed.len() > MAX_CASES {
        writeln!(text, "… and {} more.\n", failed.len() - MAX_CASES)?;
    }
    for agent in report.agents.iter().filter(|agent| agent.errors > 0) {
        let runs = count(agent.errors, "run");
        writeln!(text, "{}: the agent failed in {runs}. They are not counted.\n", escaped(&agent.name))?;
    }
    let validated: Vec<_> =
        report.agents.iter().filter_map(|agent| agent.triggers.as_ref()?.validation.as_ref()).collect();
    if let Some(rates) = validated.first() {
        writeln!(text, "{} for validation are only part of the rates.\n", queries(rates.total))?;
    }
    Ok(())
}

/// Returns a row for each failed case of an agent.
fn failed(agent: &AgentReport) -> Vec<String> {
    let name = escaped(&agent.name);
    let mut rows = Vec::new();
    for query in agent.triggers.iter().flat_map(|triggers| &triggers.queries) {
        if query.pass || query.runs == 0 {
            continue;
        }
        let should = if query.should_trigger { "should load" } else { "should not load" };
        rows.push(format!(
            "| {name} | {} | {should}, loaded in {} of {} |",
            escaped(&query.query),
            query.triggers,
            count(query.runs, "run")
        ));
    }
    for case in agent.benchmark.iter().flat_map(|benchmark| &benchmark.cases) {
        if case.pass || case.undecided {
            continue;
        }
        let statuses =
            case.statuses.iter().map(|(word, number)| format!("{number} {}", word.replace('_', " ")));
        let statuses: Vec<_> = statuses.collect();
        rows.push(format!("| {name} | {} | {} |", escaped(&case.name), statuses.join(", ")));
    }
    rows
}

/// Returns a text that Markdown shows as it is, on one line.
fn escaped(text: &str) -> String {
    let mut markdown = String::new();
    let words: Vec<_> = text.split_whitespace().collect();
    for (place, c) in words.join(" ").chars().enumerate() {
        if place == MAX_CHARS {
            markdown.push('…');
            break;
        }
        match c {
            '<' => markdown.push_str("&lt;"),
            '>' => markdown.push_str("&gt;"),
            '&' => markdown.push_str("&amp;"),
            c if c.is_control() => markdown.push('\u{fffd}'),
            c if c.is_ascii_punctuation() && !" -.,:;?/()".contains(c) => {
                markdown.push('\\');
                markdown.push(c);
            }
            c => markdown.push(c),
        }
    }
    markdown
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(dash, |rate| format!("{:.0} %", rate * 100.0))
}

fn dash() -> String {
    "–".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_shown_as_they_are() {
        for (text, markdown) in [
            ("a | b", "a \\| b"),
            ("line\n# two", "line \\# two"),
            ("<img src=x>", "&lt;img src\\=x&gt;"),
            ("`code` *x* [y](z)", "\\`code\\` \\*x\\* \\[y\\](z)"),
        ] {
            assert_eq!(escaped(text), markdown);
        }
    }
}
