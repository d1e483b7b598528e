//! [`Address`]: what people write to name a place with skills that is elsewhere, and what it means.
//!
//! | written | is |
//! |---|---|
//! | `github:OWNER/REPO[/PATH][@REF]`, `gitlab:…` | a git repository, over https |
//! | `https://github.com/OWNER/REPO[/tree/REF/PATH]`, as copied from a browser; the same at gitlab.com | a git repository |
//! | `https://….git`, `git+https://…[#REF:PATH]` | a git repository |
//! | `git+ssh://…[#REF:PATH]`, `ssh://…`, `git@HOST:PATH` | a git repository |
//! | `git+file:///…[#REF:PATH]` | a git repository on this machine |
//! | any other `https://…`, and `http://…` on loopback | a web site with an index of skills |
//!
//! What is read here ends up as arguments of `git`: an address that could be taken for a flag, or lead out of the
//! repository, is refused. Nothing is looked up.

mod checks;

use std::{fmt, path::Path};

use percent_encoding::percent_decode_str;
use skills_core::{fetch, text::shown};

use self::checks::{SECRET, authority, is_name, read_path, read_reference};
use crate::disk::expand_home;

/// Longest address, in bytes.
const MAX_BYTES: usize = 2048;

/// A place with skills that is elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    text: String,
    place: Place,
}

/// What an address leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A directory of a git repository.
    Git(GitPlace),
    /// A web site: the address of its index, of the index's directory, or of the site.
    Web(String),
}

/// A directory of a git repository, at some state of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GitPlace {
    /// What `git fetch` takes: `https://…`, `ssh://…` or `file://…`.
    pub url: String,
    /// A branch, a tag or a commit; `None` is the repository's default branch.
    pub reference: Option<String>,
    /// The directory, relative to the repository's root and separated by `/`; empty is the root.
    pub path: String,
    /// How it is reached, which is all that git may use.
    pub transport: Transport,
}

/// How a repository is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// `https`.
    Https,
    /// `ssh`.
    Ssh,
    /// A directory on this machine.
    File,
}

/// Why a text is not an address. The message names it; [`hint`](Self::hint) says what to write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a source: {why}", shown(text))]
pub struct AddressError {
    text: String,
    why: String,
    hint: Option<String>,
}

impl AddressError {
    fn hint_is(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// What to write instead.
    pub fn hint(&self) -> &str {
        self.hint.as_deref().unwrap_or(FORMS)
    }
}

const FORMS: &str = "a source is `github:OWNER/REPO[/PATH][@REF]`, `gitlab:…`, `git+https://…[#REF:PATH]`, \
                     `git+ssh://…`, `git+file:///…`, or the https address of a web site with skills";

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Address {
    /// Reads an address.
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
    /// It has none of the forms, or what it has must not reach git.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        let fail = |why: String| AddressError { text: text.to_owned(), why, hint: None };
        if text.is_empty() || text.len() > MAX_BYTES {
            return Err(fail(format!("it has to have 1 to {MAX_BYTES} bytes")));
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(fail("it contains a space or a character that nobody sees".to_owned()));
        }
        let place = match text.split_once(':') {
            Some(("github", rest)) => hosted("github.com", rest).map(Place::Git),
            Some(("gitlab", rest)) => hosted("gitlab.com", rest).map(Place::Git),
            _ if text.starts_with("git@") => scp_like(text).map(Place::Git),
            _ => by_scheme(text).ok_or_else(|| {
                fail("it has none of the forms that a source has".to_owned()).hint_is(meant(text))
            })?,
        };
        let place = place.map_err(fail)?;
        Ok(Self { text: text.to_owned(), place })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What it leads to.
    pub fn place(&self) -> &Place {
        &self.place
    }
}

/// What somebody meant whose text has no scheme that we know.
fn meant(text: &str) -> String {
    if text.starts_with(['.', '/', '~', '$']) || text.contains('\\') {
        return "a directory on this machine needs no source: `--skills DIR`, or `roots` in the file"
            .to_owned();
    }
    match text.split('/').collect::<Vec<_>>()[..] {
        [owner, repository, ..] if is_name(owner) && is_name(repository) && !text.contains(':') => {
            format!("did you mean `github:{text}`?")
        }
        _ => FORMS.to_owned(),
    }
}

type Read<T> = Result<T, String>;

fn by_scheme(text: &str) -> Option<Read<Place>> {
    let (scheme, rest) = text.split_once("://")?;
    let git =
        |transport| Some(repository(scheme.trim_start_matches("git+"), rest, transport).map(Place::Git));
    match scheme {
        "git+https" => git(Transport::Https),
        "git+ssh" | "ssh" => git(Transport::Ssh),
        "git+file" => git(Transport::File),
        "git+http" | "git" | "git+git" => Some(Err(
            "it is not encrypted, so that anybody on the way could change the skills; use https or ssh"
                .to_owned(),
        )),
        "https" => Some(from_browser(text, rest).unwrap_or_else(|| web(text))),
        "http" => Some(web(text)),
        _ => None,
    }
}

fn web(url: &str) -> Read<Place> {
    if authority(url.split_once("://").map_or("", |(_, rest)| rest)).contains('@') {
        return Err(SECRET.to_owned());
    }
    if !fetch::is_allowed(url) {
        return Err("only https, or http on this machine's loopback, is allowed".to_owned());
    }
    Ok(Place::Web(url.to_owned()))
}

/// `OWNER/REPO[/PATH][@REF]` at a host.
fn hosted(host: &str, rest: &str) -> Read<GitPlace> {
    let (names, reference) = match rest.split_once('@') {
        Some((names, reference)) => (names, Some(reference)),
        None => (rest, None),
    };
    let mut parts = names.splitn(3, '/');
    let (owner, name, path) = (parts.next(), parts.next(), parts.next());
    at_host(host, owner.unwrap_or_default(), name.unwrap_or_default(), reference, path.unwrap_or_default())
}

fn at_host(host: &str, owner: &str, name: &str, reference: Option<&str>, path: &str) -> Read<GitPlace> {
    let name = name.strip_suffix(".git").unwrap_or(name);
    if !owner.split('/').all(is_name) || !is_name(name) {
        return Err("an owner and a repository have letters, digits, `-`, `_` and `.`, as in `acme/skills`"
            .to_owned());
    }
    Ok(GitPlace {
        url: format!("https://{host}/{owner}/{name}.git"),
        reference: reference.map(read_reference).transpose()?,
        path: read_path(path)?,
        transport: Transport::Https,
    })
}

/// A page of a repository, as copied from a browser; `None` when it is none, but may be a site with skills.
fn from_browser(text: &str, rest: &str) -> Option<Read<Place>> {
    let place = |place: Read<GitPlace>| Some(place.map(Place::Git));
    let page = rest.split(['?', '#']).next().unwrap_or(rest).trim_end_matches('/');
    let (host, path) = page.split_once('/')?;
    let host = host.to_ascii_lowercase();
    match host.strip_prefix("www.").unwrap_or(&host) {
        "github.com" => {
            let mut parts = path.splitn(3, '/');
            let (owner, name) = (parts.next()?, parts.next()?);
            let (reference, path) = match parts.next().map(of_view) {
                None => (None, String::new()),
                Some(Some((reference, path))) => (Some(reference), path),
                Some(None) => {
                    return Some(Err("this page of github.com has no directory of a repository".to_owned()));
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
                    return Some(Err("this page of gitlab.com has no directory of a repository".to_owned()));
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

/// Reference and directory of `tree/REF/PATH`, or of `blob/REF/PATH/SKILL.md`. A reference with a `/` cannot be told from
/// a path here: such a one has to be written with `git+https`.
fn of_view(view: &str) -> Option<(String, String)> {
    let mut parts = view.splitn(3, '/');
    let (kind, reference, path) = (parts.next()?, parts.next()?, parts.next().unwrap_or_default());
    let path = match kind {
        "tree" => path,
        "blob" => path.rsplit_once('/').map_or("", |(dir, _)| dir),
        _ => return None,
    };
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned);
    Some((decoded(reference)?, decoded(path)?))
}

/// `AUTHORITY/PATH[#REF[:PATH]]`.
fn repository(scheme: &str, rest: &str, transport: Transport) -> Read<GitPlace> {
    let (place, fragment) = rest.split_once('#').map_or((rest, ""), |(place, fragment)| (place, fragment));
    let (reference, path) = fragment.split_once(':').unwrap_or((fragment, ""));
    let authority = authority(place);
    let url = if transport == Transport::File {
        // `file:///C:/skills`.
        let has_drive = place.as_bytes().get(2) == Some(&b':');
        let place = if cfg!(windows) && has_drive { place.trim_start_matches('/') } else { place };
        let path = expand_home(Path::new(place));
        let path = path.to_str().filter(|_| path.is_absolute());
        let path =
            path.ok_or("the directory of a `git+file` has to be absolute: `git+file:///home/me/skills`")?;
        format!("file://{}{}", if path.starts_with('/') { "" } else { "/" }, path.replace('\\', "/"))
    } else {
        if authority.is_empty()
            || authority.starts_with('-')
            || place[authority.len()..].trim_matches('/').is_empty()
        {
            return Err("it has no host, or no repository on it".to_owned());
        }
        match (transport, authority.rsplit_once('@')) {
            (Transport::Ssh, Some((user, host)))
                if user.contains([':', '@'])
                    || user.starts_with('-')
                    || host.is_empty()
                    || host.starts_with('-') =>
            {
                return Err(SECRET.to_owned());
            }
            (Transport::Https, Some(_)) => return Err(SECRET.to_owned()),
            _ => format!("{scheme}://{place}"),
        }
    };
    Ok(GitPlace {
        url,
        reference: Some(reference).filter(|it| !it.is_empty()).map(read_reference).transpose()?,
        path: read_path(path)?,
        transport,
    })
}

/// `git@HOST:PATH[#REF:PATH]`, as servers show it.
fn scp_like(text: &str) -> Read<GitPlace> {
    let (authority, rest) = text.split_once(':').ok_or("it has no repository behind the host")?;
    repository("ssh", &format!("{authority}/{}", rest.trim_start_matches('/')), Transport::Ssh)
}

#[cfg(test)]
mod tests;
