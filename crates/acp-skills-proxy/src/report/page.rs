//! The report as one HTML page that opens from disk: nothing is loaded, nothing runs, and a strict policy holds it to
//! that. What comes from the record is escaped, all of it.

use std::fmt::Write;

use jiff::Timestamp;

use super::{
    AUTHORS, CALLS, Summary, Use,
    chart::{self, Bar, Range},
    durations, minute, shown,
};
use crate::{
    html::{escape, fill, source_of},
    words::{self, count, plural},
};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

/// How many skills a chart shows; the rest stands in a table that can be opened.
const TOP: usize = 15;
/// How many bars the chart over time has at most.
const MAX_COLUMNS: i64 = 48;
/// The title of a column of times.
const WHEN: &str = "From";
/// How many rows a table of errors has.
const MAX_ERRORS: usize = 25;

const BY: [(&str, &str); AUTHORS.len()] = [("c1", AUTHORS[0].1), ("c2", AUTHORS[1].1), ("c3", AUTHORS[2].1)];
const KINDS: [(&str, &str); CALLS.len()] =
    [("c1", CALLS[0].1), ("c4", CALLS[1].1), ("c3", CALLS[2].1), ("c2", CALLS[3].1), ("c5", CALLS[4].1)];
const OUTCOMES: [(&str, &str); 3] = [("ok", "ok"), ("error", "failed"), ("cancelled", "cancelled")];

/// The page.
pub(crate) fn page(summary: &Summary, files: &[String]) -> String {
    let style = source_of(STYLE);
    let policy = format!("default-src 'none'; style-src {style}; base-uri 'none'; form-action 'none'");
    let sections = [
        tiles(summary),
        skills(summary),
        over_time(summary),
        outcomes(summary),
        speed(summary),
        never_used(summary),
        errors(summary),
        rest(summary),
    ];
    let parts = [
        ("policy", policy.as_str()),
        ("style", STYLE),
        ("version", env!("CARGO_PKG_VERSION")),
        ("head", &head(summary, files)),
        ("sections", &sections.concat()),
    ];
    fill(TEMPLATE, &parts)
}

fn head(summary: &Summary, files: &[String]) -> String {
    let when = match summary.span {
        Some((first, last)) => format!("{} to {} UTC", minute(first), minute(last)),
        None => "There are no events yet".to_owned(),
    };
    let files = match files {
        [one] => format!("<code>{}</code>", escape(&shown(one))),
        many => count(many.len(), "file"),
    };
    let agents: Vec<_> =
        summary.agents.iter().map(|(agent, count)| format!("{} ({count})", escape(agent))).collect();
    let agents = match agents.len() {
        0 => String::new(),
        1..=6 => format!(" · {}", agents.join(", ")),
        many => format!(" · {}", count(many, "agent")),
    };
    format!("<p class=\"soft\">{when} · {files}{agents}</p>\n")
}

fn tiles(summary: &Summary) -> String {
    let used = summary.skills.values().filter(|skill| skill.used() > 0).count();
    let calls: u64 = summary.calls.iter().map(super::Calls::count).sum();
    let failed: u64 = summary.calls.iter().map(|calls| calls.outcomes[1]).sum();
    let tiles = [
        (grouped(summary.sessions.len() as u64), plural(summary.sessions.len(), "session")),
        (grouped(summary.calls[0].outcomes[0]), plural(summary.calls[0].outcomes[0], "activation")),
        (format!("{used} of {}", summary.skills.len()), "skills used".to_owned()),
        (grouped(calls), plural(calls, "call") + " in all"),
        (grouped(failed), plural(failed, "failed call")),
        (
            format!("≈ {}", grouped(summary.skills.values().map(|skill| skill.tokens).sum())),
            "tokens given".to_owned(),
        ),
    ];
    let mut html = "<ul class=\"tiles\">\n".to_owned();
    for (number, what) in tiles {
        let _ = writeln!(html, "<li><b>{number}</b>{what}</li>");
    }
    html + "</ul>\n"
}

/// A number with thin spaces between thousands.
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

/// A table: titles, those of numbers with `#` in front, and rows of escaped texts.
fn table(caption: &str, titles: &[&str], rows: &[Vec<String>]) -> String {
    let mut html =
        format!("<div class=\"scroll\"><table>\n<caption>{}</caption>\n<thead><tr>", escape(caption));
    let class = |title: &str| if title.starts_with('#') { " class=\"n\"" } else { "" };
    for title in titles {
        let _ = write!(html, "<th scope=\"col\"{}>{}</th>", class(title), title.trim_start_matches('#'));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for (column, (title, cell)) in titles.iter().zip(row).enumerate() {
            let _ = match column {
                0 if *title == WHEN => write!(html, "<th scope=\"row\" class=\"when\">{cell}</th>"),
                0 => write!(html, "<th scope=\"row\">{cell}</th>"),
                _ => write!(html, "<td{}>{cell}</td>", class(title)),
            };
        }
        html.push_str("</tr>\n");
    }
    html + "</tbody></table></div>\n"
}

fn key(series: chart::Series<'_>) -> String {
    let items = items(series.iter().map(|(class, name)| format!("<i class=\"{class}\"></i>{name}")));
    format!("<ul class=\"key\" aria-hidden=\"true\">{items}</ul>")
}

/// Items of a list.
fn items(texts: impl Iterator<Item = String>) -> String {
    texts.flat_map(|text| ["<li>".to_owned(), text, "</li>".to_owned()]).collect()
}

/// A chart and its table, side by side.
fn section(title: &str, text: &str, key: &str, svg: &str, beside: &str, below: &str) -> String {
    format!(
        "<section>\n<h2>{title}</h2>\n<p class=\"note\">{text}</p>\n<div class=\"pair\">\n<figure>{key}\
         <div class=\"scroll\">{svg}</div></figure>\n{beside}</div>\n{below}</section>\n"
    )
}

fn skills(summary: &Summary) -> String {
    let used = summary.used();
    if used.is_empty() {
        return "<section>\n<h2>Skills</h2>\n<p class=\"note\">No skill was used.</p>\n</section>\n"
            .to_owned();
    }
    let (top, others) = used.split_at(used.len().min(TOP));
    let bars: Vec<_> = top
        .iter()
        .map(|(name, skill)| Bar {
            name: (*name).to_owned(),
            parts: skill.activations.to_vec(),
            label: grouped(skill.activated()),
        })
        .collect();
    let titles = ["Skill", "#Model", "#User", "#Proxy", "#Tokens", "#Other", "#Failed", "#p50"];
    let row = |(name, skill): &(&str, &Use)| {
        let mut cells = vec![escape(name)];
        cells.extend(skill.activations.iter().map(|&count| grouped(count)));
        cells.push(grouped(skill.tokens));
        cells.push(grouped(skill.calls.iter().sum()));
        cells.push(grouped(skill.errors));
        cells.push(skill.time.shown(50));
        cells
    };
    let rows = |some: &[(&str, &Use)]| some.iter().map(row).collect::<Vec<_>>();
    let text = match others.len() {
        0 => "Activations of each skill, by whoever activated it.".to_owned(),
        count => format!(
            "Activations of the {TOP} skills that are used most, by whoever activated them; {count} more below."
        ),
    };
    let below = match others.len() {
        0 => String::new(),
        count => format!(
            "<details><summary>The other {}</summary>\n{}</details>\n",
            words::count(count, "skill"),
            table("Activations and other calls", &titles, &rows(others))
        ),
    };
    let svg = chart::bars("Activations per skill", &BY, &bars, false);
    let beside = table("Activations by whom, and other calls", &titles, &rows(top));
    section("Skills", &text, &key(&BY), &svg, &beside, &below)
}

/// How many seconds a column is wide, so that there are not too many: minutes, hours, days, weeks.
fn step(span: i64) -> i64 {
    const STEPS: [i64; 10] =
        [60, 300, 900, 3600, 3 * 3600, 6 * 3600, 86_400, 7 * 86_400, 28 * 86_400, 364 * 86_400];
    let fits = |step: &&i64| span / **step < MAX_COLUMNS;
    STEPS.iter().find(fits).copied().unwrap_or(span / MAX_COLUMNS + 1)
}

fn over_time(summary: &Summary) -> String {
    let seconds = |time: &(Timestamp, usize)| time.0.as_second();
    let (Some(first), Some(last)) =
        (summary.times.iter().map(seconds).min(), summary.times.iter().map(seconds).max())
    else {
        return String::new();
    };
    let step = step(last - first);
    let start = first.div_euclid(step);
    let count = usize::try_from(last.div_euclid(step) - start).unwrap_or(0) + 1;
    let mut bars: Vec<_> = (0..count)
        .map(|column| {
            let from = i64::try_from(column).unwrap_or(0).saturating_add(start).saturating_mul(step);
            let text = Timestamp::from_second(from).map(minute).unwrap_or_default();
            let label = if step >= 86_400 { text.get(..10).unwrap_or_default().to_owned() } else { text };
            Bar { name: label.clone(), parts: vec![0; CALLS.len()], label }
        })
        .collect();
    for time in &summary.times {
        let column = usize::try_from(seconds(time).div_euclid(step) - start).unwrap_or(0);
        if let Some(bar) = bars.get_mut(column) {
            bar.parts[time.1] += 1;
        }
    }
    let width = match step {
        60 => "a minute".to_owned(),
        3600 => "an hour".to_owned(),
        86_400 => "a day".to_owned(),
        step if step < 3600 => format!("{} minutes", step / 60),
        step if step < 86_400 => format!("{} hours", step / 3600),
        step => format!("{} days", step / 86_400),
    };
    let busy = bars.iter().filter(|bar| bar.parts.iter().any(|&part| part > 0));
    let mut rows: Vec<_> = busy
        .map(|bar| {
            let mut cells = vec![bar.label.clone()];
            cells.extend(bar.parts.iter().map(|&part| grouped(part)));
            cells
        })
        .collect();
    let titles = [WHEN, "#Activations", "#Files", "#Tools", "#Scripts", "#Searches"];
    // The last ones first: those are what one looks for.
    rows.reverse();
    let older = rows.split_off(rows.len().min(8));
    let beside = table(&format!("Calls within {width}, the last ones first"), &titles, &rows);
    let below = match older.len() {
        0 => String::new(),
        count => format!(
            "<details><summary>{}</summary>\n{}</details>\n",
            words::count(count, "earlier row"),
            table("Calls, earlier", &titles, &older)
        ),
    };
    let svg = chart::columns("Calls over time", &KINDS, &bars);
    section("Calls over time", &format!("Each bar is {width}."), &key(&KINDS), &svg, &beside, &below)
}

fn outcomes(summary: &Summary) -> String {
    let kinds: Vec<_> = summary.calls.iter().zip(CALLS).filter(|(calls, _)| calls.count() > 0).collect();
    if kinds.is_empty() {
        return String::new();
    }
    let bar = |(calls, (_, name)): &(&super::Calls, (&str, &str))| Bar {
        name: (*name).to_owned(),
        parts: calls.outcomes.to_vec(),
        label: grouped(calls.count()),
    };
    let bars: Vec<_> = kinds.iter().map(bar).collect();
    let row = |(calls, (_, name)): &(&super::Calls, (&str, &str))| {
        let mut cells = vec![(*name).to_owned()];
        cells.extend(calls.outcomes.iter().map(|&count| grouped(count)));
        cells
    };
    let rows: Vec<_> = kinds.iter().map(row).collect();
    let svg = chart::bars("Outcomes of calls", &OUTCOMES, &bars, true);
    let beside = table("Calls by outcome", &["Kind", "#Ok", "#Failed", "#Cancelled"], &rows);
    section("Outcomes", "The share of each outcome, and how many calls.", &key(&OUTCOMES), &svg, &beside, "")
}

fn speed(summary: &Summary) -> String {
    let timed = summary.calls.iter().zip(CALLS).filter_map(|(calls, (_, name))| {
        let (p50, p95) = (calls.time.percentile(50)?.as_f64(), calls.time.percentile(95)?.as_f64());
        let label = format!("p50 {}, p95 {}", durations::shown(p50), durations::shown(p95));
        Some((Range { name: name.to_owned(), p50, p95, label }, &calls.time))
    });
    let timed: Vec<_> = timed.collect();
    if timed.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = timed
        .iter()
        .map(|(range, time)| {
            vec![
                range.name.clone(),
                durations::shown(range.p50),
                durations::shown(range.p95),
                time.shown(100),
                time.total_shown(),
            ]
        })
        .collect();
    let ranges: Vec<_> = timed.into_iter().map(|(range, _)| range).collect();
    let svg = chart::ranges("Durations of calls", &ranges);
    let beside = table("Durations", &["Kind", "#p50", "#p95", "#Longest", "#All"], &rows);
    let key = key(&[("p50", "p50: half are faster"), ("p95", "p95: 95 % are faster")]);
    section("Durations", "On a logarithmic scale.", &key, &svg, &beside, "")
}

fn never_used(summary: &Summary) -> String {
    let names = summary.never_used();
    if names.is_empty() {
        return String::new();
    }
    let items = items(names.iter().map(|name| escape(name)));
    let open = if names.len() <= 30 { " open" } else { "" };
    format!(
        "<section>\n<h2>Never used</h2>\n<p class=\"note\">{} of the {} that sessions had.</p>\n\
         <details{open}><summary>Their names</summary>\n<ul class=\"names\">{items}</ul></details>\n</section>\n",
        names.len(),
        count(summary.skills.len(), "skill")
    )
}

fn errors(summary: &Summary) -> String {
    let failures = summary.failures();
    if failures.is_empty() {
        return String::new();
    }
    let row = |(kind, code, skill, count): &(&str, &str, &str, u64)| {
        vec![format!("<code>{}</code>", escape(code)), (*kind).to_owned(), escape(skill), grouped(*count)]
    };
    let rows: Vec<_> = failures.iter().map(row).collect();
    let (shown, more) = rows.split_at(rows.len().min(MAX_ERRORS));
    let titles = ["Code", "Kind", "Skill", "#Calls"];
    let more = match more.len() {
        0 => String::new(),
        count => format!(
            "<details><summary>{count} more</summary>\n{}</details>\n",
            table("Less frequent failures", &titles, more)
        ),
    };
    let table = table("Failed calls, the most frequent first", &titles, shown);
    format!("<section>\n<h2>Failures</h2>\n{table}{more}</section>\n")
}

fn rest(summary: &Summary) -> String {
    let notes = summary.notes();
    if notes.is_empty() {
        return String::new();
    }
    let rows: Vec<_> = notes.iter().map(|(what, count)| vec![escape(what), grouped(*count)]).collect();
    let table = table("Permissions, fallbacks and what could not be read", &["What", "#Times"], &rows);
    let (named, count) = &summary.bad;
    let mut lines = items(named.iter().map(|line| format!("<code>{}</code>", escape(line))));
    if *count > named.len() as u64 {
        let _ = write!(lines, "<li>and {} more</li>", count - named.len() as u64);
    }
    let lines = match named.len() {
        0 => String::new(),
        _ => format!("<details><summary>Lines that are no events</summary>\n<ul>{lines}</ul></details>\n"),
    };
    format!("<section>\n<h2>Everything else</h2>\n{table}{lines}</section>\n")
}
