//! [`ServerPattern`]: the entries of `mcp.allow`.

use globset::GlobSet;

use super::addresses::{normal_url, url_globs};
use crate::reason::Reason;

/// An MCP server, by the way to reach it. Its name plays no role, because users choose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server<'a> {
    /// A program with its arguments.
    Program(&'a str, &'a [String]),
    /// The URL of a server with HTTP.
    Url(&'a str),
}

/// A registry of packages. A name can belong to different packages in different registries.
#[derive(Debug)]
pub(super) struct Registry {
    prefix: &'static str,
    /// The programs that run a package by its name.
    runners: &'static [&'static str],
    /// The texts between a name and a version.
    separators: &'static [&'static str],
    is_version: fn(&str) -> bool,
}

static NPM: Registry =
    Registry { prefix: "npm:", runners: &["npx", "bunx"], separators: &["@"], is_version: is_npm_version };
static PYPI: Registry =
    Registry { prefix: "pypi:", runners: &["uvx"], separators: &["==", "@"], is_version: is_python_version };

/// An entry of `mcp.allow`.
#[derive(Debug, Clone)]
pub(super) enum ServerPattern {
    /// A package that one of the runners of a registry fetches and runs, such as `npm:@playwright/mcp`, in any version.
    Package(&'static Registry, String),
    /// The absolute path of a program and its arguments. If the second value is true, more arguments can follow.
    Program(Vec<String>, bool),
    /// A URL in which `*` stands for a part of a name.
    Url(GlobSet),
}

impl ServerPattern {
    /// Parses an entry.
    ///
    /// # Errors
    /// Returns the reason if the text is neither a URL, a program nor a package.
    pub(super) fn parse(text: &str) -> Result<Self, Reason> {
        if text.contains("://") {
            return url_globs(text).map(Self::Url);
        }
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        if words.first().is_some_and(|program| is_absolute(program)) {
            let takes_more = words.len() > 1 && words.last().is_some_and(|word| word == "*");
            words.truncate(words.len() - usize::from(takes_more));
            if words.iter().any(|word| word.contains('*')) {
                return Err(format!("`{text}`: `*` can only be the last argument").into());
            }
            return Ok(Self::Program(words, takes_more));
        }
        let unknown = || {
            Reason::from(format!(
                "`{text}` is not an MCP server: expected a package such as `npm:@playwright/mcp`, an absolute path with arguments, or a \
                 URL"
            ))
        };
        match &words[..] {
            [word] => {
                let registry = [&NPM, &PYPI].into_iter().find(|registry| word.starts_with(registry.prefix));
                // Only npm has scopes.
                let registry = registry.or_else(|| word.starts_with('@').then_some(&NPM));
                let package =
                    registry.map(|registry| (registry, word.strip_prefix(registry.prefix).unwrap_or(word)));
                match package {
                    Some((registry, package)) if is_package(package) => {
                        Ok(Self::Package(registry, package.to_owned()))
                    }
                    None if is_package(word) => {
                        Err(format!("`{word}` can be two packages: write `npm:{word}` or `pypi:{word}`")
                            .into())
                    }
                    _ => Err(unknown()),
                }
            }
            _ => Err(unknown()),
        }
    }

    /// Returns true if the entry matches a server.
    pub(super) fn matches(&self, server: &Server<'_>) -> bool {
        match (self, server) {
            (Self::Url(globs), Server::Url(url)) => normal_url(url).is_some_and(|url| globs.is_match(url)),
            (Self::Program(words, takes_more), Server::Program(program, args)) => {
                let given = args.iter().map(String::as_str);
                let given: Vec<&str> = std::iter::once(*program).chain(given).collect();
                let wanted: Vec<&str> = words.iter().map(String::as_str).collect();
                given == wanted || *takes_more && given.starts_with(&wanted)
            }
            (Self::Package(registry, package), Server::Program(program, args)) => {
                let mut args = args.iter().filter(|arg| !matches!(arg.as_str(), "-y" | "--yes"));
                let is_allowed = |arg: &String| match version_of(arg, package, registry.separators) {
                    Some(version) => version.is_empty() || (registry.is_version)(version),
                    None => false,
                };
                registry.runners.contains(program) && args.next().is_some_and(is_allowed)
            }
            _ => false,
        }
    }
}

fn is_absolute(program: &str) -> bool {
    program.starts_with('/') || program.as_bytes().get(1) == Some(&b':')
}

/// Returns true if `text` can be the name of a package, with a scope if there is one.
fn is_package(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    match text.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|(scope, name)| is_name(scope) && is_name(name)),
        None => is_name(text),
    }
}

/// Returns true if `name` matches an entry of `mcp.env`. Many variables can change which code a program runs, so others are refused.
pub(super) fn is_variable_allowed(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start) && is_variable(name),
        None => name == pattern,
    })
}

/// Checks an entry of `mcp.env`: the name of a variable, or the start of names with `*` at its end.
///
/// # Errors
/// Returns the reason if it is neither.
pub(super) fn check_variable(pattern: &str) -> Result<(), Reason> {
    if is_variable(pattern.strip_suffix('*').unwrap_or(pattern)) {
        return Ok(());
    }
    Err(format!("`{pattern}` is not the name of a variable, or the start of names followed by `*`").into())
}

/// A name with `=` would set another variable, because the system gets `NAME=VALUE` as one text.
fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the version in an argument that names the package. It is empty if there is none. With another separator, the argument can name a
/// directory.
fn version_of<'a>(arg: &'a str, package: &str, separators: &[&str]) -> Option<&'a str> {
    let rest = arg.strip_prefix(package)?;
    let version = separators.iter().find_map(|separator| rest.strip_prefix(separator));
    if rest.is_empty() { Some("") } else { version.filter(|version| !version.is_empty()) }
}

/// Returns true if `npx` and `bunx` look for the version in the registry. It must not be a URL, a path, a file or another package, as in
/// `name@npm:other`, `name@.` and `name@other.tgz`.
fn is_npm_version(version: &str) -> bool {
    let lower = version.to_ascii_lowercase();
    let is_file = [".tgz", ".tar", ".gz", ".whl", ".zip"].iter().any(|suffix| lower.ends_with(suffix));
    version.starts_with(|c: char| c.is_ascii_alphanumeric() || "^~".contains(c))
        && version.chars().all(|c| c.is_ascii_alphanumeric() || ".^~+-".contains(c))
        && !is_file
}

/// Returns true if `uvx` looks for the version in the index: `latest`, or a number in the normal form of
/// [PEP 440](https://peps.python.org/pep-0440/#public-version-identifiers) without an epoch. `uvx` runs anything else from a directory.
fn is_python_version(version: &str) -> bool {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    let mut rest = version;
    loop {
        match digits(rest) {
            0 => return version == "latest",
            count => rest = &rest[count..],
        }
        match rest.strip_prefix('.').filter(|after| digits(after) > 0) {
            Some(after) => rest = after,
            None => break,
        }
    }
    for part in ["a", "b", "rc", ".post", ".dev"] {
        if let Some(after) = rest.strip_prefix(part).filter(|after| digits(after) > 0) {
            rest = &after[digits(after)..];
        }
    }
    rest.is_empty()
}
