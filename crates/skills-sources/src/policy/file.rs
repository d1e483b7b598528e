//! Reads the policy of this machine. It fails closed: a file that can't be read, that users can change, or that is not valid is an
//! error, and not a machine without a policy.

#[cfg(any(windows, test))]
mod descriptor;
#[cfg_attr(unix, path = "file/unix.rs")]
#[cfg_attr(windows, path = "file/windows.rs")]
mod system;

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use skills_core::text::shown_path;

use super::Policy;
use crate::{LockError, LockFile};

/// The maximum size of the file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The maximum number of links on a path. Systems follow fewer.
const MAX_LINKS: usize = 64;

/// The error of a policy that can't be used. Nothing may start then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The file can't be read.
    #[error("cannot read the policy of this machine: {source}: {}", shown_path(path))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Users can change the file.
    #[error("policy of this machine is not protected: {why}: {}", shown_path(path))]
    Unprotected {
        /// The file, or one of the directories that contain it.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// The file is not valid.
    #[error("policy is invalid: {why}: {}", shown_path(path))]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The lock file in `sources.lock` is not valid.
    #[error("cannot use the lock file in `sources.lock`: {source}")]
    Lock {
        /// The error of the lock file.
        source: Box<LockError>,
    },
}

impl PolicyError {
    /// Returns a hint about how to resolve the problem.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unprotected { .. } => system::HINT,
            _ => {
                "ask the administrator of this machine; `acp-skills-proxy policy check FILE` validates a policy"
            }
        }
    }
}

/// Returns the path of the policy of this machine. No flag and no variable changes it.
pub fn path() -> PathBuf {
    system::path()
}

impl Policy {
    /// Reads the policy of this machine. Returns `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the file or its directory exists, but the policy can't be read, can be changed by users, or is invalid.
    pub fn load() -> Result<Option<Self>, PolicyError> {
        let path = path();
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The directory can be a link to a disk that isn't mounted.
                let is_link = |dir: &Path| dir.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
                return match path.parent().filter(|dir| is_link(dir)).map(fs::metadata) {
                    Some(Err(source)) => Err(PolicyError::Unreadable { path, source }),
                    _ => Ok(None),
                };
            }
            Err(source) => return Err(PolicyError::Unreadable { path, source }),
            Ok(_) => {}
        }
        let mut policy = Self::read(&path, true)?;
        policy.check_lock(true)?;
        policy.file = path;
        Ok(Some(policy))
    }

    /// Reads and validates any file, even if users can change it.
    ///
    /// # Errors
    /// Returns an error if the file can't be read or is invalid.
    pub fn check(path: &Path) -> Result<Self, PolicyError> {
        Self::read(path, false)
    }

    /// Reads the lock file in `sources.lock`, if there is one. `is_protected` is true if users must not be able to change it.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, is invalid, or has to be protected and is not.
    pub fn check_lock(&self, is_protected: bool) -> Result<(), PolicyError> {
        let Some(lock) = &self.lock else { return Ok(()) };
        open(lock, is_protected)?;
        LockFile::read(lock).map_err(|error| PolicyError::Lock { source: Box::new(error) })?;
        Ok(())
    }

    fn read(path: &Path, is_protected: bool) -> Result<Self, PolicyError> {
        let mut text = String::new();
        let file = open(path, is_protected)?;
        let read = file.take(MAX_BYTES + 1).read_to_string(&mut text);
        read.map_err(|source| PolicyError::Unreadable { path: path.to_owned(), source })?;
        let invalid = |why: String| PolicyError::Invalid { path: path.to_owned(), why };
        if text.len() as u64 > MAX_BYTES {
            return Err(invalid("the file is larger than 1 MiB".into()));
        }
        Self::parse(&text, path).map_err(|why| invalid(why.to_string()))
    }
}

/// Checks that only administrators can change or replace a file, such as a program.
///
/// # Errors
/// Returns [`PolicyError::Unprotected`] if others can change it, and [`PolicyError::Unreadable`] if it can't be opened.
pub fn check_protection(path: &Path) -> Result<(), PolicyError> {
    open(path, true).map(drop)
}

/// Opens a file. If it has to be protected, users must neither be able to change it nor to replace it.
fn open(path: &Path, is_protected: bool) -> Result<File, PolicyError> {
    let unreadable = |source| PolicyError::Unreadable { path: path.to_owned(), source };
    let real = dunce::canonicalize(path).map_err(unreadable)?;
    if !fs::metadata(&real).map_err(unreadable)?.is_file() {
        return Err(unreadable(io::Error::other("not a regular file")));
    }
    let file = File::open(&real).map_err(unreadable)?;
    if is_protected {
        let metadata = file.metadata().map_err(unreadable)?;
        let unprotected = |path: &Path, why| PolicyError::Unprotected { path: path.to_owned(), why };
        if let Some(why) = system::objection(&real, &metadata) {
            return Err(unprotected(&real, why));
        }
        // The path, its directories, and those that its links lead to. On Windows, a link has an owner and rights of its own.
        for start in linked(path).iter().chain([&real]) {
            for place in start.ancestors().filter(|place| place.parent().is_some()) {
                let metadata = fs::metadata(place).map_err(unreadable)?;
                if let Some(why) = system::objection(place, &metadata) {
                    return Err(unprotected(place, why));
                }
            }
        }
    }
    Ok(file)
}

/// Returns a path, and the paths that its links and the links of its directories lead to, one after another.
fn linked(path: &Path) -> Vec<PathBuf> {
    let mut paths = vec![path.to_owned()];
    let mut number = 0;
    while let Some(path) = paths.get(number).cloned().filter(|_| number < MAX_LINKS) {
        for place in path.ancestors() {
            let (Ok(target), Some(parent)) = (fs::read_link(place), place.parent()) else { continue };
            let rest = path.strip_prefix(place).unwrap_or(Path::new(""));
            // Without a slash at the end, which a file can't have.
            let target = parent.join(target).join(rest).components().collect();
            if !paths.contains(&target) {
                paths.push(target);
            }
        }
        number += 1;
    }
    paths
}
