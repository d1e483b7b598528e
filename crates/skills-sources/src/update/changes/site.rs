//! Fetches the files of a web site, so that they can be shown. A [`Budget`] limits the time and the size of all files of a source.

use std::time::Instant;

use skills_core::{ReadOptions, files::FileContent, remote::Remote};

use super::{FileChange, FileChangeKind, OfferedSkill, is_skill_md};
use crate::git::Limits;

/// The number of bytes that a file counts at least, because each file takes a request. By default, this allows 4,096 files.
const MIN_FILE_BYTES: u64 = 64 * 1024;

/// The time and the size that are left for the files of a source.
pub(super) struct Budget {
    deadline: Instant,
    bytes: u64,
    /// True if the site didn't answer a request in time. Then there are no further requests.
    is_stalled: bool,
}

impl Budget {
    /// Starts with all of the limits.
    pub(super) fn new(limits: &Limits) -> Self {
        Self { deadline: Instant::now() + limits.total, bytes: limits.bytes, is_stalled: false }
    }

    /// Fetches a file.
    ///
    /// # Errors
    /// Returns the reason if the file can't be fetched, or if nothing is left.
    fn read(&mut self, remote: &Remote, path: &str) -> Result<FileContent, String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if self.is_stalled {
            return Err("not fetched, because the site did not answer an earlier request".to_owned());
        }
        if left.is_zero() {
            return Err("not fetched, because the other files took too long".to_owned());
        }
        if self.bytes == 0 {
            return Err(
                "not fetched, because the other files reached the limit; raise `--max-fetch`".to_owned()
            );
        }
        let mut remote = remote.clone();
        remote.timeout = remote.timeout.min(left);
        let started = Instant::now();
        let read = remote.read(path, ReadOptions::default());
        let bytes = match &read {
            Ok(FileContent::Text { text, .. }) => text.len() as u64,
            _ => 0,
        };
        self.bytes = self.bytes.saturating_sub(bytes.max(MIN_FILE_BYTES));
        self.is_stalled = read.is_err() && started.elapsed() >= remote.timeout;
        read.map_err(|error| error.to_string())
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
            Err(why) => change.unseen = Some(why),
        }
        if sha256.is_none() && change.text.is_some() {
            let why = "the index has no checksum, so the site can change it at any time";
            change.unseen = Some(why.to_owned());
        }
        changes.push(change);
    }
    if remote.files.is_none() && remote.base.is_some() {
        let unseen = Some("the index does not list them".to_owned());
        changes.push(FileChange { unseen, ..FileChange::new("other files", kind) });
    }
    changes
}
