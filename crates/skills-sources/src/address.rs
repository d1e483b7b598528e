//! [`Address`]: the syntax that users write to choose a source of skills.
//!
//! | address | source |
//! |---|---|
//! | `github:OWNER/REPO[/PATH][@REF]`, `gitlab:…` | a git repository, over https |
//! | `https://github.com/OWNER/REPO[/tree/REF/PATH]`, as copied from a browser, and the same for gitlab.com | a git repository |
//! | `https://….git`, `git+https://…[#REF:PATH]` | a git repository |
//! | `git+ssh://…[#REF:PATH]`, `ssh://…`, `git@HOST:PATH` | a git repository |
//! | `git+file:///…[#REF:PATH]` | a git repository on this machine |
//! | `https://….tar.gz`, `….tgz` and `….zip`, with `#sha256=…` for a fixed version | an archive |
//! | `npm:[@SCOPE/]NAME[@VERSION]` | an npm package |
//! | any other `https://…`, and `http://…` on loopback | a web site with an index of skills |
//!
//! A reference is a branch, a tag, a commit, or a range of versions such as `^2.1`, which stands for the tag of the highest version in
//! the range. `latest` stands for the highest version. The version of a package is a range, a tag of its registry, or a number.
//!
//! Parts of an address become arguments of `git`, so an address is rejected if git could read a part of it as an option, or if its
//! path leads out of the repository. Parsing doesn't use the network.

mod archive;
mod browser;
mod checks;

use std::{fmt, path::Path};

use skills_core::{fetch, text::shown};

use self::{
    browser::from_browser,
    checks::{SECRET, authority, check_host, check_user, is_name, read_path, read_reference},
};
use crate::{disk::expand_home, reason::Reason, versions::Range};

/// The start of the address and of the URL of an npm package.
pub(super) const NPM: &str = "npm:";

/// The public registry of npm packages.
pub(super) const NPM_REGISTRY: &str = "https://registry.npmjs.org";

/// The maximum length of an address, in bytes.
const MAX_BYTES: usize = 2048;

/// The address of a source: a git repository, an archive, an npm package, or a web site with skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    text: String,
    place: Place,
}

/// The target of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// A directory with versions: of a git repository, of an archive, or of an npm package.
    Git(GitPlace),
    /// The URL of a web site, of the directory of its index, or of the index itself.
    Web(String),
}

/// A directory of a git repository, at a reference. An archive and an npm package have the same form.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GitPlace {
    /// The URL for `git fetch`: `https://…`, `ssh://…`, `USER@HOST:PATH` or `file://…`. For an archive, its URL; for a package, `npm:`
    /// and its name.
    pub url: String,
    /// A branch, a tag, a commit, a range of versions such as `^2.1`, or `latest`. `None` means the repository's default branch. For an
    /// archive, its SHA-256.
    pub reference: Option<String>,
    /// The directory, relative to the root of the repository, with `/` as the separator. An empty path means the root. For an archive in
    /// the index of a web site, the URL of the site.
    pub path: String,
    /// The name of the skill in the archive if the archive is in the index of a web site.
    pub skill: Option<String>,
    /// The transport. Git may use no other one.
    pub transport: Transport,
}

/// The transport over which a repository is fetched, or the other kind of place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// HTTPS.
    Https,
    /// SSH.
    Ssh,
    /// A directory on this machine.
    File,
    /// The place is not a repository, but an archive.
    Archive,
    /// The place is not a repository, but an npm package.
    Npm,
}

impl Transport {
    /// Returns true if the place is a git repository.
    pub fn is_git(self) -> bool {
        !matches!(self, Self::Archive | Self::Npm)
    }
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

    /// Returns the reason, as a clause.
    pub(crate) fn reason(&self) -> &Reason {
        &self.why
    }

    /// Returns a hint about what to write instead.
    pub fn hint(&self) -> &str {
        self.hint.as_deref().unwrap_or(FORMS)
    }
}

const FORMS: &str = "use `github:OWNER/REPO[/PATH][@REF]`, `gitlab:…`, `git+https://…[#REF:PATH]`, `git+ssh://…`, \
                     `git+file:///…`, `npm:PACKAGE[@VERSION]`, or the https address of a tar.gz or zip file or of a web site \
                     with skills";

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
            Some(("npm", rest)) => archive::package(rest).map(Place::Git),
            Some((authority, rest)) if is_scp_like(authority, rest) => {
                scp_like(authority, rest).map(Place::Git)
            }
            _ => by_scheme(text).ok_or_else(|| fail("unknown format".into()).with_hint(meant(text)))?,
        };
        let place = place.map_err(fail)?;
        Ok(Self { text: text.to_owned(), place })
    }

    /// Returns the address as it was written, without white space around it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the same address with another range of versions. `None` if the address has no range, or if the result is invalid.
    pub fn with_range(&self, range: &str) -> Option<Self> {
        let Place::Git(place) = &self.place else { return None };
        let reference = place.reference.as_deref()?;
        Range::parse(reference)?.ok()?;
        let wanted = Place::Git(GitPlace { reference: Some(range.to_owned()), ..place.clone() });
        // Other parts of the address can contain the text of the range.
        let replaced = self.text.match_indices(reference).filter_map(|(at, _)| {
            let text = format!("{}{range}{}", &self.text[..at], &self.text[at + reference.len()..]);
            Self::parse(&text).ok()
        });
        replaced.into_iter().find(|address| address.place == wanted)
    }

    /// Returns the target of the address without its range of versions. `None` if the address has no range.
    pub fn without_range(&self) -> Option<Place> {
        let Place::Git(place) = &self.place else { return None };
        Range::parse(place.reference.as_deref()?)?.ok()?;
        Some(Place::Git(GitPlace { reference: None, ..place.clone() }))
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
        "https" | "http" if archive::is_archive(rest) => Some(archive::of_url(text).map(Place::Git)),
        "https" => Some(from_browser(text, rest).unwrap_or_else(|| web(text))),
        "http" => Some(web(text)),
        _ => None,
    }
}

fn web(url: &str) -> Parsed<Place> {
    if authority(url.split_once("://").map_or("", |(_, rest)| rest)).contains('@') {
        return Err(SECRET.into());
    }
    if url.split_once("://").is_some_and(|(_, rest)| authority(rest).is_empty()) {
        return Err("host is missing".into());
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
    if owner.is_empty() || name.is_empty() {
        return Err("expected an owner and a repository, as in `acme/skills`".into());
    }
    if !owner.split('/').all(is_name) || !is_name(name) {
        return Err("owner and repository names can only contain letters, digits, `-`, `_` and `.`, as in `acme/skills`"
            .into());
    }
    Ok(GitPlace {
        url: format!("https://{host}/{owner}/{name}.git"),
        reference: reference.map(read_reference).transpose()?,
        path: read_path(path)?,
        skill: None,
        transport: Transport::Https,
    })
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
        // Git reads the host of ssh up to the first `/`, so in `a?@b/x`, it connects to `b`.
        if transport == Transport::Ssh && place[authority.len()..].starts_with('?') {
            return Err("host and path must be separated by `/`".into());
        }
        match (transport, authority.rsplit_once('@')) {
            (Transport::Ssh, Some((user, host))) => {
                check_user(user)?;
                check_host(host)?;
            }
            (Transport::Https, Some(_)) => return Err(SECRET.into()),
            _ => check_host(authority)?,
        }
        format!("{scheme}://{place}")
    };
    Ok(GitPlace {
        url,
        reference: Some(reference)
            .filter(|reference| !reference.is_empty())
            .map(read_reference)
            .transpose()?,
        path: read_path(path)?,
        skill: None,
        transport,
    })
}

/// Returns true if the text before and after the first `:` is `USER@HOST:PATH`, the form that servers display.
fn is_scp_like(authority: &str, rest: &str) -> bool {
    authority.contains('@') && !authority.contains('/') && !rest.starts_with("//")
}

/// Parses `USER@HOST:PATH[#REF:PATH]`.
fn scp_like(authority: &str, rest: &str) -> Parsed<GitPlace> {
    let place = repository("ssh", &format!("{authority}/{}", rest.trim_start_matches('/')), Transport::Ssh)?;
    // A path without a `/` at its beginning is relative to the home directory of the user. Hosting services, whose user
    // is called `git`, don't have home directories, so both forms have the same meaning there.
    let path = rest.split('#').next().unwrap_or_default();
    if authority.starts_with("git@") || path.starts_with('/') {
        return Ok(place);
    }
    if path.starts_with('-') {
        return Err(format!("`{}` is not a path in a repository", shown(path)).into());
    }
    Ok(GitPlace { url: format!("{authority}:{path}"), ..place })
}

#[cfg(test)]
mod tests;
