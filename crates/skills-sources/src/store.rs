//! [`Store`]: fetched sources on the local disk.
//!
//! | path below the cache directory | content |
//! |---|---|
//! | `git/PLACE/COMMIT/NAME/…` | the approved skills of a repository at a commit, see `approved`; the same for archives and packages |
//! | `git/PLACE/mostly-skills` | exists if most files of a repository belong to skills, see `origin` |
//! | `git/PLACE/known-….json` | the version of an archive or a package at the last request, see `origin` |
//! | `git/PLACE/.new-…` | a checkout for a review; if it is left over, a later fetch or a prune removes it, see `temporary` |
//! | `web/PLACE/SHA256.json` | the index of a web site |
//! | `web/PLACE/SHA256/NAME/…` | the files of an approved archive in an index, see `packed` |
//! | `locks/` | see `lockfile` |
//!
//! `PLACE` is a checksum of the address. Skills are always complete, because they are written to a temporary directory and renamed.
//! The whole directory can be removed at any time; sources are then fetched again.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use skills_core::{exec::ProcessObserver, skill::Sha256};

use super::{
    access::Credentials,
    address::{GitPlace, Place, Transport},
    git::{self, Found, GitError},
    lockfile::{Pinned, PinnedGit},
    origin::{Origin, Origins},
    policy::Policy,
    site::{IndexText, RemoteError, RemoteIndex},
    system,
    temporary::{self, Temporary},
};
use crate::disk::{self, FileLock, private, state};

/// The timeout for web sites.
const WEB_TIMEOUT: Duration = Duration::from_secs(30);

/// A cache directory with fetched sources.
#[derive(Debug, Clone)]
pub(super) struct Store {
    dir: PathBuf,
    limits: git::Limits,
    /// True if the signatures of new versions are checked.
    verify: bool,
    origins: Origins,
}

impl Store {
    /// Creates a store in `dir`, which may not exist yet.
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, limits: git::Limits::default(), verify: false, origins: Origins::default() }
    }

    /// Sets the maximum number of bytes to receive from a repository. `None` is the default.
    pub(super) fn with_max_bytes(self, max_bytes: Option<u64>) -> Self {
        Self { limits: git::Limits::of_bytes(max_bytes), ..self }
    }

    /// Sets the limits of a fetch.
    pub(super) fn with_limits(self, limits: git::Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the user's settings for the servers of sources.
    pub(super) fn with_credentials(mut self, credentials: Option<Arc<dyn Credentials>>) -> Self {
        self.origins.credentials = credentials;
        self
    }

    /// Sets the rules of an administrator.
    pub(super) fn with_policy(mut self, policy: Option<Arc<Policy>>) -> Self {
        self.origins.policy = policy;
        self
    }

    /// Returns the store with which new versions are looked for. A package must be in the registry of its approved version.
    pub(super) fn for_newer_than(&self, approved: Option<&Pinned>) -> Self {
        let mut store = self.clone();
        store.origins.registry = match approved {
            Some(Pinned::Git(git)) => git.registry.clone(),
            _ => None,
        };
        store
    }

    /// Returns the store with which an approved version is fetched.
    pub(super) fn for_approved(&self, pinned: &PinnedGit) -> Self {
        let mut store = self.clone();
        store.origins.registry.clone_from(&pinned.registry);
        store.origins.is_approved = true;
        store
    }

    /// Checks the signatures of new versions.
    pub(super) fn verifying(self) -> Self {
        Self { verify: true, ..self }
    }

    /// Returns true if the signatures of new versions are checked.
    pub(super) fn verifies(&self) -> bool {
        self.verify
    }

    /// Returns the limits of a fetch.
    pub(super) fn limits(&self) -> git::Limits {
        self.limits
    }

    /// Returns the cache directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the directory with the approved skills of a source at a commit. It exists only if that version was approved.
    pub(super) fn root(&self, place: &GitPlace, commit: &str) -> PathBuf {
        self.of_place(place).join(commit).join(name(place))
    }

    /// Returns the directory of a version of a source. It doesn't exist if the version is not in the store, or if it has no files.
    pub(super) fn version(&self, place: &Place, version: &str) -> PathBuf {
        self.of(place).join(version)
    }

    fn of(&self, place: &Place) -> PathBuf {
        match place {
            Place::Git(place) => self.of_place(place),
            Place::Web(url) => self.of_site(url),
        }
    }

    /// Returns true if `path` is below the directory of a source.
    pub(super) fn holds(&self, place: &Place, path: &Path) -> bool {
        let dir = self.of(place);
        path.starts_with(&dir) || dunce::canonicalize(dir).is_ok_and(|dir| path.starts_with(dir))
    }

    fn of_place(&self, place: &GitPlace) -> PathBuf {
        if place.transport == Transport::Archive && !place.path.is_empty() {
            // An archive in the index of a site.
            return self.of_site(&place.path);
        }
        self.dir.join("git").join(key(&format!("{}\n{}", place.url, place.path)))
    }

    /// Fetches a version of a source, or its current version, into a directory of its own for a review. Other processes wait for the
    /// fetch.
    pub(super) fn fetch_git(
        &self,
        place: &GitPlace,
        version: Option<&Found>,
        observer: Option<Arc<dyn ProcessObserver>>,
    ) -> Result<Checkout, GitError> {
        let _lock = self.lock(place)?;
        self.fetch_locked(place, version, observer)
    }

    /// Takes the file lock of a source.
    pub(super) fn lock(&self, place: &GitPlace) -> Result<FileLock, GitError> {
        let dir = self.of_place(place);
        FileLock::acquire(&dir.join(LOCK)).map_err(|source| GitError::Write { path: dir, source })
    }

    /// Fetches a source like [`fetch_git`](Self::fetch_git), for callers that hold its lock.
    pub(super) fn fetch_locked(
        &self,
        place: &GitPlace,
        version: Option<&Found>,
        observer: Option<Arc<dyn ProcessObserver>>,
    ) -> Result<Checkout, GitError> {
        let dir = self.of_place(place);
        let failed = |source| GitError::Write { path: dir.clone(), source };
        temporary::remove_leftovers(&dir, OLD);
        let new = self.temporary(place).map_err(failed)?;
        let root = new.path().join(name(place));
        let scratch = new.path().join(".git");
        fs::create_dir(&root).and_then(|()| fs::create_dir(&scratch)).map_err(failed)?;
        let origin = self.origin(place, &self.limits);
        let fetched = origin.fetch(version, &root, &scratch, observer, self.verify);
        // If this fails, a later fetch will remove the directory.
        let _ = system::remove_dir_all(&scratch);
        let fetched = fetched?;
        let files = Arc::new(Mutex::new(new));
        let git::Fetched { commit, tag, registry, committed, has_signed_tag, notes, .. } = fetched;
        Ok(Checkout { commit, tag, registry, committed, has_signed_tag, notes, root, files })
    }

    /// Returns the current version of a source, or `None` if only a fetch can tell. Sends one request.
    pub(super) fn find(
        &self,
        place: &GitPlace,
        observer: Option<Arc<dyn ProcessObserver>>,
        limits: &git::Limits,
    ) -> Result<Option<Found>, GitError> {
        self.origin(place, limits).find(observer)
    }

    fn origin<'a>(&'a self, place: &'a GitPlace, limits: &'a git::Limits) -> Origin<'a> {
        let reference = key(place.reference.as_deref().unwrap_or_default());
        let known = self.of_place(place).join(format!("known-{reference}.json"));
        Origin { place, known, limits, origins: &self.origins }
    }

    /// Creates a temporary directory on the disk of a source. If it is left over, a later fetch removes it.
    pub(super) fn temporary(&self, place: &GitPlace) -> io::Result<Temporary> {
        Temporary::create_in(&self.of_place(place))
    }

    /// Takes the lock for the first fetch of a source that is not in a lock file. Other processes wait for it, at most as long as a
    /// fetch may take. Returns `None` if that is not possible.
    pub(super) fn lock_first_fetch(&self, place: &Place) -> Option<FileLock> {
        let dir = self.of(place);
        private::create_dir(&dir).ok()?;
        FileLock::acquire_within(&dir.join(FIRST_LOCK), self.limits.total).ok()
    }

    /// Returns the index of a web site with this checksum if it is stored.
    pub(super) fn index(&self, url: &str, digest: &str) -> Option<IndexText> {
        let digest = Sha256::parse(digest)?;
        let text = fs::read(self.of_site(url).join(format!("{digest}.json"))).ok()?;
        let index: IndexText = serde_json::from_slice(&text).ok()?;
        (Sha256::of(index.text.as_bytes()) == digest).then_some(index)
    }

    fn of_site(&self, url: &str) -> PathBuf {
        self.dir.join("web").join(key(url))
    }

    /// Fetches the index of a web site with the user's credentials. Returns `None` if it is the same as `known`.
    pub(super) fn fetch_text(
        &self,
        url: &str,
        known: Option<&IndexText>,
        timeout: Duration,
    ) -> Result<Option<IndexText>, WebError> {
        let server = self.origins.server(url)?;
        Ok(RemoteIndex::fetch_text_with(url, known, server.headers_for(url), timeout)?)
    }

    /// Fetches the index of a web site, stores it, and returns its checksum. If only one version is `wanted`, another one is not stored,
    /// because it could be another one at each start.
    pub(super) fn fetch_index(
        &self,
        url: &str,
        known: Option<&IndexText>,
        wanted: Option<&str>,
    ) -> Result<Sha256, WebError> {
        let index = match self.fetch_text(url, known, WEB_TIMEOUT)? {
            Some(index) => index,
            None => known.cloned().ok_or_else(|| {
                io::Error::other("server returned `304 Not Modified` for a request without a validator")
            })?,
        };
        let digest = Sha256::of(index.text.as_bytes());
        if wanted.is_some_and(|wanted| wanted != digest.to_string()) {
            return Ok(digest);
        }
        let dir = self.of_site(url);
        private::create_dir(&dir)?;
        let mut file = tempfile::NamedTempFile::new_in(&dir)?;
        let text = serde_json::to_string(&index).map_err(io::Error::from)?;
        file.write_all(state::inert(text).as_bytes())?;
        disk::replace(file, &dir.join(format!("{digest}.json")))?;
        Ok(digest)
    }
}

/// A version of a repository for a review. No skill is served from here. The files are removed when the last clone is dropped.
#[derive(Debug, Clone)]
pub(super) struct Checkout {
    /// The hash of the commit.
    pub(super) commit: String,
    /// The tag of the commit, if the place has a range of versions.
    pub(super) tag: Option<String>,
    /// The registry of a package.
    pub(super) registry: Option<String>,
    /// The time of the commit in seconds since 1970, if its signature was checked.
    pub(super) committed: Option<i64>,
    /// True if the signature of the tag was accepted.
    pub(super) has_signed_tag: bool,
    /// Notes for the user about files that were left out.
    pub(super) notes: Vec<String>,
    /// The directory with the skills.
    pub(super) root: PathBuf,
    /// Dropping the last clone removes the files, unless they are kept.
    files: Arc<Mutex<Temporary>>,
}

impl Checkout {
    /// Keeps the files after this process, because the user has to look at them. A fetch or a prune after at least a day removes them.
    pub(super) fn keep(&self) {
        self.files.lock().keep();
    }
}

/// An error of fetching an index.
#[derive(Debug, thiserror::Error)]
pub(super) enum WebError {
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("cannot store index: {0}")]
    System(#[from] io::Error),
    #[error(transparent)]
    Access(#[from] GitError),
}

/// The name of the file lock for fetches into the same directory.
pub(super) const LOCK: &str = "lock";
/// The name of the file lock for the first fetch of a source, until it is in the lock file.
const FIRST_LOCK: &str = "first";
/// The name of the list of skills in the directory of a version.
pub(super) const LIST: &str = "skills.json";
/// The name of the file with a line for each set of approved skills that a version doesn't have.
pub(super) const MISSING: &str = "missing";
/// The name of the mark file in the directory of a version, see `prune`.
pub(super) const MARK: &str = "used";
/// The names that the directory with the skills of a version can't have, because files beside it have them.
const RESERVED: [&str; 3] = [LIST, MISSING, MARK];
/// The maximum length of the name of a directory, in bytes.
const MAX_NAME_BYTES: usize = 200;
/// The age after which an incomplete directory is a leftover.
pub(super) const OLD: Duration = Duration::from_hours(24);

/// Returns the directory name for a source. A skill in the root of the source has this name if it doesn't have one of its own.
///
/// The model sees the name of an approved skill's directory. The URL of an archive in an index is not part of the approval, so its
/// directory has the name of the skill instead.
fn name(place: &GitPlace) -> String {
    let path = match &place.skill {
        Some(skill) => skill,
        None if place.transport.is_git() && !place.path.is_empty() => &place.path,
        None => place.url.split('?').next().unwrap_or(&place.url),
    };
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let last =
        [".git", ".tar.gz", ".tgz", ".zip"].iter().find_map(|end| last.strip_suffix(end)).unwrap_or(last);
    let plain: String =
        last.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    // The system limits names to 255 bytes.
    let plain = plain[..plain.floor_char_boundary(MAX_NAME_BYTES)].trim_matches(['.', '-']);
    let is_reserved = RESERVED.iter().any(|name| name.eq_ignore_ascii_case(plain));
    if plain.is_empty() || is_reserved { "skills".to_owned() } else { plain.to_owned() }
}

fn key(text: &str) -> String {
    Sha256::of(text.as_bytes()).to_string()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;

    /// Otherwise, a directory would have the name of a file beside it.
    #[test]
    fn the_directory_of_a_version_has_no_reserved_name() {
        for (address, expected) in [
            ("github:acme/code-review", "code-review"),
            ("https://example.com/skills.json.zip", "skills"),
            ("https://example.com/Used.tar.gz?x", "skills"),
            ("github:acme/x/missing", "skills"),
            ("npm:@acme/used-skills", "used-skills"),
        ] {
            let address = Address::parse(address).unwrap();
            let Place::Git(place) = address.place() else { unreachable!() };
            assert_eq!(name(place), expected, "{address}");
        }
    }
}
