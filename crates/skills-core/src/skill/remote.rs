//! [`Remote`]: the location of a skill that a web site offers. The module [`crate::remote`] lists and fetches such skills.

use std::{sync::Arc, time::Duration};

use super::digest::Sha256;

/// The location of a remote skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remote {
    /// The URL of the `SKILL.md`.
    pub url: Arc<str>,
    /// The checksum of the `SKILL.md`, if the index contains one.
    pub sha256: Option<Sha256>,
    /// The base URL of the other files, with a trailing `/`. `None` if the skill has no other files.
    pub base: Option<Arc<str>>,
    /// The other files, sorted by path. `None` if the index doesn't list them.
    pub files: Option<Arc<[RemoteFile]>>,
    /// True if [`url`](Self::url) and [`sha256`](Self::sha256) are those of an archive with all files. The caller has to unpack it.
    pub is_archive: bool,
    /// The timeout for fetching one file.
    pub timeout: Duration,
}

/// A file of a remote skill, as its index lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteFile {
    /// The path relative to the skill, separated by `/`. No component is empty, `.` or `..`.
    pub path: String,
    /// The size in bytes, if the index has it.
    pub size: Option<u64>,
    /// The checksum of the content, if the index has one.
    pub sha256: Option<Sha256>,
}
