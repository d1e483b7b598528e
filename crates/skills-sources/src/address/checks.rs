//! Checks of the parts of an address that are passed to git. A part must not look like an option or lead out of the repository.

use percent_encoding::percent_decode_str;
use skills_core::text::shown;

use super::Parsed;
use crate::versions::Range;

/// The reason why an address must not contain a password.
pub(super) const SECRET: &str = "address must not contain a user name or password, because addresses are written to \
                                 shared files; use a git credential helper instead";

/// Returns the authority of the part of an address after `://`: the host, with the user and the port if there are any.
pub(super) fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Checks the host of a URL, with a port if there is one. Git and ssh decode `%2d` to `-`, which begins an option.
pub(super) fn check_host(host: &str) -> Parsed<()> {
    if !host.is_empty()
        && !host.trim_start_matches('[').starts_with('-')
        && host.chars().all(|c| c.is_alphanumeric() || "-_.:[]".contains(c))
    {
        return Ok(());
    }
    Err(format!("`{}` is not the name of a host", shown(host)).into())
}

/// Checks the user of an ssh URL.
pub(super) fn check_user(user: &str) -> Parsed<()> {
    let decoded = percent_decode_str(user).decode_utf8_lossy();
    if decoded.contains([':', '@']) {
        return Err(SECRET.into());
    }
    if !decoded.is_empty()
        && !decoded.starts_with('-')
        && decoded.chars().all(|c| c.is_alphanumeric() || "-_.+~\\".contains(c))
    {
        return Ok(());
    }
    Err(format!("`{}` is not the name of a user", shown(user)).into())
}

/// Returns true if `name` can be the name of an owner or a repository.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['-', '.'])
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Checks a branch, a tag or a commit by the rules of
/// [`git check-ref-format`](https://git-scm.com/docs/git-check-ref-format), which commit hashes also satisfy.
/// A range of versions is valid as well.
pub(super) fn read_reference(reference: &str) -> Parsed<String> {
    if let Some(range) = Range::parse(reference) {
        return range.map(|_| reference.to_owned());
    }
    let is_wrong = reference.is_empty()
        || reference.starts_with(['-', '/', '.', '+', '@'])
        || reference.ends_with(['/', '.'])
        || reference
            .split('/')
            .any(|part| part.is_empty() || part.starts_with('.') || part.strip_suffix(".lock").is_some())
        || reference.contains("..")
        || reference.contains("@{")
        || reference.chars().any(|c| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c));
    if is_wrong {
        return Err(format!("`{}` is not a valid branch, tag or commit", shown(reference)).into());
    }
    Ok(reference.to_owned())
}

/// Normalizes a directory: removes empty segments and `.`.
pub(super) fn read_path(path: &str) -> Parsed<String> {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if path.contains('\\') || parts.iter().any(|part| *part == ".." || part.chars().any(char::is_control)) {
        return Err(format!("`{}` is not a directory in the repository", shown(path)).into());
    }
    Ok(parts.join("/"))
}
