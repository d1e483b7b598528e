//! `eval history`: how the results of a skill change over its iterations, as a table, as JSON and as a page.

use std::process::ExitCode;

use acp_skills_eval::{Entry, History};
use askama::Template;
use skills_core::order;

use super::{
    super::table::{Align, Table, terminal_width},
    args::HistoryArgs,
    results, usage_error,
};
use crate::{error::UsageError, html::Frame, output};

/// The size of the chart.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
/// The space around the lines.
const MARGIN: f64 = 36.0;

/// Shows the trend.
///
/// # Errors
/// Returns an error if there are no results, or if a file can't be read or written.
pub(super) fn run(args: &HistoryArgs) -> anyhow::Result<ExitCode> {
    let workspace = match (&args.workspace, &args.skill) {
        (Some(workspace), _) => workspace.clone(),
        (None, Some(skill)) => {
            let skill = dunce::canonicalize(skill).unwrap_or_else(|_| skill.clone());
            // The name of the directory can differ from that of the skill.
            let name = skills_core::discovery::load_dir(&skill).map_or_else(
                |_| skill.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                |(loaded, _)| loaded.name.to_string(),
            );
            skill.with_file_name(name + skills_core::evaluation::WORKSPACE_SUFFIX)
        }
        (None, None) => return Err(UsageError::new("no skill named").into()),
    };
    if !workspace.is_dir() {
        return Err(UsageError::new(format!("no results: {}", workspace.display()))
            .hint("use `acp-skills-proxy eval SKILL` first, or name the directory with `--workspace`")
            .into());
    }
    let history = History::read(&workspace).map_err(usage_error)?;
    if let Some(path) = &args.html {
        results::write(path, Page::new(&history).to_string())?;
    }
    if args.json {
        output::print_json(&history)?;
    } else {
        output::print(table(&history.entries).render(terminal_width()).trim_end())?;
        output::print("\n")?;
        if let Some(path) = &args.html {
            output::print(&format!("\nPage: {}\n", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The titles of the table.
const TITLES: [&str; 8] = ["Iteration", "Date", "Skill", "Agent", "Queries", "Right runs", "With", "Without"];

/// Returns the cells of an entry, in the order of the titles.
fn cells(entry: &Entry) -> [String; 8] {
    let interval = entry
        .accuracy_interval
        .map_or_else(String::new, |[low, high]| format!(" ({}–{})", percent(Some(low)), percent(Some(high))));
    [
        entry.iteration.to_string(),
        entry.created.as_deref().map_or_else(dash, |time| time.chars().take(10).collect()),
        entry.skill_version.as_deref().map_or_else(dash, |version| version.chars().take(7).collect()),
        entry.agent.clone(),
        entry.queries.map_or_else(dash, |[passed, total]| format!("{passed}/{total}")),
        format!("{}{interval}", percent(entry.accuracy)),
        percent(entry.with_skill),
        percent(entry.without_skill),
    ]
}

fn table(entries: &[Entry]) -> Table<8> {
    let align = [
        Align::Right,
        Align::Left,
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
    ];
    let mut table = Table::new(std::array::from_fn(|place| (TITLES[place], align[place])));
    for entry in entries {
        table.row(cells(entry));
    }
    table
}

/// The page.
#[derive(Template)]
#[template(path = "commands/eval/history.html")]
struct Page {
    frame: Frame,
    workspace: String,
    charts: Vec<Chart>,
    rows: Vec<[String; 8]>,
}

/// The results of one agent as lines.
struct Chart {
    agent: String,
    /// The lines, each with its class, its label and its points.
    lines: Vec<(&'static str, &'static str, String)>,
    /// The places of the iterations with their numbers.
    ticks: Vec<(String, u64)>,
    /// The heights of the lines in the background with their rates.
    rates: Vec<(String, &'static str)>,
}

impl Page {
    fn new(history: &History) -> Self {
        let frame = Frame {
            title: "Results over time".to_owned(),
            command: "eval history",
            note: "This page loads no other files.",
            script: None,
        };
        let mut agents: Vec<_> = history.entries.iter().map(|entry| entry.agent.as_str()).collect();
        order::sort(&mut agents);
        agents.dedup();
        let chart = |agent: &&str| {
            let entries: Vec<_> = history.entries.iter().filter(|entry| entry.agent == **agent).collect();
            Chart::new(agent, &entries)
        };
        Self {
            frame,
            workspace: history.workspace.to_string_lossy().into_owned(),
            charts: agents.iter().map(chart).collect(),
            rows: history.entries.iter().map(cells).collect(),
        }
    }

    /// Returns the titles of the table.
    #[expect(clippy::unused_self, reason = "called as a method from the template")]
    fn titles(&self) -> [&'static str; 8] {
        TITLES
    }
}

impl Chart {
    #[expect(clippy::cast_precision_loss, reason = "iteration counts are small")]
    fn new(agent: &str, entries: &[&Entry]) -> Self {
        let last = entries.len().saturating_sub(1).max(1) as f64;
        let x = |place: usize| MARGIN + place as f64 / last * (WIDTH - 2.0 * MARGIN);
        let y = |rate: f64| HEIGHT - MARGIN - rate * (HEIGHT - 2.0 * MARGIN);
        let line = |of: fn(&Entry) -> Option<f64>| -> String {
            let rates = entries.iter().enumerate().filter_map(|(place, entry)| Some((place, of(entry)?)));
            let points = rates.map(|(place, rate)| format!("{:.1},{:.1}", x(place), y(rate)));
            points.collect::<Vec<_>>().join(" ")
        };
        let lines = [
            ("c1", "right runs of queries", line(|entry| entry.accuracy)),
            ("c2", "assertions that hold with the skill", line(|entry| entry.with_skill)),
            ("c3", "assertions that hold without it", line(|entry| entry.without_skill)),
        ];
        let ticks =
            entries.iter().enumerate().map(|(place, entry)| (format!("{:.1}", x(place)), entry.iteration));
        let rates = [(0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")];
        Self {
            agent: agent.to_owned(),
            lines: lines.into_iter().filter(|(_, _, points)| !points.is_empty()).collect(),
            ticks: ticks.collect(),
            rates: rates.map(|(rate, label)| (format!("{:.1}", y(rate)), label)).to_vec(),
        }
    }
}

fn percent(rate: Option<f64>) -> String {
    rate.map_or_else(dash, |rate| format!("{:.0} %", rate * 100.0))
}

fn dash() -> String {
    "–".to_owned()
}
