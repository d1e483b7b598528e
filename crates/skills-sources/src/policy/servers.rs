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

/// Programs that run a package by its name.
const RUNNERS: [&str; 3] = ["npx", "bunx", "uvx"];

/// An entry of `mcp.allow`.
#[derive(Debug, Clone)]
pub(super) enum ServerPattern {
    /// A package that one of the runners fetches and runs, such as `@playwright/mcp`, in any version.
    Package(String),
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
        match &words[..] {
            [package] if is_package(package) => Ok(Self::Package(package.clone())),
            _ => Err(format!(
                "`{text}` is not an MCP server: write a package such as `@playwright/mcp`, the absolute path of a program with its \
                 arguments, or a URL"
            )
            .into()),
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
            (Self::Package(package), Server::Program(program, args)) => {
                let mut args = args.iter().filter(|arg| !matches!(arg.as_str(), "-y" | "--yes"));
                RUNNERS.contains(program) && args.next().is_some_and(|arg| is_version_of(arg, package))
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

/// Returns true if an environment variable can change which code the runners, interpreters and the dynamic linker load.
pub(super) fn selects_code(variable: &str) -> bool {
    const PREFIXES: &str =
        "BASH_FUNC_ BUN_ CORECLR_ DYLD_ GEM_ LD_ LUA_ NPM_CONFIG_ PERL5 PHP_INI_ PYTHON RUBY UV_ XDG_";
    const NAMES: &str = "APPDATA BASH_ENV CLASSPATH DOTNET_ADDITIONAL_DEPS DOTNET_ROOT DOTNET_STARTUP_HOOKS ENV GCONV_PATH \
                         GLIBC_TUNABLES HOME JAVA_OPTS JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS LOCALAPPDATA NODE_OPTIONS NODE_PATH \
                         OPENSSL_CONF PATH PHPRC PREFIX SHELLOPTS TEMP TMP TMPDIR USERPROFILE VIRTUAL_ENV _JAVA_OPTIONS";
    let name = variable.to_ascii_uppercase();
    NAMES.split(' ').any(|known| known == name) || PREFIXES.split(' ').any(|prefix| name.starts_with(prefix))
}

/// Returns true if an argument names the package, possibly with a version. A version must not be a URL, a path, a file or another package,
/// as in `name@npm:other`, `name@.` and `name@other.tgz`.
fn is_version_of(arg: &str, package: &str) -> bool {
    let Some(rest) = arg.strip_prefix(package) else { return false };
    let Some(version) = rest.strip_prefix("==").or_else(|| rest.strip_prefix('@')) else {
        return rest.is_empty();
    };
    let lower = version.to_ascii_lowercase();
    let is_file = [".tgz", ".tar", ".gz", ".whl", ".zip"].iter().any(|suffix| lower.ends_with(suffix));
    version.starts_with(|c: char| c.is_ascii_alphanumeric() || "^~".contains(c))
        && version.chars().all(|c| c.is_ascii_alphanumeric() || ".^~+-".contains(c))
        && !is_file
}
