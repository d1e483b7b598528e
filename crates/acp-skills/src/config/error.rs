//! What can be wrong with a configuration, and what to do about it.

use std::{io, path::PathBuf};

use skills_core::LoadError;

use skills_sources::AddressError;

use super::SyntaxError;

/// Why a configuration cannot be used. The message says what is wrong, [`hint`](Self::hint) what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file that the configuration needs cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The configuration file is not what it should be.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// A value is out of its range, or a pattern is wrong.
    #[error("{0}")]
    Value(String),
    /// A skill that was named cannot be loaded.
    #[error("cannot load the skill in {}\n{}", path.display(), findings(source))]
    Skill {
        /// Its directory.
        path: PathBuf,
        /// What is wrong with it.
        source: LoadError,
    },
    /// A virtual skill is not what it should be.
    #[error("{0}")]
    VirtualSkill(String),
    /// A directory to look in does not exist.
    #[error("cannot look for skills in {}: there is no such directory", .0.display())]
    NoSuchRoot(PathBuf),
    /// A source has no address that we know.
    #[error(transparent)]
    Source(#[from] AddressError),
    /// The sandbox that was asked for does not work here.
    #[error("--sandbox bwrap: {0}")]
    Sandbox(String),
}

impl ConfigError {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Syntax(error) => error.help.as_deref(),
            Self::Source(error) => Some(error.hint()),
            Self::Sandbox(_) => {
                Some("install bubblewrap, or leave --sandbox out to run scripts without a sandbox")
            }
            _ => None,
        }
    }
}

fn findings(error: &LoadError) -> String {
    let lines: Vec<_> = error.diagnostics.iter().map(|finding| finding.in_file(&error.path)).collect();
    lines.join("\n")
}
