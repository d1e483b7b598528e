//! [`LockFile`]: `skills.lock`, which says what of each source was approved.
//!
//! It is JSON, with sorted keys and a line for each skill, so that a difference can be read and two branches can be
//! merged. What is in it can be anybody's: every value is checked before it names a file or reaches git.
//!
//! Whoever changes it keeps other processes from doing so, reads it, changes it, and puts it in place whole. One that cannot
//! be read is never written over. The last one that could be read is kept in the `cache`, for whoever only serves.

mod cache;

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use skills_core::remote::Sha256;

pub(super) use self::cache::{lock_path, references};
use crate::disk::{self, FileLock};

/// The name of a lock beside a configuration file.
pub const LOCK_NAME: &str = "skills.lock";
const VERSION: u32 = 1;
/// A lock is never longer.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// What was approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockFile {
    version: u32,
    /// By address, as it was written.
    sources: BTreeMap<String, Pinned>,
}

/// What was approved of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Pinned {
    /// A repository at a commit.
    Git(PinnedGit),
    /// A web site's index.
    Web(PinnedWeb),
}

/// What was approved of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PinnedGit {
    /// The commit's whole name.
    pub commit: String,
    /// The hash of each skill, by its directory in the source; the source itself is `.`.
    pub skills: BTreeMap<String, String>,
}

/// What was approved of a web site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PinnedWeb {
    /// The SHA-256 of the index: names, descriptions, addresses, and the digests of files where it has some.
    pub index: String,
}

/// Why a lock cannot be used. The message names the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is not what it should be.
    #[error("{}: {what}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column where they are known.
        what: String,
    },
    /// It cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl LockError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Broken { what, .. } if what.contains("merge") => {
                "take one side of the merge; `acp-skills-proxy update` then brings it up to date"
            }
            Self::Broken { .. } => {
                "take it back from version control, or remove it: `acp-skills-proxy update` writes it anew, and asks"
            }
            Self::Unreadable { .. } | Self::Unwritable { .. } => {
                "look at the file's rights, and at the disk's space"
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
    /// Reads a lock; one that does not exist is empty.
    ///
    /// # Errors
    /// It cannot be read, or is not what it should be.
    pub fn read(path: &Path) -> Result<Self, LockError> {
        let unreadable = |source| LockError::Unreadable { path: path.to_owned(), source };
        let text = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unreadable(error)),
            Ok(metadata) if metadata.len() > MAX_BYTES => {
                return Err(LockError::Broken { path: path.to_owned(), what: "it is too long".to_owned() });
            }
            // A FIFO would be waited for.
            Ok(metadata) if !metadata.is_file() => {
                return Err(unreadable(io::Error::other("it is no file")));
            }
            Ok(_) => fs::read_to_string(path).map_err(unreadable)?,
        };
        Self::parse(&text).map_err(|what| LockError::Broken { path: path.to_owned(), what })
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.lines().any(|line| line.starts_with("<<<<<<< ")) {
            return Err("it has the marks of a merge that nobody has finished".to_owned());
        }
        let lock: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if lock.version != VERSION {
            return Err(format!("it has version {}, and this program knows version {VERSION}", lock.version));
        }
        for (source, pinned) in &lock.sources {
            pinned.check().map_err(|what| format!("`{source}`: {what}"))?;
        }
        Ok(lock)
    }

    /// What was approved of a source.
    pub fn get(&self, source: &str) -> Option<&Pinned> {
        self.sources.get(source)
    }

    /// The sources of which anything was approved.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.sources.keys().map(String::as_str)
    }

    /// Approves this of a source, instead of what was before.
    pub fn set(&mut self, source: &str, pinned: Pinned) {
        self.sources.insert(source.to_owned(), pinned);
    }

    /// Forgets a source. Returns whether it was there.
    pub fn remove(&mut self, source: &str) -> bool {
        self.sources.remove(source).is_some()
    }

    /// Changes a lock on disk, one process at a time: those that have the directory `cache` in common. Returns what `change`
    /// returns. What stays the same is not written.
    ///
    /// # Errors
    /// It cannot be read, is not what it should be, or cannot be written.
    pub fn change<T>(path: &Path, cache: &Path, change: impl FnOnce(&mut Self) -> T) -> Result<T, LockError> {
        let unwritable = |source| LockError::Unwritable { path: path.to_owned(), source };
        let _lock = FileLock::acquire(&lock_path(path, cache)).map_err(unwritable)?;
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
        let parent = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent)?;
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        disk::write(path, &text)?;
        Ok(())
    }
}

impl PinnedGit {
    /// Whether all that was approved in `approved` is here as it was.
    pub(super) fn has_all_of(&self, approved: &Self) -> bool {
        let is_same = |(path, digest): (&String, &String)| self.skills.get(path) == Some(digest);
        self.commit == approved.commit && approved.skills.iter().all(is_same)
    }
}

impl Pinned {
    fn check(&self) -> Result<(), String> {
        match self {
            Self::Git(git) => {
                if !matches!(git.commit.len(), 40 | 64) || !git.commit.bytes().all(is_hexadecimal) {
                    return Err(format!("`{}` is not the name of a commit", git.commit));
                }
                git.skills.values().try_for_each(|digest| check_digest(digest))
            }
            Self::Web(web) => check_digest(&web.index),
        }
    }
}

fn is_hexadecimal(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

fn check_digest(text: &str) -> Result<(), String> {
    Sha256::parse(text).map(|_| ()).ok_or_else(|| format!("`{text}` is no SHA-256"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(commit: char) -> Pinned {
        let skills = [("a/b".to_owned(), "0".repeat(64))].into();
        Pinned::Git(PinnedGit { commit: commit.to_string().repeat(40), skills })
    }

    #[test]
    fn what_is_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let (path, cache) = (dir.path().join("new/skills.lock"), dir.path().join("cache"));
        assert_eq!(LockFile::read(&path).unwrap(), LockFile::default());
        LockFile::change(&path, &cache, |lock| lock.set("github:b/b", git('a'))).unwrap();
        let web = Pinned::Web(PinnedWeb { index: "1".repeat(64) });
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
    fn nobody_loses_a_change() {
        let dir = tempfile::tempdir().unwrap();
        let (path, cache) = (dir.path().join("skills.lock"), dir.path().join("cache"));
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (path, cache) = (&path, &cache);
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
    fn a_broken_one_is_kept_and_the_last_good_one_is_served() {
        let dir = tempfile::tempdir().unwrap();
        let (path, cache) = (dir.path().join("skills.lock"), dir.path().join("cache"));
        LockFile::change(&path, &cache, |lock| lock.set("github:b/b", git('a'))).unwrap();
        let good = LockFile::read(&path).unwrap();
        assert!(LockFile::read_or_last(&path, &cache).1.is_none());
        let one = |pinned: &str| format!(r#"{{"version":1,"sources":{{"x":{pinned}}}}}"#);
        let digest = "0".repeat(64);
        for (text, words) in [
            (String::new(), "EOF"),
            ("{".to_owned(), "line 1"),
            (r#"{"version":2,"sources":{}}"#.to_owned(), "version 2"),
            (r#"{"version":1,"sources":{},"x":1}"#.to_owned(), "unknown field"),
            (one(r#"{"commit":"../../etc","skills":{}}"#), "not the name of a commit"),
            (one(r#"{"commit":"--upload-pack=x","skills":{}}"#), "not the name of a commit"),
            (one(&format!(r#"{{"commit":"{}","skills":{{"a":"b"}}}}"#, "a".repeat(40))), "no SHA-256"),
            (one(r#"{"index":"../x"}"#), "no SHA-256"),
            (one(&format!(r#"{{"index":"{digest}","skills":{{}}}}"#)), "did not match"),
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
        // Whoever reads a FIFO waits for somebody who writes.
        #[cfg(unix)]
        {
            fs::remove_file(&path).unwrap();
            assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
            let error = LockFile::read(&path).unwrap_err();
            assert!(
                std::error::Error::source(&error).unwrap().to_string().contains("it is no file"),
                "{error}"
            );
        }
    }
}
