//! [`Trust`]: the user's approval of skills that a project contains.
//!
//! Anyone who can write to a project can add skills to it, and skills give instructions to the user's agent. Therefore the user
//! approves each of these skills once, by the checksum of its files. Every file is compared when it is read, and a skill that has
//! changed needs approval again. Skills that the user named, and skills in the user's own directories, need no approval.
//!
//! | file | responsible for |
//! |---|---|
//! | `command` | the command with which a user trusts a skill |
//! | `fingerprint` | the checksum of a skill, and of each of its files |
//! | `services` | skills of MCP servers: the user approves their entries |
//! | `store` | the decisions on disk, by project |

mod command;
mod fingerprint;
mod services;
mod store;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use skills_core::{
    Diagnostic, Skill, SkillName, SkillSet, Source,
    files::{self, Bounds},
    order,
    set::{Skipped, Unapproved},
    skill::Guard,
};

pub use self::command::command;
pub(crate) use self::fingerprint::Fingerprint;
pub use self::services::project_of;
use self::store::{Decisions, TrustStore, Unnamed};
use crate::disk::relative_path;

/// The user's decisions to trust skills in projects. Clones share their state.
#[derive(Clone)]
pub struct Trust(Arc<Inner>);

struct Inner {
    store: Option<TrustStore>,
    /// Decisions that could not be saved, by project. They apply until this process ends. Never held together with another lock.
    unsaved: Mutex<HashMap<PathBuf, Unsaved>>,
}

/// Decisions about the skills of a project that could not be saved.
#[derive(Default)]
struct Unsaved {
    decisions: Decisions,
    /// The places whose saved decisions don't count, because the user has taken the trust back.
    revoked: BTreeSet<String>,
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
    /// The names for which there was no trust to take back.
    pub unknown: Vec<SkillName>,
    /// The names of which no skill is there at the moment, and for which trust by a configuration was taken back.
    pub absent: Vec<SkillName>,
    /// Skills that are still used, although the trust in skills of their names was taken back, each with its place.
    pub remaining: Vec<(SkillName, String)>,
}

impl Trust {
    /// Creates the trust store below the directory `state`. Without a directory, decisions apply until this process ends.
    pub fn new(state: Option<PathBuf>) -> Self {
        Self(Arc::new(Inner { store: state.map(|state| TrustStore::new(&state)), unsaved: Mutex::default() }))
    }

    /// Returns the path of the file with the decisions for a project. The file may not exist.
    pub fn file(&self, project: &Path) -> Option<PathBuf> {
        Some(self.0.store.as_ref()?.file(project))
    }

    fn decisions(&self, project: &Path) -> Decisions {
        let mut decisions = self.0.store.as_ref().map(|store| store.load(project)).unwrap_or_default();
        if let Some(unsaved) = self.0.unsaved.lock().get(project) {
            decisions.revoke(unsaved.revoked.iter());
            decisions.add(&unsaved.decisions);
        }
        decisions
    }

    /// Returns the skills of `found` that match their approved checksum. The others are in [`SkillSet::unapproved`], or are skipped with a
    /// diagnostic if they can't be approved. Reads all files of the skills.
    pub fn sift(&self, project: &Path, found: &SkillSet) -> SkillSet {
        // We use the same bounds for all skills together, so that a large project can't delay the start of a session.
        self.sift_within(project, found, &mut { Bounds::SKILL })
    }

    /// Returns the same as [`Trust::sift`], but reads at most what `bounds` allow, and reduces them by what was read.
    pub fn sift_within(&self, project: &Path, found: &SkillSet, bounds: &mut Bounds) -> SkillSet {
        let mut skills = SkillSet::builder();
        let decisions = if found.is_empty() { Decisions::default() } else { self.decisions(project) };
        let mut unnamed = Vec::new();
        for entry in found.entries() {
            let fingerprint = match Fingerprint::of(&entry.skill, bounds) {
                Ok(fingerprint) => fingerprint,
                Err(error) => {
                    let path = file(&entry.skill);
                    let why = format!("cannot approve skill: {error}");
                    skills.skip(Skipped::new(path, vec![Diagnostic::error("cannot-be-approved", why)]));
                    continue;
                }
            };
            let digest = fingerprint.digest().to_owned();
            let stamp = fingerprint.stamp(project, &entry.skill);
            let place = place(project, &entry.skill);
            let skill = Skill::clone(&entry.skill).guarded(Guard::new(digest.as_str(), fingerprint));
            // Check again, since the file may have changed between discovery and the check above.
            if !files::is_unchanged(&skill).is_ok_and(|unchanged| unchanged) {
                let why = "skill changed while reading";
                let changed =
                    Diagnostic::error("cannot-be-approved", why).help("use `/skills reload` to retry");
                skills.skip(Skipped::new(file(&entry.skill), vec![changed]));
            } else if decisions.trusts(&place, &digest) {
                unnamed.extend(decisions.unnamed(place, digest, &skill.name));
                skills.add(skill, entry.diagnostics.clone());
            } else {
                let mut unapproved = Unapproved::new(Arc::clone(&entry.skill), digest);
                unapproved.stamp = stamp;
                unapproved.has_changed = decisions.knows(&place);
                unapproved.is_refused = decisions.refuses(&place, &unapproved.digest);
                skills.add_unapproved(unapproved);
            }
        }
        for skipped in found.skipped() {
            skills.skip(skipped.clone());
        }
        self.add_names(project, &unnamed);
        skills.build()
    }

    /// Saves the user's decision for skills in a project. The decision applies to the versions in `skills`, which were shown to the
    /// user; a skill that has changed since is in [`Decided::failed`]. An approval also fails if the files, or a directory above them in
    /// the project, were changed and restored, because the user may have reviewed them while they were different.
    pub fn decide(&self, project: &Path, skills: &[Unapproved], trusted: bool) -> Decided {
        let mut decided = Decided::default();
        let mut decisions = Decisions::default();
        let known = self.decisions(project);
        for unapproved in skills {
            let name = unapproved.skill.name.clone();
            let place = place(project, &unapproved.skill);
            if !trusted && known.trusts(&place, &unapproved.digest) {
                // The user has answered twice, for example in two editors. Trust can only be taken back by name.
                let why =
                    "you have trusted this version in the meantime; use `/skills untrust` to take this back";
                decided.failed.push((name, why.to_owned()));
                continue;
            }
            match current(project, &unapproved.skill) {
                Ok((digest, stamp))
                    if digest == unapproved.digest && (!trusted || stamp == unapproved.stamp) =>
                {
                    decisions.set(place, unapproved.digest.clone(), name_of(&unapproved.skill), trusted);
                    decided.done.push(name);
                }
                Ok(_) => {
                    decided
                        .failed
                        .push((name, "skill has changed in the meantime; review the new version".to_owned()));
                }
                Err(error) => decided.failed.push((name, error.to_string())),
            }
        }
        if !decided.done.is_empty() {
            decided.unsaved = self.save(project, &decisions);
        }
        decided
    }

    /// Refuses the present version of a skill that was not approved in the first place, because a configuration trusts its project. Returns
    /// the reason if this could not be saved.
    pub fn refuse(&self, project: &Path, skill: &Skill) -> Option<String> {
        let mut decisions = Decisions::default();
        // A skill that can't be read has no version, and stays refused, too.
        let digest = current(project, skill).map(|(digest, _)| digest).unwrap_or_default();
        decisions.set(place(project, skill), digest, name_of(skill), false);
        self.save(project, &decisions)
    }

    /// Declines all skills with these names that a configuration trusts, because it trusts their project. Returns the reason if this could
    /// not be saved.
    pub fn decline_names(&self, project: &Path, names: &[SkillName]) -> Option<String> {
        self.save(project, &Decisions::declining(names))
    }

    /// Saves decisions. Returns the reason if this failed.
    fn save(&self, project: &Path, decisions: &Decisions) -> Option<String> {
        let why = match &self.0.store {
            Some(store) => store.save(project, decisions).err().map(|error| error.to_string()),
            None => Some("no state directory on this system; use `--state DIR` to set one".to_owned()),
        };
        let mut unsaved = self.0.unsaved.lock();
        if why.is_some() {
            unsaved.entry(project.to_owned()).or_default().decisions.add(decisions);
        } else if let Some(unsaved) = unsaved.get_mut(project) {
            unsaved.revoked.retain(|place| !decisions.knows(place));
        }
        why
    }

    /// Saves names that are missing in the decisions. This is done again later if it fails.
    fn add_names(&self, project: &Path, unnamed: &[Unnamed]) {
        if let Some(store) = self.0.store.as_ref().filter(|_| !unnamed.is_empty())
            && let Err(error) = store.add_names(project, unnamed)
        {
            tracing::debug!("cannot save the names of trusted skills: {error}");
        }
    }
}

/// A directory of which the user has trusted a skill in some version. The skill may have changed since, or may be gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedDir {
    project: PathBuf,
    place: String,
    names: BTreeSet<String>,
}

impl TrustedDir {
    /// Returns the path of the directory.
    pub fn path(&self) -> PathBuf {
        self.project.join(&self.place)
    }

    /// Returns the names of the versions that the user decided about. There is at least one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Returns true if one of the versions has the name with this [key](SkillName::key).
    pub fn is_named(&self, key: &str) -> bool {
        self.names().any(|name| SkillName::key_of(name) == key)
    }

    /// Returns true if a skill is in this directory.
    pub fn has(&self, skill: &Skill) -> bool {
        place(&self.project, skill) == self.place
    }
}

impl Trust {
    /// Returns the directories of which a skill is trusted in some version, also if taking the trust back could not be saved.
    pub fn trusted(&self, project: &Path) -> Vec<TrustedDir> {
        let saved = self.0.store.as_ref().map(|store| store.load(project)).unwrap_or_default();
        let now = self.decisions(project);
        let dir = |place: &String| TrustedDir {
            project: project.to_owned(),
            place: place.clone(),
            names: saved.names_of(place).into_iter().chain(now.names_of(place)).collect(),
        };
        order::set(saved.places().chain(now.places())).into_iter().map(dir).collect()
    }

    /// Returns a function that returns true for the skills that the user has declined in some version, and for others of the same name. A
    /// configuration that trusts the project doesn't apply to them. If the decisions can't be read, it doesn't apply to any skill.
    pub fn declined(&self, project: &Path) -> impl Fn(&Skill) -> bool + use<> {
        let decisions = self.decisions(project);
        let names = decisions.declined_names();
        let keys: HashSet<_> = names.iter().map(|name| SkillName::key_of(name)).collect();
        let places: HashSet<_> = decisions.refused_places().cloned().collect();
        let project = project.to_owned();
        let is_unreadable = decisions.is_unreadable();
        move |skill| {
            is_unreadable || keys.contains(&skill.name.key()) || places.contains(&place(&project, skill))
        }
    }

    /// Takes the trust in the skills of directories back, whatever their version is. They are not asked about again until they change.
    /// Returns the reason if this could not be saved.
    pub fn revoke_dirs(&self, dirs: &[TrustedDir]) -> Option<String> {
        let projects: BTreeSet<_> = dirs.iter().map(|dir| &dir.project).collect();
        let mut unsaved = None;
        for project in projects {
            let places = dirs.iter().filter(|dir| dir.project == *project).map(|dir| dir.place.clone());
            unsaved = self.revoke_places(project, &places.collect::<Vec<_>>()).or(unsaved);
        }
        unsaved
    }

    fn revoke_places(&self, project: &Path, places: &[String]) -> Option<String> {
        if let Some(unsaved) = self.0.unsaved.lock().get_mut(project) {
            unsaved.decisions.revoke(places.iter());
        }
        let store = self.0.store.as_ref()?;
        let error = store.revoke(project, places).err()?;
        self.0.unsaved.lock().entry(project.to_owned()).or_default().revoked.extend(places.iter().cloned());
        Some(error.to_string())
    }
}

/// Returns the checksum of a skill as it is now, and its [stamp](Unapproved::stamp).
fn current(project: &Path, skill: &Skill) -> io::Result<(String, u64)> {
    if skill.service().is_some() {
        return Ok((services::digest_of(skill), 0));
    }
    let now = Fingerprint::of(skill, &mut { Bounds::SKILL })?;
    Ok((now.digest().to_owned(), now.stamp(project, skill)))
}

/// Returns the directory of a skill relative to its project, with `/` as the separator. For a skill of a service, it is the URL.
fn place(project: &Path, skill: &Skill) -> String {
    if let (Some(_), Source::Remote(remote)) = (skill.service(), &skill.source) {
        return remote.url.to_string();
    }
    relative_path(project, skill.dir().unwrap_or(Path::new("")))
}

fn name_of(skill: &Skill) -> BTreeSet<String> {
    BTreeSet::from([skill.name.to_string()])
}

fn file(skill: &Skill) -> PathBuf {
    match &skill.source {
        Source::Stored(stored) => stored.file(),
        _ => PathBuf::from(skill.name.as_str()),
    }
}

#[cfg(test)]
mod tests;
