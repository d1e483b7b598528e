//! [`Trust`]: which skills of a project its user has approved.
//!
//! Whoever can write to a project decides which skills are in it, and those speak to the user's agent. So each is approved
//! once, by the hash of its files, and served as it was approved: every file is compared when it is read, and a skill that
//! has changed waits again. Skills that the user named, and those in the user's own directories, need none of that.
//!
//! | file | owns |
//! |---|---|
//! | `fingerprint` | what a skill is: the hash of all its files, and of each |
//! | `store` | what was decided, by project, on disk |

mod fingerprint;
mod store;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use skills_core::{
    Diagnostic, Skill, SkillName, SkillSet, Source,
    files::{self, Bounds},
    set::{Skipped, Unapproved},
    skill::Guard,
};

use self::{
    fingerprint::Fingerprint,
    store::{Decisions, TrustStore},
};

/// What was decided about the skills of projects. All clones are the same.
#[derive(Clone)]
pub struct Trust(Arc<Inner>);

struct Inner {
    store: Option<TrustStore>,
    /// What was decided and could not be written: it holds for this run. Taken alone.
    unsaved: Mutex<HashMap<PathBuf, Decisions>>,
}

/// The result of [`Trust::decide`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Decided {
    /// The skills that the decision applies to.
    pub done: Vec<SkillName>,
    /// The other skills, each with a clause that gives the reason.
    pub failed: Vec<(SkillName, String)>,
    /// The reason why the decision could not be saved, as a clause. It still applies until this process ends.
    pub unsaved: Option<String>,
}

impl Trust {
    /// What is remembered below the directory `state`; nothing is, where there is none.
    pub fn new(state: Option<PathBuf>) -> Self {
        Self(Arc::new(Inner { store: state.map(|state| TrustStore::new(&state)), unsaved: Mutex::default() }))
    }

    /// The file that says what was decided about a project.
    pub fn file(&self, project: &Path) -> Option<PathBuf> {
        Some(self.0.store.as_ref()?.file(project))
    }

    fn decisions(&self, project: &Path) -> Decisions {
        let mut decisions = self.0.store.as_ref().map(|store| store.load(project)).unwrap_or_default();
        if let Some(unsaved) = self.0.unsaved.lock().get(project) {
            decisions.add(unsaved);
        }
        decisions
    }

    /// The skills of a project that are as they were approved; the others wait. Blocks for as long as reading all of their
    /// files takes.
    pub fn sift(&self, project: &Path, found: &SkillSet) -> SkillSet {
        let mut skills = SkillSet::builder();
        let decisions = if found.is_empty() { Decisions::default() } else { self.decisions(project) };
        // All of them share it: whoever can write to the project must not keep the session from beginning.
        let mut bounds = Bounds::SKILL;
        for entry in found.entries() {
            let fingerprint = match Fingerprint::of(&entry.skill, &mut bounds) {
                Ok(fingerprint) => fingerprint,
                Err(error) => {
                    let path = file(&entry.skill);
                    let why = format!("it cannot be approved: {error}");
                    skills.skip(Skipped::new(path, vec![Diagnostic::error("cannot-be-approved", why)]));
                    continue;
                }
            };
            let digest = fingerprint.digest().to_owned();
            let place = place(project, &entry.skill);
            let skill = Skill::clone(&entry.skill).guarded(Guard::new(digest.as_str(), fingerprint));
            // Between discovery and this look, somebody may have written another text for a moment.
            if !files::is_unchanged(&skill).is_ok_and(|is| is) {
                let why = "it has changed while it was looked at";
                let changed =
                    Diagnostic::error("cannot-be-approved", why).help("`/skills reload` looks again");
                skills.skip(Skipped::new(file(&entry.skill), vec![changed]));
            } else if decisions.trusts(&place, &digest) {
                skills.add(skill, entry.diagnostics.clone());
            } else {
                let mut waiting = Unapproved::new(Arc::clone(&entry.skill), digest);
                waiting.has_changed = decisions.knows(&place);
                waiting.is_refused = decisions.refuses(&place, &waiting.digest);
                skills.add_unapproved(waiting);
            }
        }
        for skipped in found.skipped() {
            skills.skip(skipped.clone());
        }
        skills.build()
    }

    /// Keeps what the user decided about skills of a project, as they were when they were told of them.
    pub fn decide(&self, project: &Path, skills: &[Unapproved], trusted: bool) -> Decided {
        let (mut decided, mut decisions) = (Decided::default(), Decisions::default());
        let known = self.decisions(project);
        for waiting in skills {
            let name = waiting.skill.name.clone();
            let place = place(project, &waiting.skill);
            if !trusted && known.trusts(&place, &waiting.digest) {
                // It was approved in another way since they were asked.
                continue;
            }
            match Fingerprint::of(&waiting.skill, &mut { Bounds::SKILL }) {
                Ok(now) if now.digest() == waiting.digest => {
                    decisions.set(place, waiting.digest.clone(), trusted);
                    decided.done.push(name);
                }
                Ok(_) => decided.failed.push((name, "it has changed just now; look at it again".to_owned())),
                Err(error) => decided.failed.push((name, error.to_string())),
            }
        }
        if decided.done.is_empty() {
            return decided;
        }
        decided.unsaved = match &self.0.store {
            Some(store) => store.save(project, &decisions).err().map(|error| error.to_string()),
            None => Some("there is no directory for it on this system; `--state DIR` names one".to_owned()),
        };
        if decided.unsaved.is_some() {
            self.0.unsaved.lock().entry(project.to_owned()).or_default().add(&decisions);
        }
        decided
    }
}

/// Where a skill is in its project, with `/` between the parts.
fn place(project: &Path, skill: &Skill) -> String {
    let dir = skill.dir().unwrap_or(Path::new(""));
    let below = dir.strip_prefix(project).unwrap_or(dir);
    below.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn file(skill: &Skill) -> PathBuf {
    match &skill.source {
        Source::Stored(stored) => stored.file(),
        _ => PathBuf::from(skill.name.as_str()),
    }
}

#[cfg(test)]
mod tests;
