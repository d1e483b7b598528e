//! [`Decision`]: the user's answers about the changes of a source, and the pin that results from them.

use std::collections::BTreeMap;

use super::{
    super::{
        address::{Address, Place},
        load,
        lockfile::{Decisions, PinnedGit, PinnedWeb, REMOVED},
        site::RemoteIndex,
    },
    Offer, Pinned, Updater,
};
use skills_core::order;

/// The user's answer about the change of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Approve the change.
    Yes,
    /// Keep the approved version, and don't ask again until the skill changes again.
    No,
    /// Keep the approved version, and ask again.
    Later,
}

/// The user's answers about the changes of a source.
#[derive(Debug, Clone)]
pub struct Decision {
    /// The answer for each skill, by its directory in the source.
    answers: BTreeMap<String, Answer>,
    /// The answer for all other skills.
    others: Answer,
    /// The person who decides, if there is a name.
    by: Option<String>,
    /// True if the source is new, so that an entry in the lock file doesn't count.
    is_first: bool,
}

impl Decision {
    /// Approves all skills of a new source. An entry that the lock file has for it is replaced, because the user was not shown what it
    /// approves or pins.
    pub fn approve_all() -> Self {
        Self { answers: BTreeMap::new(), others: Answer::Yes, by: None, is_first: true }
    }

    /// Decides about single skills. All others are postponed.
    pub fn of(answers: BTreeMap<String, Answer>) -> Self {
        Self { answers, others: Answer::Later, by: None, is_first: false }
    }

    /// Sets the name of the person who decides.
    #[must_use]
    pub fn by(self, name: Option<String>) -> Self {
        Self { by: name, ..self }
    }

    /// Returns true if the source is new.
    pub(super) fn is_first(&self) -> bool {
        self.is_first
    }

    /// Returns true if the decision declines a change of `offer` that is approved in `current`.
    pub(super) fn declines_approved(&self, offer: &Offer, current: &Pinned) -> bool {
        let approved = |path: &str| current.skills().and_then(|skills| skills.get(path));
        let mut offered = offer.skills.iter();
        offered.any(|skill| {
            self.answer(&skill.path) == Answer::No && approved(&skill.path) == Some(&skill.sha256)
        })
    }

    fn answer(&self, path: &str) -> Answer {
        self.answers.get(path).copied().unwrap_or(self.others)
    }
}

/// A version of a source, and the checksums of its skills.
struct Version<'a> {
    version: &'a str,
    skills: BTreeMap<String, String>,
}

impl Updater {
    /// Returns the pin for an offer after the user's decision. `current` is the pin in the lock file. Nothing is written.
    pub fn decided(
        &self,
        address: &Address,
        current: Option<&Pinned>,
        offer: &Offer,
        decision: &Decision,
    ) -> Pinned {
        let offered = offer.skills.iter().map(|skill| (skill.path.clone(), skill.sha256.clone()));
        let offered = offer.pinned.skills().cloned().unwrap_or_else(|| order::map(offered));
        let offered = Version { version: offer.pinned.version(), skills: offered };
        // A pin of the other kind of source can't be for this address.
        let current = current.filter(|pinned| {
            std::mem::discriminant::<Pinned>(pinned) == std::mem::discriminant(&offer.pinned)
        });
        let empty = Decisions::default();
        let known = current.map_or(&empty, Pinned::decisions);
        let current = current.map(|pinned| Version {
            version: pinned.version(),
            skills: pinned
                .skills()
                .cloned()
                .or_else(|| self.all_of(address, pinned.version()))
                .unwrap_or_default(),
        });
        // Skills that the filters leave out are not approved anymore, unless they are pinned.
        let current = current.map(|mut current| {
            current
                .skills
                .retain(|path, _| known.pinned.contains(path) || !offer.left_out.contains_key(path));
            current
        });
        let (skills, mut decisions) = decide(current.as_ref(), known, &offered, decision, &today());
        for skill in offer.skills.iter().filter(|skill| skills.get(&skill.path) == Some(&skill.sha256)) {
            decisions.set_name(&skill.path, &skill.name);
        }
        match &offer.pinned {
            Pinned::Git(git) => Pinned::Git(PinnedGit { skills, decisions, ..git.clone() }),
            Pinned::Web(web) => {
                let is_decided = !decisions.kept.is_empty() || !decisions.pinned.is_empty();
                let has_archives = !offer.archives.is_empty();
                let is_all = web.skills.is_none() && !is_decided && !has_archives && skills == offered.skills;
                let skills = if is_all { None } else { Some(skills) };
                Pinned::Web(PinnedWeb { index: web.index.clone(), skills, decisions })
            }
        }
    }

    /// Returns the checksums of all skills of an index, or `None` if the index is not in the store.
    pub(super) fn all_of(&self, address: &Address, index: &str) -> Option<BTreeMap<String, String>> {
        let Place::Web(url) = address.place() else { return None };
        let index = self.store.index(url, index)?;
        let index = RemoteIndex::parse_with_archives(&index.text, &index.url).ok()?;
        Some(load::all_listed(&index))
    }
}

/// Returns the date in UTC, such as `2026-11-23`.
fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

/// Returns the approved skills and the decisions after the user's decision. `known` are the decisions before. A skill stays pinned, even
/// if its approved version is unknown.
fn decide(
    current: Option<&Version<'_>>,
    known: &Decisions,
    offered: &Version<'_>,
    decision: &Decision,
    today: &str,
) -> (BTreeMap<String, String>, Decisions) {
    let mut skills = BTreeMap::new();
    let mut decisions = Decisions { pinned: known.pinned.clone(), ..Decisions::default() };
    let approved = |path: &str| current.and_then(|current| current.skills.get(path));
    let gone = current.into_iter().flat_map(|current| current.skills.keys());
    let gone = gone.filter(|path| !offered.skills.contains_key(*path)).map(|path| (path, None));
    for (path, new) in offered.skills.iter().map(|(path, new)| (path, Some(new))).chain(gone) {
        let old = approved(path);
        let is_pinned = known.pinned.contains(path);
        let is_same = old.is_some() && old == new;
        let answer = decision.answer(path);
        if is_same || (answer == Answer::Yes && !is_pinned) {
            let Some(new) = new else { continue };
            skills.insert(path.clone(), new.clone());
            if is_same {
                decisions.copy_approval(path, known);
            } else {
                decisions.approved.insert(path.clone(), today.to_owned());
                decisions.approved_by.extend(decision.by.clone().map(|name| (path.clone(), name)));
            }
            continue;
        }
        if let (Some(old), Some(current)) = (old, current) {
            let version = known.kept.get(path).map_or(current.version, String::as_str);
            skills.insert(path.clone(), old.clone());
            decisions.copy_approval(path, known);
            if version != offered.version {
                decisions.kept.insert(path.clone(), version.to_owned());
            }
        }
        let new = new.map(String::as_str);
        if answer == Answer::No || known.declines(path, new) {
            decisions.declined.insert(path.clone(), new.unwrap_or(REMOVED).to_owned());
        }
    }
    (skills, decisions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map<const N: usize>(entries: [(&str, &str); N]) -> BTreeMap<String, String> {
        entries.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect()
    }

    #[test]
    fn each_answer_applies_to_one_skill() {
        let known = Decisions {
            kept: map([("pinned", "c0")]),
            pinned: ["pinned", "unknown"].map(str::to_owned).into(),
            declined: map([("twice", "2"), ("changed-again", "2"), ("gone-declined", REMOVED)]),
            approved: map([("same", "2020-01-01"), ("no", "2020-01-02")]),
            approved_by: map([("same", "Ada")]),
            names: map([("same", "name")]),
        };
        let names = [
            "same",
            "yes",
            "no",
            "later",
            "pinned",
            "gone",
            "gone-no",
            "twice",
            "changed-again",
            "gone-declined",
        ];
        let current = Version { version: "c1", skills: map(names.map(|name| (name, "1"))) };
        let new = ["yes", "no", "later", "pinned", "unknown", "new-yes", "new-no", "new-later", "twice"];
        let mut skills = map(new.map(|name| (name, "2")));
        skills.extend(map([("same", "1"), ("changed-again", "3")]));
        let offered = Version { version: "c2", skills };
        let answers =
            [("yes", Answer::Yes), ("no", Answer::No), ("new-yes", Answer::Yes), ("new-no", Answer::No)]
                .into_iter()
                .chain(["pinned", "unknown", "gone"].map(|path| (path, Answer::Yes)))
                .chain([("gone-no", Answer::No)]);
        let answers = answers.map(|(path, answer)| (path.to_owned(), answer)).collect();
        let decision = Decision::of(answers).by(Some("Bob".to_owned()));
        let (skills, decisions) = decide(Some(&current), &known, &offered, &decision, "2026-01-01");
        let kept = ["no", "later", "gone-no", "twice", "changed-again", "gone-declined"];
        let mut expected = map(kept.map(|name| (name, "1")));
        expected.extend(map([("same", "1"), ("yes", "2"), ("new-yes", "2"), ("pinned", "1")]));
        assert_eq!(skills, expected);
        let mut expected = map(kept.map(|name| (name, "c1")));
        expected.extend(map([("pinned", "c0")]));
        assert_eq!(decisions.kept, expected);
        assert_eq!(decisions.pinned, known.pinned);
        let declined =
            [("no", "2"), ("new-no", "2"), ("gone-no", REMOVED), ("twice", "2"), ("gone-declined", REMOVED)];
        assert_eq!(decisions.declined, map(declined));
        let approved =
            [("same", "2020-01-01"), ("no", "2020-01-02"), ("yes", "2026-01-01"), ("new-yes", "2026-01-01")];
        assert_eq!(decisions.approved, map(approved));
        assert_eq!(decisions.approved_by, map([("same", "Ada"), ("yes", "Bob"), ("new-yes", "Bob")]));
        assert_eq!(decisions.names, map([("same", "name")]));
    }

    #[test]
    fn a_version_that_was_kept_can_be_offered_again() {
        let known =
            Decisions { kept: map([("a", "c1")]), declined: map([("a", "2")]), ..Decisions::default() };
        let current = Version { version: "c2", skills: map([("a", "1")]) };
        let offered = Version { version: "c1", skills: map([("a", "1")]) };
        let decision = Decision::of(BTreeMap::new());
        let (skills, decisions) = decide(Some(&current), &known, &offered, &decision, "2026-01-01");
        assert_eq!((skills, decisions), (map([("a", "1")]), Decisions::default()));
    }
}
