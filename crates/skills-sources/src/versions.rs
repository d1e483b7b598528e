//! [`Range`]: a range of versions in the address of a repository, such as `^2.1`, and the tags that it matches.

use semver::{Version, VersionReq};
use skills_core::text::shown;

use super::reason::Reason;

/// The maximum length of a tag that is a version, in bytes. Tags are displayed, and written to the lock file.
const MAX_TAG_BYTES: usize = 256;

/// The reference that stands for the highest version.
pub(super) const LATEST: &str = "latest";

/// A range of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Range {
    /// Every version, except pre-releases.
    Latest,
    /// The versions that match.
    Versions(VersionReq),
}

impl Range {
    /// Parses a reference. Returns `None` if it is a branch, a tag or a commit.
    ///
    /// # Errors
    /// Returns the reason if the reference begins like a range but is not a valid one.
    pub(super) fn parse(reference: &str) -> Option<Result<Self, Reason>> {
        if reference == LATEST {
            return Some(Ok(Self::Latest));
        }
        // No branch or tag can begin with `^` or `~`. The other signs are unlikely.
        if !reference.starts_with(['^', '~', '<', '>', '=']) {
            return None;
        }
        let range = VersionReq::parse(reference);
        let why = |error| {
            format!("`{}` is not a range of versions, such as `^2.1`: {error}", shown(reference)).into()
        };
        Some(range.map(Self::Versions).map_err(why))
    }

    /// Returns true if the range contains a version.
    pub(super) fn contains(&self, version: &Version) -> bool {
        match self {
            Self::Latest => version.pre.is_empty(),
            Self::Versions(range) => range.matches(version),
        }
    }

    /// Returns the tag of the highest version in the range.
    pub(super) fn highest<'t>(&self, tags: impl IntoIterator<Item = &'t str>) -> Option<(&'t str, Version)> {
        let versions = tags.into_iter().filter_map(|tag| Some((tag, version(tag)?)));
        versions.filter(|(_, version)| self.contains(version)).max_by(|a, b| a.1.cmp(&b.1))
    }
}

/// Returns the range of a kind like `reference` that begins with a version: `^3.1` for `^2.1` and the version 3.1.4. Returns `None` if the
/// version is in the range of `reference`, or if `reference` is not a range.
pub(super) fn moved(reference: &str, tag: &str) -> Option<String> {
    let range = Range::parse(reference)?.ok()?;
    let version = version(tag)?;
    if range.contains(&version) {
        return None;
    }
    let Version { major, minor, patch, .. } = version;
    Some(match reference.chars().next() {
        Some('=') => format!("={major}.{minor}.{patch}"),
        Some('~') => format!("~{major}.{minor}"),
        _ => format!("^{major}.{minor}"),
    })
}

/// Returns the version that a tag names: `2.1.0` or `v2.1.0`. Missing parts are zero.
pub(super) fn version(tag: &str) -> Option<Version> {
    if tag.len() > MAX_TAG_BYTES {
        return None;
    }
    let text = tag.strip_prefix('v').unwrap_or(tag);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let missing = 2_usize.checked_sub(numbers.matches('.').count())?;
    Version::parse(&format!("{numbers}{}{rest}", ".0".repeat(missing))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_tag_is_no_version() {
        let tag = |length: usize| format!("v1.2.3-{}", "a".repeat(length - 7));
        assert!(version(&tag(MAX_TAG_BYTES)).is_some());
        assert!(version(&tag(MAX_TAG_BYTES + 1)).is_none());
    }

    #[test]
    fn a_range_moves_to_a_version_beyond_it() {
        for (reference, tag, expected) in [
            ("^2.1", "v3.1.4", Some("^3.1")),
            ("~2.1", "v2.2.0", Some("~2.2")),
            ("=2.1.0", "2.1.1", Some("=2.1.1")),
            (">=2,<3", "v3.0", Some("^3.0")),
            ("^2.1", "v2.9.0", None),
            ("latest", "v2.9.0", None),
            ("main", "v2.9.0", None),
            ("^2.1", "nightly", None),
        ] {
            assert_eq!(moved(reference, tag).as_deref(), expected, "{reference} {tag}");
        }
    }

    #[test]
    fn the_highest_version_of_a_range_is_found() {
        let tags = [
            "v1.9.0",
            "v2.0.0",
            "2.1.0",
            "v2.1.10",
            "v2.1.9",
            "v2.2.0-rc.1",
            "v3",
            "v4.0-beta",
            "nightly",
            "v2.1.x",
        ];
        for (range, expected) in [
            ("latest", Some("v3")),
            ("^2.1", Some("v2.1.10")),
            ("^2", Some("v2.1.10")),
            ("~2.0", Some("v2.0.0")),
            ("<2", Some("v1.9.0")),
            ("=2.1.0", Some("2.1.0")),
            (">=2.2.0-rc.1,<2.3", Some("v2.2.0-rc.1")),
            ("^5", None),
        ] {
            let parsed = Range::parse(range).unwrap().unwrap();
            assert_eq!(parsed.highest(tags).map(|(tag, _)| tag), expected, "{range}");
        }
        for reference in ["v2", "main", "2.1", "latest-2"] {
            assert!(Range::parse(reference).is_none(), "{reference}");
        }
        for range in ["^", "^x", "~2..1", ">=2,"] {
            assert!(Range::parse(range).unwrap().is_err(), "{range}");
        }
    }
}
