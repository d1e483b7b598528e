//! [`SkillEntry`] and [`SourceEntry`]: entries of `skills` and of `sources`, which a configuration file may write in two
//! ways.

use std::{fmt, path::PathBuf};

use schemars::JsonSchema;
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

/// An entry of `sources`: an address, or one with what is wanted of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceEntry {
    /// Where the skills are; see [`Address`](skills_sources::Address).
    pub source: String,
    /// Only skills whose names match, beside what the whole configuration says.
    pub include: Vec<String>,
    /// No skills whose names match.
    pub exclude: Vec<String>,
    /// Where it is written what was approved of it; `None` is the state directory.
    pub lock: Option<PathBuf>,
}

impl SourceEntry {
    /// All skills at an address.
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), ..Self::default() }
    }
}

/// An address, with what is wanted of it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceFields {
    source: String,
    #[serde(default)]
    include: Vec<String>,
    #[serde(default)]
    exclude: Vec<String>,
}

impl<'de> Deserialize<'de> for SourceEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = SourceEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the address of a source, or keys `source`, `include` and `exclude`")
            }

            fn visit_str<E>(self, source: &str) -> Result<SourceEntry, E> {
                Ok(SourceEntry::new(source))
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<SourceEntry, A::Error> {
                let SourceFields { source, include, exclude } =
                    Deserialize::deserialize(MapAccessDeserializer::new(fields))?;
                Ok(SourceEntry { source, include, exclude, lock: None })
            }
        }
        deserializer.deserialize_any(Read)
    }
}
