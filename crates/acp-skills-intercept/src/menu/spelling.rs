//! Spells skills for a menu: names that users can type, and descriptions that fit on a line.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use skills_core::{Skill, SkillName, SkillSet, text::shown};

use crate::version::Version;

/// The maximum length of a description, in characters.
const MAX_DESCRIPTION_CHARS: usize = 250;

/// The skills of a set that the user can invoke, each with the word to type for it, in the order of the set.
#[derive(Debug)]
pub struct Words {
    list: Vec<(String, Arc<Skill>)>,
    /// The indexes in `list`, by the keys of the words.
    by_key: HashMap<String, usize>,
    /// The entries of the menu for the first words, as JSON, in the version that asked for them first.
    entries: OnceLock<(Version, Vec<String>)>,
    /// The entries of a list of all skills, as in the drafts of ACP: the key of each name, and the JSON.
    pub(crate) descriptors: OnceLock<Vec<(String, String)>>,
}

impl Words {
    fn of(skills: &SkillSet) -> Self {
        let list = spell(skills);
        let by_key =
            list.iter().enumerate().map(|(index, (word, _))| (SkillName::key_of(word), index)).collect();
        Self { list, by_key, entries: OnceLock::new(), descriptors: OnceLock::new() }
    }

    /// Returns all words with their skills.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Arc<Skill>)> {
        self.list.iter().map(|(word, skill)| (word.as_str(), skill))
    }

    /// Returns the skill that a word names. Case is ignored.
    pub fn skill(&self, word: &str) -> Option<&Arc<Skill>> {
        self.by_key.get(&SkillName::key_of(word)).map(|&index| &self.list[index].1)
    }

    /// Returns the entries for the first words. They are made with the first call, and kept as long as the set. Returns `None` for
    /// another version of the protocol than that of the first call.
    pub(super) fn entries(&self, version: Version, make: impl Fn() -> Vec<String>) -> Option<&[String]> {
        let (kept, entries) = self.entries.get_or_init(|| (version, make()));
        (*kept == version).then_some(entries)
    }
}

/// Returns the skills that the user can invoke, each with the word to type for it. The words are computed once for each set, because
/// a set can have thousands of skills.
///
/// Agents and editors split a command at the first space, so characters that are not allowed in a command become hyphens. Names
/// that need no change always keep their spelling. If a changed name is taken, it gets a number.
pub fn spelled(skills: &SkillSet) -> Arc<Words> {
    skills.derived(Words::of)
}

fn spell(skills: &SkillSet) -> Vec<(String, Arc<Skill>)> {
    let invocable = || skills.iter().filter(|skill| skill.properties.user_invocable);
    let as_it_is = |skill: &Skill| spelling(skill.name.as_str()) == skill.name.as_str();
    let mut taken: HashSet<String> =
        invocable().filter(|skill| as_it_is(skill)).map(|skill| skill.name.key()).collect();
    // The next number for each word. Thousands of names can have the same word.
    let mut next: HashMap<String, usize> = HashMap::new();
    invocable()
        .map(|skill| {
            let word = spelling(skill.name.as_str());
            let key = SkillName::key_of(&word);
            if as_it_is(skill) || taken.insert(key.clone()) {
                return (word, Arc::clone(skill));
            }
            let number = next.entry(key).or_insert(1);
            loop {
                *number += 1;
                let word = format!("{word}-{number}");
                if taken.insert(SkillName::key_of(&word)) {
                    return (word, Arc::clone(skill));
                }
            }
        })
        .collect()
}

fn spelling(name: &str) -> String {
    let mut word = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.') {
            word.push(letter);
        } else if !word.ends_with('-') {
            word.push('-');
        }
    }
    let trimmed = word.trim_matches('-');
    match (trimmed.is_empty(), name.starts_with('-') || name.ends_with('-')) {
        // The name only contains symbols, so use a default.
        (true, _) => "skill".to_owned(),
        // Keep the hyphens at the ends, as they are part of the name.
        (false, true) if word == name => word,
        (false, _) => trimmed.to_owned(),
    }
}

/// Returns the description for people, on one line and truncated at a word. Hidden characters are escaped.
pub(crate) fn description(skill: &Skill) -> String {
    let line = shown(&skill.description);
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((cut, _)) = line.char_indices().nth(MAX_DESCRIPTION_CHARS) else { return line };
    let end = line[..cut].rfind(' ').unwrap_or(cut);
    format!("{}…", &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(names: &[&str]) -> Vec<String> {
        let skill = |name: &&str| Skill::builder(*name, "x").body("x").build().unwrap();
        let set: SkillSet = names.iter().map(skill).collect();
        spelled(&set).iter().map(|(word, _)| word.to_owned()).collect()
    }

    #[test]
    fn spells_names_for_typing() {
        for (names, expected) in [
            (vec!["code-review"], vec!["code-review"]),
            (vec!["Code Review", "org/pdf:forms"], vec!["Code-Review", "org-pdf-forms"]),
            (vec!["prüfung", "レビュー", "v1.2_x"], vec!["prüfung", "レビュー", "v1.2_x"]),
            (vec!["🎉", "🎉🎉"], vec!["skill", "skill-2"]),
            (vec!["🎉", "🎉🎉", "skill-2", "🎉🎉🎉"], vec!["skill", "skill-3", "skill-2", "skill-4"]),
            (vec!["-edge-", "(draft)"], vec!["-edge-", "draft"]),
            // A name that is already valid keeps its spelling, no matter where it is in the list.
            (
                vec!["code review", "code/review", "code-review"],
                vec!["code-review-2", "code-review-3", "code-review"],
            ),
        ] {
            assert_eq!(words(&names), expected, "{names:?}");
        }
    }

    /// With a search for a free number for each of them, this would take minutes.
    #[test]
    fn very_many_names_have_the_same_word() {
        let names: Vec<String> =
            (0..20_000).map(|number| format!("{number:b}").replace('0', "!").replace('1', "?")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let words = words(&names);
        assert_eq!((words.len(), words.last().map(String::as_str)), (20_000, Some("skill-20000")));
    }

    #[test]
    fn words_are_computed_once_for_each_set() {
        let set: SkillSet = [Skill::builder("x", "x").body("x").build().unwrap()].into_iter().collect();
        let words = spelled(&set);
        assert!(Arc::ptr_eq(&words, &spelled(&set.clone())));
        let make = || vec!["an entry".to_owned()];
        let entries = words.entries(Version::One, make).unwrap();
        assert_eq!(words.entries(Version::One, || panic!("the entries are kept")), Some(entries));
        assert_eq!(words.entries(Version::Two, make), None);
    }

    #[test]
    fn descriptions_fit_a_menu() {
        let skill =
            Skill::builder("x", format!("two\n lines {}", "word ".repeat(100))).body("x").build().unwrap();
        let line = description(&skill);
        assert!(line.starts_with("two lines word") && line.ends_with("word…"), "{line}");
        assert!(line.chars().count() <= MAX_DESCRIPTION_CHARS + 1);
    }
}
