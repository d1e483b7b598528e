//! Finds the commit of a reference or of a range of versions, without fetching it.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    sync::Arc,
};

use skills_core::exec::ProcessObserver;

use super::{Git, GitError, Limits, is_commit};
use crate::{
    address::GitPlace,
    versions::{LATEST, Range},
};

/// The maximum size of the list of references, in bytes.
const MAX_LIST_BYTES: u64 = 64 * 1024 * 1024;

/// The prefix of the full names of tags.
const TAGS: &str = "refs/tags/";

/// A commit, and the tag that was chosen for a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The hash of the commit.
    pub(crate) commit: String,
    /// The tag, if the place has a range of versions.
    pub(crate) tag: Option<String>,
}

/// A reference of the repository.
struct Reference {
    name: String,
    /// The object of the reference. For an annotated tag, the commit.
    commit: String,
}

/// Returns the current commit of a place, or `None` if only a fetch can tell. Sends one request for the references. `scratch` is an empty
/// directory for git's own files, which can contain secret headers.
///
/// # Errors
/// Returns an error if the host can't be reached, or if no tag matches the range.
pub(crate) fn find_commit(
    place: &GitPlace,
    scratch: &Path,
    observer: Option<Arc<dyn ProcessObserver>>,
    limits: &Limits,
) -> Result<Option<Found>, GitError> {
    let name = place.reference.as_deref().unwrap_or("HEAD");
    if is_commit(name) {
        return Ok((name.len() >= 40).then(|| Found { commit: name.to_owned(), tag: None }));
    }
    let git = super::repository(place, scratch, observer, limits)?;
    if let Some(found) = find_version(&git, place)? {
        return Ok(Some(found));
    }
    let found = list(&git, &["origin", name, &format!("{name}^{{}}")])?;
    // The order in which git looks for a name.
    let full =
        [name.to_owned(), format!("refs/{name}"), format!("{TAGS}{name}"), format!("refs/heads/{name}")];
    let commit = |name: &String| {
        found.iter().find(|reference| reference.name == *name).map(|reference| reference.commit.clone())
    };
    match full.iter().find_map(commit) {
        Some(commit) => Ok(Some(Found { commit, tag: None })),
        None => Err(GitError::NoReference(name.to_owned())),
    }
}

/// Returns the highest version in the range of a place. Returns `None` if the place has no range, or if it is `latest` and the
/// repository has no versions.
///
/// # Errors
/// Returns [`GitError::NoVersion`] if no tag matches the range.
pub(super) fn find_version(git: &Git<'_>, place: &GitPlace) -> Result<Option<Found>, GitError> {
    let Some(Ok(range)) = place.reference.as_deref().and_then(Range::parse) else { return Ok(None) };
    let tags = list(git, &["--tags", "origin"])?;
    let names = tags.iter().filter_map(|tag| tag.name.strip_prefix(TAGS));
    if let Some((name, _)) = range.highest(names) {
        let tag = tags.iter().find(|tag| tag.name.strip_prefix(TAGS) == Some(name));
        return Ok(tag.map(|tag| Found { commit: tag.commit.clone(), tag: Some(name.to_owned()) }));
    }
    let text = place.reference.as_deref().unwrap_or_default();
    if text == LATEST { Ok(None) } else { Err(GitError::NoVersion(text.to_owned())) }
}

/// Lists references of the repository.
fn list(git: &Git<'_>, arguments: &[&str]) -> Result<Vec<Reference>, GitError> {
    git.talk(&[&["ls-remote", "--quiet"], arguments].concat(), Vec::new(), |output| {
        let lines = BufReader::new(output.take(MAX_LIST_BYTES)).lines();
        let mut found: Vec<Reference> = Vec::new();
        for line in lines.map_while(Result::ok) {
            let Some((commit, name)) = line.split_once('\t') else { continue };
            // The commit of an annotated tag comes right after the tag.
            match name.strip_suffix("^{}") {
                Some(name) => {
                    if let Some(tag) = found.last_mut().filter(|tag| tag.name == name) {
                        commit.clone_into(&mut tag.commit);
                    }
                }
                None => found.push(Reference { name: name.to_owned(), commit: commit.to_owned() }),
            }
        }
        Ok(found)
    })
}
