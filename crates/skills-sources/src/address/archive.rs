//! The addresses of archives and of npm packages.

use skills_core::{skill::Sha256, text::shown};

use super::{
    GitPlace, Parsed, Place, Transport,
    checks::{is_name, read_reference},
    web,
};

/// The ends of the names of archives.
const ENDS: [&str; 3] = [".tar.gz", ".tgz", ".zip"];
/// Parts of the URLs of pages that show a file of a repository.
const PAGES: [&str; 4] = ["/blob/", "/tree/", "/src/", "/_git/"];

/// Returns true if the part of a URL after `://` is that of an archive, not of a page about a file.
pub(super) fn is_archive(rest: &str) -> bool {
    let path = rest.split(['?', '#']).next().unwrap_or(rest).to_ascii_lowercase();
    path.contains('/')
        && ENDS.iter().any(|end| path.ends_with(end))
        && !PAGES.iter().any(|page| path.contains(page))
}

/// Parses `https://…/NAME.tar.gz[#sha256=SHA256]`.
pub(super) fn of_url(text: &str) -> Parsed<GitPlace> {
    let (url, fragment) = text.split_once('#').map_or((text, None), |(url, fragment)| (url, Some(fragment)));
    let checksum = |fragment: &str| -> Parsed<String> {
        let checksum = fragment.strip_prefix("sha256=").and_then(Sha256::parse);
        let why = || format!("`{}` is not `sha256=` and 64 hexadecimal digits", shown(fragment));
        Ok(checksum.ok_or_else(why)?.to_string())
    };
    let reference = fragment.map(checksum).transpose()?;
    let Place::Web(url) = web(url)? else { return Err("expected a URL".into()) };
    Ok(GitPlace { url, reference, path: String::new(), skill: None, transport: Transport::Archive })
}

/// Parses `[@SCOPE/]NAME[@VERSION]`.
pub(super) fn package(rest: &str) -> Parsed<GitPlace> {
    // The first character of a scope is `@`, too.
    let version = rest.get(1..).and_then(|rest| rest.find('@')).map(|at| at + 1);
    let (name, reference) = version.map_or((rest, None), |at| (&rest[..at], Some(&rest[at + 1..])));
    let is_valid = match name.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|(scope, name)| is_name(scope) && is_name(name)),
        None => is_name(name),
    };
    if !is_valid {
        return Err(format!("`{}` is not the name of a package, such as `@acme/skills`", shown(name)).into());
    }
    Ok(GitPlace {
        url: format!("{}{name}", super::NPM),
        reference: reference.map(read_reference).transpose()?,
        path: String::new(),
        skill: None,
        transport: Transport::Npm,
    })
}
