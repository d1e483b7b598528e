//! The places of lock files.

use std::path::{Path, PathBuf};

use super::LOCK_NAME;
use crate::disk::locations::{cache_dir, state_dir};

/// The directory if there is neither a home directory nor a variable with a directory. It must not be the working directory, because a
/// project could contain a lock file. Without a cache, no source can be fetched.
const NOWHERE: &str = if cfg!(windows) { "C:\\" } else { "/" };

/// Returns the path of the lock file for sources that are not in a configuration file.
pub fn user_lock() -> PathBuf {
    own_directory().join(LOCK_NAME)
}

/// Returns the path of the lock file for the sources that an administrator requires. It is another file than [`user_lock`], because
/// approvals of the user can leave skills out.
pub fn required_lock() -> PathBuf {
    own_directory().join("required").join(LOCK_NAME)
}

/// Returns the directory for lock files of the user.
fn own_directory() -> PathBuf {
    state_dir().or_else(cache_dir).unwrap_or_else(|| NOWHERE.into())
}

/// Returns the path of the lock file for the sources in a configuration file.
pub fn lock_beside(config: &Path) -> PathBuf {
    config.with_file_name(LOCK_NAME)
}
