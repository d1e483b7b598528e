//! The tables of the page: how often the skill is loaded, and results with the skill compared to results without it.

use askama::Template;

use acp_skills_eval::{AgentReport, Benchmark, Configuration, ConfigurationSummary, Rates, Report, Spread};
use skills_core::order;

use super::{super::summary, dash, percent, shown};
use crate::{
    html::{Explained, Legend},
    words::count,
};

/// The columns of rates.
const RATES: [Explained; 9] = [
    (
        "Queries",
        "The number of queries that passed, of all queries: the share of right runs reaches the threshold.",
    ),
    (
        "Right runs",
        "The share of runs that loaded the skill when they should, or did not when they should not.",
    ),
    (
        "95 %",
        "The 95 % confidence interval: with similar queries, the share of right runs would probably be in this range.",
    ),
    ("Precision", "Of the runs that loaded the skill, the share that should."),
    ("Recall", "Of the runs that should load the skill, the share that did."),
    ("F1", "Precision and recall as one number, their harmonic mean."),
    (
        "pass@k",
        "The probability that at least one of k runs is right, where k is the number of runs of a query.",
    ),
    ("pass^k", "The probability that all k runs are right, where k is the number of runs of a query."),
    ("Agent failed", "The number of runs in which the agent failed. They don't count."),
];

/// The columns of results.
const RESULTS: [Explained; 4] = [
    ("With", "The mean share of assertions that hold with the skill, ± its standard deviation between runs."),
    ("Without", "The same share in the runs to compare with."),
    ("Seconds", "The mean duration of a run in seconds, with the skill : without it."),
    (
        "Tokens",
        "The mean number of tokens per run, with the skill : without it. A dash means that the agent does not report them.",
    ),
];

/// The maximum number of results of queries that are shown without a click.
const MAX_OPEN: usize = 60;

/// A section that shows if the skill is loaded when it should be.
#[derive(Template)]
#[template(path = "commands/eval/page/triggers.html")]
pub(super) struct Triggers<'a> {
    /// The rate from which a query passes, in percent.
    threshold: String,
    /// The x coordinate of the threshold in the pictures.
    bound: String,
    /// The rates of each agent, by its name and the part of the queries.
    rates: Vec<(String, [String; 9])>,
    /// True if the queries are shown without a click.
    is_open: bool,
    agents: Vec<&'a str>,
    queries: Vec<Query<'a>>,
}

/// A query with its results.
struct Query<'a> {
    text: &'a str,
    should_trigger: bool,
    /// The result of each agent.
    results: Vec<QueryResult>,
    /// The names of the skills that were loaded instead.
    instead: String,
}

/// The result of a query on an agent.
struct QueryResult {
    /// True if the query passed. `None` if there are no runs in which the agent did not fail.
    is_pass: Option<bool>,
    /// The number of runs that loaded the skill, of the number of runs: `2/3`.
    figure: String,
    /// The figure in words.
    meaning: String,
    /// The x coordinates in the picture: the start and the end of the interval, and the rate. `None` if there are no
    /// runs.
    picture: Option<[String; 3]>,
}

/// Returns the x coordinate of a rate in a picture, which is a line from 0 to 1.
fn place(rate: f64) -> String {
    format!("{:.1}", 5.0 + rate * 140.0)
}

impl<'a> Triggers<'a> {
    #[expect(clippy::unused_self, reason = "called as a method from the template")]
    fn legend(&self) -> Legend {
        Legend(RATES.to_vec())
    }

    /// Returns the section, or `None` if no queries were run.
    pub(super) fn new(report: &'a Report, threshold: f64) -> Option<Self> {
        let with_queries = |agent: &'a AgentReport| Some((agent.name.as_str(), agent.triggers.as_ref()?));
        let agents: Vec<_> = report.agents.iter().filter_map(with_queries).collect();
        let queries = &agents.first()?.1.queries;
        let mut rates = Vec::new();
        for (name, triggers) in &agents {
            rates.push(((*name).to_owned(), cells(&triggers.summary)));
            for (part, some) in [("to tune with", &triggers.train), ("to validate", &triggers.validation)] {
                rates.extend(some.iter().map(|rates| (format!("{name}, {part}"), cells(rates))));
            }
            let old = triggers.old_skill.iter();
            rates.extend(old.map(|old| (format!("{name}, older version"), cells(&old.summary))));
        }
        let results = |number: usize| agents.iter().map(move |(_, triggers)| &triggers.queries[number]);
        let query = |(number, query): (usize, &'a acp_skills_eval::QueryResult)| {
            let loaded = results(number).flat_map(|result| result.loaded_instead.keys());
            let mut instead: Vec<_> = loaded.map(String::as_str).collect();
            order::sort(&mut instead);
            instead.dedup();
            Query {
                text: &query.query,
                should_trigger: query.should_trigger,
                results: results(number).map(result).collect(),
                instead: instead.join(", "),
            }
        };
        Some(Self {
            threshold: percent(threshold),
            bound: place(threshold),
            rates,
            is_open: queries.len() * agents.len() <= MAX_OPEN,
            agents: agents.iter().map(|(name, _)| *name).collect(),
            queries: queries.iter().enumerate().map(query).collect(),
        })
    }
}

fn result(result: &acp_skills_eval::QueryResult) -> QueryResult {
    let picture = result.trigger_rate.zip(result.interval);
    QueryResult {
        is_pass: (result.runs > 0).then_some(result.pass),
        figure: format!("{}/{}", result.triggers, result.runs),
        meaning: format!("loaded in {} of {}", result.triggers, count(result.runs, "run")),
        picture: picture.map(|(rate, [low, high])| [place(low), place(high), place(rate)]),
    }
}

fn cells(rates: &Rates) -> [String; 9] {
    let interval =
        rates.interval.map_or_else(dash, |[low, high]| format!("{:.0}–{:.0} %", low * 100.0, high * 100.0));
    [
        summary::passed(rates),
        shown(rates.accuracy),
        interval,
        shown(rates.precision),
        shown(rates.recall),
        shown(rates.f1),
        shown(rates.pass_at_k),
        shown(rates.pass_all_k),
        rates.errors.to_string(),
    ]
}

/// A section that shows if results are better with the skill.
#[derive(Template)]
#[template(path = "commands/eval/page/tasks.html")]
pub(super) struct Tasks<'a> {
    /// The configuration that the skill is compared with, in words.
    without: &'static str,
    rows: Vec<Row<'a>>,
    /// The effect of the skill on each agent, in words.
    headlines: Vec<(&'a str, String)>,
}

/// A task on an agent.
struct Row<'a> {
    task: &'a str,
    agent: &'a str,
    /// The widths of the bars with and without the skill.
    widths: [String; 2],
    cells: [String; 4],
}

impl<'a> Tasks<'a> {
    #[expect(clippy::unused_self, reason = "called as a method from the template")]
    fn legend(&self) -> Legend {
        Legend(RESULTS.to_vec())
    }

    /// Returns the section, or `None` if no tasks were run.
    pub(super) fn new(report: &'a Report, compared: Configuration) -> Option<Self> {
        let with_tasks = |agent: &'a AgentReport| Some((agent.name.as_str(), agent.benchmark.as_ref()?));
        let agents: Vec<_> = report.agents.iter().filter_map(with_tasks).collect();
        let cases = agents.first()?.1.cases.len();
        let mut rows = Vec::new();
        for number in 0..cases {
            rows.extend(agents.iter().map(|(agent, benchmark)| {
                let case = &benchmark.cases[number];
                row(&case.name, agent, &case.with_skill, &case.without_skill)
            }));
        }
        if cases > 1 {
            rows.extend(agents.iter().map(|(agent, benchmark)| {
                let all = &benchmark.run_summary;
                row("all", agent, &all.with_skill, &all.without_skill)
            }));
        }
        let headline = |benchmark: &Benchmark| summary::headline(Some(&benchmark.run_summary.delta));
        let headlines = agents.iter().map(|(agent, benchmark)| (*agent, headline(benchmark))).collect();
        let is_older = compared == Configuration::OldSkill;
        Some(Self {
            without: if is_older { "with the older version" } else { "without the skill" },
            rows,
            headlines,
        })
    }
}

fn row<'a>(
    task: &'a str,
    agent: &'a str,
    with: &ConfigurationSummary,
    without: &ConfigurationSummary,
) -> Row<'a> {
    let width = |spread: Option<Spread>| spread.map_or(0.0, |spread| spread.mean * 160.0).max(1.0);
    Row {
        task,
        agent,
        widths: [with.pass_rate, without.pass_rate].map(|rate| format!("{:.1}", width(rate))),
        cells: [
            rate(with.pass_rate),
            rate(without.pass_rate),
            figures(with.time_seconds, without.time_seconds, 1),
            figures(with.tokens, without.tokens, 0),
        ],
    }
}

fn rate(spread: Option<Spread>) -> String {
    spread.map_or_else(dash, |rate| format!("{:.0} ± {:.0} %", rate.mean * 100.0, rate.stddev * 100.0))
}

/// Returns both means: `1.5 : 2.0`.
fn figures(with: Option<Spread>, without: Option<Spread>, places: usize) -> String {
    let figure =
        |spread: Option<Spread>| spread.map_or_else(dash, |spread| format!("{:.places$}", spread.mean));
    format!("{} : {}", figure(with), figure(without))
}
