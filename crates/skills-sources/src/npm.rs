//! Finds a version of an npm package in its registry.
//!
//! The [list of versions](https://github.com/npm/registry/blob/main/docs/responses/package-metadata.md) has the URL and the checksum of
//! each version. A version is approved by the SHA-256 of its `dist.integrity`, which is in the list as well, so that an approved version
//! can be found again. The package itself is compared with the integrity after the download. No script of a package is run.
//!
//! | file | responsible for |
//! |---|---|
//! | `settings` | the user's settings: registries and their tokens |

mod settings;

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;
use skills_core::{
    fetch,
    json::{self, MAX_VALUES, has_more_values_than},
    skill::Sha256,
    text::shown,
};

use self::settings::Registry;
pub(super) use self::settings::Settings;
use super::{
    access::{Access, Server, Validator, origin, read_to},
    address::{GitPlace, NPM, NPM_REGISTRY},
    git::{GitError, mebibytes},
    versions::{LATEST, Range, version},
};

/// The short form of the list of versions, which is the same for all users and has no texts.
const ACCEPT: &str = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8";
/// The maximum size of the list of versions, in bytes.
const MAX_LIST_BYTES: u64 = 16 * 1024 * 1024;
/// The maximum number of values in the list of versions. Each needs up to 300 bytes of memory, and a package with thousands of versions
/// has about thirty for each.
const MAX_LIST_VALUES: usize = 2 * MAX_VALUES;

/// The maximum length of the number of a version, in bytes.
const MAX_NUMBER_BYTES: usize = 256;

/// A version of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) number: String,
    /// The SHA-256 of `integrity`, which stands for the version like the hash of a commit.
    pub(super) commit: String,
    /// The SHA-512 of the package, as `sha512-BASE64`.
    integrity: String,
    /// The URL of the package.
    pub(super) url: String,
}

/// A package in its registry.
pub(super) struct Package<'a> {
    name: &'a str,
    /// The range, the tag or the number of the version.
    reference: &'a str,
    /// The URL of the registry, without a `/` at its end.
    pub(super) registry: String,
    /// True if settings of the project have chosen the registry.
    is_of_project: bool,
    /// True if a setting of the user names the registry.
    is_named: bool,
    pub(super) server: Server,
}

impl<'a> Package<'a> {
    /// Returns the package of a place in the registry of the user's settings.
    pub(super) fn new(place: &'a GitPlace, access: &Access) -> Result<Self, GitError> {
        let name = place.url.strip_prefix(NPM).unwrap_or(&place.url);
        let settings = Settings::read(access.directory.as_deref())?;
        let Registry { url: registry, is_of_project, is_named } = settings.registry(name)?;
        if !fetch::is_allowed(&registry) || registry.contains('@') {
            let why = format!("the registry of `{}` is not an https URL without a password", shown(name));
            return Err(GitError::Package(why));
        }
        if is_of_project && !access.headers.is_empty() {
            // They can be secrets that are meant for the user's registry.
            let why = format!(
                "cannot send `headers` to `{}`, which settings of the project name; add this registry to your own `.npmrc`",
                shown(&origin(&registry))
            );
            return Err(GitError::Package(why));
        }
        if !is_named && !access.headers.is_empty() {
            let why = format!(
                "cannot send `headers` to `{}`, because no setting of npm names the registry of `{}`; name it in your `.npmrc`",
                shown(&origin(&registry)),
                shown(name)
            );
            return Err(GitError::Package(why));
        }
        let mut headers = access.headers.clone();
        if headers.is_empty() {
            headers.extend(settings.authorization(&registry));
        }
        let server = Server::new(&registry, headers).trusting(settings.trust()?);
        Ok(Self {
            name,
            reference: place.reference.as_deref().unwrap_or(LATEST),
            registry,
            is_of_project,
            is_named,
            server,
        })
    }

    /// Returns the registry for the lock file, see [`PinnedGit::registry`](super::lockfile::PinnedGit::registry).
    pub(super) fn recorded(&self) -> String {
        let origin = origin(&self.registry);
        if origin == self.registry {
            return origin;
        }
        format!("{origin}#{}", &Sha256::of(self.registry.as_bytes()).to_string()[..32])
    }

    /// Returns true if new versions of a package that was approved from `recorded` may come from this registry: from the same one, or from
    /// one that the user has chosen instead of the public one, such as a mirror.
    pub(super) fn may_follow(&self, recorded: &str) -> bool {
        let is_chosen = self.is_named && !self.is_of_project;
        recorded == self.recorded() || recorded == NPM_REGISTRY && is_chosen
    }

    /// Returns a note for the user about the registry, because the name of the package doesn't show it.
    pub(super) fn note(&self) -> String {
        let registry = origin(&self.registry);
        let registry = shown(&registry);
        if self.is_of_project {
            format!("settings of the project, such as its `.npmrc`, name the registry `{registry}`")
        } else {
            format!("the package comes from the registry `{registry}`")
        }
    }

    /// Returns the URL of the list of versions.
    pub(super) fn url(&self) -> String {
        format!("{}/{}", self.registry, self.name.replace('/', "%2f"))
    }

    /// Finds the version with `commit`, or the current version of the place. Returns `None` if the list is the same as `known`.
    pub(super) fn find(
        &self,
        commit: Option<&str>,
        known: Option<&Validator>,
        timeout: Duration,
    ) -> Result<Option<(Version, Option<Validator>)>, GitError> {
        let Some(answer) = self.server.get(&self.url(), ACCEPT, known, timeout)? else { return Ok(None) };
        let validator = Validator::of(&answer);
        let failed = |why: String| GitError::Package(format!("package `{}`: {why}", shown(self.name)));
        let mut text = Vec::new();
        let length = read_to(answer, &mut text, MAX_LIST_BYTES);
        if length.map_err(|error| failed(error.to_string()))? > MAX_LIST_BYTES {
            return Err(failed(format!("the list of versions is larger than {}", mebibytes(MAX_LIST_BYTES))));
        }
        if has_more_values_than(&text, MAX_LIST_VALUES) {
            return Err(failed(format!("the list of versions has more than {MAX_LIST_VALUES} values")));
        }
        let _guard = json::parsing_lock(&text);
        let list: Value = serde_json::from_slice(&text)
            .map_err(|_| failed("the registry did not answer with a list of versions".to_owned()))?;
        let number = match commit {
            Some(commit) => of_commit(&list, commit).ok_or(GitError::OtherArchive)?,
            None => current(&list, self.reference)
                .ok_or_else(|| failed(format!("no version is `{}`", shown(self.reference))))?,
        };
        // The number is displayed, and becomes the tag in the lock file.
        if number.len() > MAX_NUMBER_BYTES || version(&number).is_none() {
            let short: String = number.chars().take(100).collect();
            return Err(failed(format!("`{}` is not the number of a version", shown(&short))));
        }
        let dist = &list["versions"][number.as_str()]["dist"];
        let integrity = integrity(dist).ok_or_else(|| {
            failed(format!("the registry has no SHA-512 checksum for version {}", shown(&number)))
        })?;
        let url = tarball(dist, &self.url())
            .ok_or_else(|| failed(format!("the URL of version {} is not allowed", shown(&number))))?;
        let commit = Sha256::of(integrity.as_bytes()).to_string();
        Ok(Some((Version { number, commit, integrity: integrity.to_owned(), url }, validator)))
    }
}

impl Version {
    /// Compares the content of a package with its checksum.
    pub(super) fn check(&self, content: &mut dyn std::io::Read) -> Result<(), GitError> {
        let failed = |error: std::io::Error| GitError::Package(error.to_string());
        let mut context = ring::digest::Context::new(&ring::digest::SHA512);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match content.read(&mut buffer).map_err(failed)? {
                0 => break,
                length => context.update(&buffer[..length]),
            }
        }
        let actual = format!("sha512-{}", BASE64_STANDARD.encode(context.finish()));
        if actual == self.integrity {
            return Ok(());
        }
        Err(GitError::Checksum { expected: self.integrity.clone(), actual })
    }
}

/// Returns the URL of a version in the list at `base`. Like the target of a redirect, it must not lead from the network to this machine.
fn tarball(dist: &Value, base: &str) -> Option<String> {
    fetch::resolve(base, dist["tarball"].as_str().filter(|url| !url.is_empty())?)
}

/// Returns the SHA-512 of a version. Other algorithms are not strong enough, or are not used by registries.
fn integrity(dist: &Value) -> Option<&str> {
    let all = dist["integrity"].as_str()?.split_ascii_whitespace();
    all.map(|integrity| integrity.split('?').next().unwrap_or(integrity))
        .find(|integrity| integrity.starts_with("sha512-"))
}

fn of_commit(list: &Value, commit: &str) -> Option<String> {
    let mut versions = list["versions"].as_object()?.iter();
    let is_it = |version: &Value| {
        integrity(&version["dist"]).is_some_and(|text| Sha256::of(text.as_bytes()).to_string() == commit)
    };
    versions.find(|(_, version)| is_it(version)).map(|(number, _)| number.clone())
}

/// Returns the current version for a reference: a tag such as `latest`, the number of a version, or a range.
fn current(list: &Value, reference: &str) -> Option<String> {
    if let Some(number) = list["dist-tags"][reference].as_str() {
        return Some(number.to_owned());
    }
    let versions = list["versions"].as_object()?;
    let Some(range) = Range::parse(reference) else {
        let number = reference.strip_prefix('v').unwrap_or(reference);
        return versions.contains_key(number).then(|| number.to_owned());
    };
    let range = range.ok()?;
    // Like npm, prefer versions that the author has not marked as deprecated.
    let is_good = |version: &Value| version["deprecated"].as_str().is_none_or(str::is_empty);
    let good = versions.iter().filter(|(_, version)| is_good(version));
    let highest = range.highest(good.map(|(number, _)| number.as_str()));
    let highest = highest.or_else(|| range.highest(versions.keys().map(String::as_str)));
    highest.map(|(number, _)| number.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_package_stays_in_its_registry_or_moves_to_one_of_the_user() {
        const PRIVATE: &str = "https://npm.example";
        for (recorded, registry, is_of_project, is_named, expected) in [
            (PRIVATE, PRIVATE, false, true, true),
            (PRIVATE, PRIVATE, true, false, true),
            (PRIVATE, NPM_REGISTRY, false, false, false),
            (PRIVATE, NPM_REGISTRY, false, true, false),
            (PRIVATE, "https://npm.example/team", false, true, false),
            (NPM_REGISTRY, NPM_REGISTRY, false, false, true),
            (NPM_REGISTRY, PRIVATE, false, true, true),
            (NPM_REGISTRY, PRIVATE, true, true, false),
            (NPM_REGISTRY, PRIVATE, true, false, false),
        ] {
            let server = Server::new(registry, Vec::new());
            let registry = registry.to_owned();
            let package = Package { name: "x", reference: LATEST, registry, is_of_project, is_named, server };
            assert_eq!(package.may_follow(recorded), expected, "{recorded} {}", package.registry);
        }
    }

    #[test]
    fn a_version_is_found_by_range_tag_and_number() {
        let version =
            |n: u32| json!({ "dist": { "integrity": format!("sha1-x sha512-{n}?opt"), "tarball": "u" } });
        let mut list = json!({
            "dist-tags": { "latest": "1.2.0", "next": "2.0.0-rc.1" },
            "versions": { "1.0.0": version(1), "1.2.0": version(2), "1.3.0": version(3), "2.0.0-rc.1": version(4) },
        });
        list["versions"]["1.3.0"]["deprecated"] = json!("broken");
        for (reference, expected) in [
            ("latest", Some("1.2.0")),
            ("next", Some("2.0.0-rc.1")),
            ("^1", Some("1.2.0")),
            ("^1.3", Some("1.3.0")),
            ("~1.0", Some("1.0.0")),
            ("1.0.0", Some("1.0.0")),
            ("v1.0.0", Some("1.0.0")),
            ("^2", None),
            ("beta", None),
        ] {
            assert_eq!(current(&list, reference).as_deref(), expected, "{reference}");
        }
        let commit = Sha256::of(b"sha512-3").to_string();
        assert_eq!(of_commit(&list, &commit).as_deref(), Some("1.3.0"));
        assert_eq!(of_commit(&list, &"0".repeat(64)), None);
        assert_eq!(integrity(&json!({ "integrity": "sha1-abc", "shasum": "abc" })), None);
    }
    /// A registry on the network must not make us send requests to services on this machine.
    #[test]
    fn a_registry_cannot_name_this_machine() {
        for (base, url, expected) in [
            (
                "https://npm.example/a",
                json!("https://files.example/a.tgz"),
                Some("https://files.example/a.tgz"),
            ),
            ("https://npm.example/@b%2fa", json!("/-/a.tgz"), Some("https://npm.example/-/a.tgz")),
            ("https://npm.example/a", json!("http://127.0.0.1:1/a.tgz"), None),
            ("https://npm.example/a", json!("https://localhost/a.tgz"), None),
            ("https://npm.example/a", json!("https://127.1/a.tgz"), None),
            ("https://npm.example/a", json!("http://files.example/a.tgz"), None),
            ("https://npm.example/a", json!(""), None),
            ("https://npm.example/a", json!(1), None),
            ("http://127.0.0.1:1/a", json!("http://127.0.0.1:2/a.tgz"), Some("http://127.0.0.1:2/a.tgz")),
        ] {
            assert_eq!(tarball(&json!({ "tarball": url }), base).as_deref(), expected, "{base} {url}");
        }
    }
}
