//! The report as an HTML page that opens from disk. It loads nothing and runs nothing, and its policy enforces that. The
//! template is `page.html`, which escapes everything that comes from the events.

use askama::Template;
use jiff::Timestamp;

use super::{
    AUTHORS, CALLS, Calls, Summary, Usage,
    chart::{self, Bar, Chart, Range, Series},
    durations, minute, shown,
};
use crate::{
    html::{Column, Explained, Frame, Table},
    words::{count, plural},
};

/// The maximum number of skills in a chart. The others are in a table that can be opened.
const TOP: usize = 15;
/// The maximum number of bars in the chart over time.
const MAX_COLUMNS: i64 = 48;
/// The maximum number of rows in the table over time. The others are in a table that can be opened.
const MAX_TIMES: usize = 8;
/// The maximum number of rows in the table of failures. The others are in a table that can be opened.
const MAX_FAILURES: usize = 25;
/// The maximum number of unused skills whose names are shown without a click.
const MAX_OPEN_NAMES: usize = 30;
/// The maximum number of agents whose names are shown instead of their count.
const MAX_AGENTS: usize = 6;

const BY: [(&str, &str); AUTHORS.len()] = [("c1", AUTHORS[0].1), ("c2", AUTHORS[1].1), ("c3", AUTHORS[2].1)];
const KINDS: [(&str, &str); CALLS.len()] =
    [("c1", CALLS[0].1), ("c4", CALLS[1].1), ("c3", CALLS[2].1), ("c2", CALLS[3].1), ("c5", CALLS[4].1)];
const OUTCOMES: [(&str, &str); 3] = [("ok", "ok"), ("error", "failed"), ("cancelled", "cancelled")];
const PERCENTILES: [(&str, &str); 2] = [("p50", "p50: half are faster"), ("p95", "p95: 95 % are faster")];

#[derive(Template)]
#[template(path = "report/page.html")]
struct Page<'a> {
    frame: Frame,
    summary: &'a Summary,
    /// The time from the first event to the last one.
    period: String,
    files: Vec<String>,
    /// The agents with their sessions; empty if there are none.
    agents: String,
    /// Figures with their labels.
    tiles: [(String, String); 6],
    charts: Vec<Section>,
    never_used: Vec<&'a str>,
    /// The number of skills that sessions offered, in words.
    offered: String,
    /// The most frequent failures, and the other ones.
    failures: Option<(Table, Table)>,
    notes: Option<Table>,
}

/// A chart with its table.
struct Section {
    title: &'static str,
    note: String,
    key: Series<'static>,
    /// The chart in both sizes.
    charts: [Chart; 2],
    table: Table,
    /// A table that can be opened by its title.
    more: Option<(String, Table)>,
}

/// Renders the page. `files` are the names of the files that the events come from.
pub(crate) fn page(summary: &Summary, files: &[String]) -> String {
    let period = match summary.span {
        Some((first, last)) => format!("{} to {} UTC", minute(first), minute(last)),
        None => "No events yet".to_owned(),
    };
    let frame = Frame {
        title: "Skill usage".to_owned(),
        command: "report",
        note: "This page loads no other files and runs no scripts.",
        script: None,
    };
    let charts = [skills(summary), over_time(summary), outcomes(summary), timing(summary)];
    let page = Page {
        frame,
        summary,
        period,
        files: files.iter().map(|file| shown(file)).collect(),
        agents: agents(summary),
        tiles: tiles(summary),
        charts: charts.into_iter().flatten().collect(),
        never_used: summary.never_used(),
        offered: count(summary.skills.len(), "skill"),
        failures: failures(summary),
        notes: notes(summary),
    };
    page.to_string()
}

fn agents(summary: &Summary) -> String {
    if summary.agents.len() > MAX_AGENTS {
        return count(summary.agents.len(), "agent");
    }
    let agents: Vec<_> = summary
        .agents
        .iter()
        .map(|(agent, number)| format!("{agent} ({})", count(*number, "session")))
        .collect();
    agents.join(", ")
}

fn tiles(summary: &Summary) -> [(String, String); 6] {
    let used = summary.skills.values().filter(|skill| skill.used() > 0).count();
    let calls: u64 = summary.calls.iter().map(Calls::count).sum();
    let failed: u64 = summary.calls.iter().map(|calls| calls.outcomes[1]).sum();
    let restored = summary.restored.values().map(|restored| restored.tokens);
    let tokens = summary.skills.values().map(|skill| skill.tokens).chain(restored).sum();
    let sessions = summary.sessions.len();
    let activations = summary.calls[0].outcomes[0];
    [
        (grouped(sessions as u64), plural(sessions, "session")),
        (grouped(activations), plural(activations, "activation")),
        (format!("{used} of {}", summary.skills.len()), "skills used".to_owned()),
        (grouped(calls), plural(calls, "call") + " in total"),
        (grouped(failed), plural(failed, "failed call")),
        (format!("≈ {}", grouped(tokens)), "tokens for the model".to_owned()),
    ]
}

/// Returns a number with narrow spaces between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// The meaning of columns, by their titles.
const EXPLAINED: &[Explained] = &[
    ("Model", "The number of times that the model loaded the skill."),
    ("User", "The number of times that the user loaded the skill with a command."),
    ("Proxy", "The number of times that the proxy added the skill to a matching prompt."),
    ("Tokens", "The estimated size of all loaded instructions, in tokens of the model's context."),
    ("Other", "The number of other calls: files, tools, scripts and searches."),
    ("Ok", "The number of calls that succeeded."),
    ("Failed", "The number of calls that failed."),
    ("Cancelled", "The number of calls that the user or the agent cancelled."),
    ("p50", "The median: half of the calls were faster."),
    ("p95", "The 95th percentile: 95 % of the calls were faster."),
    ("Longest", "The duration of the slowest call."),
    ("Total", "The sum of the durations of all calls."),
];

fn table(caption: impl Into<String>, columns: &[Column], rows: Vec<Vec<String>>) -> Table {
    Table { caption: caption.into(), columns: columns.to_vec(), rows, explained: EXPLAINED }
}

/// Returns a row of a name and numbers.
fn row(name: &str, numbers: &[u64]) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(numbers.iter().map(|&number| grouped(number))).collect()
}

fn skills(summary: &Summary) -> Option<Section> {
    use Column::{Number, Text};
    let used = summary.used();
    let (top, others) = used.split_at(used.len().min(TOP));
    let bar = |(name, skill): &(&str, &Usage)| Bar {
        name: (*name).to_owned(),
        parts: skill.activations.to_vec(),
        label: grouped(skill.activated()),
    };
    let bars: Vec<_> = top.iter().map(bar).collect();
    let columns = [
        Text("Skill"),
        Number("Model"),
        Number("User"),
        Number("Proxy"),
        Number("Tokens"),
        Number("Other"),
        Number("Failed"),
        Number("p50"),
    ];
    let cells = |(name, skill): &(&str, &Usage)| {
        let [model, user, proxy] = skill.activations;
        let other = skill.calls.iter().sum();
        let mut cells = row(name, &[model, user, proxy, skill.tokens, other, skill.errors]);
        cells.push(skill.time.shown(50));
        cells
    };
    let note = match others.len() {
        0 => "Activations per skill by the model, the user or the proxy.".to_owned(),
        more => format!(
            "Activations for the {TOP} most used skills by the model, the user or the proxy; {more} more in the table."
        ),
    };
    let more = (!others.is_empty()).then(|| {
        let title = format!("The other {}", count(others.len(), "skill"));
        let rest = table("Activations and other calls", &columns, others.iter().map(cells).collect());
        (title, rest.without_legend())
    });
    let section = Section {
        title: "Skills",
        note,
        key: &BY,
        charts: chart::both(|size| chart::bars(size, "Activations per skill", &BY, &bars, false)),
        table: table("Activations and other calls", &columns, top.iter().map(cells).collect()),
        more,
    };
    (!used.is_empty()).then_some(section)
}

/// Returns the width of a column in seconds, so that a span of this many seconds has no more than [`MAX_COLUMNS`].
fn step(span: i64) -> i64 {
    const STEPS: [i64; 10] =
        [60, 300, 900, 3600, 3 * 3600, 6 * 3600, 86_400, 7 * 86_400, 28 * 86_400, 364 * 86_400];
    let fits = |step: &&i64| span / **step < MAX_COLUMNS;
    STEPS.iter().find(fits).copied().unwrap_or(span / MAX_COLUMNS + 1)
}

/// Returns the width of a column in words.
fn step_in_words(step: i64) -> String {
    match step {
        60 => "one minute".to_owned(),
        3600 => "one hour".to_owned(),
        86_400 => "one day".to_owned(),
        step if step < 3600 => format!("{} minutes", step / 60),
        step if step < 86_400 => format!("{} hours", step / 3600),
        step => format!("{} days", step / 86_400),
    }
}

/// Returns the calls of each column, with `step` seconds each. `None` if there are no calls.
fn columns(summary: &Summary) -> Option<(i64, Vec<Bar>)> {
    let seconds = |time: &(Timestamp, usize)| time.0.as_second();
    let first = summary.times.iter().map(seconds).min()?;
    let last = summary.times.iter().map(seconds).max()?;
    let step = step(last - first);
    let start = first.div_euclid(step);
    let column_of = |second: i64| usize::try_from(second.div_euclid(step) - start).unwrap_or(0);
    let bar = |column: usize| {
        let from = i64::try_from(column).unwrap_or(0).saturating_add(start).saturating_mul(step);
        let text = Timestamp::from_second(from).map(minute).unwrap_or_default();
        let label = if step >= 86_400 { text.get(..10).unwrap_or_default().to_owned() } else { text };
        Bar { name: label.clone(), parts: vec![0; CALLS.len()], label }
    };
    let mut bars: Vec<_> = (0..=column_of(last)).map(bar).collect();
    for time in &summary.times {
        if let Some(bar) = bars.get_mut(column_of(seconds(time))) {
            bar.parts[time.1] += 1;
        }
    }
    Some((step, bars))
}

fn over_time(summary: &Summary) -> Option<Section> {
    use Column::{Number, Time};
    let (step, bars) = columns(summary)?;
    let width = step_in_words(step);
    let titles = [
        Time("From"),
        Number("Activations"),
        Number("Files"),
        Number("Tools"),
        Number("Scripts"),
        Number("Searches"),
    ];
    let busy = bars.iter().filter(|bar| bar.parts.iter().any(|&part| part > 0));
    // Start with the latest rows, because these are the most useful for users.
    let mut rows: Vec<_> = busy.map(|bar| row(&bar.label, &bar.parts)).rev().collect();
    let earlier = rows.split_off(rows.len().min(MAX_TIMES));
    let more = (!earlier.is_empty()).then(|| {
        (count(earlier.len(), "earlier row"), table("Earlier calls", &titles, earlier).without_legend())
    });
    Some(Section {
        title: "Calls over time",
        note: format!("Each bar is {width}."),
        key: &KINDS,
        charts: chart::both(|size| chart::columns(size, "Calls over time", &KINDS, &bars)),
        table: table(format!("Calls within {width}, latest first"), &titles, rows),
        more,
    })
}

fn outcomes(summary: &Summary) -> Option<Section> {
    use Column::{Number, Text};
    let kinds: Vec<_> = summary.calls.iter().zip(CALLS).filter(|(calls, _)| calls.count() > 0).collect();
    let bar = |(calls, (_, name)): &(&Calls, (&str, &str))| Bar {
        name: (*name).to_owned(),
        parts: calls.outcomes.to_vec(),
        label: grouped(calls.count()),
    };
    let bars: Vec<_> = kinds.iter().map(bar).collect();
    let rows = kinds.iter().map(|(calls, (_, name))| row(name, &calls.outcomes)).collect();
    let titles = [Text("Kind"), Number("Ok"), Number("Failed"), Number("Cancelled")];
    let section = Section {
        title: "Outcomes",
        note: "Share and number of calls per outcome.".to_owned(),
        key: &OUTCOMES,
        charts: chart::both(|size| chart::bars(size, "Outcomes of calls", &OUTCOMES, &bars, true)),
        table: table("Calls by outcome", &titles, rows),
        more: None,
    };
    (!kinds.is_empty()).then_some(section)
}

fn timing(summary: &Summary) -> Option<Section> {
    use Column::{Number, Text};
    let mut rows = Vec::new();
    let mut ranges = Vec::new();
    for (calls, (_, name)) in summary.calls.iter().zip(CALLS) {
        let (Some(p50), Some(p95)) = (calls.time.percentile(50), calls.time.percentile(95)) else { continue };
        let median = durations::shown(p50.as_f64());
        let slow = durations::shown(p95.as_f64());
        let label = format!("p50 {median}, p95 {slow}");
        ranges.push(Range { name: name.to_owned(), p50: p50.as_f64(), p95: p95.as_f64(), label });
        rows.push(vec![name.to_owned(), median, slow, calls.time.shown(100), calls.time.total_shown()]);
    }
    if ranges.is_empty() {
        return None;
    }
    let titles = [Text("Kind"), Number("p50"), Number("p95"), Number("Longest"), Number("Total")];
    Some(Section {
        title: "Durations",
        note: "On a logarithmic scale.".to_owned(),
        key: &PERCENTILES,
        charts: chart::both(|size| chart::ranges(size, "Durations of calls", &ranges)),
        table: table("Durations", &titles, rows),
        more: None,
    })
}

fn failures(summary: &Summary) -> Option<(Table, Table)> {
    use Column::{Code, Number, Text};
    let row = |(kind, code, skill, count): (&str, &str, &str, u64)| {
        vec![code.to_owned(), kind.to_owned(), skill.to_owned(), grouped(count)]
    };
    let mut rows: Vec<_> = summary.failures().into_iter().map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let rare = rows.split_off(rows.len().min(MAX_FAILURES));
    let titles = [Code("Code"), Text("Kind"), Text("Skill"), Number("Calls")];
    Some((
        table("Failed calls, most frequent first", &titles, rows),
        table("Less frequent failures", &titles, rare),
    ))
}

fn notes(summary: &Summary) -> Option<Table> {
    use Column::{Number, Text};
    let rows: Vec<_> = summary.notes().into_iter().map(|(what, count)| vec![what, grouped(count)]).collect();
    let titles = [Text("Event"), Number("Count")];
    (!rows.is_empty())
        .then(|| table("Permissions, fallbacks, restorations and unreadable lines", &titles, rows))
}
