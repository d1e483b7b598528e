//! [`Updater`]: what a source has now, how that differs from what was approved, and approving it.
//!
//! Whoever asks a person shows an [`Offer`] or its [`SkillChange`]s first. What is approved is the offer itself, by its
//! hashes: nothing is fetched again in between.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::Serialize;
use skills_core::{
    RemoteIndex, Skill, SkillSet, Source,
    discovery::Limits,
    exec::ProcessObserver,
    remote::{Remote, Sha256},
};

use super::{
    Options, SourceError,
    address::{Address, Place},
    digest, load,
    lockfile::{self, LockError, LockFile, Pinned, PinnedWeb},
    prune,
    store::Store,
};
use crate::disk::{FileLock, cache_dir, state_dir};

/// Text of a file that is shown in a difference, in bytes; a longer one only by its size.
const MAX_DIFF_BYTES: usize = 256 * 1024;

/// Fetches sources, compares them with what was approved, and approves them. Everything blocks.
pub struct Updater {
    store: Store,
    options: Options,
}

/// What a source offers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Offer {
    /// What is approved with it.
    pub pinned: Pinned,
    /// Its skills, sorted by path.
    pub skills: Vec<OfferedSkill>,
    /// What is not among them, and why.
    pub notes: Vec<String>,
}

/// A skill of an offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OfferedSkill {
    /// Its directory in the source; of a web site, its name.
    pub path: String,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its hash.
    pub sha256: String,
    /// Its files; none are known of a web site's skill but those that the index names.
    pub files: Vec<OfferedFile>,
    /// Where its files are on this disk, to be looked at before they are approved.
    #[serde(skip)]
    pub dir: Option<PathBuf>,
}

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OfferedFile {
    /// Relative to the skill.
    pub path: String,
    /// In bytes, where it is known.
    pub size: Option<u64>,
    /// Whether it can be run: it is in `scripts/`, or begins with `#!`.
    pub is_script: bool,
}

/// How a skill differs from the approved one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkillChange {
    /// Its directory in the source.
    pub path: String,
    /// What it was; nothing when it is new.
    pub before: Option<OfferedSkill>,
    /// What it is; nothing when it is gone.
    pub after: Option<OfferedSkill>,
    /// Its files that differ.
    pub files: Vec<FileChange>,
}

/// How a file differs from the approved one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileChange {
    /// Relative to the skill.
    pub path: String,
    /// What happened to it.
    pub kind: FileChangeKind,
    /// A unified difference; nothing when one of the two is no text or too long.
    pub diff: Option<String>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "they say it")]
pub enum FileChangeKind {
    Added,
    Removed,
    Changed,
}

/// The lock of sources that no configuration file lists.
pub fn user_lock() -> PathBuf {
    state_dir().unwrap_or_default().join(super::LOCK_NAME)
}

/// The lock of the sources that a configuration file lists.
pub fn lock_beside(config: &Path) -> PathBuf {
    config.with_file_name(super::LOCK_NAME)
}

impl Updater {
    /// Keeps what it fetches in the cache directory of the platform.
    ///
    /// # Errors
    /// There is none.
    pub fn new(observer: Option<Arc<dyn ProcessObserver>>) -> Result<Self, SourceError> {
        let store = Store::new(cache_dir().ok_or(SourceError::NoCache)?);
        let max_skills = Limits::default().max_skills;
        Ok(Self { store, options: Options { max_skills, observer, ..Options::default() } })
    }

    /// What a source has now.
    ///
    /// # Errors
    /// It cannot be fetched.
    pub fn latest(&self, address: &Address, approved: Option<&Pinned>) -> Result<Offer, SourceError> {
        match (address.place(), approved) {
            (Place::Git(place), _) => {
                let fetched = self.store.fetch_git(place, None, self.options.observer.clone());
                let mut fetched = fetched.map_err(|error| SourceError::git(address, error))?;
                // What somebody has changed here is fetched again.
                if let Some(Pinned::Git(approved)) = approved
                    && approved.commit == fetched.commit
                    && load::pin(
                        &self.store.root(place, &approved.commit),
                        &approved.commit,
                        self.options.max_skills,
                    )
                    .is_ok_and(|here| !here.has_all_of(approved))
                {
                    let system = |error| SourceError::system(address, error);
                    self.store.forget_git(place, &approved.commit).map_err(system)?;
                    let again =
                        self.store.fetch_git(place, Some(&approved.commit), self.options.observer.clone());
                    fetched = again.map_err(|error| SourceError::git(address, error))?;
                }
                let root = self.store.root(place, &fetched.commit);
                let mut offer = self
                    .of_directory(&root, &fetched.commit)
                    .map_err(|error| SourceError::system(address, error))?;
                offer.notes.splice(0..0, fetched.notes);
                Ok(offer)
            }
            (Place::Web(url), approved) => {
                let known = match approved {
                    Some(Pinned::Web(pinned)) => self.store.index(url, &pinned.index),
                    _ => None,
                };
                let digest = self
                    .store
                    .fetch_index(url, known.as_ref())
                    .map_err(|error| SourceError::web(address, error))?;
                self.of_index(url, &digest.to_string())
                    .ok_or_else(|| SourceError::Changed { address: address.to_string() })
            }
        }
    }

    /// What was approved of a source, as far as it is still here. Asks nobody.
    pub fn approved(&self, address: &Address, pinned: &Pinned) -> Option<Offer> {
        let offer = match (address.place(), pinned) {
            (Place::Git(place), Pinned::Git(pinned)) => {
                self.of_directory(&self.store.root(place, &pinned.commit), &pinned.commit).ok()
            }
            (Place::Web(url), Pinned::Web(pinned)) => self.of_index(url, &pinned.index),
            _ => None,
        }?;
        // Only what is as it was approved says what was approved, and not all need be.
        match (&offer.pinned, pinned) {
            (Pinned::Git(here), Pinned::Git(approved)) if here.has_all_of(approved) => {
                let mut offer = Offer { pinned: pinned.clone(), ..offer };
                offer.skills.retain(|skill| approved.skills.get(&skill.path) == Some(&skill.sha256));
                Some(offer)
            }
            (here, _) => (here == pinned).then_some(offer),
        }
    }

    /// Removes from the cache what no lock refers to any more, as far as is known here, and what was not used for
    /// `unused`; never what a process is using. Returns the directories and files that are gone.
    pub fn prune(&self, unused: Duration) -> Vec<PathBuf> {
        prune::prune(self.store.dir(), unused)
    }

    /// Approves an offer: writes it into `lock`.
    ///
    /// # Errors
    /// The lock is broken, or cannot be written.
    pub fn approve(&self, lock: &Path, address: &Address, offer: &Offer) -> Result<(), LockError> {
        LockFile::change(lock, self.store.dir(), |lock| lock.set(address.as_str(), offer.pinned.clone()))
    }

    /// Forgets what was approved of a source. Returns whether anything was.
    ///
    /// # Errors
    /// As [`approve`](Self::approve).
    pub fn forget(&self, lock: &Path, source: &str) -> Result<bool, LockError> {
        if !lock.exists() {
            return Ok(false);
        }
        LockFile::change(lock, self.store.dir(), |lock| lock.remove(source))
    }

    /// Waits until no other process changes the file at `path`, and keeps them from it until the lock is dropped: those that
    /// ask here, with the same cache.
    ///
    /// # Errors
    /// As the system says.
    pub fn lock_for_change(&self, path: &Path) -> io::Result<FileLock> {
        FileLock::acquire(&lockfile::lock_path(path, self.store.dir()))
    }

    fn of_directory(&self, root: &Path, commit: &str) -> std::io::Result<Offer> {
        let pinned = load::pin(root, commit, self.options.max_skills)?;
        let real = dunce::canonicalize(root)?;
        let found = load::find(&real, self.options.max_skills);
        let mut skills = Vec::new();
        for skill in found.iter() {
            let Source::Stored(stored) = &skill.source else { continue };
            let path = load::relative(&real, &stored.dir);
            let sha256 = pinned.skills.get(&path).cloned().unwrap_or_default();
            let files =
                digest::files(&stored.dir)?.into_iter().map(|path| offered_file(&stored.dir, path)).collect();
            let dir = Some(stored.dir.to_path_buf());
            let (name, description) = (skill.name.to_string(), skill.description.clone());
            skills.push(OfferedSkill { path, name, description, sha256, files, dir });
        }
        skills.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Offer { pinned: Pinned::Git(pinned), skills, notes: notes(&found, &real) })
    }

    fn of_index(&self, url: &str, digest: &str) -> Option<Offer> {
        let text = self.store.index(url, digest)?;
        let index = RemoteIndex::parse(&text.text, &text.url).ok()?;
        let mut skills: Vec<_> = index.skills().iter().filter_map(|skill| listed(skill)).collect();
        skills.sort_by(|a, b| a.path.cmp(&b.path));
        let pinned = Pinned::Web(PinnedWeb { index: digest.to_owned() });
        Some(Offer { pinned, skills, notes: notes(index.skills(), Path::new("")) })
    }
}

/// What an index says of a skill.
fn listed(skill: &Skill) -> Option<OfferedSkill> {
    let Source::Remote(remote) = &skill.source else { return None };
    let files = remote.files.iter().flat_map(|files| files.iter());
    let files = files.map(|file| OfferedFile {
        path: file.path.clone(),
        size: file.size,
        is_script: file.path.starts_with("scripts/"),
    });
    let (name, description) = (skill.name.to_string(), skill.description.clone());
    let sha256 = Sha256::of(format!("{name}\n{description}\n{}", entry(remote)).as_bytes()).to_string();
    Some(OfferedSkill { path: name.clone(), name, description, sha256, files: files.collect(), dir: None })
}

/// Where a skill of a web site is, in lines that can be compared.
fn entry(remote: &Remote) -> String {
    let digest =
        |digest: Option<Sha256>| digest.map_or_else(|| "unknown".to_owned(), |digest| digest.to_string());
    let mut text = format!("{} {}\n", remote.url, digest(remote.sha256));
    for file in remote.files.iter().flat_map(|files| files.iter()) {
        let _ = writeln!(text, "{} {}", file.path, digest(file.sha256));
    }
    text
}

fn offered_file(dir: &Path, path: String) -> OfferedFile {
    let file = dir.join(&path);
    let size = fs::metadata(&file).ok().map(|metadata| metadata.len());
    let begins = || -> Option<bool> {
        let mut start = [0; 2];
        std::io::Read::read_exact(&mut fs::File::open(&file).ok()?, &mut start).ok()?;
        Some(start == *b"#!")
    };
    let is_script = path.starts_with("scripts/") || begins().unwrap_or(false);
    OfferedFile { path, size, is_script }
}

/// What is wrong with skills, and which lost their names to others.
fn notes(found: &SkillSet, root: &Path) -> Vec<String> {
    let skipped = found.skipped().iter().flat_map(|skipped| {
        let path = skipped.path.strip_prefix(root).unwrap_or(&skipped.path).display().to_string();
        skipped.diagnostics.iter().map(move |finding| format!("`{path}` is left out: {}", finding.message))
    });
    let shadowed = found
        .shadowed()
        .iter()
        .map(|it| format!("there is more than one skill `{}`; the first counts", it.name));
    skipped.chain(shadowed).collect()
}

impl Offer {
    /// How this differs from what was approved before, skill by skill, with the text of files.
    pub fn changes_since(&self, before: Option<&Self>) -> Vec<SkillChange> {
        fn by_path(offer: &Offer) -> BTreeMap<&str, &OfferedSkill> {
            offer.skills.iter().map(|skill| (skill.path.as_str(), skill)).collect()
        }
        let (old, new) = (before.map(by_path).unwrap_or_default(), by_path(self));
        let mut paths: Vec<&str> = old.keys().chain(new.keys()).copied().collect();
        paths.sort_unstable();
        paths.dedup();
        let differs = |path: &&str| old.get(path).map(|it| &it.sha256) != new.get(path).map(|it| &it.sha256);
        let change = |path: &str| {
            let (before, after) = (old.get(path).copied(), new.get(path).copied());
            let files = match (before, after) {
                (Some(before), Some(after)) => file_changes(before, after),
                _ => Vec::new(),
            };
            SkillChange { path: path.to_owned(), before: before.cloned(), after: after.cloned(), files }
        };
        paths.into_iter().filter(differs).map(change).collect()
    }
}

fn file_changes(before: &OfferedSkill, after: &OfferedSkill) -> Vec<FileChange> {
    let (Some(old), Some(new)) = (&before.dir, &after.dir) else { return Vec::new() };
    let paths = |skill: &OfferedSkill| skill.files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
    let mut all = [paths(before), paths(after)].concat();
    all.sort_unstable();
    all.dedup();
    let mut changes = Vec::new();
    for path in all {
        let (old, new) = (fs::read(old.join(&path)).ok(), fs::read(new.join(&path)).ok());
        let kind = match (&old, &new) {
            (old, new) if old == new => continue,
            (None, _) => FileChangeKind::Added,
            (_, None) => FileChangeKind::Removed,
            _ => FileChangeKind::Changed,
        };
        let diff = difference(&path, old.as_deref().unwrap_or_default(), new.as_deref().unwrap_or_default());
        changes.push(FileChange { path, kind, diff });
    }
    changes
}

/// A unified difference of two texts.
fn difference(path: &str, old: &[u8], new: &[u8]) -> Option<String> {
    if old.len().max(new.len()) > MAX_DIFF_BYTES || old.contains(&0) || new.contains(&0) {
        return None;
    }
    let (old, new) = (std::str::from_utf8(old).ok()?, std::str::from_utf8(new).ok()?);
    let mut options = diffy::DiffOptions::new();
    options.set_original_filename(path.to_owned()).set_modified_filename(path.to_owned());
    Some(options.create_patch(old, new).to_string())
}
