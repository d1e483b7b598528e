//! [`LastGood`]: the last texts of skills that could be used, for as long as what is on disk cannot.
//!
//! A save overwrites the previous text, so that text must be in memory already when the save turns out to be broken.
//! All texts would be too much: ten thousand skills have 50 MB. So there is a budget, and when it is exhausted, the skills
//! most likely to be saved again stay: first those that were activated or that changed while the process ran, then those
//! whose files were modified most recently.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

/// What all texts together may take, in bytes.
const MAX_KEPT_BYTES: usize = 256 * 1024;

/// A longer text is not kept, in bytes: it would take the place of many.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// What an entry takes beside its text, in bytes; about.
const ENTRY_BYTES: usize = 256;

/// A file that was written to more recently may not be finished.
const UNFINISHED: Duration = Duration::from_secs(1);

/// The clock of a file server may be ahead of ours by this much.
const CLOCK_SKEW: Duration = Duration::from_mins(1);

/// Texts by the path of their skill's directory, or of their file.
#[derive(Debug)]
pub(crate) struct LastGood {
    max_bytes: usize,
    /// Held for a moment, and never while a file is read.
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_path: HashMap<Arc<Path>, (Rank, Arc<str>)>,
    /// The same, what is dropped first in front.
    by_rank: BTreeMap<Rank, Arc<Path>>,
    bytes: usize,
    /// Makes each rank unique, and a later one higher than an earlier one.
    counter: u64,
}

/// How likely a text is to be needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It was found; its file was written to at that time.
    Found(Option<SystemTime>, u64),
    /// It was given to a model, or took the place of another text.
    Used(u64),
}

impl Default for LastGood {
    fn default() -> Self {
        Self::with_budget(MAX_KEPT_BYTES)
    }
}

impl LastGood {
    /// An empty store that never holds more than this many bytes.
    fn with_budget(max_bytes: usize) -> Self {
        Self { max_bytes, kept: Mutex::default() }
    }

    /// The texts of all skills that this process discovers, by canonical directory: every set and session shares them.
    pub(crate) fn of_found_skills() -> &'static Self {
        static FOUND: LazyLock<LastGood> = LazyLock::new(LastGood::default);
        &FOUND
    }

    /// The last good text for `path`, where it is still here.
    pub(crate) fn get(&self, path: &Path) -> Option<Arc<str>> {
        self.lock().by_path.get(path).map(|(_, text)| Arc::clone(text))
    }

    /// Keeps a text that discovery took, if it ranks high enough.
    pub(crate) fn found(&self, path: &Arc<Path>, text: &str, modified: Option<SystemTime>) {
        let mut kept = self.lock();
        match kept.by_path.get(&**path) {
            Some((_, known)) if **known == *text => {}
            Some(_) => kept.insert(path, text, Rank::Used, self.max_bytes),
            None => kept.insert(path, text, |number| Rank::Found(modified, number), self.max_bytes),
        }
    }

    /// Keeps a text that was given to a model.
    pub(crate) fn used(&self, path: &Arc<Path>, text: &str) {
        self.lock().insert(path, text, Rank::Used, self.max_bytes);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // No panic leaves the maps half changed.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn insert(&mut self, path: &Arc<Path>, text: &str, rank: impl FnOnce(u64) -> Rank, max_bytes: usize) {
        self.counter += 1;
        let rank = rank(self.counter);
        // Outdated, whether the new one is kept or not.
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

/// Whether a text looks like one that is still being written: it is a prefix of the last good one, and its file was modified
/// a moment ago. An edit that only cuts the end takes effect after that moment.
pub(crate) fn is_unfinished(text: &str, last: &str, modified: Option<SystemTime>) -> bool {
    is_recent(modified) && text.len() < last.len() && last.starts_with(text)
}

/// Whether a file that was modified at this time may still be written to by the same save.
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

    /// Which of these are kept, in their order.
    fn kept(texts: &LastGood, names: &[&str]) -> String {
        names.iter().filter(|name| texts.get(Path::new(name)).is_some()).copied().collect()
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// Room for three texts of ten bytes.
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
        // Not even the one before it, which is not the last any more.
        texts.used(&path("a"), &"x".repeat(MAX_TEXT_BYTES + 1));
        assert_eq!(texts.get(Path::new("a")), None);
        assert_eq!(texts.lock().bytes, 0);
    }

    #[test]
    fn what_was_written_last_is_kept() {
        let texts = three();
        for (name, time) in
            [("a", Some(3)), ("b", Some(1)), ("c", None), ("d", Some(4)), ("e", Some(2)), ("f", Some(0))]
        {
            texts.found(&path(name), "0123456789", time.map(at));
        }
        assert_eq!(kept(&texts, &["a", "b", "c", "d", "e", "f"]), "ade");
    }

    #[test]
    fn what_was_used_or_changed_is_kept_first() {
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
        // A long one takes the place of as many as it needs.
        texts.used(&path("h"), &"x".repeat(2 * (10 + ENTRY_BYTES) - ENTRY_BYTES));
        assert_eq!(kept(&texts, &["b", "f", "g", "h"]), "gh");
    }

    #[test]
    fn the_budget_holds() {
        let texts = LastGood::with_budget(10_000);
        for number in 0..5_000_usize {
            let (name, text) = (format!("{}", number * 7 % 100), "x".repeat(number * 13 % 3_000));
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
    fn unfinished_texts() {
        let ahead = |seconds| Some(SystemTime::now() + Duration::from_secs(seconds));
        let (now, before) = (ahead(30), Some(at(1)));
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
