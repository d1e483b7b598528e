//! [`Store`]: what was fetched, on this disk.
//!
//! | path below the cache directory | is |
//! |---|---|
//! | `git/PLACE/COMMIT/NAME/…` | the skills of a repository at a commit |
//! | `web/PLACE/SHA256.json` | an index of a web site |
//! | `locks/` | see `lockfile` |
//!
//! `PLACE` is a digest of the address. What is there is whole: it is written elsewhere, and renamed. All of it can be
//! removed at any time, and is fetched again.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use skills_core::{
    RemoteIndex,
    exec::ProcessObserver,
    remote::{IndexText, RemoteError, Sha256},
};

use super::{
    address::GitPlace,
    git::{self, Fetched, GitError},
    system,
};
use crate::disk::FileLock;

/// How long a web site may take.
const WEB_TIMEOUT: Duration = Duration::from_secs(30);

/// A directory with what was fetched.
#[derive(Debug, Clone)]
pub(super) struct Store {
    dir: PathBuf,
}

impl Store {
    /// What is kept below `dir`, which need not exist.
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// The directory itself.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory of a source at a commit, which is there or is not.
    pub(super) fn root(&self, place: &GitPlace, commit: &str) -> PathBuf {
        self.of_place(place).join(commit).join(name(place))
    }

    fn of_place(&self, place: &GitPlace) -> PathBuf {
        self.dir.join("git").join(key(&format!("{}\n{}", place.url, place.path)))
    }

    /// Fetches a source: at `commit`, or as it is now. One process at a time fetches a place; who comes later finds it.
    pub(super) fn fetch_git(
        &self,
        place: &GitPlace,
        commit: Option<&str>,
        observer: Option<Arc<dyn ProcessObserver>>,
    ) -> Result<Fetched, GitError> {
        let dir = self.of_place(place);
        let failed = |source| GitError::Write { path: dir.clone(), source };
        let _lock = FileLock::acquire(&dir.join(LOCK)).map_err(failed)?;
        if let Some(commit) = commit
            && self.root(place, commit).is_dir()
        {
            return Ok(Fetched { commit: commit.to_owned(), notes: Vec::new() });
        }
        remove_leftovers(&dir, OLD);
        let new = tempfile::Builder::new().prefix(NEW).tempdir_in(&dir).map_err(failed)?;
        let (tree, scratch) = (new.path().join("tree"), new.path().join("git"));
        let root = tree.join(name(place));
        fs::create_dir_all(&root).and_then(|()| fs::create_dir(&scratch)).map_err(failed)?;
        let fetched = git::fetch(place, commit, &root, &scratch, observer, git::TIMEOUT);
        // What is left goes with the next fetch of a day later.
        drop(system::remove_dir_all(&scratch));
        let fetched = fetched?;
        let target = dir.join(&fetched.commit);
        if target.join(name(place)).is_dir() {
            return Ok(fetched);
        }
        fs::rename(&tree, &target).map_err(failed)?;
        Ok(fetched)
    }

    /// Drops a source at a commit, so that it is fetched again.
    pub(super) fn forget_git(&self, place: &GitPlace, commit: &str) -> io::Result<()> {
        match system::remove_dir_all(&self.of_place(place).join(commit)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The index of a web site with this digest, if it is here.
    pub(super) fn index(&self, url: &str, digest: &str) -> Option<IndexText> {
        let digest = Sha256::parse(digest)?;
        let text = fs::read(self.of_site(url).join(format!("{digest}.json"))).ok()?;
        let index: IndexText = serde_json::from_slice(&text).ok()?;
        (Sha256::of(index.text.as_bytes()) == digest).then_some(index)
    }

    fn of_site(&self, url: &str) -> PathBuf {
        self.dir.join("web").join(key(url))
    }

    /// Fetches the index of a web site and keeps it. Returns its digest.
    pub(super) fn fetch_index(&self, url: &str, known: Option<&IndexText>) -> Result<Sha256, WebError> {
        let index = match RemoteIndex::fetch_text(url, known, WEB_TIMEOUT)? {
            Some(index) => index,
            None => {
                known.cloned().ok_or_else(|| io::Error::other("a site that says nothing new at first"))?
            }
        };
        let digest = Sha256::of(index.text.as_bytes());
        let dir = self.of_site(url);
        fs::create_dir_all(&dir)?;
        let mut file = tempfile::NamedTempFile::new_in(&dir)?;
        serde_json::to_writer(&mut file, &index).map_err(io::Error::from)?;
        file.persist(dir.join(format!("{digest}.json"))).map_err(|error| error.error)?;
        Ok(digest)
    }
}

/// Why an index cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum WebError {
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("cannot keep the index: {0}")]
    System(#[from] io::Error),
}

/// What a directory of ours is called until it is whole.
const NEW: &str = ".new-";
/// The file lock of whoever fetches into the directory that it is in.
pub(super) const LOCK: &str = "lock";
/// Nobody works this long on one.
pub(super) const OLD: Duration = Duration::from_hours(24);

/// Removes what a process has left that was killed so long ago.
pub(super) fn remove_leftovers(dir: &Path, old: Duration) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let is_new = entry.file_name().to_string_lossy().starts_with(NEW);
        let written = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        if is_new && written.and_then(|time| time.elapsed().ok()).is_some_and(|age| age >= old) {
            // It takes space and does no harm.
            drop(system::remove_dir_all(&entry.path()));
        }
    }
}

/// What the directory of a source is called: a skill in it is known by that where it has no name of its own.
fn name(place: &GitPlace) -> String {
    let path = if place.path.is_empty() { place.url.trim_end_matches('/') } else { &place.path };
    let last = path.rsplit('/').next().unwrap_or_default();
    let last = last.strip_suffix(".git").unwrap_or(last);
    let plain: String =
        last.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    let plain = plain.trim_matches(['.', '-']);
    if plain.is_empty() { "skills".to_owned() } else { plain.to_owned() }
}

fn key(text: &str) -> String {
    Sha256::of(text.as_bytes()).to_string()[..32].to_owned()
}
