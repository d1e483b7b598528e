//! `report`: summarizes the events of `--events` as tables in the terminal and as a page.

use std::{
    fmt::Write,
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use skills_sources::disk::patient;

use super::table::{self, Align, Table};
use crate::{
    args::path,
    error::UsageError,
    log, output,
    report::{CALLS, Summary, minute, page},
    words::count,
};
use acp_skills::events::read;

/// The maximum number of rows of a table. The page shows all rows.
const MAX_ROWS: usize = 30;
/// The maximum number of names of unused skills.
const MAX_NAMES: usize = 40;

/// Flags of `report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Lines that are not events are listed at the end of the report.

Examples:
  acp-skills-proxy report events.jsonl
  acp-skills-proxy report *.jsonl --html report.html
  zcat old.jsonl.gz | acp-skills-proxy report - events.jsonl")]
pub(crate) struct ReportArgs {
    /// The files that `--events` wrote. `-` reads stdin.
    #[arg(required = true, value_name = "FILE", value_parser = path())]
    files: Vec<PathBuf>,
    /// Also write an HTML page with charts. It opens from disk and loads nothing.
    #[arg(long, value_name = "OUT", value_parser = path())]
    html: Option<PathBuf>,
}

/// Reads the files and prints the report.
///
/// # Errors
/// Returns an error if a file cannot be read or the page cannot be written.
pub(crate) fn run(args: ReportArgs) -> anyhow::Result<ExitCode> {
    let ReportArgs { files, html } = args;
    let mut summary = Summary::default();
    let mut names = Vec::new();
    for path in &files {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
        let mut add = |number, line| summary.add(&name, number, line);
        let result = if is_stdin {
            read::lines(io::stdin().lock(), &mut add)
        } else {
            log::with_warnings_on_stderr(|| patient::open(path)).and_then(|file| read::lines(file, &mut add))
        };
        result.map_err(|error| {
            if is_stdin {
                UsageError::failed("cannot read stdin", error)
            } else {
                UsageError::at("cannot read", path, error)
            }
        })?;
        names.push(name);
    }
    output::print(&text(&summary, table::terminal_width()))?;
    if let Some(out) = html {
        log::with_warnings_on_stderr(|| patient::write(&out, page(&summary, &names)))
            .map_err(|error| UsageError::at("cannot write page", &out, error))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(summary: &Summary, width: Option<usize>) -> String {
    let Some((first, last)) = summary.span else {
        let hint = if summary.bad.1 > 0 { "hint: use files written with `--events`\n" } else { "" };
        return format!("No events found.\n{}{hint}", rest(summary));
    };
    let mut parts = vec![format!(
        "{} of {}, {} to {} UTC",
        count(summary.events, "event"),
        count(summary.sessions.len(), "session"),
        minute(first),
        minute(last)
    )];
    parts.extend(skills(summary, width));
    parts.extend(calls(summary, width));
    parts.extend(failures(summary, width));
    let unused = summary.never_used();
    if !unused.is_empty() {
        let mut names = unused.iter().take(MAX_NAMES).copied().collect::<Vec<_>>().join(", ");
        if unused.len() > MAX_NAMES {
            let _ = write!(names, " and {} more", unused.len() - MAX_NAMES);
        }
        let all = count(summary.skills.len(), "skill");
        parts.push(format!("Never used, {} of {all}: {names}", unused.len()));
    }
    let rest = rest(summary);
    if !rest.is_empty() {
        parts.push(rest.trim_end().to_owned());
    }
    parts.join("\n\n") + "\n"
}

fn skills(summary: &Summary, width: Option<usize>) -> Option<String> {
    let used = summary.used();
    let mut table = Table::new([
        ("SKILL", Align::Left),
        ("MODEL", Align::Right),
        ("USER", Align::Right),
        ("PROXY", Align::Right),
        ("TOKENS", Align::Right),
        ("FILES", Align::Right),
        ("TOOLS", Align::Right),
        ("SCRIPTS", Align::Right),
        ("FAILED", Align::Right),
        ("P50", Align::Right),
        ("TIME", Align::Right),
        ("LAST USED", Align::Left),
    ]);
    for (name, skill) in used.iter().take(MAX_ROWS) {
        let [model, user, proxy] = skill.activations;
        let [_, files, tools, scripts, _] = skill.calls;
        let numbers =
            [model, user, proxy, files, tools, scripts, skill.errors].map(|count| count.to_string());
        let [model, user, proxy, files, tools, scripts, failed] = numbers;
        table.row([
            (*name).to_owned(),
            model,
            user,
            proxy,
            skill.tokens.to_string(),
            files,
            tools,
            scripts,
            failed,
            skill.time.shown(50),
            skill.time.total_shown(),
            skill.last.map(minute).unwrap_or_default(),
        ]);
    }
    (!used.is_empty()).then(|| table.render(width) + &more(used.len()))
}

fn calls(summary: &Summary, width: Option<usize>) -> Option<String> {
    let mut table = Table::new([
        ("CALLS", Align::Left),
        ("OK", Align::Right),
        ("FAILED", Align::Right),
        ("CANCELLED", Align::Right),
        ("P50", Align::Right),
        ("P95", Align::Right),
        ("LONGEST", Align::Right),
    ]);
    for (calls, (_, name)) in summary.calls.iter().zip(CALLS).filter(|(calls, _)| calls.count() > 0) {
        let [ok, failed, cancelled] = calls.outcomes.map(|count| count.to_string());
        let [p50, p95, longest] = [50, 95, 100].map(|percent| calls.time.shown(percent));
        table.row([name.to_owned(), ok, failed, cancelled, p50, p95, longest]);
    }
    summary.calls.iter().any(|calls| calls.count() > 0).then(|| table.render(width))
}

fn failures(summary: &Summary, width: Option<usize>) -> Option<String> {
    let failures = summary.failures();
    let mut table = Table::new([
        ("FAILURE", Align::Left),
        ("CALLS", Align::Right),
        ("KIND", Align::Left),
        ("SKILL", Align::Left),
    ]);
    for (kind, code, skill, count) in failures.iter().take(MAX_ROWS) {
        table.row([(*code).to_owned(), count.to_string(), (*kind).to_owned(), (*skill).to_owned()]);
    }
    (!failures.is_empty()).then(|| table.render(width) + &more(failures.len()))
}

fn more(count: usize) -> String {
    if count > MAX_ROWS {
        format!("\n… and {} more (--html shows all)", count - MAX_ROWS)
    } else {
        String::new()
    }
}

/// Returns other counts, and the lines that are not events.
fn rest(summary: &Summary) -> String {
    let notes = summary.notes().into_iter().map(|(what, count)| format!("{count} {what}\n"));
    let lines = summary.bad.0.iter().map(|line| format!("  {line}\n"));
    let hidden = summary.unnamed_lines();
    let hidden = (hidden > 0).then(|| format!("  … and {hidden} more\n"));
    notes.chain(lines).chain(hidden).collect()
}
