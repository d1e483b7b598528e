//! [`ActivationError`]: the error of an activation.

use std::{io, path::PathBuf};

use crate::{
    diagnostic::Diagnostic,
    files::FileError,
    frontmatter::MAX_FILE_BYTES,
    text::{shown, shown_path},
};

/// The error of an activation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActivationError {
    /// The skill's directory or its `SKILL.md` can't be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file with the instructions of a virtual skill can't be read.
    #[error("failed to read instructions from {}: {source}", shown_path(path))]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The instructions are larger than [`MAX_FILE_BYTES`].
    #[error("instructions in {} are larger than {MAX_FILE_BYTES} bytes", shown_path(path))]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
    },
    /// The instructions of a virtual skill can't be fetched.
    #[cfg(feature = "fetch")]
    #[error(transparent)]
    Fetch(#[from] crate::fetch::FetchError),
    /// The file on disk is broken or incomplete, and the last good text is not available.
    #[error("failed to load instructions from {}: {}", shown_path(path), diagnostic.message)]
    Broken {
        /// The path of the file.
        path: PathBuf,
        /// The problem in the file.
        diagnostic: Diagnostic,
    },
    /// The runtime is shutting down, or the thread that read the instructions panicked.
    #[error("interrupted while reading instructions")]
    Interrupted,
    /// The instructions have to be fetched, but the feature `fetch` is disabled.
    #[error("failed to fetch {}: this program was built without the `fetch` feature", shown(url))]
    NoFetch {
        /// The URL of the instructions.
        url: String,
    },
}
