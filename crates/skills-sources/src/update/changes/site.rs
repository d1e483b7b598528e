//! Fetches the files of a web site, so that they can be shown. A [`Budget`] limits the time and the size of all files of a source, and the
//! work of comparing them.

use std::time::Instant;

use skills_core::{
    FileError, ReadOptions, Remote,
    fetch::FetchError,
    files::{FileContent, MAX_REMOTE_FILE_BYTES},
};

use super::{FileChange, FileChangeKind, MAX_COMPARISONS, OfferedSkill, Texts, is_skill_md};
use crate::git::Limits;

/// The number of bytes that a file counts at least, because each file takes a request. By default, this allows 4,096 files.
const MIN_FILE_BYTES: u64 = 64 * 1024;

/// The time and the size that are left for the files of a source.
pub(super) struct Budget {
    deadline: Instant,
    bytes: u64,
    /// The number of comparisons of lines that are left for diffs.
    pub(super) comparisons: usize,
    /// True if the site didn't answer a request in time. Then there are no further requests.
    is_stalled: bool,
    pub(super) texts: Texts,
    /// The maximum number of bytes of all texts.
    max_texts: u64,
}

impl Budget {
    /// Starts with all of the limits, except that on the texts.
    pub(super) fn new(limits: &Limits, texts: Texts) -> Self {
        let deadline = Instant::now() + limits.total;
        // A diff has the old text as well.
        let max_texts = limits.bytes.saturating_mul(2);
        let bytes = limits.bytes;
        Self { deadline, bytes, comparisons: MAX_COMPARISONS, is_stalled: false, texts, max_texts }
    }

    /// Counts the text of a file, and removes it if the texts are too large.
    pub(super) fn count(&self, change: &mut FileChange) {
        self.texts.count(change, self.max_texts);
    }

    /// Fetches a file.
    fn read(&mut self, remote: &Remote, path: &str) -> Result<FileContent, NotFetched> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if self.is_stalled {
            return Err(NotFetched::Stalled);
        }
        if left.is_zero() {
            return Err(NotFetched::OutOfTime);
        }
        if self.bytes == 0 {
            return Err(NotFetched::OutOfBytes);
        }
        let mut remote = remote.clone();
        remote.timeout = remote.timeout.min(left);
        let started = Instant::now();
        let read = remote.read(path, ReadOptions::default());
        self.bytes = self.bytes.saturating_sub(received(&read).max(MIN_FILE_BYTES));
        self.is_stalled = read.is_err() && started.elapsed() >= remote.timeout;
        Ok(read?)
    }
}

/// The reason why a file was not fetched.
#[derive(Debug, thiserror::Error)]
enum NotFetched {
    #[error("not fetched, because the site did not answer an earlier request")]
    Stalled,
    #[error("not fetched, because the other files took too long")]
    OutOfTime,
    #[error("not fetched, because the other files reached the limit; raise `--max-fetch`")]
    OutOfBytes,
    #[error(transparent)]
    File(#[from] FileError),
}

/// Returns the number of bytes that a file counts: its size, or the maximum size of a file if more may have been received than the
/// result shows.
fn received(read: &Result<FileContent, FileError>) -> u64 {
    match read {
        Ok(FileContent::Text { text, note: None, .. }) => text.len() as u64,
        Ok(FileContent::Image { data, .. }) => data.len() as u64,
        Ok(FileContent::Binary { size, .. }) => *size,
        Err(FileError::Fetch { source, .. }) => match source.downcast_ref() {
            Some(
                FetchError::Status { .. }
                | FetchError::Refused { .. }
                | FetchError::Redirect { .. }
                | FetchError::ThisMachine { .. },
            ) => 0,
            _ => MAX_REMOTE_FILE_BYTES,
        },
        // No request was sent, or the file doesn't exist.
        Err(
            FileError::NotFound { .. }
            | FileError::IsDirectory { .. }
            | FileError::Invalid { .. }
            | FileError::Outside { .. },
        ) => 0,
        Ok(_) | Err(_) => MAX_REMOTE_FILE_BYTES,
    }
}

/// Fetches the files of a skill. The approved version is not stored, so all files are shown.
pub(super) fn changes(
    before: Option<&OfferedSkill>,
    after: &OfferedSkill,
    budget: &mut Budget,
) -> Vec<FileChange> {
    let Some(remote) = &after.remote else { return Vec::new() };
    let kind = if before.is_some() { FileChangeKind::Changed } else { FileChangeKind::Added };
    let skill_md = ("SKILL.md".to_owned(), remote.sha256, None);
    let others = remote.files.iter().flat_map(|files| files.iter());
    let others = others.map(|file| (file.path.clone(), file.sha256, file.size));
    let mut changes = Vec::new();
    for (path, sha256, size) in std::iter::once(skill_md).chain(others.filter(|file| !is_skill_md(&file.0))) {
        let mut change = FileChange { size, ..FileChange::new(&path, kind) };
        match budget.read(remote, &path) {
            // If there is a note, a part of the text is missing, or bytes were replaced.
            Ok(FileContent::Text { text, note: None, .. }) => change.text = Some(text),
            Ok(FileContent::Text { .. }) => change.unseen = Some("too long, or not UTF-8".to_owned()),
            Ok(FileContent::Image { media_type, .. } | FileContent::Binary { media_type, .. }) => {
                change.unseen = Some(media_type.to_owned());
            }
            Ok(_) => change.unseen = Some("of an unknown kind".to_owned()),
            Err(why) => change.unseen = Some(why.to_string()),
        }
        if sha256.is_none() && change.text.is_some() {
            let why = "the index has no checksum, so the site can change it at any time";
            change.unseen = Some(why.to_owned());
        }
        budget.count(&mut change);
        changes.push(change);
    }
    if remote.files.is_none() && remote.base.is_some() {
        let unseen = Some("the index does not list them".to_owned());
        changes.push(FileChange { unseen, ..FileChange::new("other files", kind) });
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_the_bytes_that_were_received() {
        let text = |note: Option<&str>| FileContent::Text {
            text: "abc".to_owned(),
            first_line: 1,
            total_lines: 1,
            note: note.map(str::to_owned),
        };
        let path = || "a".to_owned();
        let url = || "https://example.com/a".to_owned();
        let fetch = |source: FetchError| FileError::Fetch { path: path(), source: source.into() };
        let media_type = "image/png";
        for (read, expected) in [
            (Ok(text(None)), 3),
            (Ok(FileContent::Image { media_type, data: vec![0; 2_000_000] }), 2_000_000),
            (Ok(FileContent::Binary { media_type, size: 8_000_000 }), 8_000_000),
            // Only a part of the text is in the result.
            (Ok(text(Some("shortened"))), MAX_REMOTE_FILE_BYTES),
            (Err(fetch(FetchError::TooLarge { url: url(), max_bytes: 1 })), MAX_REMOTE_FILE_BYTES),
            (Err(fetch(FetchError::NotText { url: url() })), MAX_REMOTE_FILE_BYTES),
            (Err(fetch(FetchError::Status { url: url(), status: 500 })), 0),
            (Err(FileError::NotFound { path: path(), similar: Vec::new() }), 0),
        ] {
            assert_eq!(received(&read), expected, "{read:?}");
        }
    }
}
