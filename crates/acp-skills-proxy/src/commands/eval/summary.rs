//! The result of an evaluation: tables for users and JSON for programs.

use std::{
    collections::BTreeMap,
    fmt::{Display, Write},
};

use acp_skills_eval::{
    AgentReport, Agreement, Delta, Effect, Latency, Rates, Report, Spread, Status, Triggers, Workspace,
};
use serde_json::{Value, json};

use super::super::table::{Align, Table, terminal_width};
use crate::words::count;

/// The maximum number of notes. All notes are in `benchmark.json`.
const MAX_NOTES: usize = 12;

/// Returns a status in words.
pub(super) fn word(status: Status) -> &'static str {
    match status {
        Status::Passed => "passed",
        Status::NotActivated => "not activated",
        Status::Ungraded => "ungraded",
        Status::Error => "agent failed",
        _ => "failed",
    }
}

/// Returns the result as JSON. The format is stable, but fields may be added.
pub(super) fn json(report: &Report, workspace: &Workspace) -> Value {
    let mut value = json!(report);
    value["passed"] = report.is_passed().into();
    value["least_rate"] = json!(report.least_rate());
    value["workspace"] = json!(workspace.iteration());
    value["comparison"] = report.comparison();
    value
}

/// Returns the result as tables.
pub(super) fn text(report: &Report) -> String {
    let width = terminal_width();
    let mut text = String::new();
    let with_triggers: Vec<_> =
        report.agents.iter().filter_map(|agent| Some((agent, agent.triggers.as_ref()?))).collect();
    if !with_triggers.is_empty() {
        text.push_str("Is the skill loaded for the right queries?\n\n");
        for table in [rates(&with_triggers).render(width), wrong_queries(&with_triggers, width)] {
            if !table.is_empty() {
                text.push_str(table.trim_end());
                text.push_str("\n\n");
            }
        }
    }
    let with_tasks: Vec<_> = report.agents.iter().filter(|agent| agent.benchmark.is_some()).collect();
    if !with_tasks.is_empty() {
        text.push_str("Are results better with the skill?\n\n");
        text.push_str(tasks(&with_tasks).render(width).trim_end());
        text.push_str("\n\n");
        for agent in &with_tasks {
            let name = if with_tasks.len() > 1 { format!("{}: ", agent.name) } else { String::new() };
            let _ = writeln!(
                text,
                "{name}{}",
                headline(agent.benchmark.as_ref().map(|all| &all.run_summary.delta))
            );
        }
        text.push('\n');
        text.push_str(&notes(&with_tasks));
    }
    text.push_str(&agreements(&with_tasks));
    text.push_str(&speed_and_costs(report));
    text.push_str(&failures(report));
    for agent in &report.agents {
        if let Some(reason) = &agent.stopped {
            let _ = writeln!(text, "{} {reason}. Its other runs were skipped.", agent.name);
        }
    }
    if !report.complete {
        text.push_str("Incomplete: some runs are missing.\n");
    }
    text.push_str(&verdict(report));
    text
}

/// Returns the effect of the skill on the results of tasks as a sentence, with its evidence.
pub(super) fn headline(delta: Option<&Delta>) -> String {
    let Some(delta) = delta else { return String::new() };
    let effect = match delta.effect {
        Effect::Better => "Better with the skill",
        Effect::Worse => "Worse with the skill",
        _ => "No difference shown",
    };
    let Some(difference) = delta.pass_rate else {
        return format!("{effect}: there are no results to compare.");
    };
    let points = |figure: f64| format!("{:+.0}", figure * 100.0);
    match delta.pass_rate_interval {
        Some([low, high]) => {
            format!("{effect}: {} points (95 %: {} to {}).", points(difference), points(low), points(high))
        }
        None => format!(
            "{effect}: {} points, but a single task is not enough for an interval.",
            points(difference)
        ),
    }
}

/// Returns the agreement of two graders on each agent. Empty if there is only one grader.
fn agreements(agents: &[&AgentReport]) -> String {
    let mut text = String::new();
    for agent in agents {
        let Some(agreement) = agent.benchmark.as_ref().and_then(|benchmark| benchmark.agreement) else {
            continue;
        };
        let Agreement { graded, agreed, kappa, .. } = agreement;
        let kappa = kappa.map_or_else(String::new, |kappa| format!(" (kappa {kappa:.2})"));
        let graded = count(graded, "sentence");
        let _ = writeln!(text, "{}: the graders agree about {agreed} of {graded}{kappa}.", agent.name);
    }
    text
}

/// Returns how fast each agent answers, and its costs if it reports them.
fn speed_and_costs(report: &Report) -> String {
    let mut text = String::new();
    for agent in &report.agents {
        let mut facts = Vec::new();
        if let Some(Latency { median, p90, .. }) = agent.latency {
            facts.push(format!("first answer after {median:.1} s (90 %: {p90:.1} s)"));
        }
        for (currency, amount) in agent.costs.iter().filter(|(_, amount)| **amount > 0.0) {
            facts.push(format!("{currency} {amount:.2} in all"));
        }
        if !facts.is_empty() {
            let _ = writeln!(text, "{}: {}.", agent.name, facts.join(", "));
        }
    }
    text
}

/// Returns the number of runs in which the agent failed, by the kind of failure. Empty if there are none.
fn failures(report: &Report) -> String {
    let errors: u64 = report.agents.iter().map(|agent| agent.errors).sum();
    if errors == 0 {
        return String::new();
    }
    let mut kinds: BTreeMap<_, u64> = BTreeMap::new();
    for (failure, number) in report.agents.iter().flat_map(|agent| &agent.failures) {
        *kinds.entry(*failure).or_default() += number;
    }
    let kinds: Vec<_> =
        kinds.iter().map(|(failure, number)| format!("{number} {}", failure.as_str())).collect();
    let runs = count(errors, "run");
    format!(
        "The agent failed in {runs} ({}). They are not counted. Use `--resume` to repeat them.\n",
        kinds.join(", ")
    )
}

/// Returns the last line: `Failed: 8 of 20 queries, 3 of 3 tasks`. Queries and tasks count once for each agent.
fn verdict(report: &Report) -> String {
    let triggers = || report.agents.iter().filter_map(|agent| agent.triggers.as_ref());
    let failed_queries: u64 = triggers().map(|triggers| triggers.summary.failed).sum();
    let all_queries: u64 = triggers().map(|triggers| triggers.summary.decided()).sum();
    let tasks =
        || report.agents.iter().filter_map(|agent| agent.benchmark.as_ref()).flat_map(|tasks| &tasks.cases);
    let failed_tasks = tasks().filter(|case| !case.pass && !case.undecided).count();
    let undecided: u64 = report.agents.iter().map(AgentReport::undecided).sum();
    let mut failed = Vec::new();
    if failed_queries > 0 {
        failed.push(format!("{failed_queries} of {}", queries(all_queries)));
    }
    if failed_tasks > 0 {
        failed.push(format!("{failed_tasks} of {}", count(tasks().count(), "task")));
    }
    match failed.is_empty() {
        false => format!("Failed: {}\n", failed.join(", ")),
        true if report.is_passed() => "Everything passed.\n".to_owned(),
        true if undecided > 0 => {
            let verb = if undecided == 1 { "has" } else { "have" };
            format!("{} {verb} no result.\n", count(undecided, "case"))
        }
        true => String::new(),
    }
}

/// Returns how many of the queries with a result passed, such as `12/20`.
pub(super) fn passed(rates: &Rates) -> String {
    match rates.decided() {
        0 => dash(),
        decided => format!("{}/{decided}", rates.passed),
    }
}

/// Returns a number of queries in words.
pub(super) fn queries<N: Display + PartialEq + From<u8>>(number: N) -> String {
    if number == N::from(1) { "1 query".to_owned() } else { format!("{number} queries") }
}

fn rates(agents: &[(&AgentReport, &Triggers)]) -> Table<8> {
    let mut table = Table::new([
        ("Agent", Align::Left),
        ("Queries", Align::Right),
        ("Right runs", Align::Right),
        ("95 %", Align::Right),
        ("Precision", Align::Right),
        ("Recall", Align::Right),
        ("F1", Align::Right),
        ("All of k", Align::Right),
    ]);
    for (agent, triggers) in agents {
        let mut row = |name: String, rates: &Rates| {
            let interval =
                rates.interval.map_or_else(dash, |[low, high]| format!("{}–{}", percent(low), percent(high)));
            table.row([
                name,
                passed(rates),
                shown(rates.accuracy),
                interval,
                shown(rates.precision),
                shown(rates.recall),
                shown(rates.f1),
                shown(rates.pass_all_k),
            ]);
        };
        row(agent.name.clone(), &triggers.summary);
        for (part, rates) in [("train", &triggers.train), ("validation", &triggers.validation)] {
            if let Some(rates) = rates {
                row(format!("  {part}"), rates);
            }
        }
        if let Some(old) = &triggers.old_skill {
            row("  older version".to_owned(), &old.summary);
        }
    }
    table
}

/// Returns the failed queries with the skills that were loaded instead. Empty if all queries passed.
fn wrong_queries(agents: &[(&AgentReport, &Triggers)], width: Option<usize>) -> String {
    let mut table = Table::new([
        ("Agent", Align::Left),
        ("Should", Align::Left),
        ("Did", Align::Right),
        ("Instead", Align::Left),
        ("Query", Align::Left),
    ]);
    let mut found = false;
    for (agent, triggers) in agents {
        for query in triggers.queries.iter().filter(|query| !query.pass && query.runs > 0) {
            found = true;
            let instead: Vec<_> = query.loaded_instead.keys().map(String::as_str).collect();
            table.row([
                agent.name.clone(),
                if query.should_trigger { "load" } else { "not load" }.to_owned(),
                format!("{}/{}", query.triggers, query.runs),
                instead.join(", "),
                query.query.split_whitespace().collect::<Vec<_>>().join(" "),
            ]);
        }
    }
    if found { table.render(width) } else { String::new() }
}

fn tasks(agents: &[&AgentReport]) -> Table<7> {
    let mut table = Table::new([
        ("Agent", Align::Left),
        ("Task", Align::Left),
        ("With", Align::Right),
        ("Without", Align::Right),
        ("Time", Align::Right),
        ("Tokens", Align::Right),
        ("Runs with it", Align::Left),
    ]);
    for agent in agents {
        let Some(benchmark) = &agent.benchmark else { continue };
        for case in &benchmark.cases {
            let statuses =
                case.statuses.iter().map(|(word, count)| format!("{count} {}", word.replace('_', " ")));
            table.row([
                agent.name.clone(),
                case.name.clone(),
                mean(case.with_skill.pass_rate),
                mean(case.without_skill.pass_rate),
                times(case.with_skill.time_seconds, case.without_skill.time_seconds, " s"),
                times(case.with_skill.tokens, case.without_skill.tokens, ""),
                statuses.collect::<Vec<_>>().join(", "),
            ]);
        }
        let all = &benchmark.run_summary;
        let delta =
            all.delta.pass_rate.map_or_else(String::new, |delta| format!("{:+.0} points", delta * 100.0));
        table.row([
            agent.name.clone(),
            "all".to_owned(),
            mean(all.with_skill.pass_rate),
            mean(all.without_skill.pass_rate),
            times(all.with_skill.time_seconds, all.without_skill.time_seconds, " s"),
            times(all.with_skill.tokens, all.without_skill.tokens, ""),
            delta,
        ]);
    }
    table
}

fn notes(agents: &[&AgentReport]) -> String {
    let mut lines = Vec::new();
    for agent in agents {
        let notes = agent.benchmark.iter().flat_map(|benchmark| &benchmark.notes);
        let name = if agents.len() > 1 { format!("{}: ", agent.name) } else { String::new() };
        lines.extend(notes.map(|note| format!("- {name}{note}\n")));
    }
    let more = lines.len().saturating_sub(MAX_NOTES);
    lines.truncate(MAX_NOTES);
    if more > 0 {
        lines.push(format!("- … and {more} more in benchmark.json\n"));
    }
    if !lines.is_empty() {
        lines.push("\n".to_owned());
    }
    lines.concat()
}

fn times(with: Option<Spread>, without: Option<Spread>, unit: &str) -> String {
    match (with, without) {
        (None, None) => dash(),
        (with, without) => {
            let figure = |spread: Option<Spread>| spread.map_or_else(dash, |spread| short(spread.mean));
            format!("{} : {}{unit}", figure(with), figure(without))
        }
    }
}

fn short(figure: f64) -> String {
    if figure >= 100.0 || figure.fract() == 0.0 { format!("{figure:.0}") } else { format!("{figure:.1}") }
}

fn mean(spread: Option<Spread>) -> String {
    shown(spread.map(|spread| spread.mean))
}

fn shown(rate: Option<f64>) -> String {
    rate.map_or_else(dash, percent)
}

fn percent(rate: f64) -> String {
    format!("{:.0} %", rate * 100.0)
}

fn dash() -> String {
    "–".to_owned()
}
