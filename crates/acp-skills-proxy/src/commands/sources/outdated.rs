//! `outdated`: lists the skills of which a source has another version than the approved one. Approves nothing.

use std::{process::ExitCode, sync::Arc};

use clap::Args;
use serde::Serialize;
use skills_core::order;
use skills_sources::{Pinned, SkillChange};

use super::{
    CommonArgs, FetchArgs, Target, choices,
    fetching::{self, Fetch, Latest},
    fetching_updater,
    known::{as_used, known, named, with_pinned},
};
use crate::{
    commands::table::{Align, Table, terminal_width},
    error::UsageError,
    output,
    progress::Progress,
};

/// The flags of `outdated`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy outdated
  acp-skills-proxy outdated github:acme/skills --json
  acp-skills-proxy outdated --check
      Fail if there is something new, for example in a scheduled job.

Exit codes: 0, or 1 if a source can't be fetched, or with --check if a change waits for a decision.")]
pub(crate) struct OutdatedArgs {
    /// List only the skills of this source.
    source: Option<String>,
    /// Exit with 1 if a change waits for a decision. Pinned skills and declined changes don't count.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    fetch: FetchArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// A skill in the JSON output. Scripts can rely on it: later versions only add fields.
#[derive(Serialize)]
struct Row {
    name: String,
    source: String,
    /// The directory of the skill in the source.
    path: String,
    /// The tag, the commit, or the checksum of the index. `None` for a new skill.
    approved: Option<String>,
    /// The same for the current version. `None` if the skill is gone.
    available: Option<String>,
    /// `new`, `changed` or `gone`.
    change: &'static str,
    /// `unapproved`, `pinned` or `declined`.
    state: &'static str,
}

/// A source that can't be fetched, in the JSON output.
#[derive(Serialize)]
struct Failure {
    source: String,
    error: String,
}

#[derive(Serialize)]
struct Report {
    skills: Vec<Row>,
    failures: Vec<Failure>,
}

/// Lists the outdated skills.
///
/// # Errors
/// Returns an error if the configuration or a lock file can't be read.
pub(crate) fn run(args: OutdatedArgs) -> anyhow::Result<ExitCode> {
    let target = Target::existing(&args.common)?;
    let mut sources = as_used(known(&target)?)?;
    if let Some(source) = &args.source {
        sources = named(sources, source)?;
    }
    if sources.is_empty() && !args.common.json {
        let hint = "use `acp-skills-proxy add SOURCE` to add one";
        return Err(UsageError::new("no sources").hint(hint).into());
    }
    let updater = Arc::new(fetching_updater(&args.common, &args.fetch, &target)?);
    let mut fetches = Vec::new();
    for (source, before) in with_pinned(sources)? {
        let reconsidered = Vec::new();
        fetches.push(Fetch {
            source,
            before,
            replaces: None,
            reconsidered,
            is_locked: false,
            lists_rejected: true,
        });
    }
    let fetches = Arc::new(fetches);
    let mut found: Vec<_> = {
        let _progress = Progress::spinner("fetching");
        let fetched = fetching::start(&updater, &fetches).into_iter();
        // The texts of all changes can be large.
        fetched
            .map(|(number, latest)| (number, latest.map(|latest| rows(&fetches[number], &latest))))
            .collect()
    };
    order::sort_by_key(&mut found, |(number, _)| *number);
    let mut report = Report { skills: Vec::new(), failures: Vec::new() };
    for (number, latest) in found {
        match latest {
            Ok(rows) => report.skills.extend(rows),
            Err(error) => {
                output::complain(&error.to_string(), Some(&error.hint()));
                let source = fetches[number].source.address.to_string();
                report.failures.push(Failure { source, error: error.to_string() });
            }
        }
    }
    print(&report, args.common.json)?;
    let is_unapproved = report.skills.iter().any(|row| row.state == "unapproved");
    let is_good = report.failures.is_empty() && !(args.check && is_unapproved);
    Ok(ExitCode::from(u8::from(!is_good)))
}

fn print(report: &Report, json: bool) -> anyhow::Result<()> {
    if json {
        output::print_json(report)?;
        return Ok(());
    }
    if report.skills.is_empty() {
        if report.failures.is_empty() {
            output::print("All skills are up to date.\n")?;
        }
        return Ok(());
    }
    let mut table = Table::new([
        ("SKILL", Align::Left),
        ("SOURCE", Align::Left),
        ("APPROVED", Align::Left),
        ("AVAILABLE", Align::Left),
        ("STATE", Align::Left),
    ]);
    for row in &report.skills {
        let version = |version: &Option<String>, none: &str| {
            version.as_deref().map_or_else(|| none.to_owned(), |version| short(version).to_owned())
        };
        let (approved, available) = (version(&row.approved, "new"), version(&row.available, "gone"));
        table.row([row.name.clone(), row.source.clone(), approved, available, row.state.to_owned()]);
    }
    output::print(&format!("{}\n", table.render(terminal_width())))?;
    Ok(())
}

/// Shortens a hash.
fn short(version: &str) -> &str {
    let is_hash = version.len() >= 40 && version.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { &version[..12] } else { version }
}

/// Returns the rows of a source.
fn rows(fetch: &Fetch, latest: &Latest) -> Vec<Row> {
    let comparison = &latest.comparison;
    let Some(offer) = &comparison.offer else { return Vec::new() };
    let unapproved = comparison.changes.iter().map(|change| (change, "unapproved"));
    let rejected = comparison.rejected.iter().map(|(change, why)| (change, why.word()));
    let mut rows: Vec<_> =
        unapproved.chain(rejected).map(|(change, state)| row(fetch, &offer.pinned, change, state)).collect();
    order::sort_by(&mut rows, |a, b| a.path.cmp(&b.path));
    rows
}

fn row(fetch: &Fetch, now: &Pinned, change: &SkillChange, state: &'static str) -> Row {
    let approved = fetch
        .before
        .as_ref()
        .filter(|pinned| pinned.skills().is_none_or(|skills| skills.contains_key(&change.path)));
    Row {
        name: choices::name(change).to_owned(),
        source: fetch.source.address.to_string(),
        path: change.path.clone(),
        approved: approved.map(|pinned| pinned.label_of(&change.path).to_owned()),
        available: change.after.as_ref().map(|_| now.label_of(&change.path).to_owned()),
        change: match (approved, &change.after) {
            (_, None) => "gone",
            (None, _) => "new",
            _ => "changed",
        },
        state,
    }
}
