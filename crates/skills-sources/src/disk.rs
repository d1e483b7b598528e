//! Files that this program keeps for its user: where they are, who may read them, and which process may change them.
//!
//! | module | responsible for |
//! |---|---|
//! | [`locations`] | the directories for configuration, cache and state on each platform |
//! | [`private`] | files and directories that only their owner can read |
//! | [`lock`] | locks between processes |
//! | [`bounded`] | regular files, which are read with a limit |
//! | [`patient`] | files that may not be regular files, which are read with a timeout |
//! | [`secret()`] | the secret of the installation |
//! | [`state`] | small state files, written atomically under a lock |
//! | [`HeldDirectory`] | directories that stay the same if a link appears in their path |
//! | [`Resolved`] | files that are read, changed and written again |
//! | [`replace()`] | replacing files that other processes may have open |
//! | [`home`] | `~` in paths |
//! | [`leftovers`] | temporary files of processes that were killed |
//! | [`error_text()`] | the text of a system's error |

pub mod bounded;
#[cfg_attr(not(target_os = "linux"), path = "disk/held/by_path.rs")]
mod held;
pub mod home;
pub mod leftovers;
pub mod locations;
pub mod lock;
pub mod patient;
pub mod private;
mod replace;
mod resolved;
mod secret;
pub mod state;
mod system_error;

use std::path::Path;

pub use self::{
    held::HeldDirectory,
    home::{expand_home, shorten_home},
    locations::{cache_dir, config_file, state_dir},
    lock::FileLock,
    replace::replace,
    resolved::{Resolved, without_links},
    secret::{SECRET_BYTES, secret},
    state::StateDir,
    system_error::error_text,
};

/// Returns `path` relative to `base`, with `/` as the separator on every platform. The path is empty for `base` itself. A path that is
/// not below `base` stays whole.
pub(crate) fn relative_path(base: &Path, path: &Path) -> String {
    let below = path.strip_prefix(base).unwrap_or(path);
    below.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}
