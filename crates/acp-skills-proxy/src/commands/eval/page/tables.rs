//! Figures in tables: how often the skill is loaded, with intervals, and results with it against results without.

use std::fmt::Write;

use acp_skills_eval::{Configuration, ConfigurationSummary, Rates, Report, Spread};

use super::shown;
use crate::html::escape;

/// Whether the skill is loaded when it should be.
pub(super) fn triggers(report: &Report, threshold: f64) -> String {
    let with: Vec<_> =
        report.agents.iter().filter_map(|agent| Some((agent, agent.triggers.as_ref()?))).collect();
    let Some((_, first)) = with.first() else { return String::new() };
    let mut html = format!(
        "<section>\n<h2>Is it loaded when it should be?</h2>\n<p class=\"note\">The share of runs in which the skill was loaded; \
         the bar is the interval of 95 %, the line at {} what passes.</p>\n<div class=\"scroll\"><table>\n<thead><tr><th \
         scope=\"col\">Agent</th>",
        super::percent(threshold)
    );
    for title in
        ["Queries", "Right runs", "95 %", "Precision", "Recall", "F1", "pass@k", "pass^k", "Agent failed"]
    {
        let _ = write!(html, "<th scope=\"col\" class=\"n\">{title}</th>");
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for (agent, triggers) in &with {
        html.push_str(&rates(&escape(&agent.name), &triggers.summary));
        for (part, some) in [("to tune with", &triggers.train), ("to judge by", &triggers.validation)] {
            if let Some(some) = some {
                html.push_str(&rates(&format!("{}, {part}", escape(&agent.name)), some));
            }
        }
        if let Some(old) = &triggers.old_skill {
            html.push_str(&rates(&format!("{}, older version", escape(&agent.name)), &old.summary));
        }
    }
    let _ = write!(
        html,
        "</tbody></table></div>\n<details{}><summary>Each query</summary>\n<div class=\"scroll\"><table>\n<thead><tr><th \
         scope=\"col\">Query</th><th scope=\"col\">Should</th>",
        if first.queries.len() * with.len() <= 60 { " open" } else { "" }
    );
    for (agent, _) in &with {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(&agent.name));
    }
    html.push_str("<th scope=\"col\">Loaded instead</th></tr></thead>\n<tbody>\n");
    for (place, query) in first.queries.iter().enumerate() {
        let should = if query.should_trigger { "load" } else { "not load" };
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td class=\"told\">{should}</td>",
            escape(&query.query)
        );
        let mut instead = Vec::new();
        for (_, triggers) in &with {
            let result = &triggers.queries[place];
            let mark = if result.pass { ("passed", "✓") } else { ("failed", "✗") };
            let figure = format!("{}/{}", result.triggers, result.runs);
            let picture = rate_picture(result.trigger_rate, result.interval, threshold);
            let _ = write!(
                html,
                "<td class=\"told\">{picture}<span class=\"{}\">{} {figure}</span></td>",
                mark.0, mark.1
            );
            instead.extend(result.loaded_instead.keys().map(|name| escape(name)));
        }
        instead.sort();
        instead.dedup();
        let _ = writeln!(html, "<td>{}</td></tr>", instead.join(", "));
    }
    html + "</tbody></table></div>\n</details>\n</section>\n"
}

fn rates(name: &str, rates: &Rates) -> String {
    let interval = rates
        .interval
        .map_or_else(|| "–".to_owned(), |[low, high]| format!("{:.0}–{:.0} %", low * 100.0, high * 100.0));
    let mut html = format!("<tr><th scope=\"row\">{name}</th>");
    for cell in [
        format!("{}/{}", rates.passed, rates.total),
        shown(rates.accuracy),
        interval,
        shown(rates.precision),
        shown(rates.recall),
        shown(rates.f1),
        shown(rates.pass_at_k),
        shown(rates.pass_all_k),
        rates.errors.to_string(),
    ] {
        let _ = write!(html, "<td class=\"n\">{cell}</td>");
    }
    html + "</tr>\n"
}

/// A rate on a line from 0 to 1.
fn rate_picture(rate: Option<f64>, interval: Option<[f64; 2]>, threshold: f64) -> String {
    let (Some(rate), Some([low, high])) = (rate, interval) else { return String::new() };
    let x = |rate: f64| 5.0 + rate * 140.0;
    format!(
        "<svg class=\"rate\" viewBox=\"0 0 150 18\" aria-hidden=\"true\"><line class=\"track\" x1=\"5\" x2=\"145\" y1=\"9\" \
         y2=\"9\"/><line class=\"bound\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"1\" y2=\"17\"/><line class=\"interval\" x1=\"{1:.1}\" \
         x2=\"{2:.1}\" y1=\"9\" y2=\"9\"/><circle class=\"dot\" cx=\"{3:.1}\" cy=\"9\" r=\"4\"/></svg>",
        x(threshold),
        x(low),
        x(high),
        x(rate)
    )
}

/// Whether results are better with the skill.
pub(super) fn tasks(report: &Report, compared: Configuration) -> String {
    let with: Vec<_> =
        report.agents.iter().filter_map(|agent| Some((agent, agent.benchmark.as_ref()?))).collect();
    if with.is_empty() {
        return String::new();
    }
    let without = if compared == Configuration::OldSkill { "with the older version" } else { "without it" };
    let mut html = format!(
        "<section>\n<h2>Are results better with it?</h2>\n<p class=\"note\">The mean share of assertions that hold, ± its deviation \
         from run to run.</p>\n<ul class=\"key\"><li><i class=\"with\"></i>with the skill</li><li><i \
         class=\"without\"></i>{without}</li></ul>\n<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Task</th><th \
         scope=\"col\">Agent</th><th scope=\"col\"></th>"
    );
    for title in ["With", "Without", "Seconds", "Tokens"] {
        let _ = write!(html, "<th scope=\"col\" class=\"n\">{title}</th>");
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    let mut row = |task: &str, agent: &str, with: &ConfigurationSummary, without: &ConfigurationSummary| {
        let _ = writeln!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td \
             class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            escape(task),
            escape(agent),
            pair(with.pass_rate, without.pass_rate),
            rate(with.pass_rate),
            rate(without.pass_rate),
            figures(with.time_seconds, without.time_seconds, 1),
            figures(with.tokens, without.tokens, 0),
        );
    };
    let cases = with.first().map_or(0, |(_, benchmark)| benchmark.cases.len());
    for place in 0..cases {
        for (agent, benchmark) in &with {
            let case = &benchmark.cases[place];
            row(&case.name, &agent.name, &case.with_skill, &case.without_skill);
        }
    }
    if cases > 1 {
        for (agent, benchmark) in &with {
            row("all", &agent.name, &benchmark.run_summary.with_skill, &benchmark.run_summary.without_skill);
        }
    }
    html + "</tbody></table></div>\n</section>\n"
}

fn rate(spread: Option<Spread>) -> String {
    spread.map_or_else(|| "–".to_owned(), |it| format!("{:.0} ± {:.0} %", it.mean * 100.0, it.stddev * 100.0))
}

/// Two bars.
fn pair(with: Option<Spread>, without: Option<Spread>) -> String {
    let width = |spread: Option<Spread>| spread.map_or(0.0, |spread| spread.mean * 160.0).max(1.0);
    format!(
        "<svg class=\"pair\" viewBox=\"0 0 170 26\" aria-hidden=\"true\"><rect class=\"with\" x=\"0\" y=\"3\" width=\"{:.1}\" \
         height=\"9\" rx=\"2\"/><rect class=\"without\" x=\"0\" y=\"14\" width=\"{:.1}\" height=\"9\" rx=\"2\"/></svg>",
        width(with),
        width(without)
    )
}

fn figures(with: Option<Spread>, without: Option<Spread>, places: usize) -> String {
    let figure =
        |spread: Option<Spread>| spread.map_or_else(|| "–".to_owned(), |it| format!("{:.places$}", it.mean));
    format!("{} : {}", figure(with), figure(without))
}

/// What is worth a look.
pub(super) fn notes(report: &Report) -> String {
    let mut items = String::new();
    for agent in &report.agents {
        let name = if report.agents.len() > 1 {
            format!("<b>{}</b> · ", escape(&agent.name))
        } else {
            String::new()
        };
        for note in agent.benchmark.iter().flat_map(|benchmark| &benchmark.notes) {
            let _ = writeln!(items, "<li>{name}{}</li>", escape(note));
        }
    }
    if items.is_empty() {
        return items;
    }
    format!("<section>\n<h2>Worth a look</h2>\n<ul class=\"notes\">\n{items}</ul>\n</section>\n")
}
