//! [`ConfigError`]: errors in a configuration.

use std::{io, path::PathBuf};

use skills_core::LoadError;
use skills_sources::AddressError;

use super::SyntaxError;

/// An error that occurs when a configuration is read or resolved. Use [`hint`](Self::hint) to show the user how to fix it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file that the configuration needs can't be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The text of the configuration file is invalid.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// A value is out of range, or a glob is invalid.
    #[error("{0}")]
    Value(String),
    /// A skill in `skills` can't be loaded.
    #[error("cannot load skill from {}\n{}", path.display(), findings(source))]
    Skill {
        /// The skill's directory.
        path: PathBuf,
        /// The skill's problems.
        source: LoadError,
    },
    /// A virtual skill is invalid.
    #[error("{0}")]
    VirtualSkill(String),
    /// A directory in `roots` doesn't exist.
    #[error("cannot search for skills in {}: directory does not exist", .0.display())]
    NoSuchRoot(PathBuf),
    /// The address of a source has an unknown format.
    #[error(transparent)]
    Source(#[from] AddressError),
    /// The requested sandbox can't be used on this system.
    #[error("--sandbox bwrap: {0}")]
    Sandbox(String),
}

impl ConfigError {
    /// Returns a hint that tells the user how to fix the problem, if one is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Syntax(error) => error.help.as_deref(),
            Self::Source(error) => Some(error.hint()),
            Self::Sandbox(_) => {
                Some("install bubblewrap, or remove `--sandbox` to run scripts without a sandbox")
            }
            _ => None,
        }
    }
}

fn findings(error: &LoadError) -> String {
    let lines: Vec<_> = error.diagnostics.iter().map(|finding| finding.in_file(&error.path)).collect();
    lines.join("\n")
}
