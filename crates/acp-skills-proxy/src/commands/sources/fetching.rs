//! Compares several sources with their approved versions at the same time.

use std::sync::{
    Arc,
    mpsc::{self, Receiver, SyncSender},
};

use acp_skills::config::SourceAccess;
use skills_core::SkillName;
use skills_sources::{Address, Comparison, Pinned, Query, SourceError, Updater, Work, on_threads};

use super::{findings, known::Known, show::FindingsBySkill};

/// The number of sources that are fetched at the same time. All of them can be in memory with their changes.
const PARALLEL_FETCHES: usize = 16;

/// A source to compare.
pub(super) struct Fetch {
    pub(super) source: Known,
    /// The approved version.
    pub(super) before: Option<Pinned>,
    /// The address that the address of the source replaces if the update is approved.
    pub(super) replaces: Option<Address>,
    /// The names of skills to compare even if the user has declined the change.
    pub(super) reconsidered: Vec<String>,
    /// True if only the skills in use are compared.
    pub(super) is_locked: bool,
    /// True if declined changes and those of pinned skills are listed, even if there is no new commit.
    pub(super) lists_rejected: bool,
}

/// The current version of a source, compared with the approved one.
pub(super) struct Latest {
    pub(super) comparison: Comparison,
    /// The new findings of a scan, by the path of the skill.
    pub(super) findings: FindingsBySkill,
}

impl Fetch {
    /// Fetches the source and the files of its changes. A site can take a long time to send them.
    fn run(&self, updater: &Updater) -> Result<Latest, SourceError> {
        let plain =
            (!self.source.uses_configuration).then(|| updater.accessing(Arc::new(SourceAccess::default())));
        let updater = plain.as_ref().unwrap_or(updater);
        let verifying = self.source.verify.then(|| updater.verifying());
        let updater = verifying.as_ref().unwrap_or(updater);
        let mut comparison = updater.compare(&Query {
            address: &self.source.address,
            approved: self.before.as_ref(),
            nested: self.source.nested,
            takes: &|name| self.source.takes(name),
            reconsiders: &|name| {
                let key = SkillName::key_of(name);
                self.reconsidered.iter().any(|other| SkillName::key_of(other) == key)
            },
            lists_rejected: self.lists_rejected,
        })?;
        let uses = |name: &str| self.source.uses(name);
        let is_same = |pinned: &Pinned| {
            comparison.offer.as_ref().is_some_and(|offer| offer.is_approved_by(pinned, uses))
        };
        if self.is_locked && self.before.as_ref().is_some_and(is_same) {
            comparison.changes.clear();
        }
        let findings = findings::by_skill(&comparison.changes);
        Ok(Latest { comparison, findings })
    }
}

/// A source by its number, and its current version.
pub(super) type Fetched = (usize, Result<Latest, SourceError>);

/// Compares sources on background threads, several at a time. Returns each with its number as soon as it has arrived. If this process
/// ends before, the remaining fetches end with it.
pub(super) fn start(updater: &Arc<Updater>, fetches: &Arc<Vec<Fetch>>) -> Receiver<Fetched> {
    let work_for = |sender: SyncSender<Fetched>| -> Work {
        let (updater, fetches) = (Arc::clone(updater), Arc::clone(fetches));
        Arc::new(move |number: usize| sender.send((number, fetches[number].run(&updater))).is_ok())
    };
    let count = fetches.len();
    // A source waits until it is taken, because its texts can be large.
    let (sender, receiver) = mpsc::sync_channel(0);
    if on_threads(count, PARALLEL_FETCHES, &work_for(sender)).is_ok() {
        return receiver;
    }
    // We can't start a thread, so fetch all sources on this one before the first is taken.
    let (sender, receiver) = mpsc::sync_channel(count);
    let work = work_for(sender);
    let _ = (0..count).all(|number| work(number));
    receiver
}
