//! [`SkillEntry`]: an entry of `skills`, which a configuration file may write in two ways.

use std::{fmt, path::PathBuf};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::virtual_skill::VirtualSkill;

/// An entry of `skills`.
#[derive(Debug)]
#[non_exhaustive]
pub enum SkillEntry {
    /// A directory with a SKILL.md.
    Directory(PathBuf),
    /// A virtual skill.
    Virtual(Box<VirtualSkill>),
}

// By hand and not `untagged`: serde forgets line, column and key of what is wrong in an untagged variant.
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
