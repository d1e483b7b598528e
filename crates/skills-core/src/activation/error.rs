//! [`ActivationError`]: why a skill cannot be activated.

use std::{io, path::PathBuf};

use crate::{
    diagnostic::Diagnostic,
    files::FileError,
    frontmatter::MAX_FILE_BYTES,
    text::{shown, shown_path},
};

/// Why a skill cannot be activated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ActivationError {
    /// The skill's directory or its `SKILL.md` cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file with the instructions of a virtual skill cannot be read.
    #[error("cannot read the instructions in {}: {source}", shown_path(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The instructions are larger than what can be loaded.
    #[error("the instructions in {} have more than {MAX_FILE_BYTES} bytes", shown_path(path))]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The instructions cannot be fetched.
    #[cfg(feature = "fetch")]
    #[error(transparent)]
    Fetch(#[from] crate::fetch::FetchError),
    /// What is on disk cannot be used, and the last text that could is not kept.
    #[error("the instructions in {} cannot be used now: {}", shown_path(path), diagnostic.message)]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        diagnostic: Diagnostic,
    },
    /// The program is about to end, or reading panicked.
    #[error("reading the instructions was interrupted")]
    Interrupted,
    /// The instructions are behind a URL, and this build cannot fetch.
    #[error("cannot fetch {}: this program was built without the feature `fetch`", shown(url))]
    NoFetch {
        /// The address.
        url: String,
    },
}
