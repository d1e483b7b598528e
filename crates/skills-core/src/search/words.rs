//! Text as stems, and the words of names.

use std::collections::{BTreeMap, HashMap};

use rust_stemmers::{Algorithm, Stemmer};

use crate::name::SkillName;

/// Words of a query that say nothing about what is wanted. Sorted.
const STOP_WORDS: &[&str] = &[
    "a", "about", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from",
    "get", "have", "help", "how", "i", "in", "into", "is", "it", "its", "me", "my", "need", "of", "on", "or",
    "our", "please", "so", "some", "that", "the", "them", "then", "there", "this", "to", "up", "us", "use",
    "using", "want", "we", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you",
    "your",
];

/// Shortest beginning of a word of a name that is recognised, in characters.
const MIN_PREFIX_CHARS: usize = 3;
/// Shortest word with a typo, in characters; from twice as many on there may be two.
const MIN_TYPO_CHARS: usize = 4;

/// The vocabulary: a number for each stem.
#[derive(Default)]
pub(super) struct Words {
    stems: HashMap<Box<str>, u32>,
    /// Stems of words that were seen; stemming is slower than looking up.
    seen: HashMap<Box<str>, u32>,
    stemmer: Option<Stemmer>,
}

/// A word of a query.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Lower case, not stemmed.
    pub(super) text: String,
    /// Its number, when a skill has it.
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

    /// Calls `found` with the number of each word in `text`.
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

    /// The words of a query, each once, without those that say nothing (unless there are no others).
    pub(super) fn of_query(&self, text: &str, max: usize) -> Vec<Asked> {
        let stemmer = Stemmer::create(Algorithm::English);
        let (mut words, mut stop_words) = (Vec::new(), Vec::new());
        split(text, |word| {
            let list: &mut Vec<String> = if is_stop_word(word) { &mut stop_words } else { &mut words };
            if list.len() < max && !list.iter().any(|it| it == word) {
                list.push(word.to_owned());
            }
        });
        if words.is_empty() {
            words = stop_words;
        }
        let mut asked: Vec<Asked> = Vec::new();
        for text in words {
            let known = self.stems.get(&*stemmer.stem(&text)).copied();
            if known.is_none() || !asked.iter().any(|it| it.known == known) {
                asked.push(Asked { text, known });
            }
        }
        asked
    }
}

fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Calls `found` with each word in lower case: runs of letters and digits, and each ideograph on its own.
fn split(text: &str, mut found: impl FnMut(&str)) {
    let mut word = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            word.push(c.to_ascii_lowercase());
            continue;
        }
        // `C#`, `C++` and `F#` are words.
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

/// How a word of a name resembles a word of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Similarity {
    Prefix,
    Typo,
}

/// The words of all names, and the names.
#[derive(Debug, Default)]
pub(super) struct Names {
    by_word: BTreeMap<Box<str>, Vec<u32>>,
    /// The same, with what is needed to see quickly that a word is another one: its letters.
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

    /// To be called once, after the last name.
    pub(super) fn sort(&mut self) {
        let sorted = std::mem::take(&mut self.by_word).into_iter();
        self.words = sorted.map(|(word, numbers)| (Letters::of(&word), word, numbers)).collect();
    }

    /// The skills with this name.
    pub(super) fn exactly(&self, name: &str) -> &[u32] {
        self.whole.get(&SkillName::key_of(name)).map_or(&[], Vec::as_slice)
    }

    /// Words that begin with `word` but are longer; and, when `word` is not known, those that are a typo away.
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

/// Which letters a word has, and how many characters.
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

    /// Whether two words with these letters can be so few edits apart; each edit changes at most two letters.
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
    fn splitting() {
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
    fn queries() {
        let mut words = Words::default();
        words.each("deploy reviewing the", |_| {});
        let check = |query: &str, expected: &[(&str, bool)]| {
            let asked = words.of_query(query, 4);
            let asked: Vec<_> = asked.iter().map(|it| (it.text.as_str(), it.known.is_some())).collect();
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
    fn names_that_resemble() {
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
