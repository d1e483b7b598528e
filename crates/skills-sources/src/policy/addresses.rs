//! The normal form of addresses, and [`Pattern`]s for them.
//!
//! The same repository can be written in many ways: `github:acme/x`, `https://GitHub.com/acme/x.git` and `git@github.com:acme/x` have the
//! normal form `git github.com/acme/x`. An address without a normal form, such as one with `..` or `%2f`, matches no pattern.

use std::fmt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use percent_encoding::percent_decode_str;

use crate::{
    Address,
    address::{GitPlace, Place, Transport},
    reason::Reason,
};

/// Placeholders for `*` and `**` while a pattern is parsed as an address.
const STAR: &str = "qqstarqq";
const STARS: &str = "qqstarsqq";

/// Hosts whose paths are compared without regard to case, as the hosts do.
const CASELESS: [&str; 2] = ["github.com", "gitlab.com"];

/// A pattern of `sources.allow`: an address in which `*` stands for a part of a name, and `**` for any number of names. At the end of a
/// repository, `/*` stands for any number of names, too.
#[derive(Clone)]
pub(super) struct Pattern {
    target: GlobSet,
    /// `None` matches branches, tags and ranges of versions.
    reference: Option<GlobSet>,
    /// True if the reference has a star, so that it could match the hash of any commit.
    has_star: bool,
    /// The directory in the repository. `None` matches any directory.
    directory: Option<GlobSet>,
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pattern")
    }
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// Returns the reason if the text is not an address with stars, or if it has no normal form.
    pub(super) fn parse(text: &str) -> Result<Self, Reason> {
        if text.contains(STAR) || text.contains(STARS) {
            return Err(format!("`{text}` is not a pattern").into());
        }
        let marked = text.replace("**", STARS).replace('*', STAR);
        let address = Address::parse(&marked).map_err(|error| {
            let help = "write an address, such as `github:acme/*` or `git+https://git.acme.example/*`";
            Reason::from(format!("`{text}` is not a pattern for sources: {}; {help}", error.reason()))
        })?;
        let unclear = || Reason::from(format!("`{text}` has a host or a path that can't be compared"));
        let normal = normal(address.place()).ok_or_else(unclear)?;
        let mut targets = vec![normal.clone()];
        if let Some(start) = normal.strip_suffix(STAR).filter(|start| start.ends_with('/')) {
            targets = vec![format!("{start}{STARS}")];
        }
        if matches!(address.place(), Place::Web(_)) {
            // A pattern for everything below a URL includes the URL itself.
            let below = targets[0].strip_suffix(STARS).and_then(|start| start.strip_suffix('/'));
            targets.extend(below.map(str::to_owned));
        }
        let Place::Git(place) = address.place() else {
            return Ok(Self { target: globs(&targets)?, reference: None, has_star: false, directory: None });
        };
        let reference = place.reference.as_ref().map(|reference| globs(std::slice::from_ref(reference)));
        let below = || globs(&[place.path.clone(), format!("{}/{STARS}", place.path)]);
        Ok(Self {
            target: globs(&targets)?,
            reference: reference.transpose()?,
            has_star: place
                .reference
                .as_ref()
                .is_some_and(|text| text.contains(STAR) || text.contains(STARS)),
            directory: (!place.path.is_empty()).then(below).transpose()?,
        })
    }

    /// Returns true if the pattern matches an address.
    pub(super) fn matches(&self, address: &Address) -> bool {
        let Some(normal) = normal(address.place()) else { return false };
        if !self.target.is_match(normal) {
            return false;
        }
        let Place::Git(place) = address.place() else { return true };
        let reference = place.reference.as_deref();
        let has_reference = match &self.reference {
            Some(globs) => reference
                .is_some_and(|reference| globs.is_match(reference) && !(self.has_star && is_hash(reference))),
            // The checksum of an archive only restricts the address.
            None => place.transport == Transport::Archive || reference.is_none_or(is_of_repository),
        };
        has_reference && self.directory.as_ref().is_none_or(|globs| globs.is_match(&place.path))
    }
}

/// Returns true if a reference must be a branch, a tag or a range of versions of the repository itself. Hosts also serve what anyone has
/// proposed to a repository: as references such as `pull/1/head`, and by the hash of a commit.
fn is_of_repository(reference: &str) -> bool {
    let plain = reference.strip_prefix("refs/").unwrap_or(reference);
    let is_named = plain.starts_with("heads/") || plain.starts_with("tags/");
    is_named || !is_hash(reference) && !reference.contains('/')
}

fn is_hash(reference: &str) -> bool {
    reference.len() >= 4 && reference.chars().all(|c| c.is_ascii_hexdigit())
}

/// Compiles texts with placeholders for stars. Other special characters stand for themselves.
pub(super) fn globs(texts: &[String]) -> Result<GlobSet, Reason> {
    let failed = |error: globset::Error| Reason::from(error.to_string());
    let mut set = GlobSetBuilder::new();
    for text in texts {
        let glob = globset::escape(text).replace(STARS, "**").replace(STAR, "*");
        set.add(
            GlobBuilder::new(&glob).literal_separator(true).backslash_escape(true).build().map_err(failed)?,
        );
    }
    set.build().map_err(failed)
}

/// Returns the glob for a URL in which `*` stands for a part of a name.
pub(super) fn url_globs(text: &str) -> Result<GlobSet, Reason> {
    let marked = text.replace("**", STARS).replace('*', STAR);
    let normal = normal_url(&marked)
        .ok_or_else(|| Reason::from(format!("`{text}` is not a URL that can be compared")))?;
    let start = normal.strip_suffix(STAR).and_then(|start| start.strip_suffix('/'));
    match start {
        Some(start) => globs(&[start.to_owned(), format!("{start}/{STARS}")]),
        None => globs(&[normal]),
    }
}

/// Returns the normal form of the target of an address, without its reference and its directory.
fn normal(place: &Place) -> Option<String> {
    match place {
        Place::Git(place) => match place.transport {
            Transport::Archive => normal_url(&place.url),
            // Registries ignore case in old names only, so different cases can be different packages.
            Transport::Npm => Some(place.url.clone()),
            _ => Some(format!("git {}", repository(place)?)),
        },
        Place::Web(url) => normal_url(url),
    }
}

fn repository(place: &GitPlace) -> Option<String> {
    let (user, host, port, path) = match place.transport {
        Transport::File => {
            let path = path(place.url.strip_prefix("file:///")?)?;
            return Some(format!("file:///{path}"));
        }
        Transport::Https => {
            let (authority, path) = place.url.strip_prefix("https://")?.split_once('/')?;
            (None, authority, "443", path.to_owned())
        }
        Transport::Ssh => {
            let (authority, path) = if let Some(rest) = place.url.strip_prefix("ssh://") {
                rest.split_once('/').map(|(authority, path)| (authority, path.to_owned()))?
            } else {
                // The path is relative to the home directory of the user, and git doesn't decode it.
                let (authority, path) = place.url.split_once(':')?;
                (authority, format!("~/{}", path.replace('%', "%25")))
            };
            let (user, host) = match authority.rsplit_once('@') {
                Some((user, host)) => (Some(user), host),
                // Hosting services only know the user `git`.
                None if CASELESS.contains(&&*authority.to_ascii_lowercase()) => (None, authority),
                // This is the user of the machine, who can have other directories on the host.
                None => (Some(""), authority),
            };
            (user, host, "22", path)
        }
        Transport::Archive | Transport::Npm => return None,
    };
    let user = user.map(|user| percent_decode_str(user).decode_utf8()).transpose().ok()?;
    // The user `git` of hosting services stands for the same repositories as https.
    let user = user.filter(|user| user != "git").map_or_else(String::new, |user| format!("{user}@"));
    let host = host_and_port(host, port)?;
    let mut path = self::path(&path)?;
    if let Some(start) = path.strip_suffix(".git").filter(|start| !start.is_empty() && !start.ends_with('/'))
    {
        path = start.to_owned();
    }
    if CASELESS.contains(&&*host) {
        path.make_ascii_lowercase();
    }
    Some(format!("{user}{host}/{path}"))
}

/// Returns the normal form of a URL with https, or with http on loopback. `None` if it has a user, a query or a fragment.
pub(super) fn normal_url(url: &str) -> Option<String> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let port = match &*scheme {
        "https" => "443",
        "http" => "80",
        _ => return None,
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host_and_port(authority, port)?;
    let path = self::path(path)?;
    let separator = if path.is_empty() { "" } else { "/" };
    Some(format!("{scheme}://{host}{separator}{path}"))
}

/// Normalizes a host: in lower case, without a trailing dot and without the default port.
fn host_and_port(authority: &str, default_port: &str) -> Option<String> {
    let authority = authority.to_ascii_lowercase();
    let end = authority.find(']').map_or(0, |end| end + 1);
    let (host, port) = match authority[end..].split_once(':') {
        Some((rest, port)) => (&authority[..end + rest.len()], port),
        None => (&*authority, ""),
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_host = if host.starts_with('[') {
        host.len() > 2 && host[1..host.len() - 1].chars().all(|c| c.is_ascii_hexdigit() || ":.".contains(c))
    } else {
        host.split('.').all(|label| !label.is_empty()) && host.chars().all(is_plain)
    };
    if !is_host {
        return None;
    }
    match port.trim_start_matches('0') {
        "" if port.is_empty() => Some(host.to_owned()),
        number if number == default_port => Some(host.to_owned()),
        number if !number.is_empty() && number.chars().all(|c| c.is_ascii_alphanumeric()) => {
            Some(format!("{host}:{number}"))
        }
        _ => None,
    }
}

/// Normalizes a path, which has no `/` at its beginning. Returns `None` if programs can read it in different ways: if a name is empty, `.` or `..`, also with parameters or
/// spaces that some servers remove (`..;x`), or if it contains an encoded separator or a query.
fn path(path: &str) -> Option<String> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Some(String::new());
    }
    let mut names = Vec::new();
    for name in path.split('/') {
        let name = percent_decode_str(name).decode_utf8().ok()?;
        let is_unclear = |c: char| c.is_control() || "/\\%?#;".contains(c);
        let is_relative = name.trim_matches(|c: char| c == '.' || c.is_whitespace()).is_empty();
        if is_relative || name.contains(is_unclear) {
            return None;
        }
        names.push(name.into_owned());
    }
    Some(names.join("/"))
}
