//! [`Address`]: the syntax that users write to choose a source of skills.
//!
//! | address | source |
//! |---|---|
//! | `github:OWNER/REPO[/PATH][@REF]`, `gitlab:…` | a git repository, over https |
//! | `https://github.com/OWNER/REPO[/tree/REF/PATH]`, as copied from a browser, and the same for gitlab.com | a git repository |
//! | `https://….git`, `git+https://…[#REF:PATH]` | a git repository |
//! | `git+ssh://…[#REF:PATH]`, `ssh://…`, `git@HOST:PATH` | a git repository |
//! | `git+file:///…[#REF:PATH]` | a git repository on this machine |
//! | any other `https://…`, and `http://…` on loopback | a web site with an index of skills |
//!
//! Parts of an address become arguments of `git`, so an address is rejected if git could read a part of it as an option, or if its
//! path leads out of the repository. Parsing doesn't use the network.

mod checks;

use std::{fmt, path::Path};

use percent_encoding::percent_decode_str;
use skills_core::{fetch, text::shown};

use self::checks::{SECRET, authority, is_name, read_path, read_reference};
use crate::{disk::expand_home, reason::Reason};

/// The maximum length of an address, in bytes.
const MAX_BYTES: usize = 2048;

/// The address of a source: a git repository or a web site with skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    text: String,
    place: Place,
}

/// The target of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A directory of a git repository.
    Git(GitPlace),
    /// The URL of a web site, of the directory of its index, or of the index itself.
    Web(String),
}

/// A directory of a git repository, at a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GitPlace {
    /// The URL for `git fetch`: `https://…`, `ssh://…` or `file://…`.
    pub url: String,
    /// A branch, a tag or a commit. `None` means the repository's default branch.
    pub reference: Option<String>,
    /// The directory, relative to the root of the repository, with `/` as the separator. An empty path means the root.
    pub path: String,
    /// The transport. Git may use no other one.
    pub transport: Transport,
}

/// The transport over which a repository is fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// HTTPS.
    Https,
    /// SSH.
    Ssh,
    /// A directory on this machine.
    File,
}

/// The error of [`Address::parse`]. The message contains the text and the reason; [`hint`](Self::hint) returns a valid form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid source `{}`: {why}", shown(text))]
pub struct AddressError {
    text: String,
    why: Reason,
    hint: Option<String>,
}

impl AddressError {
    fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns a hint about what to write instead.
    pub fn hint(&self) -> &str {
        self.hint.as_deref().unwrap_or(FORMS)
    }
}

const FORMS: &str = "use `github:OWNER/REPO[/PATH][@REF]`, `gitlab:…`, `git+https://…[#REF:PATH]`, `git+ssh://…`, \
                     `git+file:///…`, or the https address of a web site with skills";

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Address {
    /// Parses an address. White space around it is ignored.
    ///
    /// ```
    /// use skills_sources::{Address, Place};
    ///
    /// let address = Address::parse("github:acme/skills/review@v2")?;
    /// let Place::Git(place) = address.place() else { unreachable!() };
    /// assert_eq!(place.url, "https://github.com/acme/skills.git");
    /// assert_eq!((place.path.as_str(), place.reference.as_deref()), ("review", Some("v2")));
    /// # Ok::<(), skills_sources::AddressError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the text has none of the supported forms, is longer than 2,048 bytes, or contains a part that must not
    /// be passed to git (an option, a password, or a path out of the repository).
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        let fail = |why: Reason| AddressError { text: text.to_owned(), why, hint: None };
        if text.is_empty() || text.len() > MAX_BYTES {
            return Err(fail(format!("address must have at least 1 and at most {MAX_BYTES} bytes").into()));
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(fail("address contains a space or an invisible character".into()));
        }
        let place = match text.split_once(':') {
            Some(("github", rest)) => hosted("github.com", rest).map(Place::Git),
            Some(("gitlab", rest)) => hosted("gitlab.com", rest).map(Place::Git),
            _ if text.starts_with("git@") => scp_like(text).map(Place::Git),
            _ => by_scheme(text).ok_or_else(|| fail("unknown format".into()).with_hint(meant(text)))?,
        };
        let place = place.map_err(fail)?;
        Ok(Self { text: text.to_owned(), place })
    }

    /// Returns the address as it was written, without white space around it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the target of the address.
    pub fn place(&self) -> &Place {
        &self.place
    }
}

/// Suggests a valid form for a text without a known scheme.
fn meant(text: &str) -> String {
    if text.starts_with(['.', '/', '~', '$']) || text.contains('\\') {
        return "use `--skills DIR` for a directory on this machine, or set `roots` in the configuration file"
            .to_owned();
    }
    match text.split('/').collect::<Vec<_>>()[..] {
        [owner, repository, ..] if is_name(owner) && is_name(repository) && !text.contains(':') => {
            format!("did you mean `github:{text}`?")
        }
        _ => FORMS.to_owned(),
    }
}

/// The result of parsing a part of an address.
type Parsed<T> = Result<T, Reason>;

fn by_scheme(text: &str) -> Option<Parsed<Place>> {
    let (scheme, rest) = text.split_once("://")?;
    let git =
        |transport| Some(repository(scheme.trim_start_matches("git+"), rest, transport).map(Place::Git));
    match scheme {
        "git+https" => git(Transport::Https),
        "git+ssh" | "ssh" => git(Transport::Ssh),
        "git+file" => git(Transport::File),
        "git+http" | "git" | "git+git" => {
            Some(Err("connection is not encrypted, and skills could be changed in transit; use https or ssh"
                .into()))
        }
        "https" => Some(from_browser(text, rest).unwrap_or_else(|| web(text))),
        "http" => Some(web(text)),
        _ => None,
    }
}

fn web(url: &str) -> Parsed<Place> {
    if authority(url.split_once("://").map_or("", |(_, rest)| rest)).contains('@') {
        return Err(SECRET.into());
    }
    if !fetch::is_allowed(url) {
        return Err("only https is allowed, or http for loopback addresses".into());
    }
    Ok(Place::Web(url.to_owned()))
}

/// Parses `OWNER/REPO[/PATH][@REF]` of a hosting service.
fn hosted(host: &str, rest: &str) -> Parsed<GitPlace> {
    let (names, reference) = match rest.split_once('@') {
        Some((names, reference)) => (names, Some(reference)),
        None => (rest, None),
    };
    let mut parts = names.splitn(3, '/');
    let mut next = || parts.next().unwrap_or_default();
    let owner = next();
    let name = next();
    let path = next();
    at_host(host, owner, name, reference, path)
}

fn at_host(host: &str, owner: &str, name: &str, reference: Option<&str>, path: &str) -> Parsed<GitPlace> {
    let name = name.strip_suffix(".git").unwrap_or(name);
    if !owner.split('/').all(is_name) || !is_name(name) {
        return Err("owner and repository names can only contain letters, digits, `-`, `_` and `.`, as in `acme/skills`"
            .into());
    }
    Ok(GitPlace {
        url: format!("https://{host}/{owner}/{name}.git"),
        reference: reference.map(read_reference).transpose()?,
        path: read_path(path)?,
        transport: Transport::Https,
    })
}

/// Parses the URL of a repository's page, as copied from a browser. Returns `None` if it may be a web site with skills instead.
fn from_browser(text: &str, rest: &str) -> Option<Parsed<Place>> {
    let place = |place: Parsed<GitPlace>| Some(place.map(Place::Git));
    let page = rest.split(['?', '#']).next().unwrap_or(rest).trim_end_matches('/');
    let (host, path) = page.split_once('/')?;
    let host = host.to_ascii_lowercase();
    match host.strip_prefix("www.").unwrap_or(&host) {
        "github.com" => {
            let mut parts = path.splitn(3, '/');
            let owner = parts.next()?;
            let name = parts.next()?;
            let (reference, path) = match parts.next().map(of_view) {
                None => (None, String::new()),
                Some(Some((reference, path))) => (Some(reference), path),
                Some(None) => {
                    return Some(Err("this github.com page is not a directory in a repository".into()));
                }
            };
            place(at_host("github.com", owner, name, reference.as_deref(), &path))
        }
        "gitlab.com" => {
            let (names, view) =
                path.split_once("/-/").map_or((path, None), |(names, view)| (names, Some(view)));
            let (owner, name) = names.rsplit_once('/')?;
            let (reference, path) = match view.map(of_view) {
                None => (None, String::new()),
                Some(Some((reference, path))) => (Some(reference), path),
                Some(None) => {
                    return Some(Err("this gitlab.com page is not a directory in a repository".into()));
                }
            };
            place(at_host("gitlab.com", owner, name, reference.as_deref(), &path))
        }
        _ if page.strip_suffix(".git").is_some() && !text.contains('?') => {
            place(repository("https", rest, Transport::Https))
        }
        _ => None,
    }
}

/// Returns the reference and the directory of `tree/REF/PATH` or `blob/REF/PATH/SKILL.md`. The first segment is the reference,
/// because a reference with a `/` can't be distinguished from a path. Such a reference has to be written with `git+https`.
fn of_view(view: &str) -> Option<(String, String)> {
    let mut parts = view.splitn(3, '/');
    let kind = parts.next()?;
    let reference = parts.next()?;
    let path = parts.next().unwrap_or_default();
    let path = match kind {
        "tree" => path,
        "blob" => path.rsplit_once('/').map_or("", |(dir, _)| dir),
        _ => return None,
    };
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned);
    Some((decoded(reference)?, decoded(path)?))
}

/// Parses `AUTHORITY/PATH[#REF[:PATH]]`.
fn repository(scheme: &str, rest: &str, transport: Transport) -> Parsed<GitPlace> {
    let (place, fragment) = rest.split_once('#').map_or((rest, ""), |(place, fragment)| (place, fragment));
    let (reference, path) = fragment.split_once(':').unwrap_or((fragment, ""));
    let authority = authority(place);
    let url = if transport == Transport::File {
        // On Windows the URL is `file:///C:/skills`, with a `/` before the drive.
        let has_drive = place.as_bytes().get(2) == Some(&b':');
        let place = if cfg!(windows) && has_drive { place.trim_start_matches('/') } else { place };
        let path = expand_home(Path::new(place));
        let path = path.to_str().filter(|_| path.is_absolute());
        let path =
            path.ok_or("path in a `git+file` address must be absolute: `git+file:///home/me/skills`")?;
        format!("file://{}{}", if path.starts_with('/') { "" } else { "/" }, path.replace('\\', "/"))
    } else {
        if authority.is_empty()
            || authority.starts_with('-')
            || place[authority.len()..].trim_matches('/').is_empty()
        {
            return Err("host or repository is missing".into());
        }
        match (transport, authority.rsplit_once('@')) {
            (Transport::Ssh, Some((user, host)))
                if user.contains([':', '@'])
                    || user.starts_with('-')
                    || host.is_empty()
                    || host.starts_with('-') =>
            {
                return Err(SECRET.into());
            }
            (Transport::Https, Some(_)) => return Err(SECRET.into()),
            _ => format!("{scheme}://{place}"),
        }
    };
    Ok(GitPlace {
        url,
        reference: Some(reference)
            .filter(|reference| !reference.is_empty())
            .map(read_reference)
            .transpose()?,
        path: read_path(path)?,
        transport,
    })
}

/// Parses `git@HOST:PATH[#REF:PATH]`, the form that servers display.
fn scp_like(text: &str) -> Parsed<GitPlace> {
    let (authority, rest) = text.split_once(':').ok_or("repository is missing after the host")?;
    repository("ssh", &format!("{authority}/{}", rest.trim_start_matches('/')), Transport::Ssh)
}

#[cfg(test)]
mod tests;
