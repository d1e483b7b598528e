//! [`Words`]: splits text into word stems. [`Names`]: finds names by words, prefixes and typos.

use std::collections::{BTreeMap, HashMap};

use rust_stemmers::{Algorithm, Stemmer};

use crate::name::SkillName;

/// Words that are ignored in a query, sorted.
const STOP_WORDS: &[&str] = &[
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from",
    "get", "have", "help", "how", "i", "in", "into", "is", "it", "its", "me", "my", "need", "of", "on", "or",
    "our", "please", "so", "some", "that", "the", "them", "then", "there", "this", "to", "up", "us", "use",
    "using", "want", "we", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you",
    "your",
];

/// The minimum length of a prefix that matches a word of a name, in characters.
const MIN_PREFIX_CHARS: usize = 3;
/// The minimum length of a word that may have a typo, in characters. Words of twice this length may have two.
const MIN_TYPO_CHARS: usize = 4;

/// A vocabulary that maps each stem to a number.
#[derive(Default)]
pub(super) struct Words {
    stems: HashMap<Box<str>, u32>,
    /// A cache of the stems' numbers by word, because stemming is slow.
    seen: HashMap<Box<str>, u32>,
    stemmer: Option<Stemmer>,
}

/// A word of a query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The word in lower case, not stemmed.
    pub(super) text: String,
    /// The number of its stem, if the vocabulary has it.
    pub(super) known: Option<u32>,
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Words").field("stems", &self.stems.len()).finish_non_exhaustive()
    }
}

impl Words {
    pub(super) fn len(&self) -> usize {
        self.stems.len()
    }

    /// Adds the words of `text` to the vocabulary, and calls `found` with the number of each.
    pub(super) fn each(&mut self, text: &str, mut found: impl FnMut(u32)) {
        split(text, |word| {
            if let Some(&number) = self.seen.get(word) {
                return found(number);
            }
            let stemmer = self.stemmer.get_or_insert_with(|| Stemmer::create(Algorithm::English));
            let next = u32::try_from(self.stems.len()).unwrap_or(u32::MAX);
            let number = *self.stems.entry(stemmer.stem(word).into()).or_insert(next);
            self.seen.insert(word.into(), number);
            found(number);
        });
    }

    /// Returns at most `max` different words of a query. Stop words are left out, unless there are no other words.
    pub(super) fn of_query(&self, text: &str, max: usize) -> Vec<Asked> {
        let stemmer = Stemmer::create(Algorithm::English);
        let mut words = Vec::new();
        let mut stop_words = Vec::new();
        split(text, |word| {
            let list: &mut Vec<String> = if is_stop_word(word) { &mut stop_words } else { &mut words };
            if list.len() < max && !list.iter().any(|known| known == word) {
                list.push(word.to_owned());
            }
        });
        if words.is_empty() {
            words = stop_words;
        }
        let mut asked: Vec<Asked> = Vec::new();
        for text in words {
            let known = self.stems.get(&*stemmer.stem(&text)).copied();
            if known.is_none() || !asked.iter().any(|earlier| earlier.known == known) {
                asked.push(Asked { text, known });
            }
        }
        asked
    }
}

fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Calls `found` with each word in lower case. A word is a run of letters and digits, or a single ideograph.
fn split(text: &str, mut found: impl FnMut(&str)) {
    let mut word = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
            continue;
        }
        // Keep `C#`, `C++` and `F#` as words.
        if matches!(c, '#' | '+') && word.chars().next_back().is_some_and(|c| c.is_alphabetic() || c == '+') {
            word.push(c);
            continue;
        }
        let ideograph =
            matches!(c, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}');
        if c.is_alphanumeric() && !ideograph {
            word.extend(c.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            found(&word);
            word.clear();
        }
        if ideograph {
            found(c.encode_utf8(&mut [0; 4]));
        }
    }
    if !word.is_empty() {
        found(&word);
    }
}

/// A kind of inexact match between a word of a query and a word of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Similarity {
    Prefix,
    Typo,
}

/// An index of names and their words.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_word: BTreeMap<Box<str>, Vec<u32>>,
    /// The words, sorted, with their skills. The letters of a word quickly show if it can be a typo of another word.
    words: Vec<(Letters, Box<str>, Vec<u32>)>,
    whole: HashMap<String, Vec<u32>>,
}

impl Names {
    pub(super) fn add(&mut self, name: &str, number: u32) {
        split(name, |word| {
            let numbers = self.by_word.entry(word.into()).or_default();
            if numbers.last() != Some(&number) {
                numbers.push(number);
            }
        });
        self.whole.entry(SkillName::key_of(name)).or_default().push(number);
    }

    /// Sorts the words. Must be called once, after the last name was added.
    pub(super) fn sort(&mut self) {
        let sorted = std::mem::take(&mut self.by_word).into_iter();
        self.words = sorted.map(|(word, numbers)| (Letters::of(&word), word, numbers)).collect();
    }

    /// Returns the numbers of the skills with this name.
    pub(super) fn exactly(&self, name: &str) -> &[u32] {
        self.whole.get(&SkillName::key_of(name)).map_or(&[], Vec::as_slice)
    }

    /// Returns the numbers of names with a longer word that starts with `word`. If there are none and `known` is false, returns
    /// those with a word that differs from `word` by typos.
    pub(super) fn like(&self, word: &str, known: bool) -> Vec<(Similarity, &[u32])> {
        let chars = word.chars().count();
        let mut like = Vec::new();
        if chars >= MIN_PREFIX_CHARS {
            let start = self.words.partition_point(|(_, other, _)| &**other <= word);
            let begins = self.words[start..].iter().take_while(|(_, other, _)| other.starts_with(word));
            like.extend(begins.map(|(_, _, numbers)| (Similarity::Prefix, numbers.as_slice())));
        }
        if known || !like.is_empty() || chars < MIN_TYPO_CHARS {
            return like;
        }
        let typos = if chars >= 2 * MIN_TYPO_CHARS { 2 } else { 1 };
        let letters = Letters::of(word);
        let near = self.words.iter().filter(|(theirs, other, _)| {
            letters.may_be_within(*theirs, typos) && strsim::damerau_levenshtein(word, other) <= typos
        });
        like.extend(near.map(|(_, _, numbers)| (Similarity::Typo, numbers.as_slice())));
        like
    }
}

/// The set of characters in a word, as a bit mask, and the length of the word.
#[derive(Debug, Clone, Copy)]
struct Letters {
    set: u64,
    chars: usize,
}

impl Letters {
    fn of(word: &str) -> Self {
        let set = word.chars().fold(0, |set, c| set | 1 << (u32::from(c) % 64));
        Self { set, chars: word.chars().count() }
    }

    /// Returns false if two words need more than `edits` edits. Each edit changes at most two bits of the mask.
    fn may_be_within(self, other: Self, edits: usize) -> bool {
        self.chars.abs_diff(other.chars) <= edits && (self.set ^ other.set).count_ones() as usize <= 2 * edits
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Similarity::{Prefix, Typo},
        *,
    };

    #[test]
    fn text_is_split_into_words() {
        for (text, expected) in [
            ("Code-Review, v2.1!", &["code", "review", "v2", "1"][..]),
            ("C++ and C#; a + b # c", &["c++", "and", "c#", "a", "b", "c"]),
            ("Größe ÉTÉ", &["größe", "été"]),
            ("代码ab审查", &["代", "码", "ab", "审", "查"]),
            ("", &[]),
        ] {
            let mut words = Vec::new();
            split(text, |word| words.push(word.to_owned()));
            assert_eq!(words, expected, "{text}");
        }
    }

    #[test]
    fn stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn stop_words_and_repeated_stems_are_dropped_from_queries() {
        let mut words = Words::default();
        words.each("deploy reviewing the", |_| {});
        let check = |query: &str, expected: &[(&str, bool)]| {
            let asked = words.of_query(query, 4);
            let asked: Vec<_> = asked.iter().map(|word| (word.text.as_str(), word.known.is_some())).collect();
            assert_eq!(asked, expected, "{query}");
        };
        check("How to REVIEW the robots?", &[("review", true), ("robots", false)]);
        check("Deploying deploys", &[("deploying", true)]);
        check("the", &[("the", true)]);
        check(
            "one two three four five",
            &[("one", false), ("two", false), ("three", false), ("four", false)],
        );
        check("", &[]);
    }

    #[test]
    fn names_match_by_prefix_and_typo() {
        let mut names = Names::default();
        for (name, number) in ["kubernetes-deploy", "code-review", "coder", "pdf"].iter().zip(0..) {
            names.add(name, number);
        }
        names.sort();
        let check = |word: &str, known: bool, expected: &[(Similarity, &[u32])]| {
            assert_eq!(names.like(word, known), expected, "{word}");
        };
        check("kube", false, &[(Prefix, &[0])]);
        check("kubernets", false, &[(Typo, &[0])]);
        check("kuberentes", false, &[(Typo, &[0])]);
        check("kuberentes", true, &[]);
        check("reveiw", false, &[(Typo, &[1])]);
        check("code", true, &[(Prefix, &[2])]);
        check("co", false, &[]);
        check("pfd", false, &[]);
        assert_eq!(names.exactly(" Code-Review "), [1]);
        assert_eq!(names.exactly("review"), [0_u32; 0]);
    }
}
