//! [`Remote`]: where a skill is that a web site offers. How it is listed and fetched is [`crate::remote`].

use std::{sync::Arc, time::Duration};

use super::digest::Sha256;

/// Where a remote skill is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remote {
    /// The address of its `SKILL.md`.
    pub url: Arc<str>,
    /// What the index says of that file.
    pub sha256: Option<Sha256>,
    /// The address below which its files are, with a `/` at its end; `None` when there are no others.
    pub base: Option<Arc<str>>,
    /// The other files, sorted by path; `None` when the index does not say which there are.
    pub files: Option<Arc<[RemoteFile]>>,
    /// How long one file may take.
    pub timeout: Duration,
}

/// A file that an index names.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteFile {
    /// Relative to the skill, separated by `/`; with no part that is empty, `.` or `..`.
    pub path: String,
    /// In bytes, when the index says so.
    pub size: Option<u64>,
    /// What the index says of its content.
    pub sha256: Option<Sha256>,
}
