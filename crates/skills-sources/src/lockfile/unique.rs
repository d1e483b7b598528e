//! Maps in a lock file, in which each key may only occur once. Otherwise, a reader of the file could take the first entry for the one that is
//! used, which is the last.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use skills_core::text::shown;

/// Reads a map, for `deserialize_with`.
///
/// # Errors
/// Returns an error that names the key, if it occurs twice.
pub(super) fn map<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, V>, D::Error> {
    deserializer.deserialize_map(Unique(PhantomData))
}

/// Reads a map that may be missing.
///
/// # Errors
/// Returns the errors of [`map`].
pub(super) fn optional<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    map(deserializer).map(Some)
}

struct Unique<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Visitor<'de> for Unique<V> {
    type Value = BTreeMap<String, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((key, value)) = entries.next_entry::<String, V>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate key `{}`", shown(&key))));
            }
            map.insert(key, value);
        }
        Ok(map)
    }
}
