//! Checks the signature of a commit or of its tag, with the user's git, keys and allowed signers.

use super::{Git, GitError};

/// Checks that git accepts the signature of the commit in `FETCH_HEAD`, or of the annotated tag `name` that was fetched. The repository
/// is ours, so only the user's own configuration decides whose signatures are accepted.
///
/// Returns true if it is the signature of the tag, which also covers the tag's name.
///
/// # Errors
/// Returns [`GitError::Unsigned`] if neither has an accepted signature.
pub(super) fn verify(git: &Git<'_>, commit: &str, name: Option<&str>) -> Result<bool, GitError> {
    require_trusted_keys(git)?;
    if let Some(name) = name
        && let Some(tag) = tag_object(git, name, commit)?
        && accepts(git, &["verify-tag", &tag])?.is_none()
    {
        return Ok(true);
    }
    match accepts(git, &["verify-commit", commit])? {
        None => Ok(false),
        Some(said) => Err(GitError::Unsigned { commit: commit.to_owned(), said }),
    }
}

/// Rejects signatures of GPG keys that are in the user's keyring but that the user doesn't trust, unless the user has set a level. GPG can
/// receive such keys from a key server.
fn require_trusted_keys(git: &Git<'_>) -> Result<(), GitError> {
    const LEVEL: &str = "gpg.minTrustLevel";
    match git.line(&["config", "--get", LEVEL]) {
        Ok(_) => Ok(()),
        // Git exits with an error if the setting is missing.
        Err(GitError::Failed { .. }) => git.run(&["config", LEVEL, "marginal"]),
        Err(error) => Err(error),
    }
}

/// Returns the hash of the fetched tag object. `None` if a commit was fetched, or if the tag object has another name or leads to another
/// commit: a signed tag of an old version must not be accepted for a new one.
pub(super) fn tag_object(git: &Git<'_>, name: &str, commit: &str) -> Result<Option<String>, GitError> {
    let tag = git.line(&["rev-parse", "--verify", "--quiet", "FETCH_HEAD"])?;
    if git.line(&["cat-file", "-t", &tag])? != "tag" {
        return Ok(None);
    }
    let text = git.line(&["cat-file", "-p", &tag])?;
    let own = text.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix("tag "));
    // If several references were fetched, this is the first of them.
    let is_of_commit =
        git.line(&["rev-parse", "--verify", "--quiet", &format!("{tag}^{{commit}}")])? == commit;
    Ok((own == Some(name.trim_start_matches("refs/tags/")) && is_of_commit).then_some(tag))
}

/// Returns the time of a commit in seconds since 1970. A signature of the commit or of its tag covers it. `None` if it cannot be read.
pub(super) fn commit_time(git: &Git<'_>, commit: &str) -> Result<Option<i64>, GitError> {
    // The header of a commit can be long, so let git read it.
    let line = git.line(&["rev-list", "--max-count=1", "--timestamp", commit, "--"])?;
    Ok(line.split_whitespace().next().and_then(|time| time.parse().ok()))
}

/// Returns `None` if git accepts the signature, or else what git said.
fn accepts(git: &Git<'_>, arguments: &[&str]) -> Result<Option<String>, GitError> {
    match git.run(arguments) {
        Ok(()) => Ok(None),
        Err(GitError::Failed { said, .. }) => Ok(Some(said)),
        Err(error) => Err(error),
    }
}
