//! `update`: fetches new versions of sources. Shows the changes, asks about each skill, and writes the lock file.

mod outcome;
mod range;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
    sync::Arc,
};

use clap::Args;
use serde::Serialize;
use skills_core::{
    order,
    text::{shown, shown_path},
};
use skills_sources::{Answer, Decision, Offer, Pinned, Rejected, SkillChange, SourceError, Updater};

use self::{
    outcome::{outcome, rejected},
    range::Range,
};
use super::{
    ApprovalArgs, CommonArgs, FetchArgs, Target,
    choices::{self, ChoiceArgs},
    fetching::{self, Fetch, Latest},
    fetching_updater, keep_unseen,
    known::{Known, known, named, note_unused, with_pinned},
    lock_error,
    show::{self, FindingsBySkill},
    tidy,
};
use crate::{
    error::{self, UsageError},
    output,
    progress::Progress,
    words::count,
};

/// Said if `--latest` doesn't change the address of a source.
const RANGE_STAYS: &str = "The range of versions stays.\n";

/// The flags of `update`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  acp-skills-proxy update
      Show each change and ask: yes, no (until the skill changes again), or later.
  acp-skills-proxy update github:acme/skills --only review --yes
  acp-skills-proxy update --json
      Print the changes with their hashes, and approve nothing.
  acp-skills-proxy update --yes-to review@0f3a5c…
      Approve exactly this version.
  acp-skills-proxy update --latest
      Leave ranges of versions such as `@^2.1`.
  acp-skills-proxy update --locked
      Fail if a skill in use differs from its approved version, or if a skill is new or gone, for example in CI.

Exit codes: 0 if all sources are up to date or decided about, 1 if not.")]
pub(crate) struct UpdateArgs {
    /// Update only this source.
    source: Option<String>,
    #[command(flatten)]
    approval: ApprovalArgs,
    #[command(flatten)]
    choices: ChoiceArgs,
    /// For sources with a range of versions, such as `@^2.1`, offer the highest version of all. If you approve it, the range in the
    /// configuration file changes as well.
    #[arg(long)]
    latest: bool,
    /// Approve nothing, and fail if a skill in use has changed, is new or is gone. Skills that `include` and `exclude` leave out don't
    /// matter, and neither do commits that change no skill, or changes that were declined or belong to pinned skills.
    #[arg(long, conflicts_with = "approving")]
    locked: bool,
    #[command(flatten)]
    fetch: FetchArgs,
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
    /// True if no change waits for a decision.
    approved: bool,
    /// The decisions of this run, by the skill's path.
    decisions: BTreeMap<String, Answer>,
    /// The changes that are not offered, because the skill is pinned or the change was declined before, by the skill's path.
    rejected: BTreeMap<String, Rejected>,
    error: Option<String>,
    /// The decision that is written when all of the JSON has been printed.
    #[serde(skip)]
    pending: Option<(Offer, Decision)>,
}

impl Row {
    /// Removes the files of all changes, which can be large, when they have been shown.
    fn forget_files(&mut self) {
        for SkillChange { before, after, files, .. } in &mut self.changes {
            *files = Vec::new();
            for skill in before.iter_mut().chain(after) {
                skill.files = Vec::new();
            }
        }
    }
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
    note_unused(sources.iter().map(|source| &*source.lock))?;
    let updater = Arc::new(fetching_updater(&args.common, &args.fetch, &target)?);
    if !args.locked {
        resolve_conflicts(&updater, &sources)?;
    }
    // Do this first, so that we report an invalid lock file before we fetch the sources.
    let mut fetches = Vec::new();
    let mut are_ranges_known = true;
    for (mut source, before) in with_pinned(sources)? {
        let range = if args.latest { range::leave(&updater, &target, &mut source)? } else { Range::Stays };
        are_ranges_known &= !matches!(range, Range::Unknown);
        let replaces = if let Range::Left(address) = range { Some(address) } else { None };
        let reconsidered = args.choices.reconsidered();
        let is_locked = args.locked;
        fetches.push(Fetch { source, before, replaces, reconsidered, is_locked, lists_rejected: false });
    }
    let fetches = Arc::new(fetches);
    let mut rows: Vec<Option<Row>> = fetches.iter().map(|_| None).collect();
    let latest = fetching::start(&updater, &fetches);
    let by = args.approval.name(&target);
    let update = |number: usize| Update {
        args: &args,
        target: &target,
        updater: &updater,
        fetch: &fetches[number],
        by: by.as_deref(),
    };
    loop {
        let arrived = {
            let _progress = Progress::spinner("fetching");
            latest.recv()
        };
        let Ok((number, latest)) = arrived else { break };
        let mut row = update(number).run(latest)?;
        if !args.common.json {
            row.forget_files();
        }
        rows[number] = Some(row);
    }
    let take = |(number, row): (usize, &mut Option<Row>)| Some((number, row.as_mut()?.pending.take()?));
    let pending: Vec<_> = rows.iter_mut().enumerate().filter_map(take).collect();
    let rows: Vec<Row> = rows.into_iter().flatten().collect();
    let changes: Vec<_> = rows.iter().flat_map(|row| &row.changes).collect();
    let unmatched = args.choices.unmatched(&changes);
    for sentence in &unmatched {
        output::note(sentence);
    }
    let is_done = rows.len() == fetches.len() && rows.iter().all(|row| row.error.is_none() && row.approved);
    let is_missing = args.choices.names_versions() && !unmatched.is_empty();
    if args.common.json {
        output::page_json(!pending.is_empty(), &rows)?;
    }
    for (number, (offer, decision)) in &pending {
        update(*number).write(offer, decision)?;
    }
    tidy(&updater);
    Ok(ExitCode::from(u8::from(!is_done || is_missing || !are_ranges_known)))
}

/// Resolves merge conflicts in the lock files, and says so on stderr.
///
/// # Errors
/// Returns an error if a conflict can't be resolved.
fn resolve_conflicts(updater: &Updater, sources: &[Known]) -> anyhow::Result<()> {
    let locks: BTreeSet<_> = sources.iter().map(|source| &source.lock).collect();
    for lock in locks {
        let Some(disputed) = updater.resolve_conflict(lock).map_err(lock_error)? else { continue };
        output::note(&format!(
            "resolved the merge conflict in {}: the sources of both sides are kept",
            shown_path(lock)
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

/// The update of one source.
struct Update<'a> {
    args: &'a UpdateArgs,
    target: &'a Target,
    updater: &'a Updater,
    fetch: &'a Fetch,
    /// The name of the person who decides.
    by: Option<&'a str>,
}

impl Update<'_> {
    /// Shows the changes of the source, and approves those that the user agrees with.
    fn run(&self, latest: Result<Latest, SourceError>) -> anyhow::Result<Row> {
        let Fetch { source, before, .. } = self.fetch;
        let mut row = Row {
            source: source.address.to_string(),
            changes: Vec::new(),
            findings: FindingsBySkill::new(),
            notes: Vec::new(),
            before: before.clone(),
            after: before.clone(),
            approved: false,
            decisions: BTreeMap::new(),
            rejected: BTreeMap::new(),
            error: None,
            pending: None,
        };
        let Latest { comparison, findings } = match latest {
            Ok(latest) => latest,
            Err(error) => {
                // Report the error, but continue with the next source.
                let message = error.to_string();
                output::complain(&message, Some(&error.hint()));
                row.after = None;
                row.error = Some(message);
                return Ok(row);
            }
        };
        let rejected_changes = comparison.rejected.into_iter();
        row.rejected = order::map(rejected_changes.map(|(change, why)| (change.path, why)));
        row.approved = comparison.changes.is_empty();
        let Some(offer) = comparison.offer else {
            self.print(&format!("{}: no changes{}\n", shown(&row.source), rejected(&row)))?;
            return Ok(row);
        };
        row.after = Some(offer.pinned.clone());
        if row.approved {
            self.print(&format!("{}: no changes{}\n", shown(&row.source), rejected(&row)))?;
            // The commit can be new although no skill has changed.
            let is_allowed = !self.args.locked && (!self.args.common.json || self.args.approval.yes);
            row.approved = self.args.locked || self.leaves_range(is_allowed)?;
            if is_allowed && row.approved && row.after != row.before {
                let (after, pending) = self.approve(&offer, BTreeMap::new())?;
                row.after = Some(after);
                row.pending = pending;
            }
            return Ok(row);
        }
        row.changes = comparison.changes;
        row.findings = findings;
        row.notes.clone_from(&offer.notes);
        row.decisions = self.decide(&row, comparison.has_approved)?;
        let is_selected = |change: &&SkillChange| self.args.choices.selects(change);
        let unapproved =
            row.changes.iter().filter(is_selected).filter(|change| {
                row.decisions.get(&change.path).is_none_or(|answer| *answer == Answer::Later)
            });
        let unapproved: Vec<_> = unapproved.collect();
        row.approved = unapproved.is_empty() && !self.args.locked;
        if !self.args.locked
            && self.fetch.replaces.is_some()
            && !row.decisions.values().any(|answer| *answer == Answer::Yes)
        {
            // The decisions are about versions beyond the range, which stays.
            row.approved = false;
            self.print(RANGE_STAYS)?;
        } else if row.decisions.values().any(|answer| *answer != Answer::Later) {
            let (after, pending) = self.approve(&offer, row.decisions.clone())?;
            row.after = Some(after);
            row.pending = pending;
            self.print(&outcome(&row))?;
        }
        keep_unseen(&offer, unapproved);
        if self.args.locked {
            output::complain(
                &format!("`{}` has changed", shown(&row.source)),
                Some("use `acp-skills-proxy update` to review and approve the changes"),
            );
        }
        Ok(row)
    }

    /// Shows the changes and returns the user's decisions.
    fn decide(&self, row: &Row, has_approved: bool) -> anyhow::Result<BTreeMap<String, Answer>> {
        let UpdateArgs { approval, choices, locked, common, .. } = self.args;
        let is_selected = |change: &&SkillChange| *locked || choices.selects(change);
        let others: Vec<_> = row.changes.iter().filter(|change| !is_selected(change)).collect();
        // The texts of all changes can be large.
        let selected = if others.is_empty() {
            Cow::Borrowed(&row.changes)
        } else {
            Cow::Owned(row.changes.iter().filter(is_selected).cloned().collect())
        };
        if !common.json {
            let since = match (&row.before, has_approved) {
                (None, _) => ", not approved yet",
                (Some(_), false) => {
                    " (showing whole skills, because the approved version is no longer in the cache)"
                }
                _ => " since the approved version",
            };
            let changes = count(row.changes.len(), "change");
            let tag = match &row.after {
                Some(Pinned::Git(git)) => git.tag.as_ref().map(|tag| format!(" {}", shown(tag))),
                _ => None,
            };
            let tag = tag.unwrap_or_default();
            self.print(&format!("{}{tag}: {changes}{since}{}\n", shown(&row.source), rejected(row)))?;
            if !others.is_empty() {
                let names: Vec<_> = others.iter().map(|change| shown(choices::name(change))).collect();
                self.print(&format!("later: {}\n", names.join(", ")))?;
            }
            output::page(false, |text| show::notes(text, &row.notes))?;
        }
        let is_answered = approval.yes || choices.names_versions();
        if !common.json && (is_answered || *locked) {
            output::page(false, |text| show::changes(text, &selected, &row.findings, &[]))?;
        }
        if *locked {
            return Ok(BTreeMap::new());
        }
        if is_answered || common.json {
            return Ok(choices.answers(approval, &selected));
        }
        choices::ask(approval, &selected, &row.findings)
    }

    /// Returns true if the range of versions may be left although no skill has changed, or if no range is left.
    fn leaves_range(&self, is_allowed: bool) -> anyhow::Result<bool> {
        let Some(old) = &self.fetch.replaces else { return Ok(true) };
        let new = self.fetch.source.address.as_str();
        let question = format!("Replace `{}` with `{}`?", shown(old.as_str()), shown(new));
        let is_agreed = is_allowed
            && self.args.approval.ask(&question, &[]).unwrap_or_else(|error| {
                // Continue with the next source.
                output::complain(&error::message(&error), error::hint(&error).as_deref());
                false
            });
        if !is_agreed {
            self.print(RANGE_STAYS)?;
        }
        Ok(is_agreed)
    }

    /// Approves what the user has decided. If JSON is printed, this is returned and has to be written after it.
    fn approve(
        &self,
        offer: &Offer,
        answers: BTreeMap<String, Answer>,
    ) -> anyhow::Result<(Pinned, Option<(Offer, Decision)>)> {
        let Fetch { source, before, .. } = self.fetch;
        let decision = Decision::of(answers).by(self.by.map(str::to_owned));
        if self.args.common.json {
            let after = self.updater.decided(&source.address, before.as_ref(), offer, &decision);
            return Ok((after, Some((offer.clone(), decision))));
        }
        Ok((self.write(offer, &decision)?, None))
    }

    /// Writes a decision to the lock file.
    fn write(&self, offer: &Offer, decision: &Decision) -> anyhow::Result<Pinned> {
        let source = &self.fetch.source;
        if let Some(old) = &self.fetch.replaces {
            range::replace(self.updater, self.target, source, old)?;
        }
        self.updater.approve(&source.lock, &source.address, offer, decision).map_err(lock_error)
    }

    /// Prints a text, unless JSON is printed.
    fn print(&self, text: &str) -> anyhow::Result<()> {
        if !self.args.common.json {
            output::print(text)?;
        }
        Ok(())
    }
}
