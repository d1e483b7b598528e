//! The files of a skill that a web site offers: each is fetched when it is read, and nothing is stored.

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
    remote::error::RemoteError,
    skill::{Remote, Sha256},
};

/// Largest file of a remote skill that is fetched. 8 MiB.
pub const MAX_REMOTE_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// Entries of a directory that an error names.
const MAX_NAMED: usize = 50;

impl Remote {
    /// The text of the `SKILL.md`, with its frontmatter.
    pub(crate) fn skill_md(&self) -> Result<String, RemoteError> {
        let bytes = self.fetch(&self.url, self.sha256, frontmatter::MAX_FILE_BYTES as u64)?;
        Ok(frontmatter::decode(&bytes).into_owned())
    }

    /// Identifies the text of its `SKILL.md`.
    pub(crate) fn key(&self) -> String {
        self.sha256.map_or_else(|| self.url.to_string(), |sha256| format!("{}#{sha256}", self.url))
    }

    /// Fetches a file. Blocks.
    ///
    /// # Errors
    /// A [`FileError`] that says why the path is not served. Nothing is fetched from anywhere else than below the skill's
    /// address.
    pub fn read(&self, path: &str, options: ReadOptions) -> Result<FileContent, FileError> {
        let wanted = canonical(path)?;
        let (url, sha256, max) = if SKILL_FILE_NAMES.contains(&wanted.as_str()) {
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
            (format!("{base}{}", encoded(&wanted)), sha256, MAX_REMOTE_FILE_BYTES)
        };
        match self.fetch(&url, sha256, max) {
            Ok(bytes) => content::read(path, &bytes[..], bytes.len() as u64, options),
            Err(RemoteError::Fetch(FetchError::Status { status: 404 | 410, .. })) => {
                Err(FileError::NotFound { path: path.to_owned(), similar: Vec::new() })
            }
            Err(error) => Err(FileError::Fetch { path: path.to_owned(), source: error.into() }),
        }
    }

    fn fetch(&self, url: &str, expected: Option<Sha256>, max_bytes: u64) -> Result<Vec<u8>, RemoteError> {
        let bytes = fetch::get(url, Limits { max_bytes, timeout: self.timeout })?;
        if let Some(expected) = expected {
            let actual = Sha256::of(&bytes);
            if actual != expected {
                return Err(RemoteError::Changed { url: url.to_owned(), expected, actual });
            }
        }
        Ok(bytes)
    }

    /// The error for what the index does not name: perhaps a directory, perhaps a mistake.
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
            let more = entries.len().saturating_sub(MAX_NAMED);
            entries.truncate(MAX_NAMED);
            return FileError::IsDirectory { path, entries, more };
        }
        let files = files.iter().map(|file| FileEntry { path: file.path.clone(), size: 0 }).collect();
        let similar = path::similar(wanted, &Listing { files, more: 0, complete: true });
        FileError::NotFound { path, similar }
    }
}

/// `path` without `.`, `..` and empty parts.
///
/// # Errors
/// It has a form that names no file of a skill, or leads out.
pub(crate) fn canonical(path: &str) -> Result<String, FileError> {
    path::check_form(path)?;
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// A relative path as it stands in an address ([RFC 3986 §2](https://www.rfc-editor.org/rfc/rfc3986#section-2)): whatever
/// could mean something there is encoded, `%` too.
pub(crate) fn encoded(path: &str) -> String {
    use std::fmt::Write;
    path.bytes().fold(String::with_capacity(path.len()), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing into a string does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}
