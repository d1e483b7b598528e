//! [`LockFile`]: `skills.lock`, which records the approved version of each source.
//!
//! The file is JSON with sorted keys and one line per skill, so that diffs are readable and branches can be merged. Its content is
//! untrusted: every value is checked before it becomes a file name or an argument of git.
//!
//! A process changes the file under a file lock: it reads the file, changes it, and replaces it atomically. A file that can't be read
//! is never overwritten. The last readable version is kept in the cache directory (`cache`), so that skills are still served.

mod cache;
mod conflict;
mod decisions;
mod entry;
mod places;
mod unique;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use skills_core::{json::has_more_values_than, skill::Sha256, text::shown};

pub(super) use self::{
    cache::{lock_path, references},
    decisions::MAX_KEPT,
};
pub use self::{
    decisions::{Decisions, REMOVED},
    places::{lock_beside, required_lock, user_lock},
};
use crate::{
    disk::{FileLock, Resolved, bounded, error_text, shorten_home},
    paths,
    reason::Reason,
};

/// The name of the lock file, which is in the same directory as the configuration file.
pub const LOCK_NAME: &str = "skills.lock";
const VERSION: u32 = 1;
/// The maximum size of a lock file, in bytes.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
/// The maximum number of values. A skill needs one to five.
const MAX_VALUES: usize = 64 * 1024;
/// The maximum length of a tag or of the URL of a registry, in bytes.
const MAX_TEXT_BYTES: usize = 2_048;

/// A lock file: the approved version of each source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockFile {
    version: u32,
    /// By address, as the user wrote it.
    #[serde(deserialize_with = "unique::map")]
    sources: BTreeMap<String, Pinned>,
}

/// The approved version of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, try_from = "entry::Entry")]
#[non_exhaustive]
pub enum Pinned {
    /// A git repository at a commit.
    Git(PinnedGit),
    /// The index of a web site.
    Web(PinnedWeb),
}

/// The approved version of a git repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PinnedGit {
    /// The full hash of the commit.
    pub commit: String,
    /// The tag of the commit, if the address has a range of versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The registry of an npm package: the scheme, the host and the port of its URL. A path can contain a secret, so it is only part of the
    /// checksum of the URL, which follows after `#`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// The time of the commit in seconds since 1970, if its signature was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub committed: Option<i64>,
    /// True if the tag has a signature that was accepted. Otherwise, the host can have made the tag.
    #[serde(rename = "signedTag", skip_serializing_if = "std::ops::Not::not")]
    pub has_signed_tag: bool,
    /// The SHA-256 checksum of each approved skill, by its directory in the source. The root of the source is `.`.
    pub skills: BTreeMap<String, String>,
    /// Decisions about single skills.
    #[serde(skip_serializing_if = "Decisions::is_empty")]
    pub decisions: Decisions,
}

/// The approved version of a web site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PinnedWeb {
    /// The SHA-256 checksum of the index, which contains names, descriptions, URLs, and optionally checksums of files.
    pub index: String,
    /// The SHA-256 checksum of the entry of each approved skill, by name. For a skill in an archive, it is that of the files. `None`
    /// approves all skills of the index that are not in archives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skills: Option<BTreeMap<String, String>>,
    /// Decisions about single skills.
    #[serde(skip_serializing_if = "Decisions::is_empty")]
    pub decisions: Decisions,
}

/// An error of a lock file. The message names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The file can't be read.
    #[error("cannot read lock file: {}: {}", error_text(source), shorten_home(path))]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The content is invalid.
    #[error("{what}: {}", shorten_home(path))]
    Broken {
        /// The path of the file.
        path: PathBuf,
        /// The reason, with line and column if they are known.
        what: String,
    },
    /// The file has the conflict markers of a merge.
    #[error("file contains merge conflict markers: {}", shorten_home(path))]
    Conflict {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file has a merge conflict that can't be resolved.
    #[error("cannot resolve the merge conflict: {what}: {}", shorten_home(path))]
    Unresolvable {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The file can't be written.
    #[error("cannot write lock file: {}: {}", error_text(source), shorten_home(path))]
    Unwritable {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The record of the sources that were approved by naming them can't be written. It is beside the lock file.
    #[error("cannot write record of named sources: {}: {}", error_text(source), shorten_home(path))]
    UnwritableRecord {
        /// The path of the record.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process has approved another version of a source since the user was asked.
    #[error("another version of `{address}` was approved in the meantime: {}", shorten_home(path))]
    Outpaced {
        /// The path of the file.
        path: PathBuf,
        /// The address of the source.
        address: String,
    },
}

impl LockError {
    /// Returns a hint about how to resolve the problem.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => {
                "run `acp-skills-proxy update` to resolve the merge conflict, or keep one side of it"
            }
            Self::Unresolvable { .. } => "edit the file to keep one side of the merge conflict",
            Self::Broken { .. } => {
                "restore the file from version control, or remove it and run `acp-skills-proxy update`"
            }
            Self::Outpaced { .. } => "run `acp-skills-proxy update` again; the lock file was not changed",
            Self::Unwritable { source, .. } | Self::UnwritableRecord { source, .. }
                if source.kind() == io::ErrorKind::TimedOut =>
            {
                "wait for that process to end, or end it, then retry"
            }
            Self::Unwritable { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
                "the file was not changed"
            }
            Self::Unreadable { .. } | Self::Unwritable { .. } | Self::UnwritableRecord { .. } => {
                "check free disk space and file permissions"
            }
        }
    }
}

impl Default for LockFile {
    fn default() -> Self {
        Self { version: VERSION, sources: BTreeMap::new() }
    }
}

impl LockFile {
    /// Reads a lock file. If the file doesn't exist, the result is empty.
    ///
    /// # Errors
    /// Returns [`LockError::Unreadable`] if the file can't be read, [`LockError::Conflict`] if it contains conflict markers, and
    /// [`LockError::Broken`] if its content is invalid in another way.
    pub fn read(path: &Path) -> Result<Self, LockError> {
        let unreadable = |source| LockError::Unreadable { path: path.to_owned(), source };
        let text = match bounded::read_text(path, MAX_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Err(LockError::Broken {
                    path: path.to_owned(),
                    what: "file is too large".to_owned(),
                });
            }
            text => text.map_err(unreadable)?,
        };
        if conflict::has_markers(&text) {
            return Err(LockError::Conflict { path: path.to_owned() });
        }
        Self::parse(&text)
            .map_err(|reason| LockError::Broken { path: path.to_owned(), what: reason.to_string() })
    }

    fn parse(text: &str) -> Result<Self, Reason> {
        check_values(text)?;
        let lock: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if lock.version != VERSION {
            return Err(format!(
                "file has version {}, but only version {VERSION} is supported",
                lock.version
            )
            .into());
        }
        lock.check()?;
        Ok(lock)
    }

    /// Checks all values.
    fn check(&self) -> Result<(), Reason> {
        for (source, pinned) in &self.sources {
            pinned.check().map_err(|what| format!("`{source}`: {what}"))?;
        }
        Ok(())
    }

    /// Returns the approved version of a source, by its address.
    pub fn get(&self, source: &str) -> Option<&Pinned> {
        self.sources.get(source)
    }

    /// Returns the addresses of all sources in the file.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.sources.keys().map(String::as_str)
    }

    /// Sets the approved version of a source, and replaces an earlier one.
    pub fn set(&mut self, source: &str, pinned: Pinned) {
        self.sources.insert(source.to_owned(), pinned);
    }

    /// Removes a source. Returns true if the file contained it.
    pub fn remove(&mut self, source: &str) -> bool {
        self.sources.remove(source).is_some()
    }

    /// Changes the lock file at `path` under a file lock, and returns the result of `change`. The file is not written if nothing
    /// changed. Processes exclude each other only if they use the same `cache` directory, which contains the file lock.
    ///
    /// # Errors
    /// Returns the errors of [`read`](Self::read), and [`LockError::Unwritable`] if the file can't be locked or written.
    pub fn change<T>(path: &Path, cache: &Path, change: impl FnOnce(&mut Self) -> T) -> Result<T, LockError> {
        let unwritable = |source| LockError::Unwritable { path: path.to_owned(), source };
        let _lock = FileLock::acquire_for_change(&lock_path(path, cache)).map_err(unwritable)?;
        let file = Resolved::new(path).map_err(unwritable)?;
        let mut lock = Self::read(file.path())?;
        let before = lock.clone();
        let changed = change(&mut lock);
        if lock != before || !file.path().exists() {
            file.write(&lock.text().map_err(unwritable)?).map_err(unwritable)?;
        }
        lock.keep(path, cache);
        Ok(changed)
    }

    /// Returns the content of the file.
    ///
    /// # Errors
    /// Returns an error of the kind `InvalidData` if [`read`](Self::read) would refuse the content. Then all approvals would be lost.
    fn text(&self) -> io::Result<String> {
        let invalid = |reason: Reason| io::Error::new(io::ErrorKind::InvalidData, reason);
        self.check().map_err(invalid)?;
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        if text.len() as u64 > MAX_BYTES {
            return Err(invalid("file would be too large".into()));
        }
        check_values(&text).map_err(invalid)?;
        Ok(text)
    }
}

impl PinnedGit {
    /// Returns true if a skill is within the directory of another one.
    pub(super) fn is_nested(&self) -> bool {
        let has = |outer: &str| self.skills.contains_key(outer);
        let is_within = |inner: &String| {
            inner != "." && (has(".") || inner.match_indices('/').any(|(at, _)| has(&inner[..at])))
        };
        self.skills.keys().any(is_within)
    }

    /// Returns true if `self` contains every skill of `approved`, at the same commit and with the same checksum.
    pub(super) fn has_all_of(&self, approved: &Self) -> bool {
        let is_same = |(path, digest): (&String, &String)| self.skills.get(path) == Some(digest);
        self.commit == approved.commit && approved.skills.iter().all(is_same)
    }
}

impl Pinned {
    fn check(&self) -> Result<(), Reason> {
        match self {
            Self::Git(git) => {
                check_commit(&git.commit)?;
                git.tag.iter().chain(&git.registry).try_for_each(|text| check_length(text))?;
                git.decisions.check(check_commit)?;
                git.skills.keys().try_for_each(|path| check_directory(path))?;
                git.skills.values().try_for_each(|digest| check_digest(digest))
            }
            Self::Web(web) => {
                check_digest(&web.index)?;
                web.decisions.check(check_digest)?;
                web.skills.iter().flat_map(BTreeMap::values).try_for_each(|digest| check_digest(digest))
            }
        }
    }
}

/// Checks the number of values, because each needs memory, and all sources of a configuration can be fetched at the same time.
fn check_values(text: &str) -> Result<(), Reason> {
    if has_more_values_than(text.as_bytes(), MAX_VALUES) {
        return Err(format!("file has more than {MAX_VALUES} values").into());
    }
    Ok(())
}

/// Checks the length of a text that is displayed.
fn check_length(text: &str) -> Result<(), Reason> {
    if text.len() <= MAX_TEXT_BYTES {
        return Ok(());
    }
    let short: String = text.chars().take(100).collect();
    Err(format!("`{}…` is longer than {MAX_TEXT_BYTES} bytes", shown(&short)).into())
}

fn is_hexadecimal(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

fn check_commit(text: &str) -> Result<(), Reason> {
    if matches!(text.len(), 40 | 64) && text.bytes().all(is_hexadecimal) {
        return Ok(());
    }
    Err(format!("`{}` is not a commit hash", shown(text)).into())
}

/// Checks the directory of a skill, because the directory is moved when the version is added to the store.
fn check_directory(path: &str) -> Result<(), Reason> {
    if path == "." || paths::safe(path.as_bytes()).is_ok() {
        return Ok(());
    }
    Err(format!("`{}` is not a directory in the repository", shown(path)).into())
}

fn check_digest(text: &str) -> Result<(), Reason> {
    Sha256::parse(text).map(|_| ()).ok_or_else(|| format!("`{text}` is not a SHA-256 checksum").into())
}

#[cfg(test)]
mod tests;
