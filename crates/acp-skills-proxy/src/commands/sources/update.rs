//! `update`: fetches new versions of sources. Shows the changes, asks for approval, and writes the lock file.

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver},
    },
    thread,
};

use clap::Args;
use serde::Serialize;
use skills_core::text::{shown, shown_path};
use skills_sources::{LockFile, Offer, Pinned, SkillChange, SourceError, Updater};

use super::{
    ApprovalArgs, CommonArgs, FetchArgs, Known, Target, findings, keep_unseen, known, lock_error, named,
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
    fetch: FetchArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// The number of sources that are fetched at the same time.
const PARALLEL_FETCHES: usize = 8;

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

/// Updates the sources. They are fetched at the same time, and each is shown as soon as it has arrived. If a source can't be fetched,
/// the error is printed and the other sources are updated.
///
/// # Errors
/// Returns an error if there are no sources, or if the configuration or a lock file can't be read or written.
pub(crate) fn run(args: UpdateArgs) -> anyhow::Result<ExitCode> {
    let target = Target::existing(&args.common)?;
    let mut sources = known(&target)?;
    if let Some(source) = &args.source {
        sources = named(sources, source)?;
    }
    if sources.is_empty() {
        let hint = "use `acp-skills-proxy add SOURCE` to add one";
        return Err(UsageError::new("no sources to update").hint(hint).into());
    }
    let updater = updater(&args.common)?.with_max_fetch_bytes(args.fetch.max_bytes(&target));
    let updater = Arc::new(updater);
    if !args.locked {
        resolve_conflicts(&updater, &sources)?;
    }
    // Do this first, so that we report an invalid lock file before we fetch the sources.
    let mut fetches = Vec::new();
    for source in sources {
        let lock = LockFile::read(&source.lock).map_err(lock_error)?;
        let before = lock.get(source.address.as_str()).cloned();
        fetches.push(Fetch { source, before, is_locked: args.locked });
    }
    let fetches = Arc::new(fetches);
    let mut rows: Vec<Option<Row>> = fetches.iter().map(|_| None).collect();
    let latest = fetch(&updater, &fetches);
    loop {
        let arrived = {
            let _progress = Progress::spinner("fetching");
            latest.recv()
        };
        let Ok((number, latest)) = arrived else { break };
        rows[number] = Some(update(&args, &updater, &fetches[number], latest)?);
    }
    let rows: Vec<Row> = rows.into_iter().flatten().collect();
    let is_done = rows.len() == fetches.len() && rows.iter().all(|row| row.error.is_none() && row.approved);
    tidy(&updater);
    if args.common.json {
        output::print_json(&rows)?;
    }
    Ok(ExitCode::from(u8::from(!is_done)))
}

/// Resolves merge conflicts in the lock files, and says so on stderr.
///
/// # Errors
/// Returns an error if a conflict can't be resolved.
fn resolve_conflicts(updater: &Updater, sources: &[Known]) -> anyhow::Result<()> {
    for source in sources {
        let Some(disputed) = updater.resolve_conflict(&source.lock).map_err(lock_error)? else { continue };
        output::note(&format!(
            "resolved the merge conflict in {}: the sources of both sides are kept",
            shown_path(&source.lock)
        ));
        for source in disputed {
            output::note(&format!(
                "the sides have different versions of `{}`: the approved version is the one above `=======`, until you approve \
                 the current one",
                shown(&source)
            ));
        }
    }
    Ok(())
}

/// A source to fetch.
struct Fetch {
    source: Known,
    before: Option<Pinned>,
    /// True if only the skills in use are compared.
    is_locked: bool,
}

/// The current version of a source, compared with the approved one.
struct Latest {
    offer: Offer,
    is_unchanged: bool,
    /// True if the approved version is in the cache.
    has_approved: bool,
    changes: Vec<SkillChange>,
    findings: FindingsBySkill,
}

impl Fetch {
    /// Fetches the source and the files of its changes. A site can take a long time to send them.
    fn run(&self, updater: &Updater) -> Result<Latest, SourceError> {
        let address = &self.source.address;
        let mut offer = updater.latest_with(address, self.before.as_ref(), self.source.nested)?;
        offer.retain(|name| self.source.takes(name));
        let approved = self.before.as_ref().and_then(|pinned| updater.approved(address, pinned));
        let uses = |name: &str| !self.is_locked || self.source.uses(name);
        let is_same = |before: &Pinned| offer.pinned == *before || offer.is_approved_by(before, uses);
        let is_same = self.before.as_ref().is_some_and(is_same);
        let changes = if is_same { Vec::new() } else { offer.changes_since(approved.as_ref()) };
        // The index of a web site can be new although its skills are the same.
        let is_unchanged = is_same || (approved.is_some() && changes.is_empty());
        let findings = findings::by_skill(&changes);
        Ok(Latest { offer, is_unchanged, has_approved: approved.is_some(), changes, findings })
    }
}

/// A source by its number, and its current version.
type Fetched = (usize, Result<Latest, SourceError>);

/// Fetches sources on background threads, several at a time. Returns each with its number as soon as it has arrived. If this process
/// ends before, the remaining fetches end with it.
fn fetch(updater: &Arc<Updater>, fetches: &Arc<Vec<Fetch>>) -> Receiver<Fetched> {
    let (sender, receiver) = mpsc::channel();
    let workers = fetches.len().min(PARALLEL_FETCHES);
    let next = Arc::new(AtomicUsize::new(0));
    let work = || {
        let updater = Arc::clone(updater);
        let fetches = Arc::clone(fetches);
        let next = Arc::clone(&next);
        let sender = sender.clone();
        move || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(fetch) = fetches.get(number) else { return };
                if sender.send((number, fetch.run(&updater))).is_err() {
                    return;
                }
            }
        }
    };
    let start = |_| thread::Builder::new().name("fetch".to_owned()).spawn(work()).is_ok();
    if (0..workers).filter(|worker| start(*worker)).count() == 0 {
        // We can't start a thread, so just fetch on this one.
        work()();
    }
    receiver
}

/// Shows the changes of a source, and approves them if the user agrees.
fn update(
    args: &UpdateArgs,
    updater: &Updater,
    fetch: &Fetch,
    latest: Result<Latest, SourceError>,
) -> anyhow::Result<Row> {
    let is_json = args.common.json;
    let Fetch { source, before, .. } = fetch;
    let address = &source.address;
    let print = |text: &str| if is_json { Ok(true) } else { output::print(text) };
    let mut row = Row {
        source: address.to_string(),
        changes: Vec::new(),
        findings: FindingsBySkill::new(),
        notes: Vec::new(),
        before: before.clone(),
        after: None,
        approved: false,
        error: None,
    };
    let Latest { offer, is_unchanged, has_approved, changes, findings } = match latest {
        Ok(latest) => latest,
        Err(error) => {
            // Report the error, but continue with the next source.
            let message = error.to_string();
            output::complain(&message, Some(&error.hint()));
            row.error = Some(message);
            return Ok(row);
        }
    };
    row.after = Some(offer.pinned.clone());
    if is_unchanged {
        row.approved = true;
        print(&format!("{}: no changes\n", shown(&row.source)))?;
        // The commit can be new although no skill has changed.
        if !args.locked && (!is_json || args.approval.yes) && row.after != row.before {
            updater.approve(&source.lock, address, &offer).map_err(lock_error)?;
        }
        return Ok(row);
    }
    row.changes = changes;
    row.findings = findings;
    row.notes.clone_from(&offer.notes);
    let since = match (&row.before, has_approved) {
        (None, _) => ", not approved yet",
        (Some(_), false) => " (showing all skills, because the approved version is no longer in the cache)",
        _ => " since the approved version",
    };
    if !is_json {
        let asks = !args.approval.yes && !args.locked && !row.changes.is_empty();
        output::page(asks, |text| {
            writeln!(text, "{}: {}{since}", shown(&row.source), count(row.changes.len(), "change"))?;
            show::changes(text, &row.changes, &row.findings, &row.notes)
        })?;
    }
    row.approved = match (args.locked, is_json) {
        (true, _) => false,
        (false, true) => args.approval.approve_or_explain(&row.changes),
        (false, false) => args.approval.ask("Approve?", &row.changes).unwrap_or_else(|error| {
            // There is no terminal. Continue with the next source.
            output::complain(&error::message(&error), error::hint(&error).as_deref());
            false
        }),
    };
    if row.approved {
        updater.approve(&source.lock, address, &offer).map_err(lock_error)?;
        print("Approved.\n")?;
        return Ok(row);
    }
    keep_unseen(&offer, &row.changes);
    if args.locked {
        output::complain(
            &format!("`{}` has changed", shown(&row.source)),
            Some("use `acp-skills-proxy update` to review and approve the changes"),
        );
    }
    Ok(row)
}
