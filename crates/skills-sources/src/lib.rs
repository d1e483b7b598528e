//! Skills that come from elsewhere: git repositories and web sites, pinned, kept on this disk, and approved by hash.
//!
//! | file | owns |
//! |---|---|
//! | `address` | what people write, and what it means |
//! | `git/` | what a repository has, fetched |
//! | `store` | what was fetched, on this disk |
//! | `manifest` | where a repository says that its skills are |
//! | `prune` | what of the store is removed, and by whom it is used |
//! | `digest` | the hash of a skill |
//! | `lockfile/` | `skills.lock`: what was approved; the last one that could be read (`cache`) |
//! | `load` | what may be served: what is here, and is what was approved |
//! | `live/` | all of that while sessions use it; fetching what is missing in the background |
//! | `update` | what a source has now, how that differs from what was approved, and approving it |
//! | `system/` | how it is protected and removed: by the system |
//! | `error` | why skills are not there, and what to do about it |
//!
//! A start reads this disk and nothing else. Of a source that was never fetched, what comes first is approved: its user
//! has just named it. From then on, only `update` changes what is served.

mod address;
mod digest;
pub mod disk;
mod error;
mod git;
mod live;
mod load;
mod lockfile;
mod manifest;
mod prune;
mod store;
#[cfg_attr(unix, path = "system/unix.rs")]
#[cfg_attr(windows, path = "system/windows.rs")]
mod system;
pub mod trust;
mod update;

pub use self::{
    address::{Address, AddressError, GitPlace, Place, Transport},
    error::SourceError,
    git::GitError,
    live::{Notify, Options, Sources, Spec},
    lockfile::{LOCK_NAME, LockError, LockFile, Pinned, PinnedGit, PinnedWeb},
    update::{
        FileChange, FileChangeKind, Offer, OfferedFile, OfferedSkill, SkillChange, Updater, lock_beside,
        user_lock,
    },
};
pub use crate::disk::FileLock;
