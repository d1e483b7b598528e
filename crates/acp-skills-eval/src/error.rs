//! What keeps an evaluation from beginning, or its results from being kept. What goes wrong in one run is part of that run's
//! [`Outcome`](super::Outcome) and ends nothing else.

use std::{io, path::PathBuf};

use skills_core::{LoadError, exec::SandboxError};

/// Why an evaluation cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// A skill cannot be loaded.
    #[error("{source}")]
    Skill {
        /// Its directory.
        path: PathBuf,
        /// What is wrong with it.
        source: LoadError,
    },
    /// A file or directory cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file of cases is not what it should be.
    #[error("{}: {message}", path.display())]
    Cases {
        /// Which file.
        path: PathBuf,
        /// What is wrong, and where.
        message: String,
    },
    /// The skill has no case of either kind.
    #[error("there is nothing to evaluate: {} has no cases", .0.display())]
    NoCases(PathBuf),
    /// Two agents have the same name.
    #[error("two agents are called `{0}`")]
    SameName(String),
    /// The name of an agent cannot name a directory.
    #[error(
        "`{0}` cannot name an agent: a name has letters, digits, `-`, `_` and `.`, and is none that cases have"
    )]
    AgentName(String),
    /// The workspace holds an evaluation of something else.
    #[error("cannot resume {}: {reason}", path.display())]
    Resume {
        /// The directory of the iteration.
        path: PathBuf,
        /// What differs.
        reason: String,
    },
    /// A result cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Unwritable {
        /// Which file or directory.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The sandbox that was asked for does not work here.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
}
