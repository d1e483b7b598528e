//! Refuses old versions of sources with signatures. A signature does not say that a version is the current one, so a server could
//! offer a version with a known flaw again.

use skills_core::text::shown;

use crate::{
    address::Address,
    error::SourceError,
    git::{Found, GitError},
    lockfile::{Pinned, PinnedGit},
    store::Checkout,
    versions,
};

/// Returns an error if a version with an accepted signature is older than the approved one: if its tag names a lower version, or if
/// its commit has an earlier time. Both are signed. Versions without a check of their signature pass.
///
/// `fetch` fetches a version. It is called with the approved one if that was approved without a check of its signature.
///
/// # Errors
/// Returns [`SourceError::Older`], [`SourceError::UnknownTime`] if `fetch` fails, or [`SourceError::UnsignedApproval`] if the approved version
/// is not signed, so that the host could have made up its time.
pub(super) fn refuse(
    address: &Address,
    approved: Option<&Pinned>,
    offered: &Checkout,
    fetch: impl FnOnce(&Found) -> Result<Checkout, GitError>,
) -> Result<(), SourceError> {
    let (Some(Pinned::Git(approved)), Some(committed)) = (approved, offered.committed) else { return Ok(()) };
    if approved.commit == offered.commit {
        return Ok(());
    }
    let mut approved = approved.clone();
    if approved.committed.is_none() {
        let version = Found { commit: approved.commit.clone(), tag: None };
        let unknown =
            |_| SourceError::UnknownTime { address: address.to_string(), approved: version.commit.clone() };
        let committed = fetch(&version).map_err(unknown)?.committed;
        let unsigned = || SourceError::UnsignedApproval {
            address: address.to_string(),
            approved: version.commit.clone(),
        };
        approved.committed = Some(committed.ok_or_else(unsigned)?);
    }
    let is_signed = approved.has_signed_tag && offered.has_signed_tag;
    if !is_older(&approved, (offered.tag.as_deref(), is_signed), committed) {
        return Ok(());
    }
    let name = |commit: &str, tag: Option<&str>| match tag {
        Some(tag) => format!("version {}", shown(tag)),
        None => format!("commit {}", &commit[..commit.len().min(12)]),
    };
    Err(SourceError::Older {
        address: address.to_string(),
        offered: name(&offered.commit, offered.tag.as_deref()),
        approved: name(&approved.commit, approved.tag.as_deref()),
    })
}

/// Returns the tag for the lock file, and true if its signature was accepted. If the approved commit is offered again under another tag,
/// its signed tag stays, unless the other one is signed as well and names a higher version. Otherwise, a host could lower the version
/// that the next one is compared with.
pub(super) fn tag(approved: Option<&Pinned>, offered: &Checkout) -> (Option<String>, bool) {
    let now = (offered.tag.clone(), offered.tag.is_some() && offered.has_signed_tag);
    let Some(Pinned::Git(approved)) = approved else { return now };
    let version = |tag: &Option<String>| tag.as_deref().and_then(versions::version);
    let is_kept = approved.has_signed_tag
        && approved.commit == offered.commit
        && offered.committed.is_some()
        && (!offered.has_signed_tag || version(&offered.tag) < version(&approved.tag));
    if is_kept { (approved.tag.clone(), true) } else { now }
}

/// A lower version is older. If both tags are signed, their versions decide alone, because an older line of versions can get newer
/// commits. Otherwise, the host can have made a tag, so the commit must not have an earlier time either.
fn is_older(approved: &PinnedGit, (tag, is_signed): (Option<&str>, bool), committed: i64) -> bool {
    let before = approved.tag.as_deref().and_then(versions::version);
    let is_earlier = approved.committed.is_some_and(|before| committed < before);
    match before.zip(tag.and_then(versions::version)) {
        Some((before, now)) if before != now => now < before || !is_signed && is_earlier,
        _ => is_earlier,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn versions_and_times_are_compared() {
        for (before, now, expected) in [
            ((None, Some(10)), (None, 9), true),
            ((None, Some(10)), (None, 10), false),
            ((None, Some(10)), (None, 11), false),
            // The commit has no valid time.
            ((None, None), (None, 9), false),
            ((Some("v1.2.0"), Some(10)), (Some("v1.1.9"), 11), true),
            ((Some("v1.2.0"), Some(10)), (Some("1.10.0"), 9), true),
            ((Some("v1.2.0"), Some(10)), (Some("1.10.0"), 10), false),
            // The tag was moved.
            ((Some("v1.2.0"), Some(10)), (Some("v1.2.0"), 9), true),
            // The address had no range before.
            ((None, Some(10)), (Some("v1.2.0"), 9), true),
        ] {
            let (tag, committed) = before;
            let approved = PinnedGit {
                tag: tag.map(str::to_owned),
                committed,
                ..PinnedGit::new("a".repeat(40), BTreeMap::new())
            };
            assert_eq!(is_older(&approved, (now.0, false), now.1), expected, "{before:?} {now:?}");
            let is_newer = before.0 == Some("v1.2.0") && now.0 == Some("1.10.0");
            assert_eq!(
                is_older(&approved, (now.0, true), now.1),
                expected && !is_newer,
                "{before:?} {now:?}"
            );
        }
    }
}
