//! Reads the files of a remote skill. Each read fetches the file again; nothing is cached or stored here.

use std::borrow::Cow;

use super::{
    SKILL_FILE_NAMES,
    content::{self, FileContent, ReadOptions},
    error::FileError,
    list::{FileEntry, Listing},
    path,
};
use crate::{
    fetch::{self, FetchError, Limits},
    frontmatter,
    skill::{Remote, RemoteFile, Sha256},
};

/// The maximum size of a file of a remote skill, apart from its `SKILL.md`: 8 MiB.
pub const MAX_REMOTE_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// The maximum number of directory entries that an error lists.
const MAX_LISTED_ENTRIES: usize = 50;

impl Remote {
    /// Fetches the text of the `SKILL.md`, including its frontmatter.
    pub(crate) fn skill_md(&self) -> Result<String, FetchError> {
        let wanted = (SKILL_FILE_NAMES[0], &*self.url);
        let bytes = self.fetch(wanted, self.sha256, frontmatter::MAX_FILE_BYTES as u64)?;
        Ok(frontmatter::decode(&bytes).into_owned())
    }

    /// Returns a key for caches of the `SKILL.md`: its URL, and its checksum if the index has one.
    pub(crate) fn key(&self) -> String {
        let place = self.place();
        self.sha256.map_or_else(|| place.to_string(), |sha256| format!("{place}#{sha256}"))
    }

    /// Returns the URL of the `SKILL.md`. If the files belong to a service, it comes after the identity of the service, because two
    /// services can have the same URLs.
    pub(crate) fn place(&self) -> Cow<'_, str> {
        match &self.service {
            Some(service) => Cow::Owned(format!("{} {}", service.identity(), self.url)),
            None => Cow::Borrowed(&self.url),
        }
    }

    /// Fetches a file of the skill. Blocks.
    ///
    /// `path` is relative to the skill's URL and separated by `/`. No request leaves that URL, whatever the path contains.
    ///
    /// # Errors
    /// Returns [`FileError::Invalid`] or [`FileError::Outside`] if the path cannot name a file of the skill,
    /// [`FileError::NotFound`] if the index doesn't list it or the server answers 404 or 410, [`FileError::IsDirectory`] if
    /// the index lists files under it, and [`FileError::Fetch`] if the request fails or the checksum doesn't match.
    pub fn read(&self, path: &str, options: ReadOptions) -> Result<FileContent, FileError> {
        let wanted = canonical(path)?;
        let (url, sha256, max_bytes) = if SKILL_FILE_NAMES.contains(&wanted.as_str()) {
            (self.url.to_string(), self.sha256, frontmatter::MAX_FILE_BYTES as u64)
        } else {
            let (Some(base), false) = (&self.base, wanted.is_empty()) else {
                return Err(self.not_found(path, &wanted));
            };
            let sha256 = match &self.files {
                None => None,
                Some(files) => match files.binary_search_by(|file| file.path.as_str().cmp(&wanted)) {
                    Ok(at) => files[at].sha256,
                    Err(_) => return Err(self.not_found(path, &wanted)),
                },
            };
            (format!("{base}{}", fetch::percent_encoded(&wanted)), sha256, MAX_REMOTE_FILE_BYTES)
        };
        match self.fetch((&wanted, &url), sha256, max_bytes) {
            Ok(bytes) => content::read(path, &bytes[..], bytes.len() as u64, options),
            Err(FetchError::Status { status: 404 | 410, .. }) => {
                Err(FileError::NotFound { path: path.to_owned(), similar: Vec::new() })
            }
            Err(error) => Err(FileError::Fetch { path: path.to_owned(), source: error.into() }),
        }
    }

    /// Fetches the file at a URL, or reads it from the service by its path.
    fn fetch(
        &self,
        (path, url): (&str, &str),
        expected: Option<Sha256>,
        max_bytes: u64,
    ) -> Result<Vec<u8>, FetchError> {
        let Some(service) = &self.service else {
            return fetch::get_verified(url, expected, Limits { max_bytes, timeout: self.timeout });
        };
        let failed = |source| FetchError::Transport { url: url.to_owned(), source };
        let bytes = service.read(path).map_err(failed)?;
        if bytes.len() as u64 > max_bytes {
            return Err(FetchError::TooLarge { url: url.to_owned(), max_bytes });
        }
        fetch::verified(url, bytes, expected)
    }

    /// Returns the error for a path that the index doesn't list: the path of a directory, or of a file that doesn't exist.
    fn not_found(&self, path: &str, wanted: &str) -> FileError {
        let files = self.files.as_deref().unwrap_or_default();
        let prefix = if wanted.is_empty() { String::new() } else { format!("{wanted}/") };
        let mut entries: Vec<String> = files
            .iter()
            .filter_map(|file| file.path.strip_prefix(&prefix))
            .map(|rest| rest.split_once('/').map_or_else(|| rest.to_owned(), |(dir, _)| format!("{dir}/")))
            .collect();
        entries.dedup();
        let path = path.to_owned();
        if !entries.is_empty() {
            let more = entries.len().saturating_sub(MAX_LISTED_ENTRIES);
            entries.truncate(MAX_LISTED_ENTRIES);
            return FileError::IsDirectory { path, entries, more };
        }
        let files = files.iter().take(path::MAX_CANDIDATES);
        let files = files.map(|file| FileEntry { path: file.path.clone(), size: 0 }).collect();
        let similar = path::similar(wanted, &Listing { files, more: 0, complete: true });
        FileError::NotFound { path, similar }
    }
}

impl RemoteFile {
    /// Creates the record of a file as a third party lists it. `path` is made canonical: empty parts, `.` and `..` are removed.
    ///
    /// # Errors
    /// Returns [`FileError::Invalid`] or [`FileError::Outside`] if the path cannot name a file of a skill.
    pub fn listed(path: &str, size: Option<u64>, sha256: Option<Sha256>) -> Result<Self, FileError> {
        let canonical = canonical(path)?;
        if canonical.is_empty() || path.ends_with('/') {
            let reason = "use the path of a file instead of a directory";
            return Err(FileError::Invalid { path: path.to_owned(), reason });
        }
        Ok(Self { path: canonical, size, sha256 })
    }
}

/// Removes `.`, `..` and empty parts from `path`.
///
/// # Errors
/// Returns [`FileError::Invalid`] or [`FileError::Outside`] if the path cannot name a file of a skill.
fn canonical(path: &str) -> Result<String, FileError> {
    path::check_form(path)?;
    if path.contains(char::is_control) {
        let reason = "paths of remote files cannot contain control characters";
        return Err(FileError::Invalid { path: path.to_owned(), reason });
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                let _ = parts.pop();
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests;
