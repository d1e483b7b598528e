//! [`Texts`]: limits the texts of all sources that are compared together, because they are in memory until they have been shown.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::{Mutex, MutexGuard};

use super::FileChange;

/// The size of a file from which on texts are made one at a time, because a diff needs a multiple of it.
const LARGE_BYTES: u64 = 1 << 20;

/// The number of bytes of texts that are in use. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    used: Arc<AtomicU64>,
    /// Held while a large text is made. No other lock is taken while it is held.
    large: Arc<Mutex<()>>,
}

impl Texts {
    /// Returns a lock to hold while the text of a file of this size is made. `None` for small files, which need no lock.
    pub(super) fn lock(&self, bytes: u64) -> Option<MutexGuard<'_, ()>> {
        (bytes > LARGE_BYTES).then(|| self.large.lock())
    }

    /// Counts the text of a file. If all texts together would have more than `max_bytes`, the file has no text, but a reason.
    pub(super) fn count(&self, change: &mut FileChange, max_bytes: u64) {
        let length = [&change.diff, &change.text].into_iter().flatten().map(|text| text.len() as u64).sum();
        let add = |used: u64| used.checked_add(length).filter(|sum| *sum <= max_bytes);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            (change.diff, change.text) = (None, None);
            let why =
                "the texts of all sources together are too large; name one source, or raise `--max-fetch`";
            change.unseen = Some(why.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::FileChangeKind, *};

    #[test]
    fn texts_beyond_the_limit_are_not_shown() {
        let texts = Texts::default();
        let shown = |diff: &str, text: &str| {
            let new = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let mut change = FileChange::new("a", FileChangeKind::Added);
            (change.diff, change.text) = (new(diff), new(text));
            texts.clone().count(&mut change, 10);
            (change.diff.is_some(), change.text.is_some(), change.unseen.is_some())
        };
        assert_eq!(shown("12345", ""), (true, false, false));
        assert_eq!(shown("", "123456"), (false, false, true));
        assert_eq!(shown("", "12345"), (false, true, false));
        assert_eq!(shown("1", ""), (false, false, true));
        assert_eq!(shown("", ""), (false, false, false));
    }
}
