//! Values that a configuration file may write in more than one way.

use std::{ffi::OsString, fmt, path::PathBuf};

use serde::{
    Deserialize, Deserializer,
    de::{
        MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};

use super::virtual_skill::VirtualSkill;

/// A list of words; in the file also a single one.
#[derive(Debug, Clone, Default)]
pub struct Words(pub Vec<OsString>);

/// An entry of `skills`.
#[derive(Debug)]
pub enum SkillEntry {
    /// A directory with a SKILL.md.
    Directory(PathBuf),
    /// A virtual skill.
    Virtual(Box<VirtualSkill>),
}

// By hand and not `untagged`: serde forgets line, column and key of what is wrong in an untagged variant.
impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Words;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or a list of words")
            }

            fn visit_str<E>(self, word: &str) -> Result<Words, E> {
                Ok(Words(vec![word.into()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, words: A) -> Result<Words, A::Error> {
                let words: Vec<String> = Deserialize::deserialize(SeqAccessDeserializer::new(words))?;
                Ok(Words(words.into_iter().map(Into::into).collect()))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl<'de> Deserialize<'de> for SkillEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = SkillEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the directory of a skill, or a skill with `name`, `description` and `body`")
            }

            fn visit_str<E>(self, path: &str) -> Result<SkillEntry, E> {
                Ok(SkillEntry::Directory(path.into()))
            }

            fn visit_map<A: MapAccess<'de>>(self, skill: A) -> Result<SkillEntry, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(skill)).map(SkillEntry::Virtual)
            }
        }
        deserializer.deserialize_any(Read)
    }
}
