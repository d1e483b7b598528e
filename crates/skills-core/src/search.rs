//! [`SearchIndex`]: ranked search over the skills that a model may see.
//!
//! [BM25](https://en.wikipedia.org/wiki/Okapi_BM25) over description (×3), tags (×2), the scenarios of examples (×1.5), tools and name
//! (×1 each) and parameters (×0.5), on English stems; names also match by prefix and with a typo. Equal scores are ranked by priority, then complete skills before
//! those with missing tools, then by the order of the set: the same query always gives the same answer.
//!
//! Our own few hundred lines, because the `bm25` crate knows neither fields nor prefixes nor typos; the bench `search`
//! has both side by side.

mod words;

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use crate::skill::Skill;
use words::{Names, Words};

/// What a word counts, by where it stands.
const DESCRIPTION: f32 = 3.0;
const TAG: f32 = 2.0;
const SCENARIO: f32 = 1.5;
const PARAMETER: f32 = 0.5;
const TOOL: f32 = 1.0;
const NAME: f32 = 1.0;

/// How fast the weight of a repeated word saturates: the usual 1.2, of a word of the description.
const K1: f32 = 1.2 * DESCRIPTION;
/// How much long texts are discounted.
const B: f32 = 0.75;
/// What a word of a name is worth that begins with what was asked for, compared with the word itself.
const PREFIX: f32 = 0.7;
/// The same when the word is known by itself: `excel` is rather not the beginning of `excellence` then.
const PREFIX_OF_KNOWN: f32 = 0.4;
/// What a word of a name is worth that differs by a typo.
const TYPO: f32 = 0.5;
/// What is added, compared with the rarest word, when the query is the name.
const IS_NAME: f32 = 3.0;

/// Default number of results.
pub const DEFAULT_LIMIT: usize = 10;
/// Largest number of results.
pub const MAX_LIMIT: usize = 50;
/// Words of a query beyond these are ignored.
const MAX_QUERY_WORDS: usize = 64;

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// Words, in any order and form; empty finds everything.
    pub text: String,
    /// Tags that a skill must have, all of them; case does not count.
    pub tags: Vec<String>,
    /// How many results at most; [`DEFAULT_LIMIT`] when there is none, never more than [`MAX_LIMIT`].
    pub limit: Option<usize>,
}

/// A skill that was found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Hit {
    /// The skill.
    pub skill: Arc<Skill>,
    /// How well it fits; comparable within one answer only. Zero when nothing was asked for.
    pub score: f32,
    /// How many different words of the question the skill has, in any form.
    pub matched: usize,
}

/// An answer.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Hits {
    /// The best, best first.
    pub hits: Vec<Hit>,
    /// How many skills fit at all.
    pub total: usize,
}

/// An index over the skills of a set that a model may see ([`SkillSet::listed`](crate::SkillSet::listed)).
///
/// ```
/// use skills_core::{Skill, SkillSet, search::{Query, SearchIndex}};
///
/// let skills: SkillSet = [
///     Skill::builder("pdf-forms", "Fills in forms. Use for PDF documents.").body("x").build()?,
///     Skill::builder("web-tests", "Tests web pages in a browser.").body("x").build()?,
/// ]
/// .into_iter()
/// .collect();
/// let index = SearchIndex::new(&skills);
/// let hits = index.search(&Query { text: "testing a page".into(), ..Query::default() }).hits;
/// assert_eq!(hits[0].skill.name.as_str(), "web-tests");
/// # Ok::<(), skills_core::BuildError>(())
/// ```
#[derive(Debug)]
pub struct SearchIndex {
    skills: Vec<Arc<Skill>>,
    words: Words,
    names: Names,
    /// For each word, the skills that have it and what it adds to their scores.
    postings: Vec<Vec<(u32, f32)>>,
    /// What the rarest word can add.
    best: f32,
}

impl SearchIndex {
    /// Indexes skills; about 10 µs each.
    pub(crate) fn over(skills: Vec<Arc<Skill>>) -> Self {
        let (mut words, mut names) = (Words::default(), Names::default());
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
                usage.examples.iter().for_each(|it| add(&it.scenario, SCENARIO, &mut words));
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

    /// The skills that fit `query`, best first.
    pub fn search(&self, query: &Query) -> Hits {
        let asked = self.words.of_query(&query.text, MAX_QUERY_WORDS);
        let scores = self.scores(&asked, &query.text);
        let everything = query.text.trim().is_empty();
        let tags: Vec<String> = query.tags.iter().map(|tag| tag.trim().to_lowercase()).collect();
        let has_tags = |skill: &Skill| {
            tags.iter().all(|tag| skill.properties.tags.iter().any(|it| it.trim().to_lowercase() == *tag))
        };
        let mut found: Vec<(f32, usize)> = scores
            .into_iter()
            .zip(0..)
            .filter(|&(score, number)| (everything || score > 0.0) && has_tags(&self.skills[number]))
            // Noise of the last bits must not decide before the priority does.
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

    /// How many skills can be found.
    pub fn len(&self) -> usize {
        self.skills.len()
    }

    /// Whether there are none.
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

/// Whether the skill has tools that do not work.
fn is_incomplete(skill: &Skill) -> bool {
    skill.tools().iter().any(|tool| tool.missing.is_some())
}

/// How much a word says that `having` of `all` skills have.
fn idf(all: usize, having: usize) -> f32 {
    let (all, having) = (count(all), count(having));
    (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
}

#[expect(clippy::cast_precision_loss, reason = "nobody has 16 million skills")]
fn count(number: usize) -> f32 {
    number as f32
}

/// A score that can be sorted by; it is never NaN.
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
mod labelled;
#[cfg(test)]
mod tests;
