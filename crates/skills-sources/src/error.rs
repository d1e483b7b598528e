//! [`SourceError`]: why the skills of a source are not available, and how to resolve it.

use std::{io, path::PathBuf};

use skills_core::text::shown;

use super::{
    git::{GitError, UNKNOWN_AUTHORITY, is_unknown_authority},
    load::PinError,
    lockfile::LockError,
    policy::{PolicyError, Refusal},
    site::RemoteError,
    store::WebError,
};

/// An error of a source. The message names the source, and [`hint`](Self::hint) says how to resolve the problem.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The repository can't be fetched.
    #[error("cannot fetch `{}`: {source}", shown(address))]
    Git {
        /// The address of the source.
        address: String,
        /// The cause.
        source: GitError,
    },
    /// The current version of the source has no accepted signature, which the user requires.
    #[error("`{}` is not updated: {source}", shown(address))]
    Unsigned {
        /// The address of the source.
        address: String,
        /// The cause, which is [`GitError::Unsigned`].
        source: GitError,
    },
    /// The current version of the source is older than the approved one. This is an error if the user requires signatures, because a
    /// server can offer an old version with its signature.
    #[error(
        "`{}` is not updated: it offers {offered}, which is older than the approved {approved}",
        shown(address)
    )]
    Older {
        /// The address of the source.
        address: String,
        /// The version that the source offers.
        offered: String,
        /// The approved version.
        approved: String,
    },
    /// The approved version was approved before the user required signatures, and the source no longer has it. So it is unknown whether the
    /// current version is older.
    #[error(
        "`{}` is not updated: its approved commit {approved:.12} cannot be fetched, so it is unknown whether the current version is older",
        shown(address)
    )]
    UnknownTime {
        /// The address of the source.
        address: String,
        /// The hash of the approved commit.
        approved: String,
    },
    /// The approved version was approved before the user required signatures, and is not signed. So it is unknown whether the current
    /// version is older.
    #[error(
        "`{}` is not updated: its approved commit {approved:.12} is not signed, so it is unknown whether the current version is older",
        shown(address)
    )]
    UnsignedApproval {
        /// The address of the source.
        address: String,
        /// The hash of the approved commit.
        approved: String,
    },
    /// The source can't have signatures, which the user requires.
    #[error("`{}` requires `verify: git`, but is not a git repository", shown(address))]
    NoSignatures {
        /// The address of the source.
        address: String,
    },
    /// The index of a web site can't be fetched.
    #[error("cannot fetch skills from `{}`: {source}", shown(address))]
    Web {
        /// The address of the source.
        address: String,
        /// The cause.
        source: RemoteError,
    },
    /// The index of a web site has changed since it was approved, and the approved index is not in the cache.
    #[error(
        "skills from `{}` have changed since approval, and the approved version is not in the cache",
        shown(address)
    )]
    Changed {
        /// The address of the source.
        address: String,
    },
    /// The approval of the source has changed several times while the source was fetched.
    #[error("the approval of `{}` has changed while it was fetched", shown(address))]
    ApprovalChanged {
        /// The address of the source.
        address: String,
    },
    /// The source is not in the lock file, and `--locked` allows no others.
    #[error("`{}` is not in {}", shown(address), path.display())]
    NotLocked {
        /// The address of the source.
        address: String,
        /// The lock file.
        path: PathBuf,
    },
    /// The source is not in the lock file, and naming it does not approve it.
    #[error("`{}` is not approved: it is not in {}", shown(address), path.display())]
    NotApproved {
        /// The address of the source.
        address: String,
        /// The lock file.
        path: PathBuf,
        /// True if the user named the source explicitly, and it was approved before.
        is_named: bool,
    },
    /// The policy of an administrator doesn't allow the source.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The policy of this machine can't be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The lock file can't be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// There is no cache directory on this system.
    #[error("no cache directory for skills: no home directory found, and XDG_CACHE_HOME is not set")]
    NoCache,
    /// The fetched skills can't be stored or read.
    #[error("cannot store skills from `{}`: {source}", shown(address))]
    System {
        /// The address of the source.
        address: String,
        /// The system's error.
        source: io::Error,
    },
}

impl SourceError {
    pub(super) fn git(address: &impl ToString, source: GitError) -> Self {
        let address = address.to_string();
        match source {
            GitError::Unsigned { .. } => Self::Unsigned { address, source },
            source => Self::Git { address, source },
        }
    }

    pub(super) fn pin(address: &impl ToString, source: PinError) -> Self {
        match source {
            PinError::System(source) => Self::system(address, source),
            PinError::TooMuch(source) => Self::git(address, source),
        }
    }

    pub(super) fn web(address: &impl ToString, source: WebError) -> Self {
        let address = address.to_string();
        match source {
            WebError::Remote(source) => Self::Web { address, source },
            WebError::System(source) => Self::System { address, source },
            WebError::Access(source) => Self::Git { address, source },
        }
    }

    pub(super) fn system(address: &impl ToString, source: io::Error) -> Self {
        Self::System { address: address.to_string(), source }
    }

    /// Returns a hint about how to resolve the problem.
    pub fn hint(&self) -> String {
        match self {
            Self::Git { address, source: source @ GitError::NoReference(_) } => format!(
                "{}; run `acp-skills-proxy update '{}'` to see the current version",
                source.hint(),
                shown(address)
            ),
            Self::Git { address, source: GitError::OtherArchive } => format!(
                "run `acp-skills-proxy update '{}'` to review and approve the current version",
                shown(address)
            ),
            Self::Git { source, .. } | Self::Unsigned { source, .. } => source.hint().to_owned(),
            Self::Older { address, .. }
            | Self::UnknownTime { address, .. }
            | Self::UnsignedApproval { address, .. } => {
                let address = shown(address);
                format!(
                    "ask the author; to use the current version, run `acp-skills-proxy remove '{address}'` and `acp-skills-proxy add \
                     '{address}' --verify git`"
                )
            }
            Self::NoSignatures { .. } => {
                "remove `verify`, or use the git repository of the skills".to_owned()
            }
            Self::Web { source: RemoteError::NoIndex { .. } | RemoteError::Index { .. }, .. } => {
                "use the address of a web site with skills, an index.json file, or a git repository"
                    .to_owned()
            }
            Self::Web { source, .. } if is_unknown_authority(&source.to_string()) => {
                UNKNOWN_AUTHORITY.to_owned()
            }
            Self::Web { .. } => {
                "check the network and the address, then retry, or use `/skills reload` in an open session"
                    .to_owned()
            }
            Self::ApprovalChanged { .. } => "retry, or use `/skills reload` in an open session".to_owned(),
            Self::Changed { address } | Self::NotLocked { address, .. } => {
                format!(
                    "use `acp-skills-proxy update '{}'` to review and approve the changes",
                    shown(address)
                )
            }
            Self::NotApproved { address, is_named, .. } => {
                let config = if *is_named { "" } else { " (with `--config`, if you use it)" };
                let address = shown(address);
                format!("run `acp-skills-proxy update '{address}'`{config} to review and approve it")
            }
            Self::Refused(_) => Refusal::HINT.to_owned(),
            Self::Policy(error) => error.hint().to_owned(),
            Self::Lock(error) => error.hint().to_owned(),
            Self::NoCache => "set HOME or XDG_CACHE_HOME to an absolute path".to_owned(),
            Self::System { .. } => "check free disk space and permissions".to_owned(),
        }
    }
}
