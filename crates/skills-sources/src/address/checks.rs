//! What of an address may reach git: nothing that could be taken for a flag, or leads out of the repository.

use skills_core::text::shown;

use super::Read;

/// Why no address has a password in it.
pub(super) const SECRET: &str = "a name or password in it would end up in files that others read; git asks its credential helper, \
                      so leave it out";

/// The host of an address behind its scheme, with whatever stands around it.
pub(super) fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Whether it can be an owner or a repository at a host.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['-', '.'])
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// By the rules of [`git check-ref-format`](https://git-scm.com/docs/git-check-ref-format), which a commit's number
/// fulfils, too.
pub(super) fn read_reference(reference: &str) -> Read<String> {
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
        return Err(format!("`{}` cannot be a branch, a tag or a commit", shown(reference)));
    }
    Ok(reference.to_owned())
}

/// The directory without what means nothing in it.
pub(super) fn read_path(path: &str) -> Read<String> {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if path.contains('\\') || parts.iter().any(|part| *part == ".." || part.chars().any(char::is_control)) {
        return Err(format!("`{}` is no directory of the repository", shown(path)));
    }
    Ok(parts.join("/"))
}
