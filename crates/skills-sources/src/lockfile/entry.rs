//! [`Entry`]: the fields of a source in a lock file, before we know of which kind it is.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Decisions, Pinned, PinnedGit, PinnedWeb, unique};

/// The fields of [`PinnedGit`] and [`PinnedWeb`]. A derived untagged enum would copy all values before it decides.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    commit: Option<String>,
    tag: Option<String>,
    registry: Option<String>,
    committed: Option<i64>,
    #[serde(default, rename = "signedTag")]
    has_signed_tag: bool,
    index: Option<String>,
    #[serde(default, deserialize_with = "unique::optional")]
    skills: Option<BTreeMap<String, String>>,
    #[serde(default)]
    decisions: Decisions,
}

impl TryFrom<Entry> for Pinned {
    type Error = &'static str;

    fn try_from(entry: Entry) -> Result<Self, Self::Error> {
        let Entry { commit, tag, registry, committed, has_signed_tag, index, skills, decisions } = entry;
        let is_plain = tag.is_none() && registry.is_none() && committed.is_none() && !has_signed_tag;
        match (commit, index) {
            (Some(commit), None) => {
                let skills = skills.ok_or("a source with `commit` needs `skills`")?;
                Ok(Self::Git(PinnedGit {
                    commit,
                    tag,
                    registry,
                    committed,
                    has_signed_tag,
                    skills,
                    decisions,
                }))
            }
            (None, Some(index)) if is_plain => Ok(Self::Web(PinnedWeb { index, skills, decisions })),
            (None, Some(_)) => {
                Err("a source with `index` can't have `tag`, `registry`, `committed` or `signedTag`")
            }
            _ => Err("a source needs either `commit` or `index`"),
        }
    }
}
