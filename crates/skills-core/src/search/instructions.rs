//! Adds the instructions of skills to an index.

use skills_search::{Field, Language, Words};

use crate::skill::Skill;

/// The maximum length of a word in bytes. Longer ones are data, such as keys in an example.
const MAX_WORD_BYTES: usize = 40;
/// The weight of a word in a heading. A word of other text has the weight 1.
const HEADING: u8 = 3;

/// Adds the words in the instructions of a skill to `field`.
pub(super) fn add(skill: &Skill, text: &str, words: &mut Words, field: &mut Field) {
    let language = Language::of(&skill.description);
    let mut is_code = false;
    for line in text.lines() {
        let line = line.trim_start();
        if line.starts_with("```") || line.starts_with("~~~") {
            is_code = !is_code;
        }
        let weight = if !is_code && line.starts_with('#') { HEADING } else { 1 };
        // A line without spaces that is this long is data.
        if line.len() <= MAX_WORD_BYTES || !line.is_ascii() || line.contains(' ') {
            words.each_meaningful(line, language, |word, _| field.add(word, weight));
        }
    }
}
