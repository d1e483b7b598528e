//! Agent Skills from git repositories, archives, npm packages and web sites: pinned, stored on the local disk, and approved by checksum.
//!
//! A configuration lists sources as [`Address`]es. [`Sources`] serves their skills to an agent loop, and [`Updater`] shows what a
//! source offers now and approves it. The lock file (`skills.lock`, [`LockFile`]) records the approved commit or index of each
//! source, and the checksum of each skill.
//!
//! ```no_run
//! use skills_sources::{Address, Options, Sources, Spec, disk};
//!
//! # fn main() -> Result<(), skills_sources::AddressError> {
//! let spec = Spec {
//!     address: Address::parse("github:acme/skills@v2")?,
//!     filters: Vec::new(),
//!     lock: "skills.lock".into(),
//!     nested: false,
//!     is_named: true,
//! };
//! let options = Options { cache: disk::cache_dir(), max_skills: 500, ..Options::default() };
//! let sources = Sources::start(vec![spec], options);
//! // Blocks until every source is fetched. `Sources::watch` fetches in the background instead.
//! for failure in sources.fetch() {
//!     eprintln!("{failure}");
//! }
//! for skill in sources.get().iter() {
//!     println!("{}: {}", skill.name, skill.description);
//! }
//! # Ok(()) }
//! ```
//!
//! To start, we only need to read the local disk. If the user names a source explicitly, its first version is approved once, but
//! skills with a high-risk finding, or with files that the scan could not read, are held back. Every other source that is not in
//! the lock file waits until it is approved. After that, the served skills only change when the user approves an update.
//!
//! | file | responsible for |
//! |---|---|
//! | `access/` | requests to the servers of sources, with the user's credentials |
//! | `address` | the syntax of addresses |
//! | `approved` | the approved skills of repositories, apart from all others |
//! | `archive/` | unpacking the skills of a tar.gz or zip file |
//! | `git/` | fetching the skills of a repository with the user's `git` |
//! | `store` | fetched sources on disk |
//! | `npm/` | the versions of npm packages |
//! | `origin` | fetching from a repository, an archive or a package |
//! | [`site`] | the skills that a web site publishes |
//! | `packed` | skills that a web site publishes as archives |
//! | `parallel` | several fetches at the same time |
//! | `paths` | paths that are safe on every operating system |
//! | `named` | sources that were approved by naming them |
//! | `manifest` | plugin manifests, in which a repository lists its directories of skills |
//! | `policy/` | the rules of an administrator |
//! | `prune` | removing sources that are no longer used |
//! | `digest` | the checksum of a skill |
//! | `lockfile/` | `skills.lock`, and a copy of its last readable version |
//! | `load` | loading the approved skills from the store |
//! | `live/` | serving sources to sessions, and fetching missing ones in the background |
//! | `update` | comparing a source with its approved version, and approving it |
//! | `trust/` | approval of skills in a user's projects |
//! | `disk/` | locations, permissions and locks of files on disk |
//! | `system/` | write protection and removal, by operating system |
//! | `error` | errors of sources, and how to resolve them |
//! | `versions` | ranges of versions, and the tags that they match |
//! | `reason` | why a value in an address or a lock file is invalid |

mod access;
mod address;
mod approved;
mod archive;
mod budget;
mod digest;
pub mod disk;
mod error;
mod git;
mod live;
mod load;
mod lockfile;
mod manifest;
mod named;
mod npm;
mod origin;
mod packed;
mod parallel;
mod paths;
pub mod policy;
mod prune;
mod reason;
pub mod site;
mod store;
#[cfg_attr(unix, path = "system/unix.rs")]
#[cfg_attr(windows, path = "system/windows.rs")]
mod system;
mod temporary;
pub mod trust;
mod update;
mod versions;

pub use self::{
    access::{Access, Credentials},
    address::{Address, AddressError, GitPlace, Place, Transport},
    error::SourceError,
    git::GitError,
    live::{Notify, Options, Sources, Spec},
    lockfile::{
        Decisions, LOCK_NAME, LockError, LockFile, Pinned, PinnedGit, PinnedWeb, REMOVED, lock_beside,
        required_lock, user_lock,
    },
    parallel::{Work, on_threads},
    update::{
        Answer, Comparison, Decision, FileChange, FileChangeKind, Offer, OfferedFile, OfferedSkill, Query,
        Rejected, SkillChange, Updater, named_sources,
    },
};
pub use crate::disk::FileLock;
