//! [`Updater`]: compares the current version of a source with its approved version, and approves it.
//!
//! Show the [`SkillChange`]s of an [`Offer`] to the user before you approve it. Approval applies to the checksums of the offer, and
//! nothing is fetched in between.

mod approve;
mod archives;
mod changes;
mod compare;
mod comparison;
mod decide;
mod offered;
mod rollback;
mod stored;
mod text;
mod upkeep;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;
use skills_core::{Remote, SkillName, SkillSet, Source, discovery::Limits, exec::ProcessObserver, order};

use self::{
    changes::Texts,
    offered::{listed, offered_file},
};
pub use self::{
    changes::{FileChange, FileChangeKind, SkillChange},
    comparison::{Comparison, Query, Rejected},
    decide::{Answer, Decision},
};
use super::{
    Options, SourceError,
    address::{Address, Place},
    approved, digest,
    git::{self, Found, GitError},
    load,
    lockfile::{LockError, LockFile, Pinned, PinnedWeb},
    named::NamedSources,
    packed::Unpacked,
    policy::Policy,
    site::RemoteIndex,
    store::{Checkout, Store},
};
use crate::disk::cache_dir;

/// Fetches sources, compares them with their approved versions, and approves them. All methods block.
#[derive(Debug, Clone)]
pub struct Updater {
    store: Store,
    options: Options,
    policy: Option<Policy>,
    /// The texts of all offers.
    texts: Texts,
}

/// The current version of a source.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Offer {
    /// The pin that approves this version.
    pub pinned: Pinned,
    /// The skills, sorted by path.
    pub skills: Vec<OfferedSkill>,
    /// Notes about files and skills that were left out.
    pub notes: Vec<String>,
    /// The approved version that the offer was compared with, if any.
    approved: Option<String>,
    /// The skills that the filters leave out, by path.
    left_out: BTreeMap<String, OfferedSkill>,
    /// The files of a repository, which are removed with the last clone of the offer.
    checkout: Option<Checkout>,
    /// The skills of a web site that are in archives.
    archives: Vec<Unpacked>,
    /// The limits for fetching the files of a web site.
    limits: git::Limits,
    texts: Texts,
}

/// A skill in an offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OfferedSkill {
    /// The directory of the skill in the source. For a web site, the name of the skill.
    pub path: String,
    /// The name of the skill.
    pub name: String,
    /// The description of the skill.
    pub description: String,
    /// The SHA-256 checksum of the skill. For a web site, that of its entry in the index, or of the files of an archive.
    pub sha256: String,
    /// The files of the skill. For a web site, only the files that the index lists.
    pub files: Vec<OfferedFile>,
    /// The local directory with the files, for review before approval. `None` for a web site.
    #[serde(skip)]
    pub dir: Option<PathBuf>,
    /// The location of the files on a web site. Serialized as the URL of the `SKILL.md` or the archive.
    #[serde(rename = "url", serialize_with = "url_of", skip_serializing_if = "Option::is_none")]
    remote: Option<Remote>,
}

/// Serializes the URL of a remote skill.
#[expect(clippy::ref_option, reason = "serde passes the field")]
fn url_of<S: serde::Serializer>(remote: &Option<Remote>, serializer: S) -> Result<S::Ok, S::Error> {
    remote.as_ref().map(|remote| &*remote.url).serialize(serializer)
}

impl OfferedSkill {
    /// Returns the URL of the `SKILL.md` or the archive on a web site. `None` for skills of a repository.
    pub fn url(&self) -> Option<&str> {
        self.remote.as_ref().map(|remote| &*remote.url)
    }

    /// Creates an approved skill that is not in the cache. Its description and files are not known.
    fn unknown(pinned: &Pinned, path: &str, sha256: &str) -> Self {
        Self {
            path: path.to_owned(),
            name: pinned.decisions().name_of(path).to_owned(),
            description: String::new(),
            sha256: sha256.to_owned(),
            files: Vec::new(),
            dir: None,
            remote: None,
        }
    }
}

/// A file of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OfferedFile {
    /// The path, relative to the skill.
    pub path: String,
    /// The size in bytes, if it is known.
    pub size: Option<u64>,
    /// True if the file is in `scripts/`, has the extension of a script, can be executed, or begins with `#!`.
    pub is_script: bool,
}

impl Updater {
    /// Creates an updater that uses the platform's cache directory, and follows the policy of this machine.
    ///
    /// # Errors
    /// Returns [`SourceError::NoCache`] if there is no cache directory, and [`SourceError::Policy`] if the policy can't be used.
    pub fn new(observer: Option<Arc<dyn ProcessObserver>>) -> Result<Self, SourceError> {
        let policy = Policy::load()?;
        let store = Store::new(cache_dir().ok_or(SourceError::NoCache)?);
        let store = store.with_policy(policy.clone().map(Arc::new));
        let max_skills = Limits::default().max_skills;
        let options = Options { max_skills, observer, ..Options::default() };
        Ok(Self { store, options, policy, texts: Texts::default() })
    }

    /// Fetches the current version of a source. `approved` is the approved version, if any.
    ///
    /// # Errors
    /// Returns [`SourceError::Refused`] if the policy doesn't allow the source, and an error if it can't be fetched or stored.
    pub fn latest(&self, address: &Address, approved: Option<&Pinned>) -> Result<Offer, SourceError> {
        self.latest_with(address, approved, false)
    }

    /// Returns the same as [`latest`](Self::latest). With `nested`, skills within the directories of other skills are part of the
    /// offer.
    ///
    /// # Errors
    /// Returns the errors of [`latest`](Self::latest).
    pub fn latest_with(
        &self,
        address: &Address,
        approved: Option<&Pinned>,
        nested: bool,
    ) -> Result<Offer, SourceError> {
        let mut offer = self.latest_at(address, approved, nested, None)?;
        offer.approved = approved.map(|pinned| pinned.version().to_owned());
        Ok(offer)
    }

    /// Returns the same as [`latest_with`](Self::latest_with). `found` is the current version of a repository, if it is known.
    fn latest_at(
        &self,
        address: &Address,
        approved: Option<&Pinned>,
        nested: bool,
        found: Option<&Found>,
    ) -> Result<Offer, SourceError> {
        self.permit(address)?;
        match (address.place(), approved) {
            (Place::Git(place), _) if self.store.verifies() && !place.transport.is_git() => {
                Err(SourceError::NoSignatures { address: address.to_string() })
            }
            (Place::Git(place), _) => {
                let store = self.store.for_newer_than(approved);
                let fetch =
                    |version: Option<&Found>| store.fetch_git(place, version, self.options.observer.clone());
                let fetched = match fetch(found) {
                    // The repository has changed since the look.
                    Err(GitError::NoReference(_)) if found.is_some() => fetch(None),
                    fetched => fetched,
                };
                let fetched = fetched.map_err(|error| SourceError::git(address, error))?;
                let refetch = |version: &Found| fetch(Some(version));
                rollback::refuse(address, approved, &fetched, refetch)?;
                // If the approved version is not in the store, or was changed on disk, fetch it again, because `approved::add` takes
                // the files out of the checkout.
                if let Some(Pinned::Git(git)) = approved
                    && git.commit == fetched.commit
                    && approved.is_some_and(|pinned| self.approved(address, pinned).is_none())
                {
                    let version = Found { commit: git.commit.clone(), tag: None };
                    fetch(Some(&version))
                        .and_then(|again| {
                            let part = &git.parts()[0];
                            approved::add(&self.store, place, part, &again)
                        })
                        .map_err(|error| SourceError::git(address, error))?;
                }
                let mut offer = self
                    .of_directory(&fetched.root, &fetched.commit, nested)
                    .map_err(|error| SourceError::pin(address, error))?;
                if let Pinned::Git(git) = &mut offer.pinned {
                    (git.tag, git.has_signed_tag) = rollback::tag(approved, &fetched);
                    git.committed = fetched.committed;
                    git.registry.clone_from(&fetched.registry);
                }
                offer.checkout = Some(fetched.clone());
                offer.notes.splice(0..0, fetched.notes);
                Ok(offer)
            }
            (Place::Web(_), _) if self.store.verifies() => {
                Err(SourceError::NoSignatures { address: address.to_string() })
            }
            (Place::Web(url), approved) => {
                let known = match approved {
                    Some(Pinned::Web(pinned)) => self.store.index(url, &pinned.index),
                    _ => None,
                };
                let digest = self
                    .store
                    .fetch_index(url, known.as_ref(), None)
                    .map_err(|error| SourceError::web(address, error))?;
                let mut offer = self
                    .of_index(url, &digest.to_string())
                    .ok_or_else(|| SourceError::Changed { address: address.to_string() })?;
                self.unpack(address, url, &mut offer, approved)?;
                Ok(offer)
            }
        }
    }

    /// Returns an error if the policy doesn't allow a source.
    ///
    /// # Errors
    /// Returns [`SourceError::Refused`].
    pub fn permit(&self, address: &Address) -> Result<(), SourceError> {
        Ok(self.policy.as_ref().map_or(Ok(()), |policy| policy.source(address))?)
    }

    fn of_directory(&self, root: &Path, commit: &str, nested: bool) -> Result<Offer, load::PinError> {
        let max_bytes = self.store.limits().bytes;
        let real = dunce::canonicalize(root)?;
        let found = approved::find(&real, self.options.max_skills, nested);
        let pinned = load::pin(&real, commit, &found, max_bytes)?;
        let mut skills = Vec::new();
        for skill in found.iter() {
            let Source::Stored(stored) = &skill.source else { continue };
            let path = approved::relative(&real, &stored.dir);
            let sha256 = pinned.skills.get(&path).cloned().unwrap_or_default();
            let files =
                digest::files(&stored.dir)?.into_iter().map(|path| offered_file(&stored.dir, path)).collect();
            let dir = Some(stored.dir.to_path_buf());
            let name = skill.name.to_string();
            let description = skill.description.clone();
            skills.push(OfferedSkill { path, name, description, sha256, files, dir, remote: None });
        }
        order::sort_by(&mut skills, |a, b| a.path.cmp(&b.path));
        let notes = notes(&found, &real);
        Ok(Offer {
            pinned: Pinned::Git(pinned),
            skills,
            notes,
            approved: None,
            left_out: BTreeMap::new(),
            limits: self.store.limits(),
            texts: self.texts.clone(),
            checkout: None,
            archives: Vec::new(),
        })
    }

    fn of_index(&self, url: &str, digest: &str) -> Option<Offer> {
        let text = self.store.index(url, digest)?;
        let index = RemoteIndex::parse_with_archives(&text.text, &text.url).ok()?;
        let mut skills: Vec<_> = index.skills().iter().filter_map(|skill| listed(skill)).collect();
        order::sort_by(&mut skills, |a, b| a.path.cmp(&b.path));
        let pinned = Pinned::Web(PinnedWeb::new(digest.to_owned(), None));
        let notes = notes(index.skills(), Path::new(""));
        Some(Offer {
            pinned,
            skills,
            notes,
            approved: None,
            left_out: BTreeMap::new(),
            limits: self.store.limits(),
            texts: self.texts.clone(),
            checkout: None,
            archives: Vec::new(),
        })
    }
}

/// Returns notes about invalid skills and about duplicate names.
fn notes(found: &SkillSet, root: &Path) -> Vec<String> {
    let skipped = found.skipped().iter().flat_map(|skipped| {
        let path = skipped.path.strip_prefix(root).unwrap_or(&skipped.path).display().to_string();
        skipped.diagnostics.iter().map(move |finding| format!("skipped `{path}`: {}", finding.message))
    });
    let shadowed = found
        .shadowed()
        .iter()
        .map(|skill| format!("found more than one skill `{}`; using the first", skill.name));
    skipped.chain(shadowed).collect()
}

/// Returns the sources that were approved by naming them, from the record for the lock file at `lock`. This includes
/// sources whose approval was lost.
pub fn named_sources(lock: &Path) -> Vec<String> {
    NamedSources::beside(lock).all()
}

impl Offer {
    /// Keeps the local files of a repository after this process, because the user has to look at files that can't be shown. A
    /// fetch or a prune after at least a day removes them. Without this, they are removed when the last clone of the offer is dropped.
    pub fn keep_files(&self) {
        let archives = self.archives.iter().filter_map(|archive| archive.checkout.as_ref());
        for checkout in self.checkout.iter().chain(archives) {
            checkout.keep();
        }
    }

    /// Keeps only the skills whose name `takes` accepts. The others are neither shown nor approved.
    pub fn retain(&mut self, takes: impl Fn(&SkillName) -> bool) {
        let count = self.skills.len();
        let is_taken = |skill: &OfferedSkill| SkillName::new(&skill.name).is_some_and(|name| takes(&name));
        let left_out = self.skills.extract_if(.., |skill| !is_taken(skill));
        self.left_out.extend(left_out.map(|skill| (skill.path.clone(), skill)));
        let is_kept = |path: &String| self.skills.iter().any(|skill| skill.path == *path);
        match &mut self.pinned {
            Pinned::Git(git) => git.skills.retain(|path, _| is_kept(path)),
            Pinned::Web(web) if self.skills.len() < count => {
                let skills = self.skills.iter().map(|skill| (skill.path.clone(), skill.sha256.clone()));
                web.skills = Some(skills.collect());
            }
            Pinned::Web(_) => {}
        }
    }
}
