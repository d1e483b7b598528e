//! [`LockFile`]: `skills.lock`, which records the approved version of each source.
//!
//! The file is JSON with sorted keys and one line per skill, so that diffs are readable and branches can be merged. Its content is
//! untrusted: every value is checked before it becomes a file name or an argument of git.
//!
//! A process changes the file under a file lock: it reads the file, changes it, and replaces it atomically. A file that can't be read
//! is never overwritten. The last readable version is kept in the cache directory (`cache`), so that skills are still served.

mod cache;
mod conflict;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use skills_core::{remote::Sha256, text::shown};

pub(super) use self::cache::{lock_path, references};
use crate::{
    disk::{self, FileLock, reason, shorten_home},
    git::paths,
    reason::Reason,
};

/// The name of the lock file, which is in the same directory as the configuration file.
pub const LOCK_NAME: &str = "skills.lock";
const VERSION: u32 = 1;
/// The reason why a file with conflict markers is invalid.
const CONFLICT: &str = "file contains merge conflict markers";
/// The maximum size of a lock file, in bytes.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// A lock file: the approved version of each source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockFile {
    version: u32,
    /// By address, as the user wrote it.
    sources: BTreeMap<String, Pinned>,
}

/// The approved version of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Pinned {
    /// A git repository at a commit.
    Git(PinnedGit),
    /// The index of a web site.
    Web(PinnedWeb),
}

/// The approved version of a git repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PinnedGit {
    /// The full hash of the commit.
    pub commit: String,
    /// The SHA-256 checksum of each approved skill, by its directory in the source. The root of the source is `.`.
    pub skills: BTreeMap<String, String>,
}

/// The approved version of a web site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PinnedWeb {
    /// The SHA-256 checksum of the index, which contains names, descriptions, URLs, and optionally checksums of files.
    pub index: String,
    /// The SHA-256 checksum of the entry of each approved skill, by name. `None` approves all skills of the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<BTreeMap<String, String>>,
}

/// An error of a lock file. The message names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The file can't be read.
    #[error("cannot read lock file: {}: {}", reason(source), shorten_home(path))]
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
    /// The file can't be written.
    #[error("cannot write lock file: {}: {}", reason(source), shorten_home(path))]
    Unwritable {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl LockError {
    /// Returns a hint about how to resolve the problem.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Broken { what, .. } if what.contains("merge") => {
                "run `acp-skills-proxy update` to resolve the merge conflict, or keep one side of it"
            }
            Self::Broken { .. } => {
                "restore the file from version control, or remove it and run `acp-skills-proxy update`"
            }
            Self::Unwritable { source, .. } if source.kind() == io::ErrorKind::TimedOut => {
                "wait until that process has ended, or end it, and retry"
            }
            Self::Unreadable { .. } | Self::Unwritable { .. } => "check free disk space and file permissions",
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
    /// Returns [`LockError::Unreadable`] if the file can't be read, and [`LockError::Broken`] if its content is invalid.
    pub fn read(path: &Path) -> Result<Self, LockError> {
        let unreadable = |source| LockError::Unreadable { path: path.to_owned(), source };
        let text = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unreadable(error)),
            Ok(metadata) if metadata.len() > MAX_BYTES => {
                return Err(LockError::Broken {
                    path: path.to_owned(),
                    what: "file is too large".to_owned(),
                });
            }
            // Don't open anything else, since opening a FIFO would block.
            Ok(metadata) if !metadata.is_file() => {
                return Err(unreadable(io::Error::other("not a regular file")));
            }
            Ok(_) => fs::read_to_string(path).map_err(unreadable)?,
        };
        Self::parse(&text)
            .map_err(|reason| LockError::Broken { path: path.to_owned(), what: reason.to_string() })
    }

    fn parse(text: &str) -> Result<Self, Reason> {
        if conflict::has_markers(text) {
            return Err(CONFLICT.into());
        }
        let lock: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if lock.version != VERSION {
            return Err(format!(
                "file has version {}, but only version {VERSION} is supported",
                lock.version
            )
            .into());
        }
        for (source, pinned) in &lock.sources {
            pinned.check().map_err(|what| format!("`{source}`: {what}"))?;
        }
        Ok(lock)
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
        let mut lock = Self::read(path)?;
        let before = lock.clone();
        let changed = change(&mut lock);
        if lock != before || !path.exists() {
            lock.write(path).map_err(unwritable)?;
        }
        lock.keep(path, cache);
        Ok(changed)
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent)?;
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        disk::write(path, &text)?;
        Ok(())
    }
}

impl PinnedGit {
    /// Returns true if a skill is within the directory of another one.
    pub(super) fn is_nested(&self) -> bool {
        let is_within = |inner: &str, outer: &str| {
            outer == "." && inner != "."
                || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
        };
        self.skills.keys().any(|inner| self.skills.keys().any(|outer| is_within(inner, outer)))
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
                if !matches!(git.commit.len(), 40 | 64) || !git.commit.bytes().all(is_hexadecimal) {
                    return Err(format!("`{}` is not a commit hash", git.commit).into());
                }
                git.skills.keys().try_for_each(|path| check_directory(path))?;
                git.skills.values().try_for_each(|digest| check_digest(digest))
            }
            Self::Web(web) => {
                check_digest(&web.index)?;
                web.skills.iter().flat_map(BTreeMap::values).try_for_each(|digest| check_digest(digest))
            }
        }
    }
}

fn is_hexadecimal(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
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
mod tests {
    use super::*;

    fn git(commit: char) -> Pinned {
        let skills = [("a/b".to_owned(), "0".repeat(64))].into();
        Pinned::Git(PinnedGit { commit: commit.to_string().repeat(40), skills })
    }

    #[test]
    fn a_written_file_is_read_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/skills.lock");
        let cache = dir.path().join("cache");
        assert_eq!(LockFile::read(&path).unwrap(), LockFile::default());
        LockFile::change(&path, &cache, |lock| lock.set("github:b/b", git('a'))).unwrap();
        let web = Pinned::Web(PinnedWeb { index: "1".repeat(64), skills: None });
        LockFile::change(&path, &cache, |lock| lock.set("https://a", web.clone())).unwrap();
        let lock = LockFile::read(&path).unwrap();
        assert_eq!((lock.get("github:b/b"), lock.get("https://a")), (Some(&git('a')), Some(&web)));
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("}\n") && text.lines().count() > 10, "{text}");
        assert!(LockFile::change(&path, &cache, |lock| lock.remove("github:b/b")).unwrap());
        assert!(!LockFile::change(&path, &cache, |lock| lock.remove("github:b/b")).unwrap());
        assert_eq!(LockFile::read(&path).unwrap().sources().collect::<Vec<_>>(), ["https://a"]);
    }

    #[test]
    fn concurrent_changes_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("skills.lock");
        let cache = dir.path().join("cache");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let path = &path;
                let cache = &cache;
                scope.spawn(move || {
                    for round in 0..5 {
                        let source = format!("github:a/{number}-{round}");
                        LockFile::change(path, cache, |lock| lock.set(&source, git('b'))).unwrap();
                    }
                });
            }
        });
        assert_eq!(LockFile::read(&path).unwrap().sources().count(), 40);
    }

    #[test]
    fn a_broken_file_is_kept_and_the_last_readable_version_is_served() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("skills.lock");
        let cache = dir.path().join("cache");
        LockFile::change(&path, &cache, |lock| lock.set("github:b/b", git('a'))).unwrap();
        let good = LockFile::read(&path).unwrap();
        assert!(LockFile::read_or_last(&path, &cache).1.is_none());
        let one = |pinned: &str| format!(r#"{{"version":1,"sources":{{"x":{pinned}}}}}"#);
        let digest = "0".repeat(64);
        let of_directory = |directory: &str| {
            let skills = serde_json::json!({ directory: digest });
            one(&serde_json::json!({ "commit": "a".repeat(40), "skills": skills }).to_string())
        };
        for (text, words) in [
            (String::new(), "EOF"),
            ("{".to_owned(), "line 1"),
            (r#"{"version":2,"sources":{}}"#.to_owned(), "version 2"),
            (r#"{"version":1,"sources":{},"x":1}"#.to_owned(), "unknown field"),
            (one(r#"{"commit":"../../etc","skills":{}}"#), "not a commit hash"),
            (one(r#"{"commit":"--upload-pack=x","skills":{}}"#), "not a commit hash"),
            (one(&format!(r#"{{"commit":"{}","skills":{{"a":"b"}}}}"#, "a".repeat(40))), "not a SHA-256"),
            (one(r#"{"index":"../x"}"#), "not a SHA-256"),
            (of_directory("/etc"), "`/etc` is not a directory in the repository"),
            (of_directory("../x"), "not a directory"),
            (of_directory("a/../../x"), "not a directory"),
            (of_directory(""), "not a directory"),
            (of_directory("a//b"), "not a directory"),
            (of_directory("a/"), "not a directory"),
            (of_directory("./a"), "not a directory"),
            (of_directory("a/."), "not a directory"),
            (of_directory(".."), "not a directory"),
            (of_directory("..\\x"), "not a directory"),
            (of_directory("a\\..\\..\\x"), "not a directory"),
            (of_directory("C:"), "not a directory"),
            (of_directory("C:/x"), "not a directory"),
            (of_directory("C:\\x"), "not a directory"),
            (of_directory("\\\\server\\share"), "not a directory"),
            (of_directory("//server/share"), "not a directory"),
            (of_directory("a\0/../x"), "not a directory"),
            (of_directory("a\0"), "not a directory"),
            (of_directory(".git/hooks"), "not a directory"),
            (of_directory("nul"), "not a directory"),
            (of_directory("a."), "not a directory"),
            (of_directory("a\u{1b}[2J"), "`a\\u{1b}[2J` is not a directory"),
            (of_directory(&"a/".repeat(600)), "not a directory"),
            (
                one(&format!(r#"{{"commit":"{}","skills":{{"a\ud800":"{digest}"}}}}"#, "a".repeat(40))),
                "hex escape",
            ),
            (one(&format!(r#"{{"index":"{digest}","skills":{{"a":"b"}}}}"#)), "not a SHA-256"),
            (one(&format!(r#"{{"index":"{digest}","commit":"{digest}"}}"#)), "did not match"),
            ("<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> x\n".to_owned(), "merge"),
        ] {
            fs::write(&path, &text).unwrap();
            let error = LockFile::read(&path).unwrap_err();
            assert!(
                error.to_string().contains(words) && error.to_string().contains("skills.lock"),
                "{error}"
            );
            let (lock, error) = LockFile::read_or_last(&path, &cache);
            assert!(lock == good && error.is_some(), "{text}");
            LockFile::change(&path, &cache, |lock| lock.set("github:c/c", git('a'))).unwrap_err();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        // We should not open the FIFO, since that would block until a writer opens it, too.
        #[cfg(unix)]
        {
            fs::remove_file(&path).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
            let error = LockFile::read(&path).unwrap_err();
            assert!(
                std::error::Error::source(&error).unwrap().to_string().contains("not a regular file"),
                "{error}"
            );
        }
    }
}
