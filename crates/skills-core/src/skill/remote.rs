//! [`Remote`]: the location of a skill that a web site or a service offers.

use std::{sync::Arc, time::Duration};

use super::{digest::Sha256, service::FileService};
use crate::order;

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
    /// The service that provides the files. `None` if they are fetched from their URLs.
    pub service: Option<Arc<dyn FileService>>,
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

impl Remote {
    /// Creates the location of a skill by the URL of its `SKILL.md`.
    ///
    /// `files` are the other files in any order; `None` if they are not known. If a path occurs twice, the first of these files
    /// counts. Each file is fetched within `timeout`. To read other files than the `SKILL.md`, also set [`base`](Self::base).
    pub fn new(url: &str, files: Option<Vec<RemoteFile>>, timeout: Duration) -> Self {
        let files = files.map(|mut files| {
            order::sort_by(&mut files, |a, b| a.path.cmp(&b.path));
            files.dedup_by(|a, b| a.path == b.path);
            files.into()
        });
        Self { url: url.into(), sha256: None, base: None, files, is_archive: false, timeout, service: None }
    }

    /// Creates the location of a skill whose files a service provides. `url` is that of the `SKILL.md`, whose checksum is `sha256`, and
    /// `files` are the other files.
    pub fn of_service(
        url: &str,
        sha256: Sha256,
        files: Vec<RemoteFile>,
        service: Arc<dyn FileService>,
    ) -> Self {
        // The service has its own limits.
        let mut remote = Self::new(url, Some(files), Duration::ZERO);
        remote.sha256 = Some(sha256);
        remote.base = url.rsplit_once('/').map(|(base, _)| format!("{base}/").into());
        remote.service = Some(service);
        remote
    }
}

impl RemoteFile {
    /// Creates the record of a file with its size and its checksum.
    pub fn new(path: impl Into<String>, size: u64, sha256: Sha256) -> Self {
        Self { path: path.into(), size: Some(size), sha256: Some(sha256) }
    }
}
