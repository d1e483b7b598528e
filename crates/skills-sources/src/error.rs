//! Why the skills of a source are not there, and what to do about it.

use std::{io, path::PathBuf};

use skills_core::{remote::RemoteError, text::shown};

use super::{git::GitError, lockfile::LockError, store::WebError};

/// Why the skills of a source are not there. The message names the source, [`hint`](Self::hint) the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// A repository cannot be fetched.
    #[error("cannot fetch `{}`: {source}", shown(address))]
    Git {
        /// The source.
        address: String,
        /// What went wrong.
        source: GitError,
    },
    /// A web site's index cannot be fetched.
    #[error("cannot fetch the skills of `{}`: {source}", shown(address))]
    Web {
        /// The source.
        address: String,
        /// What went wrong.
        source: RemoteError,
    },
    /// What a web site offers now is not what was approved.
    #[error(
        "`{}` offers other skills than those that were approved, and those are not in the cache",
        shown(address)
    )]
    Changed {
        /// The source.
        address: String,
    },
    /// Only what is in the lock may be fetched.
    #[error("`{}` is not in {}", shown(address), path.display())]
    NotLocked {
        /// The source.
        address: String,
        /// The lock.
        path: PathBuf,
    },
    /// The lock cannot be used.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// There is no place to keep what is fetched.
    #[error("there is no directory to keep skills in: neither a home directory nor XDG_CACHE_HOME")]
    NoCache,
    /// What was fetched cannot be kept, or read again.
    #[error("cannot keep the skills of `{}`: {source}", shown(address))]
    System {
        /// The source.
        address: String,
        /// What the system says.
        source: io::Error,
    },
}

impl SourceError {
    pub(super) fn git(address: &impl ToString, source: GitError) -> Self {
        Self::Git { address: address.to_string(), source }
    }

    pub(super) fn web(address: &impl ToString, source: WebError) -> Self {
        let address = address.to_string();
        match source {
            WebError::Remote(source) => Self::Web { address, source },
            WebError::System(source) => Self::System { address, source },
        }
    }

    pub(super) fn system(address: &impl ToString, source: io::Error) -> Self {
        Self::System { address: address.to_string(), source }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Git { address, source: source @ GitError::NoReference(_) } => format!(
                "{}; `acp-skills-proxy update '{}'` looks what is there now",
                source.hint(),
                shown(address)
            ),
            Self::Git { source, .. } => source.hint().to_owned(),
            Self::Web { source: RemoteError::NoIndex { .. } | RemoteError::Index { .. }, .. } => {
                "a source is a web site with skills, the address of its index.json, or a git repository"
                    .to_owned()
            }
            Self::Web { .. } => {
                "look at the network and the address; `/skills reload` tries again".to_owned()
            }
            Self::Changed { address } | Self::NotLocked { address, .. } => {
                format!("`acp-skills-proxy update '{}'` shows them, and asks", shown(address))
            }
            Self::Lock(error) => error.hint().to_owned(),
            Self::NoCache => "set HOME, or XDG_CACHE_HOME to an absolute path".to_owned(),
            Self::System { .. } => "look at the disk's space and rights".to_owned(),
        }
    }
}
