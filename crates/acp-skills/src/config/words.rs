//! [`Words`]: a command line, which a configuration file may write as a list or as a single word.

use std::{ffi::OsString, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor, value::SeqAccessDeserializer},
};

/// A list of words; in the file also a single one.
#[derive(Debug, Clone, Default)]
pub struct Words(pub Vec<OsString>);

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
