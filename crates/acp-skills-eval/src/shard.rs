//! [`Shard`]: a part of the runs, so that several machines can make one evaluation.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A part of the runs of an evaluation, for example the second of eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
#[non_exhaustive]
pub struct Shard {
    /// The number of the part, starting at 1.
    pub number: u32,
    /// The number of parts.
    pub count: u32,
}

/// The error for a text that is not a [`Shard`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("expected a part and the number of parts, for example 2/8")]
pub struct InvalidShard;

impl FromStr for Shard {
    type Err = InvalidShard;

    fn from_str(text: &str) -> Result<Self, InvalidShard> {
        let (number, count) = text.split_once('/').ok_or(InvalidShard)?;
        let number = number.parse().map_err(|_| InvalidShard)?;
        let count = count.parse().map_err(|_| InvalidShard)?;
        if number == 0 || number > count {
            return Err(InvalidShard);
        }
        Ok(Self { number, count })
    }
}

impl TryFrom<String> for Shard {
    type Error = InvalidShard;

    fn try_from(text: String) -> Result<Self, InvalidShard> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

impl Shard {
    /// Returns true if the run at this place in the plan belongs to the part. Each run belongs to exactly one part.
    pub(super) fn contains(self, place: usize) -> bool {
        place % self.count as usize == self.number as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_parts_of_a_whole() {
        for text in ["1/1", "2/8", "8/8"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        for text in ["", "1", "0/2", "3/2", "1/0", "-1/2", "a/b", "1/2/3"] {
            assert_eq!(text.parse::<Shard>(), Err(InvalidShard), "{text}");
        }
        for place in 0..20 {
            let parts = (1..=3).filter(|number| Shard { number: *number, count: 3 }.contains(place));
            assert_eq!(parts.count(), 1, "{place}");
        }
    }
}
