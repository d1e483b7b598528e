//! [`SearchIndex`]: ranked search over skills.
//!
//! Skills are scored with [BM25](https://en.wikipedia.org/wiki/Okapi_BM25) on word stems. Each field has a weight:
//! description 3, tags 2, scenarios of examples 1.5, names of tools 1, name 1, parameters 0.5. Names also match by prefix
//! and with typos. If a query asks for it, the instructions are searched, too, with a separate score that is added with a low
//! weight. Words of headings weigh three times as much as other words of the instructions.
//!
//! Text can be in any script. Words of eight languages are stemmed, and scripts without spaces between words are searched by groups of
//! characters.
//!
//! Skills with equal scores are ordered by priority. After that, skills with missing tools come last, and the original order
//! decides. The same query always returns the same result.
//!
//! We don't use the `bm25` crate, because it does not support fields, prefixes and typos. The benchmark `search` compares both.

mod instructions;

use std::{cmp::Reverse, sync::Arc};

use skills_search::{Asked, Field, Language, Names, Similarity, Words, idf, is_common};

use crate::{name::SkillName, order, skill::Skill};

/// The unit of the following weights.
const UNIT: f32 = 0.5;
/// Weights of a word in units, by the field that contains it.
const DESCRIPTION: u8 = 6;
const TAG: u8 = 4;
const SCENARIO: u8 = 3;
const PARAMETER: u8 = 1;
const TOOL: u8 = 2;
const NAME: u8 = 2;

/// The saturation parameter of BM25: the usual 1.2, scaled to the weight of the description.
const K1: f32 = 3.6;
/// The saturation parameter for instructions, in which a word is often repeated.
const INSTRUCTIONS_K1: f32 = 2.0;
/// The weight of the instructions' score.
const INSTRUCTIONS: f32 = 1.0;
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

/// The minimum number of specific words of the query that a confident result has.
const MIN_SPECIFIC_WORDS: usize = 2;
/// A confident result has at least one in this many words of the query.
const CONFIDENT_SHARE: usize = 5;
/// The maximum score of the next result, relative to a confident one.
const MAX_NEXT_SCORE: f32 = 0.7;

/// A search query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// Words in any order and form. An empty text matches all skills.
    pub text: String,
    /// Tags that a skill must have. All of them are required, and case is ignored.
    pub tags: Vec<String>,
    /// True if the instructions are searched, too, provided that the index has them
    /// ([`prepare_search`](crate::instructions::prepare_search)).
    pub instructions: bool,
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
    /// The number of different words of the query that the skill contains in any form, without its instructions.
    pub matched: usize,
    /// The number of these words that are not common words of prompts, such as `add`, `file` or `why`.
    pub specific: usize,
}

/// The results of a query.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Hits {
    /// The best results, best first, up to the limit.
    pub hits: Vec<Hit>,
    /// The number of skills that match, without the limit.
    pub total: usize,
    /// The number of different words of the query, without stop words.
    pub words: usize,
}

impl Hits {
    /// Returns the best result if it clearly fits the query: it has at least a fifth of its words, two of them specific, and a much
    /// higher score than the next result.
    pub fn confident(&self) -> Option<&Hit> {
        let best = self.hits.first()?;
        let next = self.hits.get(1).map_or(0.0, |hit| hit.score);
        let has_words = best.specific >= MIN_SPECIFIC_WORDS && best.matched * CONFIDENT_SHARE >= self.words;
        (has_words && next <= best.score * MAX_NEXT_SCORE).then_some(best)
    }
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
    metadata: Field,
    /// `None` if the index doesn't have the instructions.
    instructions: Option<Field>,
    /// The score of the rarest word.
    best: f32,
}

impl SearchIndex {
    /// Builds an index over the skills that the model sees ([`Skill::is_listed`]), without their instructions. This takes about
    /// 10 µs per skill, and doesn't block.
    pub fn new(skills: impl IntoIterator<Item = Arc<Skill>>) -> Self {
        let mut index = Self::of_metadata(skills);
        index.words.finish();
        index
    }

    /// Builds an index over the skills that the model sees and their instructions, which `read` returns. Skills without a text are
    /// found by their metadata.
    pub fn with_instructions(
        skills: impl IntoIterator<Item = Arc<Skill>>,
        read: impl Fn(&Skill) -> Option<Arc<str>>,
    ) -> Self {
        let mut index = Self::of_metadata(skills);
        let mut field = Field::new(INSTRUCTIONS_K1, 1.0);
        for skill in &index.skills {
            if let Some(text) = read(skill) {
                instructions::add(skill, &text, &mut index.words, &mut field);
            }
            field.end_text();
        }
        field.finish();
        index.words.finish();
        Self { instructions: Some(field), ..index }
    }

    fn of_metadata(skills: impl IntoIterator<Item = Arc<Skill>>) -> Self {
        let skills: Vec<Arc<Skill>> = skills.into_iter().filter(|skill| skill.is_listed()).collect();
        let mut words = Words::default();
        let mut names = Names::default();
        let mut metadata = Field::new(K1, UNIT);
        for (skill, number) in skills.iter().zip(0_u32..) {
            let language = Language::of(&skill.description);
            let mut add = |text: &str, weight: u8| {
                words.each(text, language, |word| metadata.add(word, weight));
            };
            add(&skill.description, DESCRIPTION);
            skill.properties.tags.iter().for_each(|tag| add(tag, TAG));
            skill.tools().iter().for_each(|tool| add(&tool.name, TOOL));
            if let Some(usage) = &skill.properties.usage {
                usage.examples.iter().for_each(|example| add(&example.scenario, SCENARIO));
                for parameter in &usage.parameters {
                    add(&parameter.name, PARAMETER);
                    add(&parameter.description, PARAMETER);
                }
            }
            add(skill.name.as_str(), NAME);
            names.add(skill.name.as_str(), SkillName::key_of(skill.name.as_str()), number);
            metadata.end_text();
        }
        names.sort();
        metadata.finish();
        let best = metadata.best_idf();
        Self { skills, words, names, metadata, instructions: None, best }
    }

    /// Returns the skills that match `query`, best first.
    pub fn search(&self, query: &Query) -> Hits {
        let asked = self.words.of_query(&query.text, MAX_QUERY_WORDS);
        let (scores, [matched, specific]) = self.scores(&asked, query);
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
        let total = found.len();
        let limit = query.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let least = least_of_best(&found, limit);
        found.retain(|&(score, _)| score >= least);
        let rank = |&(score, number): &(f32, usize)| {
            let skill = &self.skills[number];
            (Reverse(Ordered(score)), Reverse(skill.properties.priority), is_incomplete(skill), number)
        };
        order::sort_by_key(&mut found, rank);
        let hits = found.iter().take(limit);
        let hits = hits.map(|&(score, number)| Hit {
            skill: Arc::clone(&self.skills[number]),
            score,
            matched: matched[number].into(),
            specific: specific[number].into(),
        });
        Hits { hits: hits.collect(), total, words: asked.len() }
    }

    /// Returns the number of skills in the index.
    pub fn len(&self) -> usize {
        self.skills.len()
    }

    /// Returns true if the index has no skills.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Returns the score of each skill, and the numbers of all words and of specific words in its metadata.
    fn scores(&self, asked: &[Asked], query: &Query) -> (Vec<f32>, [Vec<u8>; 2]) {
        let mut scores = vec![0.0; self.skills.len()];
        let mut matched = vec![0_u8; self.skills.len()];
        let mut specific = matched.clone();
        let instructions = self.instructions.as_ref().filter(|_| query.instructions);
        for asked in asked {
            let mut having = Vec::new();
            for &word in &asked.known {
                self.metadata.scores(word, &mut |skill, score| {
                    scores[skill] += score;
                    having.push(skill);
                });
                if let Some(field) = instructions {
                    field.scores(word, &mut |skill, score| scores[skill] += INSTRUCTIONS * score);
                }
            }
            having.sort_unstable();
            having.dedup();
            let is_specific = !having.is_empty() && !is_common(&asked.text);
            for skill in having {
                matched[skill] += 1;
                specific[skill] += u8::from(is_specific);
            }
            for (similarity, numbers) in self.names.like(&asked.text, !asked.known.is_empty()) {
                let worth = match similarity {
                    Similarity::Prefix if asked.known.is_empty() => PREFIX,
                    Similarity::Prefix => PREFIX_OF_KNOWN,
                    Similarity::Typo => TYPO,
                };
                let idf = idf(self.skills.len(), numbers.len());
                for &number in numbers {
                    scores[number as usize] += worth * idf;
                }
            }
        }
        for &number in self.names.exactly(&SkillName::key_of(&query.text)) {
            scores[number as usize] += IS_NAME * self.best.max(1.0);
        }
        (scores, [matched, specific])
    }
}

/// Returns the lowest of the `limit` highest scores. To sort all results by everything else would take most of the time of a search.
fn least_of_best(found: &[(f32, usize)], limit: usize) -> f32 {
    let mut best: Vec<f32> = Vec::with_capacity(limit + 1);
    for &(score, _) in found {
        if best.len() < limit || score > best[limit - 1] {
            best.insert(best.partition_point(|&other| other >= score), score);
            best.truncate(limit);
        }
    }
    best.last().copied().unwrap_or_default()
}

/// Returns true if the skill has a tool that can't work.
fn is_incomplete(skill: &Skill) -> bool {
    skill.tools().iter().any(|tool| tool.missing.is_some())
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
