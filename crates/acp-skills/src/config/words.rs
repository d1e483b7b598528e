//! [`Words`]: a command line. In a configuration file, it is a list or a single string.

use std::{ffi::OsString, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor, value::SeqAccessDeserializer},
};

/// A program and its arguments. In the file, a program without arguments can be written as a string.
#[derive(Debug, Clone, Default)]
pub struct Words(pub Vec<OsString>);

// This is not derived with `untagged`, because errors would then be missing the line, the column and the key.
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
