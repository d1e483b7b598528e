//! [`LastGood`]: the last usable text of each skill, as a fallback while the file on disk is broken.
//!
//! Saving a file overwrites the previous text, so we must already have that text in memory when a save turns out to be broken.
//! Keeping all texts would need too much memory: ten thousand skills have 50 MB. Instead, there is a budget. If it is exhausted,
//! we keep the texts of skills that are most likely to be saved again: first those that were activated or changed while the
//! process ran, then those whose files were modified most recently.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

/// The budget for all texts, in bytes.
const MAX_KEPT_BYTES: usize = 256 * 1024;

/// The maximum size of a text in bytes. Larger texts are not kept, because they would displace many others.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The approximate overhead of an entry, in bytes.
const ENTRY_BYTES: usize = 256;

/// The time after a modification in which a file may still be incomplete.
const UNFINISHED: Duration = Duration::from_secs(1);

/// The maximum time by which the clock of a file server may be ahead of ours.
const CLOCK_SKEW: Duration = Duration::from_mins(1);

/// A bounded store of texts. The key is the path of a skill's directory, or of a file with instructions.
#[derive(Debug)]
pub(crate) struct LastGood {
    max_bytes: usize,
    /// Guards all entries. It is never held while a file is read.
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_path: HashMap<Arc<Path>, (Rank, Arc<str>)>,
    /// The same entries in the order in which they are dropped.
    by_rank: BTreeMap<Rank, Arc<Path>>,
    bytes: usize,
    /// The number of the last insertion. It makes ranks unique, and later ranks higher.
    counter: u64,
}

/// The priority of a text. Entries with the lowest rank are dropped first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Discovery found the text. The time is the modification time of its file.
    Found(Option<SystemTime>, u64),
    /// The text was sent to a model, or replaced an earlier text.
    Used(u64),
}

impl Default for LastGood {
    fn default() -> Self {
        Self::with_budget(MAX_KEPT_BYTES)
    }
}

impl LastGood {
    /// Creates an empty store that holds at most `max_bytes`.
    fn with_budget(max_bytes: usize) -> Self {
        Self { max_bytes, kept: Mutex::default() }
    }

    /// Returns the store for discovered skills, which all sets and sessions of the process share. Its keys are canonical
    /// directories.
    pub(crate) fn of_found_skills() -> &'static Self {
        static FOUND: LazyLock<LastGood> = LazyLock::new(LastGood::default);
        &FOUND
    }

    /// Returns the last good text for `path`, unless it was dropped from the store.
    pub(crate) fn get(&self, path: &Path) -> Option<Arc<str>> {
        self.lock().by_path.get(path).map(|(_, text)| Arc::clone(text))
    }

    /// Stores a text that discovery has loaded, if its rank is high enough.
    pub(crate) fn found(&self, path: &Arc<Path>, text: &str, modified: Option<SystemTime>) {
        let mut kept = self.lock();
        match kept.by_path.get(&**path) {
            Some((_, known)) if **known == *text => {}
            Some(_) => kept.insert(path, text, Rank::Used, self.max_bytes),
            None => kept.insert(path, text, |number| Rank::Found(modified, number), self.max_bytes),
        }
    }

    /// Stores a text that was sent to a model.
    pub(crate) fn used(&self, path: &Arc<Path>, text: &str) {
        self.lock().insert(path, text, Rank::Used, self.max_bytes);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // We can ignore a poisoned lock, since no panic can leave the maps inconsistent.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn insert(&mut self, path: &Arc<Path>, text: &str, rank: impl FnOnce(u64) -> Rank, max_bytes: usize) {
        self.counter += 1;
        let rank = rank(self.counter);
        // Remove the old text even if we can't store the new one, since it's outdated now.
        let known = self.remove(path).filter(|known| **known == *text);
        let size = text.len() + ENTRY_BYTES;
        if text.len() > MAX_TEXT_BYTES || size > max_bytes {
            return;
        }
        while self.bytes + size > max_bytes {
            let Some((lowest, other)) = self.by_rank.first_key_value() else { return };
            if *lowest > rank {
                return;
            }
            let other = Arc::clone(other);
            self.remove(&other);
        }
        self.bytes += size;
        self.by_rank.insert(rank, Arc::clone(path));
        self.by_path.insert(Arc::clone(path), (rank, known.unwrap_or_else(|| text.into())));
    }

    fn remove(&mut self, path: &Path) -> Option<Arc<str>> {
        let (rank, text) = self.by_path.remove(path)?;
        self.by_rank.remove(&rank);
        self.bytes -= text.len() + ENTRY_BYTES;
        Some(text)
    }
}

/// Returns true if a text looks incomplete, because it is a prefix of the last good text and was written less than a second
/// ago.
///
/// When a user really deletes the end of a file, the change takes effect a second later.
pub(crate) fn is_unfinished(text: &str, last: &str, modified: Option<SystemTime>) -> bool {
    is_recent(modified) && text.len() < last.len() && last.starts_with(text)
}

/// Returns true if a file with this modification time may still be in the middle of a save.
pub(crate) fn is_recent(modified: Option<SystemTime>) -> bool {
    modified.is_some_and(|modified| match SystemTime::now().duration_since(modified) {
        Ok(age) => age < UNFINISHED,
        Err(ahead) => ahead.duration() < CLOCK_SKEW,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> Arc<Path> {
        Path::new(name).into()
    }

    /// Returns the names whose texts are in the store.
    fn kept(texts: &LastGood, names: &[&str]) -> String {
        names.iter().filter(|name| texts.get(Path::new(name)).is_some()).copied().collect()
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// Creates a store with room for three texts of ten bytes.
    fn three() -> LastGood {
        LastGood::with_budget(3 * (10 + ENTRY_BYTES))
    }

    #[test]
    fn the_last_text_is_kept() {
        let texts = three();
        texts.found(&path("a"), "one", None);
        assert_eq!(texts.get(Path::new("a")).as_deref(), Some("one"));
        texts.found(&path("a"), "two", None);
        assert_eq!(texts.get(Path::new("a")).as_deref(), Some("two"));
        texts.used(&path("a"), "three");
        assert_eq!(texts.get(Path::new("a")).as_deref(), Some("three"));
        assert_eq!(texts.lock().bytes, 5 + ENTRY_BYTES);
        assert_eq!(texts.get(Path::new("b")), None);
        // The previous text should be dropped as well, since it's outdated now.
        texts.used(&path("a"), &"x".repeat(MAX_TEXT_BYTES + 1));
        assert_eq!(texts.get(Path::new("a")), None);
        assert_eq!(texts.lock().bytes, 0);
    }

    #[test]
    fn recently_modified_texts_are_kept() {
        let texts = three();
        for (name, time) in
            [("a", Some(3)), ("b", Some(1)), ("c", None), ("d", Some(4)), ("e", Some(2)), ("f", Some(0))]
        {
            texts.found(&path(name), "0123456789", time.map(at));
        }
        assert_eq!(kept(&texts, &["a", "b", "c", "d", "e", "f"]), "ade");
    }

    #[test]
    fn used_and_changed_texts_are_kept_first() {
        let texts = three();
        texts.found(&path("a"), "0123456789", Some(at(1)));
        texts.found(&path("b"), "0123456789", Some(at(2)));
        texts.used(&path("a"), "0123456789");
        texts.found(&path("b"), "9876543210", Some(at(3)));
        for (name, time) in [("c", 9), ("d", 10), ("e", 8)] {
            texts.found(&path(name), "0123456789", Some(at(time)));
        }
        assert_eq!(kept(&texts, &["a", "b", "c", "d", "e"]), "abd");
        texts.used(&path("f"), "0123456789");
        texts.used(&path("g"), "0123456789");
        assert_eq!(kept(&texts, &["a", "b", "c", "d", "f", "g"]), "bfg");
        // A long text should displace as many others as it needs to.
        texts.used(&path("h"), &"x".repeat(2 * (10 + ENTRY_BYTES) - ENTRY_BYTES));
        assert_eq!(kept(&texts, &["b", "f", "g", "h"]), "gh");
    }

    #[test]
    fn the_budget_is_never_exceeded() {
        let texts = LastGood::with_budget(10_000);
        for number in 0..5_000_usize {
            let name = format!("{}", number * 7 % 100);
            let text = "x".repeat(number * 13 % 3_000);
            match number % 3 {
                0 => texts.used(&path(&name), &text),
                _ => texts.found(&path(&name), &text, Some(at(number as u64 % 50))),
            }
            let kept = texts.lock();
            let bytes: usize = kept.by_path.values().map(|(_, text)| text.len() + ENTRY_BYTES).sum();
            assert!(bytes == kept.bytes && bytes <= 10_000 && kept.by_path.len() == kept.by_rank.len());
        }
    }

    #[test]
    fn a_recently_written_prefix_is_unfinished() {
        let ahead = |seconds| Some(SystemTime::now() + Duration::from_secs(seconds));
        let now = ahead(30);
        let before = Some(at(1));
        for (text, modified, expected) in [
            ("---\nname", now, true),
            ("", now, true),
            ("", ahead(999), false),
            ("---\nname", before, false),
            ("---\nname", None, false),
            ("---\nname: a\n", now, false),
            ("---\nname: b", now, false),
            ("---\nname: a\nmore", now, false),
        ] {
            assert_eq!(is_unfinished(text, "---\nname: a\n", modified), expected, "{text:?}");
        }
    }
}
