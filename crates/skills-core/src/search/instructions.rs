//! Reads the instructions of skills for the index.

use std::sync::Arc;

use super::{field::Field, language::Language, words::Words};
use crate::{
    activation::BodyCache,
    files::SkillFiles,
    frontmatter,
    skill::{Instructions, Skill, Source},
};

/// The maximum size of the indexed part of a `SKILL.md`, in bytes. Almost all are shorter.
const MAX_BYTES: usize = 32 * 1024;
/// The maximum length of a word in bytes. Longer ones are data, such as keys in an example.
const MAX_WORD_BYTES: usize = 40;
/// The weight of a word in a heading. A word of other text has the weight 1.
const HEADING: u8 = 3;

/// Adds the words in the instructions of a skill to `field`.
///
/// Instructions that cannot be read are left out, and those on the web are not fetched.
pub(super) fn add(skill: &Skill, words: &mut Words, field: &mut Field) {
    let Some(text) = read(skill) else { return };
    let language = Language::of(&text);
    let mut is_code = false;
    for line in text.lines() {
        let line = line.trim_start();
        if line.starts_with("```") || line.starts_with("~~~") {
            is_code = !is_code;
        }
        let weight = if !is_code && line.starts_with('#') { HEADING } else { 1 };
        // A line without spaces that is this long is data.
        if line.len() <= MAX_WORD_BYTES || !line.is_ascii() || line.contains(' ') {
            words.each_meaningful(line, language, |word| field.add(word, weight));
        }
    }
}

/// Returns the beginning of the instructions.
fn read(skill: &Skill) -> Option<Arc<str>> {
    match &skill.source {
        Source::Stored(stored) => {
            let files = SkillFiles::of(skill).ok()?;
            let head = files.head(stored.file_name, MAX_BYTES as u64).ok()?;
            Some(frontmatter::quick_body(&frontmatter::decode(&head.bytes)).into())
        }
        Source::Virtual(own) => match &own.instructions {
            Instructions::Inline(text) => Some(Arc::clone(text)),
            Instructions::File(_) => BodyCache::default().body(skill).ok(),
            Instructions::Url(_) => None,
        },
        #[cfg(feature = "fetch")]
        Source::Remote(_) => None,
    }
}
