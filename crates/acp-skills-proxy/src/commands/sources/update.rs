//! `update`: fetches new versions of sources. Shows the changes, asks for approval, and writes the lock file.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use skills_core::text::shown;
use skills_sources::{LockFile, Pinned, SkillChange};

use super::{
    ApprovalArgs, CommonArgs, Known, Target, findings, known, lock_error, named,
    show::{self, FindingsBySkill},
    tidy, updater,
};
use crate::{
    error::{self, UsageError},
    output,
    progress::Progress,
    words::count,
};

/// The flags of `update`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy update
  acp-skills-proxy update github:acme/skills
  acp-skills-proxy update --locked
      Fail if a skill in use differs from its approved version, or if a skill is new or gone, for example in CI.

Exit codes: 0 if all sources are up to date or approved, 1 if not.")]
pub(crate) struct UpdateArgs {
    /// Update only this source.
    source: Option<String>,
    #[command(flatten)]
    approval: ApprovalArgs,
    /// Approve nothing, and fail if a skill in use has changed, is new or is gone. Skills that `include` and `exclude` leave out don't
    /// matter, and neither do commits that change no skill.
    #[arg(long, conflicts_with = "yes")]
    locked: bool,
    #[command(flatten)]
    common: CommonArgs,
}

/// The result for a source in the JSON output. Scripts can rely on it: later versions only add fields.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    source: String,
    changes: Vec<SkillChange>,
    /// New findings of a scan in changed skills, by the skill's path.
    findings: FindingsBySkill,
    notes: Vec<String>,
    before: Option<Pinned>,
    after: Option<Pinned>,
    approved: bool,
    error: Option<String>,
}

/// Updates the sources. If a source can't be fetched, the error is printed and the other sources are updated.
///
/// # Errors
/// Returns an error if there are no sources, or if the configuration or a lock file can't be read or written.
pub(crate) fn run(args: UpdateArgs) -> anyhow::Result<ExitCode> {
    let target = Target::read(&args.common)?;
    let mut sources = known(&target)?;
    if let Some(source) = &args.source {
        sources = named(sources, source)?;
    }
    if sources.is_empty() {
        let hint = "use `acp-skills-proxy add SOURCE` to add one";
        return Err(UsageError::new("no sources to update").hint(hint).into());
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
    let is_json = args.common.json;
    let address = &source.address;
    let print = |text: &str| if is_json { Ok(true) } else { output::print(text) };
    let updater = updater(&args.common)?;
    // Do this first, so that we report an invalid lock file before we fetch the source.
    let before = LockFile::read(&source.lock).map_err(lock_error)?.get(address.as_str()).cloned();
    let approved = before.as_ref().and_then(|pinned| updater.approved(address, pinned));
    let mut row = Row {
        source: address.to_string(),
        changes: Vec::new(),
        findings: FindingsBySkill::new(),
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
        Ok(mut offer) => {
            offer.retain(|name| source.takes(name));
            offer
        }
        Err(error) => {
            // Report the error, but continue with the next source.
            let message = error.to_string();
            output::complain(&message, Some(&error.hint()));
            row.error = Some(message);
            return Ok(row);
        }
    };
    row.after = Some(offer.pinned.clone());
    let is_unchanged = row.before.as_ref().is_some_and(|before| {
        let uses = |name: &str| !args.locked || source.uses(name);
        row.after == row.before || offer.is_approved_by(before, uses)
    });
    if is_unchanged {
        row.approved = true;
        print(&format!("{}: no changes\n", shown(&row.source)))?;
        // The commit can be new although no skill has changed.
        if !args.locked && row.after != row.before {
            updater.approve(&source.lock, address, &offer).map_err(lock_error)?;
        }
        return Ok(row);
    }
    row.changes = offer.changes_since(approved.as_ref());
    row.notes.clone_from(&offer.notes);
    row.findings = findings::by_skill(&row.changes);
    let since = match (&row.before, &approved) {
        (None, _) => ", not approved yet",
        (Some(_), None) => " (showing all skills, because the approved version is no longer in the cache)",
        _ => " since the approved version",
    };
    if !is_json {
        let head = format!("{}: {}{since}\n", shown(&row.source), count(row.changes.len(), "change"));
        let text = head + &show::changes(&row.changes, &row.findings, &row.notes);
        output::page(&text, !args.approval.yes && !args.locked && !row.changes.is_empty())?;
    }
    row.approved = match (args.locked, is_json) {
        (true, _) => false,
        (false, true) => args.approval.approve(&row.changes),
        // The index of a web site can be new although its skills are the same.
        (false, false) if row.changes.is_empty() && approved.is_some() => true,
        (false, false) => args.approval.ask("Approve?", &row.changes).unwrap_or_else(|error| {
            // There is no terminal. Continue with the next source.
            output::complain(&error::message(&error), error::hint(&error).as_deref());
            false
        }),
    };
    if row.approved {
        updater.approve(&source.lock, address, &offer).map_err(lock_error)?;
        print("Approved.\n")?;
    } else if args.locked {
        output::complain(
            &format!("`{}` has changed", shown(&row.source)),
            Some("use `acp-skills-proxy update` to review and approve the changes"),
        );
    }
    Ok(row)
}
