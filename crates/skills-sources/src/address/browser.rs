//! The URLs of repositories' pages, as copied from a browser.

use percent_encoding::percent_decode_str;
use skills_core::{files::SKILL_FILE_NAMES, text::shown};

use super::{
    GitPlace, Parsed, Place, Transport, at_host,
    checks::{SECRET, check_host, read_path, read_reference},
    repository,
};

/// Parses the URL of a repository's page. Returns `None` if it may be a web site with skills instead.
pub(super) fn from_browser(text: &str, rest: &str) -> Option<Parsed<Place>> {
    let page = rest.split(['?', '#']).next().unwrap_or(rest).trim_end_matches('/');
    let (authority, path) = page.split_once('/')?;
    let host = authority.to_ascii_lowercase();
    let host = host.strip_prefix("www.").unwrap_or(&host);
    let place = match host {
        "github.com" => of_owner_and_name(host, path, &["tree", "blob"])?,
        "gitlab.com" => of_gitlab(host, path)?,
        "bitbucket.org" => of_owner_and_name(host, path, &["src"])?,
        "codeberg.org" | "gitea.com" => of_owner_and_name(host, path, &GITEA_KINDS)?,
        _ if is_azure(host) || path.contains("/_git/") => of_azure(host, path, rest),
        // Users can also run GitLab, Gitea and Forgejo on their own hosts.
        _ if path.contains("/-/") => of_gitlab(host, path)?,
        _ if GITEA_KINDS.iter().any(|kind| path.contains(&format!("/{kind}/"))) => {
            of_owner_and_name(host, path, &GITEA_KINDS)?
        }
        _ if page.strip_suffix(".git").is_some() && !text.contains('?') => {
            repository("https", rest, Transport::Https)
        }
        _ => return None,
    };
    Some(place.map(Place::Git))
}

/// Returns the error for a page that is not a directory of a repository.
fn no_directory<T>(host: &str) -> Parsed<T> {
    Err(format!("this {} page is not a directory in a repository", shown(host)).into())
}

/// A reference and a directory.
type View = (Option<String>, String);

/// Returns the place for a repository on a host.
fn at(host: &str, owner: &str, name: &str, (reference, path): View) -> Parsed<GitPlace> {
    if host.contains('@') {
        return Err(SECRET.into());
    }
    check_host(host)?;
    at_host(host, owner, name, reference.as_deref(), &path)
}

/// Parses `OWNER/REPO[/VIEW]`, where the view begins with one of `kinds`.
fn of_owner_and_name(host: &str, path: &str, kinds: &[&str]) -> Option<Parsed<GitPlace>> {
    let mut parts = path.splitn(3, '/');
    let owner = parts.next()?;
    let name = parts.next()?;
    Some(of_view(host, parts.next(), kinds).and_then(|view| at(host, owner, name, view)))
}

/// Parses `GROUP/…/REPO[/-/tree/REF/PATH]`.
fn of_gitlab(host: &str, path: &str) -> Option<Parsed<GitPlace>> {
    let (names, view) = path.split_once("/-/").map_or((path, None), |(names, view)| (names, Some(view)));
    let (owner, name) = names.rsplit_once('/')?;
    Some(of_view(host, view, &["tree", "blob"]).and_then(|view| at(host, owner, name, view)))
}

/// The views of Gitea and Forgejo.
const GITEA_KINDS: [&str; 3] = ["src/branch", "src/tag", "src/commit"];

fn is_azure(host: &str) -> bool {
    let host = host.rsplit('@').next().unwrap_or(host);
    host == "dev.azure.com" || host.ends_with(".visualstudio.com")
}

/// Parses `ORGANISATION/PROJECT/_git/REPO[?path=/PATH&version=GBREF]` of Azure DevOps. The page for cloning shows the organisation as
/// the user, which git doesn't need.
fn of_azure(host: &str, path: &str, rest: &str) -> Parsed<GitPlace> {
    let host = match host.rsplit_once('@') {
        Some((user, host)) if is_azure(host) && !user.contains(':') => host,
        Some(_) => return Err(SECRET.into()),
        None => host,
    };
    check_host(host)?;
    let segments: Vec<_> = path.split('/').collect();
    let is_repository = segments.iter().position(|part| *part == "_git") == segments.len().checked_sub(2)
        && segments.iter().all(|part| !part.is_empty() && !part.starts_with(['-', '.']));
    if !is_repository {
        return no_directory(host);
    }
    let mut reference = None;
    let mut directory = String::new();
    let query = rest.split('#').next().and_then(|rest| rest.split_once('?')).map_or("", |(_, query)| query);
    for (key, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let Some(value) = decoded(value) else { return no_directory(host) };
        match key {
            "path" => {
                without_skill_file(value.trim_start_matches('/')).clone_into(&mut directory);
            }
            // The version of a branch, a tag or a commit.
            "version" => match value.split_at_checked(2) {
                Some(("GB" | "GT" | "GC", name)) => reference = Some(read_reference(name)?),
                _ => return no_directory(host),
            },
            _ => {}
        }
    }
    Ok(GitPlace {
        url: format!("https://{host}/{path}"),
        reference,
        path: read_path(&directory)?,
        skill: None,
        transport: Transport::Https,
    })
}

/// Parses a view of a page on `host`: one of `kinds`, a reference and a path, as in `tree/REF/PATH`. Without a view, the page is that
/// of the repository.
fn of_view(host: &str, view: Option<&str>, kinds: &[&str]) -> Parsed<View> {
    match view {
        None => Ok((None, String::new())),
        Some(view) => read_view(view, kinds).map_or_else(|| no_directory(host), Ok),
    }
}

/// Returns the reference and the directory of `KIND/REF/PATH`. The first segment after the kind is the reference, because a reference
/// with a `/` can't be distinguished from a path. Such a reference has to be written with `git+https`.
fn read_view(view: &str, kinds: &[&str]) -> Option<View> {
    let is_kind = |kind: &&&str| view.strip_prefix(**kind).is_some_and(|rest| rest.starts_with('/'));
    let kind = kinds.iter().find(is_kind)?;
    let rest = &view[kind.len() + 1..];
    let (reference, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = decoded(path)?;
    let path = match *kind {
        "blob" => path.rsplit_once('/').map_or("", |(dir, _)| dir),
        "tree" => &path,
        _ => without_skill_file(&path),
    };
    Some((Some(decoded(reference)?), path.to_owned()))
}

/// Returns the directory of a path whose last name is that of a skill's file. Some services show files and directories alike.
fn without_skill_file(path: &str) -> &str {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    if SKILL_FILE_NAMES.contains(&name) { directory } else { path }
}

fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}
