//! [`Words`]: a vocabulary of word stems.

use std::{borrow::Cow, collections::HashMap};

use rust_stemmers::Stemmer;

use super::{
    language::{LANGUAGES, Language},
    split::{is_half_of_a_pair, split},
};

/// The maximum length of a word that is stemmed, in bytes.
const MAX_STEMMED_BYTES: usize = 100;

/// A vocabulary that maps each stem to a number: 0, 1, 2… in the order in which they are found.
#[derive(Default)]
pub struct Words {
    /// Words are untrusted, so the hash of these maps has a random key. With a known one, all words could have the same hash.
    stems: HashMap<Box<str>, u32>,
    /// The languages of the texts, with their stemmers.
    languages: Vec<(Language, Stemmer)>,
    /// Caches of the stems' numbers by word, by language, because stemming is slow. Also says which words are stop words.
    seen: [HashMap<Box<str>, (u32, bool)>; LANGUAGES],
}

/// A word of a query.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    /// The word in lower case, not stemmed.
    pub text: String,
    /// The numbers of its stems that the vocabulary has. There are several if the index has texts in several languages.
    pub known: Vec<u32>,
}

impl std::fmt::Debug for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Words").field("stems", &self.stems.len()).finish_non_exhaustive()
    }
}

impl Words {
    /// Adds the words of `text` to the vocabulary, and calls `found` with the number of each.
    pub fn each(&mut self, text: &str, language: Language, mut found: impl FnMut(u32)) {
        split(text, |word| found(self.number(word, language).0));
    }

    /// Adds the words of `text` that are not stop words, and calls `found` with the number and the text of each.
    pub fn each_meaningful(&mut self, text: &str, language: Language, mut found: impl FnMut(u32, &str)) {
        split(text, |word| {
            let (number, is_stop_word) = self.number(word, language);
            if !is_stop_word {
                found(number, word);
            }
        });
    }

    /// Returns the number of a word's stem, and true if it is a stop word.
    fn number(&mut self, word: &str, language: Language) -> (u32, bool) {
        if let Some(&seen) = self.seen[language as usize].get(word) {
            return seen;
        }
        let at = self.languages.iter().position(|(known, _)| *known == language).unwrap_or_else(|| {
            self.languages.push((language, language.stemmer()));
            self.languages.len() - 1
        });
        let next = u32::try_from(self.stems.len()).unwrap_or(u32::MAX);
        let number = *self.stems.entry(stem(&self.languages[at].1, word).into()).or_insert(next);
        let seen = (number, language.ignores(word));
        self.seen[language as usize].insert(word.into(), seen);
        seen
    }

    /// Drops what is only needed to add words.
    pub fn finish(&mut self) {
        self.seen = Default::default();
        self.stems.shrink_to_fit();
    }

    /// Returns at most `max` different words of a query. Stop words are left out, unless there are no other words.
    pub fn of_query(&self, text: &str, max: usize) -> Vec<Asked> {
        let language = Language::of(text);
        let mut words = Vec::new();
        let mut stop_words = Vec::new();
        split(text, |word| {
            let list: &mut Vec<String> = if language.ignores(word) { &mut stop_words } else { &mut words };
            if list.len() < max && !list.iter().any(|known| known == word) {
                list.push(word.to_owned());
            }
        });
        if words.is_empty() {
            words = stop_words;
        }
        let mut asked: Vec<Asked> = Vec::new();
        for text in words {
            let known = self.known(&text);
            if known.is_empty() || !asked.iter().any(|earlier| earlier.known == known) {
                asked.push(Asked { text, known });
            }
        }
        asked
    }

    /// Returns the numbers of the stems of a word in all languages of the index.
    fn known(&self, word: &str) -> Vec<u32> {
        if is_half_of_a_pair(word) {
            let pairs = self.stems.iter().filter(|(stem, _)| stem.contains(word));
            let mut known: Vec<u32> = pairs.map(|(_, &number)| number).collect();
            known.sort_unstable();
            return known;
        }
        let mut known = Vec::new();
        for (_, stemmer) in &self.languages {
            if let Some(&number) = self.stems.get(&*stem(stemmer, word))
                && !known.contains(&number)
            {
                known.push(number);
            }
        }
        known
    }
}

/// Returns the stem of a word. Long words, such as base64, have none, because the time of the stemmers grows with the square of the length.
fn stem<'w>(stemmer: &Stemmer, word: &'w str) -> Cow<'w, str> {
    if word.len() > MAX_STEMMED_BYTES { word.into() } else { stemmer.stem(word) }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    /// With the hash of `rustc-hash`, these words have the same hash, so that each of them was compared with all others.
    #[test]
    fn authors_cannot_choose_words_with_the_same_hash() {
        let words = Words::default();
        let [a, b] = ["00000001", "00000002"].map(|end| format!("ytm1e2tjs1lcsovikey00000fqewfo0k{end}"));
        assert_ne!(words.stems.hasher().hash_one(&a), words.stems.hasher().hash_one(&b));
        let seen = words.seen[0].hasher();
        assert_ne!(seen.hash_one(&a), seen.hash_one(&b));
    }

    /// The stemmer of English needs minutes for this word.
    #[test]
    fn long_words_have_no_stem() {
        let mut words = Words::default();
        let long = "ya".repeat(500_000);
        words.each(&format!("{long} reviewing"), Language::English, |_| {});
        assert_eq!(words.of_query(&long, 1)[0].known, [0]);
        assert_eq!(words.of_query("reviewed", 1)[0].known, [1]);
    }

    #[test]
    fn stop_words_and_repeated_stems_are_dropped_from_queries() {
        let mut words = Words::default();
        words.each("deploy reviewing the", Language::English, |_| {});
        words.each("Rechnungen prüfen", Language::German, |_| {});
        let check = |query: &str, expected: &[(&str, bool)]| {
            let asked = words.of_query(query, 4);
            let asked: Vec<_> =
                asked.iter().map(|word| (word.text.as_str(), !word.known.is_empty())).collect();
            assert_eq!(asked, expected, "{query}");
        };
        check("How to REVIEW the robots?", &[("review", true), ("robots", false)]);
        check("Deploying deploys", &[("deploying", true)]);
        check("Wie kann ich eine Rechnung prüfe?", &[("rechnung", true), ("prüfe", true)]);
        check("the", &[("the", true)]);
        check(
            "one two three four five",
            &[("one", false), ("two", false), ("three", false), ("four", false)],
        );
        check("", &[]);
    }
}
