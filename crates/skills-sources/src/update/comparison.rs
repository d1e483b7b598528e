//! [`Comparison`]: a source as it is now, compared with its approved version.

use std::collections::{BTreeMap, HashSet};

use skills_core::{SkillName, order};

use super::{
    super::{
        SourceError,
        address::{Address, Place},
        approved,
        git::Found,
    },
    Offer, OfferedSkill, Pinned, SkillChange, Updater,
};

/// The approved version of a source, and the skills to compare.
pub struct Query<'a> {
    /// The address of the source.
    pub address: &'a Address,
    /// The approved version. `None` if no version was approved.
    pub approved: Option<&'a Pinned>,
    /// True if skills within the directories of other skills are compared too.
    pub nested: bool,
    /// Returns true for the names of the skills to compare.
    pub takes: &'a dyn Fn(&SkillName) -> bool,
    /// Returns true for the names of skills to compare even if the user has declined the change.
    pub reconsiders: &'a dyn Fn(&str) -> bool,
    /// True if [`Comparison::rejected`] has to be complete, even if the current version is the approved one.
    pub lists_rejected: bool,
}

/// The current version of a source, compared with the approved one.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Comparison {
    /// The current version. `None` if the approved version is the current one, so that it was not fetched.
    pub offer: Option<Offer>,
    /// True if the approved version is in the cache.
    pub has_approved: bool,
    /// The skills that have changed, without those that the user has pinned or declined.
    pub changes: Vec<SkillChange>,
    /// The changes that the user has declined, and those of pinned skills. They have no files.
    pub rejected: Vec<(SkillChange, Rejected)>,
}

/// The reason why a change is not offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rejected {
    /// The skill stays at its version.
    Pinned,
    /// The user has declined this version.
    Declined,
}

impl Rejected {
    /// Returns the reason as a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pinned => "pinned",
            Self::Declined => "declined",
        }
    }
}

impl Offer {
    /// Adds the approved skills that are not in the cache (`stored`): to their changes, and as removals if they are not in this offer.
    fn add_unknown(&self, changes: &mut Vec<SkillChange>, approved: &Pinned, stored: Option<&Self>) {
        let paths = |offer: &Self| order::set(offer.skills.iter().map(|skill| skill.path.clone()));
        let (here, stored) = (paths(self), stored.map(paths).unwrap_or_default());
        let mut unknown: BTreeMap<_, _> =
            order::map(approved.skills().into_iter().flatten().filter(|(path, _)| !stored.contains(*path)));
        for change in changes.iter_mut() {
            if let Some(digest) = unknown.remove(&change.path) {
                change.before = Some(OfferedSkill::unknown(approved, &change.path, digest));
            }
        }
        let gone = unknown.into_iter().filter(|(path, _)| !here.contains(*path));
        changes.extend(gone.map(|(path, digest)| SkillChange {
            path: path.clone(),
            before: Some(OfferedSkill::unknown(approved, path, digest)),
            after: None,
            files: Vec::new(),
        }));
    }

    /// Moves approved skills that were renamed from the skills that the filters leave out to those that are gone. Otherwise, a new name
    /// that the filters don't select would remove the skill without a question. Adds a note for each.
    fn find_renamed(&mut self, approved: &Pinned, stored: Option<&Self>, takes: &dyn Fn(&SkillName) -> bool) {
        let name_of = |path: &str| {
            let skill = stored?.skills.iter().find(|skill| skill.path == path)?;
            Some(skill.name.as_str())
        };
        let is_renamed = |path: &String, now: &mut OfferedSkill| {
            // A skill that hasn't changed has the same name. Then the user has changed the filters.
            let is_changed = approved
                .skills()
                .and_then(|skills| skills.get(path))
                .is_some_and(|digest| *digest != now.sha256);
            is_changed
                && name_of(path).is_none_or(|name| SkillName::new(name).is_none_or(|name| takes(&name)))
        };
        let renamed = self.left_out.extract_if(.., is_renamed);
        self.notes.extend(renamed.map(|(path, now)| {
            let before = name_of(&path).unwrap_or(&path);
            format!("`{before}` has the new name `{}`, which `include` or `exclude` leaves out", now.name)
        }));
    }
}

impl Updater {
    /// Compares the current version of a source with its approved version. If a repository has no new commit, only its references are
    /// requested. For an archive or a package, the request is conditional.
    ///
    /// Blocks: the files of changed skills are fetched.
    ///
    /// # Errors
    /// Returns the errors of [`latest_with`](Self::latest_with).
    pub fn compare(&self, query: &Query<'_>) -> Result<Comparison, SourceError> {
        let Query { address, approved, .. } = query;
        self.permit(address)?;
        let before = approved.and_then(|pinned| self.approved(address, pinned));
        let found = self.look(query, before.as_ref())?;
        if let (Some(Pinned::Git(pinned)), Some(found)) = (approved, &found)
            && found.commit == pinned.commit
            && found.tag == pinned.tag
        {
            let changes = Vec::new();
            return Ok(Comparison { offer: None, has_approved: true, changes, rejected: Vec::new() });
        }
        // The signature can be that of a tag, which is fetched by its name.
        let is_git = matches!(address.place(), Place::Git(place) if place.transport.is_git());
        let found = found.filter(|_| is_git && !self.store.verifies());
        let mut offer = self.latest_at(address, *approved, query.nested, found.as_ref())?;
        offer.approved = approved.map(|pinned| pinned.version().to_owned());
        offer.retain(query.takes);
        // The approved version can be in the store now.
        let before = before.or_else(|| approved.and_then(|pinned| self.approved(address, pinned)));
        if let Some(approved) = approved {
            offer.find_renamed(approved, before.as_ref(), query.takes);
        }
        let mut changes = offer.changes_since(before.as_ref());
        if let Some(approved) = approved {
            offer.add_unknown(&mut changes, approved, before.as_ref());
        }
        // Skills that the filters leave out are no change of the source.
        changes.retain(|change| !offer.left_out.contains_key(&change.path));
        let names = approved.map(|pinned| pinned_names(pinned, before.as_ref())).unwrap_or_default();
        let mut rejected = Vec::new();
        changes.retain(|change| {
            let name = change.after.as_ref().or(change.before.as_ref()).map_or("", |skill| &skill.name);
            let is_approved = |pinned: &&Pinned| {
                let digest = pinned.skills().and_then(|skills| skills.get(&change.path));
                digest.is_some() && digest == change.after.as_ref().map(|skill| &skill.sha256)
            };
            if approved.as_ref().is_some_and(is_approved) {
                // Without the approved version in the cache, every skill looks new.
                return false;
            }
            let key_of = |skill: &OfferedSkill| SkillName::key_of(&skill.name);
            let new_name = change.after.as_ref().map(key_of);
            let has_new_name = new_name != change.before.as_ref().map(key_of);
            let why = if has_new_name && new_name.is_some_and(|name| names.contains(&name)) {
                Some(Rejected::Pinned)
            } else {
                approved.and_then(|pinned| why_rejected(pinned, change))
            };
            let is_closed = |why: &Rejected| *why == Rejected::Pinned || !(query.reconsiders)(name);
            let Some(why) = why.filter(is_closed) else { return true };
            rejected.push((SkillChange { files: Vec::new(), ..change.clone() }, why));
            false
        });
        Ok(Comparison { offer: Some(offer), has_approved: before.is_some(), changes, rejected })
    }

    /// Looks for the current version of a source without fetching it. Does this only if nothing has to be fetched for the approved
    /// version: if its skills are in the cache (`before`), and there is no skill about which the user can still decide.
    fn look(&self, query: &Query<'_>, before: Option<&Offer>) -> Result<Option<Found>, SourceError> {
        let (Place::Git(place), Some(before)) = (query.address.place(), before) else { return Ok(None) };
        // The list of the skills of a version doesn't contain nested skills.
        if query.nested || !self.is_settled(query, before) {
            return Ok(None);
        }
        let store = self.store.for_newer_than(query.approved);
        let found = store.find(place, self.options.observer.clone(), &self.store.limits());
        found.map_err(|error| SourceError::git(query.address, error))
    }

    /// Returns true if the user has decided about all skills of the approved commit.
    fn is_settled(&self, query: &Query<'_>, before: &Offer) -> bool {
        let Query { address, takes, reconsiders, .. } = query;
        let (Place::Git(place), Some(Pinned::Git(pinned))) = (address.place(), query.approved) else {
            return false;
        };
        let decisions = &pinned.decisions;
        if query.lists_rejected && !(decisions.kept.is_empty() && decisions.declined.is_empty()) {
            return false;
        }
        let is_decided = |path: &str| {
            let is_kept = decisions.kept.contains_key(path);
            !is_kept && pinned.skills.contains_key(path)
                || decisions.pinned.contains(path)
                || decisions.declined.contains_key(path)
        };
        let is_reconsidered =
            |name: &str, path: &str| decisions.declined.contains_key(path) && reconsiders(name);
        let has_all = before.skills.len() == pinned.skills.len();
        let is_good = |path: &str, name: &str| {
            SkillName::new(name).is_none_or(|name| !takes(&name)) && !pinned.skills.contains_key(path)
                || is_decided(path) && !is_reconsidered(name, path)
        };
        let root = self.store.root(place, &pinned.commit);
        has_all
            && before.skills.iter().all(|skill| {
                // After a merge of two lock files, a skill can be kept at a version that has another content.
                pinned.skills.get(&skill.path) == Some(&skill.sha256)
                    && SkillName::new(&skill.name).is_some_and(|name| takes(&name))
                    && is_good(&skill.path, &skill.name)
            })
            && approved::skills_at(&root)
                .is_some_and(|skills| skills.iter().all(|(path, name)| is_good(path, name)))
    }
}

/// Returns the keys of the names of pinned skills. `before` is the approved version if it is in the cache.
fn pinned_names(pinned: &Pinned, before: Option<&Offer>) -> HashSet<String> {
    let decisions = pinned.decisions();
    let key = |path: &String| {
        let stored = before.and_then(|before| before.skills.iter().find(|skill| skill.path == *path));
        SkillName::key_of(stored.map_or_else(|| decisions.name_of(path), |skill| &skill.name))
    };
    decisions.pinned.iter().map(key).collect()
}

/// Returns the reason why a change is not offered, if there is one.
fn why_rejected(pinned: &Pinned, change: &SkillChange) -> Option<Rejected> {
    let decisions = pinned.decisions();
    if decisions.pinned.contains(&change.path) {
        return Some(Rejected::Pinned);
    }
    let offered = change.after.as_ref().map(|skill| skill.sha256.as_str());
    decisions.declines(&change.path, offered).then_some(Rejected::Declined)
}
