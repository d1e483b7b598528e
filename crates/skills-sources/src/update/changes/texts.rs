//! [`Texts`]: limits the texts of all sources that are compared by one command.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::{Mutex, MutexGuard};

use super::{FileChange, FileChangeKind};

/// Files larger than this, in bytes, are compared one at a time, because a diff needs a multiple of their size.
const LARGE_BYTES: u64 = 1 << 20;

/// The number of bytes of all texts that were made. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    made: Arc<AtomicU64>,
    /// Held while a large file is compared. No other lock is taken while it is held.
    large: Arc<Mutex<()>>,
}

impl Texts {
    /// Returns a lock to hold while a file of this size is compared. `None` for small files, which need no lock.
    pub(super) fn lock(&self, bytes: u64) -> Option<MutexGuard<'_, ()>> {
        (bytes > LARGE_BYTES).then(|| self.large.lock())
    }

    /// Counts the text of a file. If all texts together would have more than `max_bytes`, the file has no text, but a reason.
    pub(super) fn count(&self, change: &mut FileChange, max_bytes: u64) {
        let length = [&change.diff, &change.text].into_iter().flatten().map(|text| text.len() as u64).sum();
        let add = |made: u64| made.checked_add(length).filter(|sum| *sum <= max_bytes);
        if self.made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            (change.diff, change.text) = (None, None);
            if change.kind == FileChangeKind::Removed {
                return;
            }
            let why = "the texts of this command are too large; raise `--max-fetch`, or update one source at a time";
            change.unseen = Some(why.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_beyond_the_limit_are_not_shown() {
        let texts = Texts::default();
        let shown_of = |kind: FileChangeKind, diff: &str, text: &str| {
            let new = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let mut change = FileChange::new("a", kind);
            (change.diff, change.text) = (new(diff), new(text));
            texts.clone().count(&mut change, 10);
            (change.diff.is_some(), change.text.is_some(), change.unseen.is_some())
        };
        let shown = |diff: &str, text: &str| shown_of(FileChangeKind::Added, diff, text);
        assert_eq!(shown("12345", ""), (true, false, false));
        assert_eq!(shown("", "123456"), (false, false, true));
        assert_eq!(shown("", "12345"), (false, true, false));
        assert_eq!(shown("1", ""), (false, false, true));
        assert_eq!(shown("", ""), (false, false, false));
        // A removed file doesn't have to be seen.
        assert_eq!(shown_of(FileChangeKind::Removed, "1", ""), (false, false, false));
    }
}
