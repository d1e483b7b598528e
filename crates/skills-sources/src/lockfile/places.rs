//! The places of lock files.

use std::path::{Path, PathBuf};

use super::LOCK_NAME;
use crate::disk::locations::state_dir;

/// Returns the path of the lock file for sources that are not in a configuration file.
pub fn user_lock() -> PathBuf {
    state_dir().unwrap_or_default().join(LOCK_NAME)
}

/// Returns the path of the lock file for the sources that an administrator requires. It is another file than [`user_lock`], because
/// approvals of the user can leave skills out.
pub fn required_lock() -> PathBuf {
    state_dir().unwrap_or_default().join("required").join(LOCK_NAME)
}

/// Returns the path of the lock file for the sources in a configuration file.
pub fn lock_beside(config: &Path) -> PathBuf {
    config.with_file_name(LOCK_NAME)
}
