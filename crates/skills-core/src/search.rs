//! [`SearchIndex`]: ranked search over skills.
//!
//! Skills are scored with [BM25](https://en.wikipedia.org/wiki/Okapi_BM25) on English word stems. Each field has a weight:
//! description 3, tags 2, scenarios of examples 1.5, names of tools 1, name 1, parameters 0.5. Names also match by prefix
//! and with typos.
//!
//! Skills with equal scores are ordered by priority. After that, skills with missing tools come last, and the original order
//! decides. The same query always returns the same result.
//!
//! We don't use the `bm25` crate, because it does not support fields, prefixes and typos. The benchmark `search` compares both.

mod words;

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use crate::skill::Skill;
use words::{Names, Words};

/// Weights of a word, by the field that contains it.
const DESCRIPTION: f32 = 3.0;
const TAG: f32 = 2.0;
const SCENARIO: f32 = 1.5;
const PARAMETER: f32 = 0.5;
const TOOL: f32 = 1.0;
const NAME: f32 = 1.0;

/// The saturation parameter of BM25: the usual 1.2, scaled to the weight of the description.
const K1: f32 = 1.2 * DESCRIPTION;
/// The length normalization parameter of BM25.
const B: f32 = 0.75;
/// The score of a name that contains a word with the queried prefix, relative to an exact match.
const PREFIX: f32 = 0.7;
/// The relative score for a prefix if the queried word is also in the index. In this case, `excel` probably doesn't mean
/// `excellence`.
const PREFIX_OF_KNOWN: f32 = 0.4;
/// The score of a name that contains the queried word with a typo, relative to an exact match.
const TYPO: f32 = 0.5;
/// The score that is added if the query is the whole name, relative to the rarest word.
const IS_NAME: f32 = 3.0;

/// The default number of results.
pub const DEFAULT_LIMIT: usize = 10;
/// The maximum number of results.
pub const MAX_LIMIT: usize = 50;
/// The maximum number of words of a query. Further words are ignored.
const MAX_QUERY_WORDS: usize = 64;

/// A search query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// Words in any order and form. An empty text matches all skills.
    pub text: String,
    /// Tags that a skill must have. All of them are required, and case is ignored.
    pub tags: Vec<String>,
    /// The maximum number of results, from 1 to [`MAX_LIMIT`]. Other values are clamped. The default is [`DEFAULT_LIMIT`].
    pub limit: Option<usize>,
}

/// A search result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Hit {
    /// The skill.
    pub skill: Arc<Skill>,
    /// The score, which can only be compared to scores of the same query. It is zero if the query has no text.
    pub score: f32,
    /// The number of different words of the query that the skill contains, in any form.
    pub matched: usize,
}

/// The results of a query.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Hits {
    /// The best results, best first, up to the limit.
    pub hits: Vec<Hit>,
    /// The number of skills that match, without the limit.
    pub total: usize,
}

/// A search index over skills.
///
/// ```
/// use std::sync::Arc;
///
/// use skills_core::{Skill, search::{Query, SearchIndex}};
///
/// let skills = [
///     Skill::builder("pdf-forms", "Fills in forms. Use for PDF documents.").body("x").build()?,
///     Skill::builder("web-tests", "Tests web pages in a browser.").body("x").build()?,
/// ]
/// .map(Arc::new);
/// let index = SearchIndex::new(skills);
/// let hits = index.search(&Query { text: "testing a page".into(), ..Query::default() }).hits;
/// assert_eq!(hits[0].skill.name.as_str(), "web-tests");
/// # Ok::<(), skills_core::BuildError>(())
/// ```
#[derive(Debug)]
pub struct SearchIndex {
    skills: Vec<Arc<Skill>>,
    words: Words,
    names: Names,
    /// For each word, the skills that contain it, with the score that it adds to each.
    postings: Vec<Vec<(u32, f32)>>,
    /// The score of the rarest word.
    best: f32,
}

impl SearchIndex {
    /// Builds an index over the skills that the model sees ([`Skill::is_listed`]). This takes about 10 µs per skill.
    pub fn new(skills: impl IntoIterator<Item = Arc<Skill>>) -> Self {
        let skills: Vec<Arc<Skill>> = skills.into_iter().filter(|skill| skill.is_listed()).collect();
        let mut words = Words::default();
        let mut names = Names::default();
        let mut postings: Vec<Vec<(u32, f32)>> = Vec::new();
        let mut lengths = Vec::with_capacity(skills.len());
        let mut weights: HashMap<u32, f32> = HashMap::new();
        for (skill, number) in skills.iter().zip(0_u32..) {
            let mut length = 0.0;
            let mut add = |text: &str, weight: f32, words: &mut Words| {
                words.each(text, |word| {
                    *weights.entry(word).or_default() += weight;
                    length += weight;
                });
            };
            add(&skill.description, DESCRIPTION, &mut words);
            skill.properties.tags.iter().for_each(|tag| add(tag, TAG, &mut words));
            skill.tools().iter().for_each(|tool| add(&tool.name, TOOL, &mut words));
            if let Some(usage) = &skill.properties.usage {
                usage.examples.iter().for_each(|example| add(&example.scenario, SCENARIO, &mut words));
                for parameter in &usage.parameters {
                    add(&parameter.name, PARAMETER, &mut words);
                    add(&parameter.description, PARAMETER, &mut words);
                }
            }
            add(skill.name.as_str(), NAME, &mut words);
            names.add(skill.name.as_str(), number);
            postings.resize_with(words.len(), Vec::new);
            for (word, weight) in weights.drain() {
                postings[word as usize].push((number, weight));
            }
            lengths.push(length);
        }
        names.sort();
        let average = lengths.iter().sum::<f32>() / count(lengths.len()).max(1.0);
        let mut best = 0.0_f32;
        for posting in &mut postings {
            let idf = idf(skills.len(), posting.len());
            best = best.max(idf);
            for (number, weight) in posting {
                let length = lengths[*number as usize] / average.max(f32::MIN_POSITIVE);
                *weight = idf * *weight * (K1 + 1.0) / (*weight + K1 * (1.0 - B + B * length));
            }
        }
        Self { skills, words, names, postings, best }
    }

    /// Returns the skills that match `query`, best first.
    pub fn search(&self, query: &Query) -> Hits {
        let asked = self.words.of_query(&query.text, MAX_QUERY_WORDS);
        let scores = self.scores(&asked, &query.text);
        let everything = query.text.trim().is_empty();
        let tags: Vec<String> = query.tags.iter().map(|tag| tag.trim().to_lowercase()).collect();
        let has_tag = |skill: &Skill, tag: &str| {
            skill.properties.tags.iter().any(|own| own.trim().to_lowercase() == tag)
        };
        let has_tags = |skill: &Skill| tags.iter().all(|tag| has_tag(skill, tag));
        let mut found: Vec<(f32, usize)> = scores
            .into_iter()
            .zip(0..)
            .filter(|&(score, number)| (everything || score > 0.0) && has_tags(&self.skills[number]))
            // Round the scores, so that floating-point noise doesn't outrank the priority.
            .map(|(score, number)| ((score * 1000.0).round() / 1000.0, number))
            .collect();
        let rank = |&(score, number): &(f32, usize)| {
            let skill = &self.skills[number];
            (Reverse(Ordered(score)), Reverse(skill.properties.priority), is_incomplete(skill), number)
        };
        found.sort_unstable_by_key(rank);
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let hits = found.iter().take(limit);
        let hits = hits.map(|&(score, number)| Hit {
            skill: Arc::clone(&self.skills[number]),
            score,
            matched: self.matched(&asked, number),
        });
        Hits { hits: hits.collect(), total: found.len() }
    }

    /// Returns the number of skills in the index.
    pub fn len(&self) -> usize {
        self.skills.len()
    }

    /// Returns true if the index has no skills.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    fn matched(&self, asked: &[words::Asked], number: usize) -> usize {
        let has = |word: u32| {
            let posting = &self.postings[word as usize];
            posting.binary_search_by_key(&number, |&(other, _)| other as usize).is_ok()
        };
        asked.iter().filter(|asked| asked.known.is_some_and(has)).count()
    }

    fn scores(&self, asked: &[words::Asked], text: &str) -> Vec<f32> {
        let mut scores = vec![0.0; self.skills.len()];
        for asked in asked {
            if let Some(word) = asked.known {
                for &(number, weight) in &self.postings[word as usize] {
                    scores[number as usize] += weight;
                }
            }
            for (similarity, numbers) in self.names.like(&asked.text, asked.known.is_some()) {
                let worth = match similarity {
                    words::Similarity::Prefix if asked.known.is_some() => PREFIX_OF_KNOWN,
                    words::Similarity::Prefix => PREFIX,
                    words::Similarity::Typo => TYPO,
                };
                let idf = idf(self.skills.len(), numbers.len());
                for &number in numbers {
                    scores[number as usize] += worth * idf;
                }
            }
        }
        for &number in self.names.exactly(text) {
            scores[number as usize] += IS_NAME * self.best.max(1.0);
        }
        scores
    }
}

/// Returns true if the skill has a tool that can't work.
fn is_incomplete(skill: &Skill) -> bool {
    skill.tools().iter().any(|tool| tool.missing.is_some())
}

/// Returns the inverse document frequency of a word that `having` of `all` skills contain.
fn idf(all: usize, having: usize) -> f32 {
    let all = count(all);
    let having = count(having);
    (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 16 million skills")]
fn count(number: usize) -> f32 {
    number as f32
}

/// A score that implements [`Ord`]. It is never NaN.
#[derive(PartialEq)]
struct Ordered(f32);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests;
