//! [`Names`]: finds names by words, prefixes and typos.

use std::collections::{BTreeMap, HashMap};

use super::split::split;

/// The minimum length of a prefix that matches a word of a name, in characters.
const MIN_PREFIX_CHARS: usize = 3;
/// The minimum length of a word that may have a typo, in characters. Words of twice this length may have two.
const MIN_TYPO_CHARS: usize = 4;

/// A kind of inexact match between a word of a query and a word of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Similarity {
    /// The word of the name is longer and starts with the word of the query.
    Prefix,
    /// The words differ by a typo, or by two if they are long.
    Typo,
}

/// An index of names and their words. Names must be added in the order of their numbers.
#[derive(Debug, Default)]
pub struct Names {
    by_word: BTreeMap<Box<str>, Vec<u32>>,
    /// The words, sorted, with the numbers of their names. The letters of a word quickly show if it can be a typo of another word.
    words: Vec<(Letters, Box<str>, Vec<u32>)>,
    whole: HashMap<String, Vec<u32>>,
}

impl Names {
    /// Adds the name of the text with this number. `key` is the form of the name in which whole names are compared.
    pub fn add(&mut self, name: &str, key: String, number: u32) {
        split(name, |word| {
            let numbers = self.by_word.entry(word.into()).or_default();
            if numbers.last() != Some(&number) {
                numbers.push(number);
            }
        });
        self.whole.entry(key).or_default().push(number);
    }

    /// Sorts the words. Must be called once, after the last name was added.
    pub fn sort(&mut self) {
        let sorted = std::mem::take(&mut self.by_word).into_iter();
        self.words = sorted.map(|(word, numbers)| (Letters::of(&word), word, numbers)).collect();
    }

    /// Returns the numbers of the texts whose whole name has this key.
    pub fn exactly(&self, key: &str) -> &[u32] {
        self.whole.get(key).map_or(&[], Vec::as_slice)
    }

    /// Returns the numbers of names with a longer word that starts with `word`. If there are none and `known` is false, returns
    /// those with a word that differs from `word` by typos.
    pub fn like(&self, word: &str, known: bool) -> Vec<(Similarity, &[u32])> {
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
    fn names_match_by_prefix_and_typo() {
        let mut names = Names::default();
        for (name, number) in ["kubernetes-deploy", "code-review", "coder", "pdf"].iter().zip(0..) {
            names.add(name, (*name).to_owned(), number);
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
        assert_eq!(names.exactly("code-review"), [1]);
        assert_eq!(names.exactly("review"), [0_u32; 0]);
    }
}
