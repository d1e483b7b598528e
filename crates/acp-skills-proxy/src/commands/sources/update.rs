//! `update`: what sources have now. Shows what differs from what was approved, asks, and writes the lock.

use std::{collections::BTreeMap, process::ExitCode};

use clap::Args;
use serde::Serialize;
use skills_core::{scan::Finding, text::shown};
use skills_sources::{LockFile, Pinned, SkillChange};

use super::{CommonArgs, Known, Target, agreed, findings, known, lock_error, named, show, tidy, updater};
use crate::{error::UsageError, output, progress::Progress, words::count};

/// Flags of `update`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code 0 when everything is up to date or approved, 1 when something is not.

Examples:
  acp-skills-proxy update
  acp-skills-proxy update github:acme/skills
  acp-skills-proxy update --locked
      In CI: fails when a source has something that nobody approved yet.")]
pub(crate) struct UpdateArgs {
    /// Only this source.
    source: Option<String>,
    /// Approve without asking.
    #[arg(long, conflicts_with = "locked")]
    yes: bool,
    /// Approve nothing: a change is an error.
    #[arg(long)]
    locked: bool,
    #[command(flatten)]
    common: CommonArgs,
}

/// What came of a source. A promise to scripts: fields may be added, not changed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    source: String,
    changes: Vec<SkillChange>,
    /// What a scan finds in them and did not find in what was approved, by the skill's path.
    findings: BTreeMap<String, Vec<Finding>>,
    notes: Vec<String>,
    before: Option<Pinned>,
    after: Option<Pinned>,
    approved: bool,
    error: Option<String>,
}

/// Updates sources.
///
/// # Errors
/// Configuration or lock cannot be read or written, or there is nobody to ask.
pub(crate) fn run(args: UpdateArgs) -> anyhow::Result<ExitCode> {
    let target = Target::read(&args.common)?;
    let mut sources = known(&target)?;
    if let Some(source) = &args.source {
        sources = named(sources, source)?;
    }
    if sources.is_empty() {
        let hint = "`acp-skills-proxy add SOURCE` adds one";
        return Err(UsageError::new("there are no sources").hint(hint).into());
    }
    let mut rows = Vec::new();
    let mut is_done = true;
    for source in &sources {
        let row = update(&args, source)?;
        is_done &= row.error.is_none() && row.approved;
        rows.push(row);
    }
    tidy(&updater(&args.common)?);
    if args.common.json {
        output::print_json(&rows)?;
    }
    Ok(ExitCode::from(u8::from(!is_done)))
}

fn update(args: &UpdateArgs, source: &Known) -> anyhow::Result<Row> {
    let (is_json, address) = (args.common.json, &source.address);
    let print = |text: &str| if is_json { Ok(true) } else { output::print(text) };
    let updater = updater(&args.common)?;
    // One that is broken is told before anything is fetched.
    let before = LockFile::read(&source.lock).map_err(lock_error)?.get(address.as_str()).cloned();
    let approved = before.as_ref().and_then(|pinned| updater.approved(address, pinned));
    let mut row = Row {
        source: address.to_string(),
        changes: Vec::new(),
        findings: BTreeMap::new(),
        notes: Vec::new(),
        before,
        after: None,
        approved: false,
        error: None,
    };
    let latest = {
        let _progress = Progress::spinner("fetching");
        updater.latest(address, row.before.as_ref())
    };
    let offer = match latest {
        Ok(offer) => offer,
        Err(error) => {
            // The others go on.
            let message = error.to_string();
            output::complain(&message, Some(&error.hint()));
            row.error = Some(message);
            return Ok(row);
        }
    };
    row.after = Some(offer.pinned.clone());
    if row.before.as_ref() == Some(&offer.pinned) {
        row.approved = true;
        print(&format!("{}: nothing has changed\n", shown(&row.source)))?;
        return Ok(row);
    }
    row.changes = offer.changes_since(approved.as_ref());
    row.notes.clone_from(&offer.notes);
    row.findings = row.changes.iter().map(|change| (change.path.clone(), findings::new_in(change))).collect();
    let since = match (&row.before, &approved) {
        (None, _) => "nothing of it was approved yet",
        (Some(_), None) => "what was approved is not here any more, so all of it is shown",
        _ => "since it was approved",
    };
    print(&format!("{}: {}, {since}\n", shown(&row.source), count(row.changes.len(), "change")))?;
    print(&show::changes(&row.changes, &row.notes))?;
    row.approved = match (args.locked, is_json) {
        (true, _) => false,
        (false, true) => args.yes,
        // Another commit with the same skills.
        (false, false) if row.changes.is_empty() && approved.is_some() => true,
        (false, false) => agreed("Approve?", args.yes)?,
    };
    if row.approved {
        updater.approve(&source.lock, address, &offer).map_err(lock_error)?;
        print("Approved.\n")?;
    } else if args.locked {
        output::complain(
            &format!("`{}` has changed", shown(&row.source)),
            Some("`acp-skills-proxy update` asks and approves"),
        );
    }
    Ok(row)
}
