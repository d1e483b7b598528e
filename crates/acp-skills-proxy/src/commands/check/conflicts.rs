//! [`find`]: descriptions that make models choose the wrong skill, or none.
//!
//! The findings are estimates from the words of the descriptions. They are warnings, and skills with them can be used.

use std::{collections::HashMap, fmt::Write};

use skills_core::{Diagnostic, order, text::shorten};
use skills_search::{Language, Words, split};

/// The similarity from which two descriptions are considered too similar.
const MIN_SIMILARITY: f32 = 0.45;
/// The minimum number of words that two similar descriptions share.
const MIN_SHARED: usize = 6;
/// The minimum number of words of a description if another one has all of them.
const MIN_CONTAINED: usize = 4;
/// The number of shared words that a message shows.
const SHOWN_WORDS: usize = 6;
/// The maximum number of similar skills that are reported for a skill.
const MAX_PAIRS: usize = 3;
/// The minimum number of specific words of a description that doesn't say when to use the skill.
const MIN_SPECIFIC: usize = 2;
/// A word is skipped while looking for similar descriptions if more skills have it.
const MAX_SKILLS_OF_WORD: usize = 200;

/// Words that say little about a task.
const GENERIC: &str = "\
    advanced agent agents ai allow allows also assist assistant assists based best better code \
    comprehensive create creates data different does easily efficient enable enables expert file files \
    general generator good great guide handle handles handy helper helpful helps implementation improve \
    improves kinds make makes manage manages many more need needed needs new other perform performs powerful \
    practices process project projects prompt prompts provide provides purpose read reads simple skill \
    skills stuff support supports system task tasks text thing things tool tools useful user users utilities \
    utility various work workflow workflows works write writes";

/// Words that say when to use a skill, in several languages.
const OCCASIONS: &str = "\
    after als asked asks before bei cuando during if lorsque mentions quand quando se wanneer wenn when \
    whenever while если когда";
/// The same for scripts without spaces.
const UNSPACED_OCCASIONS: &str = "\
    时 時 当 とき 場合 때 경우 เมื่อ";

const ALL: &str = "\
    all any every whatever";
const TASKS: &str = "\
    change changes conversation conversations feature features input inputs interaction interactions message \
    messages prompt prompts question questions request requests response responses search searches situation \
    situations task tasks turn turns work";
/// Words that may be between `any` and `task`, because they limit it little.
const ADJECTIVES: &str = "\
    code coding creative development new non other possible programming single software technical trivial \
    user web";
/// Words after which `any task` is limited to certain tasks.
const LIMITS: &str = "\
    about are at by concerning due for framed from in involving is like of on regarding related relating \
    requiring such that to using when where which whose with within";
/// Words before the name of another skill that send the reader there.
const REFERENCES: [&str; 6] = ["use ", "see ", "skill ", "prefer ", "`", "/"];

/// A skill to compare with others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Described<'a> {
    /// The name.
    pub(super) name: &'a str,
    /// The description.
    pub(super) description: &'a str,
}

/// Finds descriptions that make models choose the wrong skill, or none. Returns the warnings of each skill, in the order of
/// `skills`.
///
/// - `vague-description`: the description says little more than the name, and not when to use the skill.
/// - `broad-description`: the description claims tasks of all kinds, such as `any request` or `any feature`.
/// - `similar-descriptions`: two descriptions share many words, and neither the names nor the descriptions tell the skills apart.
///   The warning belongs to the later skill of the pair.
///
/// ```
/// use skills_core::search::conflicts::{Described, find};
///
/// let review = "Reviews pull requests for bugs and style problems. Use when the user asks for a review.";
/// let skills = [
///     Described { name: "review", description: review },
///     Described { name: "pr-review", description: "Reviews pull requests for style problems, bugs and typos." },
///     Described { name: "helper", description: "Helps with various things." },
/// ];
/// let codes: Vec<Vec<_>> = find(&skills)
///     .iter()
///     .map(|warnings| warnings.iter().map(|warning| warning.code).collect())
///     .collect();
/// assert_eq!(codes, [vec![], vec!["similar-descriptions"], vec!["vague-description"]]);
/// ```
pub(super) fn find(skills: &[Described<'_>]) -> Vec<Vec<Diagnostic>> {
    let mut words = Words::default();
    let profiles: Vec<Profile> = skills.iter().map(|skill| Profile::of(*skill, &mut words)).collect();
    let mut found: Vec<Vec<Diagnostic>> = profiles
        .iter()
        .enumerate()
        .map(|(at, profile)| profile.vague().into_iter().chain(broad(skills, at)).collect())
        .collect();
    for (at, pairs) in similar(&profiles).into_iter().enumerate() {
        found[at].extend(pairs);
    }
    found
}

/// The words of a skill.
struct Profile<'a> {
    skill: Described<'a>,
    /// The different words of the description without stop words: their stems' numbers, and how they are written first.
    words: Vec<(u32, String)>,
    /// The numbers in ascending order.
    numbers: Vec<u32>,
    /// The numbers of the words in the first sentence.
    summary: Vec<u32>,
    /// The words of the name, in lower case.
    name: Vec<String>,
}

impl<'a> Profile<'a> {
    fn of(skill: Described<'a>, vocabulary: &mut Words) -> Self {
        let language = Language::of(skill.description);
        let mut words: Vec<(u32, String)> = Vec::new();
        vocabulary.each_meaningful(skill.description, language, |number, word| {
            if !words.iter().any(|(known, _)| *known == number) {
                words.push((number, word.to_owned()));
            }
        });
        let mut summary = Vec::new();
        let first = skill.description.split(". ").next().unwrap_or_default();
        vocabulary.each_meaningful(first, language, |number, _| summary.push(number));
        let mut name = Vec::new();
        split(skill.name, |word| name.push(word.to_owned()));
        let mut numbers: Vec<u32> = words.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        Self { skill, words, numbers, summary, name }
    }

    fn has(&self, number: u32) -> bool {
        self.numbers.binary_search(&number).is_ok()
    }

    fn vague(&self) -> Option<Diagnostic> {
        let adds = |word: &&str| {
            let is_of_name = |name: &String| name.starts_with(*word) || word.starts_with(name.as_str());
            !has_word(GENERIC, word) && !has_word(OCCASIONS, word) && !self.name.iter().any(is_of_name)
        };
        let says_when = says_when(self.skill.description);
        let added: Vec<&str> = self.words.iter().map(|(_, word)| word.as_str()).filter(adds).collect();
        let is_specific = |word: &(u32, String)| !has_word(GENERIC, &word.1) && !has_word(OCCASIONS, &word.1);
        let specific = self.words.iter().filter(|word| is_specific(word)).count();
        let is_clear = if says_when { specific > 0 } else { !added.is_empty() && specific >= MIN_SPECIFIC };
        if is_clear {
            return None;
        }
        let shown: Vec<String> = added.iter().map(|word| format!("`{word}`")).collect();
        let list = if shown.is_empty() { String::new() } else { format!(" ({})", shown.join(", ")) };
        let words = if added.len() == 1 { "word" } else { "words" };
        let when = if says_when { "" } else { ", and does not say when to use the skill" };
        let message = format!("description adds {} specific {words} to the name{list}{when}", added.len());
        let help = "name what the skill works on and what comes out, and add a sentence such as `Use when the user \
                    asks for …`";
        Some(Diagnostic::warning("vague-description", message).help(help))
    }

    /// Returns true if a word of the name also begins a word of the description, but none of the other skill's, or one of the first
    /// sentence, but none of the other's first sentence. For example, `az` begins `Azure`.
    fn is_told_apart_from(&self, other: &Self) -> bool {
        let tells = |name: &String| {
            let begins = |(_, word): &&(u32, String)| {
                word.starts_with(name.as_str()) || word.len() >= 3 && name.starts_with(word.as_str())
            };
            let mut words = self.words.iter().filter(begins).map(|&(number, _)| number);
            words.any(|number| {
                !other.has(number) || self.summary.contains(&number) && !other.summary.contains(&number)
            })
        };
        self.name.iter().any(tells)
    }

    /// Returns true if both names share a word, and each also has a word of its own, as in `java-docs` and `csharp-docs`.
    fn is_sibling_of(&self, other: &Self) -> bool {
        let shares = |names: &[String], others: &[String]| {
            let shared = names.iter().filter(|name| others.contains(name)).count();
            shared > 0 && shared < names.len()
        };
        shares(&self.name, &other.name) && shares(&other.name, &self.name)
    }

    /// Returns true if the description sends the reader to the other skill, as in `for large data, use polars`.
    fn mentions(&self, other: &Self) -> bool {
        let text = self.skill.description.to_lowercase();
        let name = other.skill.name.to_lowercase();
        let is_of_name = |c: char| c.is_alphanumeric() || c == '-';
        text.match_indices(&name).any(|(at, _)| {
            let before = &text[..at];
            !before.ends_with(is_of_name)
                && !text[at + name.len()..].starts_with(is_of_name)
                && (name.contains('-') || REFERENCES.iter().any(|reference| before.ends_with(reference)))
        })
    }
}

fn has_word(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

fn says_when(description: &str) -> bool {
    let lower = description.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphabetic());
    words.any(|word| has_word(OCCASIONS, word))
        || UNSPACED_OCCASIONS.split(' ').any(|word| lower.contains(word))
}

/// Returns a warning if the description claims every task.
fn broad(skills: &[Described<'_>], at: usize) -> Option<Diagnostic> {
    let claim = claim(skills[at].description)?;
    let others = skills.len() - 1;
    let example = (1..skills.len())
        .map(|distance| skills[(at + distance) % skills.len()])
        .find(|other| self::claim(other.description).is_none() && !other.description.trim().is_empty());
    let mut message = format!("description claims `{claim}`");
    if let Some(other) = example {
        let skills = if others == 1 { "skill" } else { "skills" };
        let _ = write!(
            message,
            ", so it competes with {others} other {skills}; for example, `{}` also fits `{}`",
            first_clause(other.description),
            other.name
        );
    }
    let help = "name the tasks for which the skill is meant, or activate it with a slash command only \
                (`disable-model-invocation: true`)";
    Some(Diagnostic::warning("broad-description", message).help(help))
}

/// Returns the words of a sentence about the use of a skill that claim every task, such as `any request`.
fn claim(description: &str) -> Option<String> {
    let sentences = description.split_inclusive(['.', ';', '!', '?', '\n']);
    sentences.map(str::to_lowercase).find_map(|sentence| {
        let words: Vec<(usize, &str)> = sentence
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| (word.as_ptr() as usize - sentence.as_ptr() as usize, word))
            .collect();
        let is_use = |word: &str| {
            matches!(word, "use" | "activate" | "apply" | "trigger" | "when" | "before" | "invoke")
        };
        let used_from = words.iter().position(|(_, word)| is_use(word)).unwrap_or(words.len());
        (0..words.len()).find_map(|at| {
            let (start, all) = words[at];
            let is_claimed = at > used_from || at > 0 && matches!(words[at - 1].1, "for" | "on");
            if !is_claimed || !has_word(ALL, all) {
                return None;
            }
            let (task_start, task) = words[at + 1..].iter().find(|(_, word)| !has_word(ADJECTIVES, word))?;
            let end = task_start + task.len();
            let next = sentence[end..].trim_start_matches(' ').split(|c: char| !c.is_alphanumeric()).next();
            let is_all = has_word(TASKS, task) && !has_word(LIMITS, next.unwrap_or_default());
            is_all.then(|| sentence[start..end].to_owned())
        })
    })
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 16 million")]
fn count(number: usize) -> f32 {
    number as f32
}

/// Returns the beginning of a description, up to the first punctuation mark, in at most 60 characters.
fn first_clause(description: &str) -> String {
    let clause = description.split(['.', ',', ';', ':', '(', '\n', '—']).next().unwrap_or_default();
    shorten(clause.trim(), 60).into_owned()
}

/// Returns the warnings about similar descriptions of each skill.
fn similar(profiles: &[Profile<'_>]) -> Vec<Vec<Diagnostic>> {
    let mut having: HashMap<u32, Vec<usize>> = HashMap::new();
    for (at, profile) in profiles.iter().enumerate() {
        for &number in &profile.numbers {
            having.entry(number).or_default().push(at);
        }
    }
    let all = count(profiles.len());
    let weight = |number: u32| {
        let having = having.get(&number).map_or(1, Vec::len);
        (1.0 + all / count(having)).ln().powi(2)
    };
    let lengths: Vec<f32> = profiles
        .iter()
        .map(|profile| profile.numbers.iter().map(|&number| weight(number)).sum::<f32>().sqrt())
        .collect();
    let mut found = Vec::with_capacity(profiles.len());
    for (at, profile) in profiles.iter().enumerate() {
        let mut products: HashMap<usize, f32> = HashMap::new();
        for number in &profile.numbers {
            let others = having.get(number).map_or(&[][..], Vec::as_slice);
            if others.len() <= MAX_SKILLS_OF_WORD.max(profiles.len() / 4) {
                for &other in others.iter().take_while(|&&other| other < at) {
                    *products.entry(other).or_default() += weight(*number);
                }
            }
        }
        let mut pairs: Vec<(f32, usize)> = products
            .into_iter()
            .map(|(other, product)| (product / (lengths[at] * lengths[other]).max(f32::MIN_POSITIVE), other))
            .filter(|&(similarity, other)| similarity >= MIN_SIMILARITY && fight(profile, &profiles[other]))
            .collect();
        order::sort_by(&mut pairs, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        pairs.truncate(MAX_PAIRS);
        let warning =
            |(similarity, other): (f32, usize)| pair(profile, &profiles[other], similarity, &weight);
        found.push(pairs.into_iter().map(warning).collect());
    }
    found
}

/// Returns true if neither the names nor the descriptions of two similar skills show the difference. Skills with the same name are
/// never offered together.
fn fight(this: &Profile<'_>, other: &Profile<'_>) -> bool {
    if this.name == other.name || this.mentions(other) || other.mentions(this) {
        return false;
    }
    let shared = this.numbers.iter().filter(|&&number| other.has(number)).count();
    // All queries of the shorter description also fit the other one.
    if shared == this.numbers.len().min(other.numbers.len()) {
        return shared >= MIN_CONTAINED;
    }
    let this_is_told = this.is_told_apart_from(other);
    let other_is_told = other.is_told_apart_from(this);
    let is_told =
        if this.is_sibling_of(other) { this_is_told || other_is_told } else { this_is_told && other_is_told };
    shared >= MIN_SHARED && !is_told
}

fn pair(
    this: &Profile<'_>,
    other: &Profile<'_>,
    similarity: f32,
    weight: &impl Fn(u32) -> f32,
) -> Diagnostic {
    let mut shared: Vec<(f32, usize, &str)> = this
        .words
        .iter()
        .enumerate()
        .filter(|(_, (number, _))| other.has(*number))
        .map(|(at, (number, word))| (weight(*number), at, word.as_str()))
        .collect();
    order::sort_by(&mut shared, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    shared.truncate(SHOWN_WORDS);
    order::sort_by_key(&mut shared, |&(_, at, _)| at);
    let words: Vec<&str> = shared.iter().map(|&(_, _, word)| word).collect();
    let message = format!(
        "description is {:.0} % similar to that of `{}`: both have {}, so both take a query such as `{}`",
        similarity * 100.0,
        other.skill.name,
        words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
        words[..words.len().min(4)].join(" "),
    );
    let help = format!(
        "say in both descriptions which tasks belong to `{}` and which to `{}`, or merge the skills",
        this.skill.name, other.skill.name
    );
    Diagnostic::warning("similar-descriptions", message).help(help)
}

#[cfg(test)]
mod tests;
