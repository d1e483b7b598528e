//! The user's settings for npm: `registry`, `@SCOPE:registry`, the credentials of registries, `ca` and `cafile`, from `NPM_CONFIG_…`, from the user's
//! [`.npmrc`](https://docs.npmjs.com/cli/configuring-npm/npmrc), and from the `.npmrc` beside the configuration file.
//!
//! The file beside the configuration file can be that of a project, which is not trusted with secrets: it can only name registries, and
//! `${NAME}` is not replaced in it. Credentials are only used for the registry that they are for.

use std::{
    collections::HashMap,
    env, io,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use skills_core::fetch::Authorities;

use crate::{
    access::{Trust, basic},
    address::NPM_REGISTRY,
    disk::{bounded, error_text, expand_home, home::in_home},
    git::GitError,
};

/// The start of the environment variables with settings, in lower case.
const PREFIX: &str = "npm_config_";
/// The environment variable with which Node.js trusts more root certificates.
const EXTRA: &str = "NODE_EXTRA_CA_CERTS";
/// The maximum size of a file, in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// The user's settings, by key.
#[derive(Default)]
pub(crate) struct Settings(HashMap<String, Setting>);

#[derive(Default, PartialEq)]
struct Setting {
    /// `None` if the value contains a variable that is not set.
    value: Option<String>,
    /// The value without the file of a project.
    of_user: Option<String>,
}

/// The registry of a package.
#[derive(Debug, PartialEq)]
pub(crate) struct Registry {
    /// The URL, without a `/` at its end.
    pub(crate) url: String,
    /// True if the file beside the configuration file has chosen it.
    pub(crate) is_of_project: bool,
}

impl Setting {
    fn of_user(value: Option<String>) -> Self {
        Self { of_user: value.clone(), value }
    }
}

impl Settings {
    /// Reads the settings. `directory` is that of the configuration file.
    pub(crate) fn read(directory: Option<&Path>) -> Self {
        let mut settings = Self::default();
        let variables = env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let variables: Vec<_> = variables.filter_map(|(name, value)| Some((key_of(&name)?, value))).collect();
        let named =
            variables.iter().find(|(key, _)| key == "userconfig").map(|(_, path)| PathBuf::from(path));
        let user = named.or_else(|| in_home(".npmrc"));
        if let Some(user) = &user {
            settings.add_file(user, true);
        }
        let project = directory.map(|directory| directory.join(".npmrc"));
        // The user's file can also be beside the configuration file.
        if let Some(project) = project.filter(|project| user.as_ref() != Some(project)) {
            settings.add_file(&project, false);
        }
        for (key, value) in variables {
            settings.0.insert(key, Setting::of_user(Some(value)));
        }
        settings
    }

    fn add_file(&mut self, path: &Path, is_trusted: bool) {
        match bounded::read_text(path, MAX_BYTES) {
            Ok(text) => self.add(&text, is_trusted),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!("cannot read {}: {}", path.display(), error_text(&error)),
        }
    }

    fn add(&mut self, text: &str, is_trusted: bool) {
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with([';', '#'])) {
            let Some((key, value)) = line.split_once('=') else { continue };
            let (key, value) = (key.trim(), unquoted(value.trim()));
            if is_trusted {
                let expanded = expanded(key).zip(expanded(value));
                let (key, value) = expanded.map_or((key.to_owned(), None), |(key, value)| (key, Some(value)));
                match key.strip_suffix("[]") {
                    // Each line adds to the list. Only certificates are read as a list.
                    Some(list) => {
                        let setting = self.0.entry(list.to_owned()).or_insert_with(|| Setting::of_user(None));
                        let all = setting.value.get_or_insert_default();
                        all.extend(["\n", value.as_deref().unwrap_or_default()]);
                    }
                    None => drop(self.0.insert(key, Setting::of_user(value))),
                }
            } else if is_registry(key) && !value.contains("${") {
                let value = Some(value.to_owned());
                self.0.entry(key.to_owned()).or_default().value = value;
            }
        }
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.value.as_deref().filter(|value| !value.is_empty())
    }

    /// Returns the registry of a package.
    pub(crate) fn registry(&self, package: &str) -> Registry {
        let scope = package.split_once('/').map(|(scope, _)| format!("{scope}:registry"));
        let find = |value: fn(&Setting) -> Option<&str>| {
            let get = |key: &str| value(self.0.get(key)?).filter(|value| !value.is_empty());
            let url = scope.as_deref().and_then(get).or_else(|| get("registry")).unwrap_or(NPM_REGISTRY);
            url.trim_end_matches('/').to_owned()
        };
        let url = find(|setting| setting.value.as_deref());
        let is_of_project = url != find(|setting| setting.of_user.as_deref());
        Registry { url, is_of_project }
    }

    /// Returns the root certificates: `cafile` or `ca`, and those of `NODE_EXTRA_CA_CERTS`, which are ignored if there are others.
    ///
    /// # Errors
    /// Returns an error if a file can't be read, or if a setting contains no certificate.
    pub(crate) fn trust(&self) -> Result<Trust, GitError> {
        let read = |path: &Path, setting| {
            Authorities::read(path, setting).map_err(|error| GitError::Package(error.to_string()))
        };
        let get = |key| self.get(key).filter(|value| *value != "null");
        if let Some(path) = get("cafile") {
            return Ok(Trust { only: Some(read(&expand_home(Path::new(path)), "cafile")?), more: None });
        }
        if let Some(text) = get("ca") {
            let only = Authorities::parse(text.replace("\\n", "\n").as_bytes());
            let none = || GitError::Package("`ca` in the settings of npm contains no certificate".to_owned());
            return Ok(Trust { only: Some(only.ok_or_else(none)?), more: None });
        }
        let extra = env::var_os(EXTRA).filter(|path| !path.is_empty());
        let more = extra.map(|path| read(Path::new(&path), EXTRA)).transpose()?;
        Ok(Trust { only: None, more })
    }

    /// Returns the header with the credentials for a registry. A setting for a URL is also for all URLs below it.
    pub(crate) fn authorization(&self, registry: &str) -> Option<(String, String)> {
        let mut place = registry.split_once(':')?.1;
        // A request for `/team/../x` is one for `/x`, which the settings for `/team` are not for.
        let is_above = |part: &str| part.to_ascii_lowercase().replace("%2e", ".") == "..";
        if place.split(['/', '\\']).any(is_above) {
            return None;
        }
        loop {
            let get = |name: &str| self.get(&format!("{place}/:{name}"));
            let header = |value: String| ("authorization".to_owned(), value);
            if let Some(token) = get("_authToken") {
                return Some(header(format!("Bearer {token}")));
            }
            if let Some(encoded) = get("_auth") {
                return Some(header(format!("Basic {encoded}")));
            }
            if let Some((user, password)) = get("username").zip(get("_password")) {
                let password = BASE64_STANDARD.decode(password).ok()?;
                return Some(basic(&(user.to_owned(), String::from_utf8(password).ok()?)));
            }
            place = place.rsplit_once('/').map(|(above, _)| above).filter(|above| above.len() > 2)?;
        }
    }
}

/// Returns true if a key names a registry.
fn is_registry(key: &str) -> bool {
    key == "registry" || key.starts_with('@') && key.ends_with(":registry")
}

/// Returns the key of an environment variable. Names of settings can be in capital letters, but scopes and hosts keep their case.
fn key_of(name: &str) -> Option<String> {
    let (prefix, key) = name.split_at_checked(PREFIX.len())?;
    if !prefix.eq_ignore_ascii_case(PREFIX) {
        return None;
    }
    Some(if key.starts_with(['@', '/']) { key.to_owned() } else { key.to_ascii_lowercase() })
}

fn unquoted(value: &str) -> &str {
    let inner = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

/// Replaces each `${NAME}` with the value of the environment variable. Returns `None` if a variable is not set.
fn expanded(text: &str) -> Option<String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}')?;
        let (name, is_optional) = name.strip_suffix('?').map_or((name, false), |name| (name, true));
        expanded.push_str(before);
        match env::var(name) {
            Ok(value) => expanded.push_str(&value),
            Err(_) if is_optional => {}
            Err(_) => return None,
        }
        rest = after;
    }
    expanded.push_str(rest);
    Some(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_and_credentials_are_found() {
        let mut settings = Settings::default();
        settings.add(
            "; comment\nregistry=https://npm.example/all/\n@acme:registry = \"https://npm.example/team/acme/\"\n\
             //npm.example/team/:_authToken=t1\n//other.example/:username=ann\n//other.example/:_password=cHc=\n\
             //basic.example:8080/:_auth=YTpi\n//unset.example/:_authToken=${ACP_SKILLS_NO_SUCH_VARIABLE}\n",
            true,
        );
        for (package, expected) in
            [("left", "https://npm.example/all"), ("@acme/skills", "https://npm.example/team/acme")]
        {
            assert_eq!(settings.registry(package).url, expected);
        }
        for (registry, expected) in [
            ("https://npm.example/team/acme", Some("Bearer t1")),
            ("https://npm.example/team", Some("Bearer t1")),
            ("https://npm.example/all", None),
            ("https://npm.example/team/../all", None),
            ("https://npm.example/team/.%2E/all", None),
            ("https://npm.example", None),
            ("https://npm.example/teams", None),
            ("https://other.example", Some("Basic YW5uOnB3")),
            ("https://basic.example:8080/x", Some("Basic YTpi")),
            ("https://basic.example/x", None),
            ("https://unset.example", None),
            ("https://evil-npm.example/team", None),
        ] {
            let found = settings.authorization(registry);
            assert_eq!(found.as_ref().map(|(_, value)| value.as_str()), expected, "{registry}");
        }
        assert_eq!(Settings::default().registry("x").url, NPM_REGISTRY);
    }

    /// The file of a project must not use the user's secrets.
    #[test]
    fn a_project_can_only_name_registries() {
        let mut settings = Settings::default();
        settings.add("//npm.example/:_authToken=mine\n", true);
        settings.add(
            "@acme:registry=https://npm.example\n@b:registry=https://evil.example/${HOME}\n\
             //evil.example/:_authToken=${HOME}\n//npm.example/:_authToken=theirs\nuserconfig=/x\n",
            false,
        );
        let of_project = |url: &str| Registry { url: url.to_owned(), is_of_project: true };
        assert_eq!(settings.registry("@acme/x"), of_project("https://npm.example"));
        let public = Registry { url: NPM_REGISTRY.to_owned(), is_of_project: false };
        assert_eq!(settings.registry("@b/x"), public);
        settings.add("@b:registry=https://b.example/\n", true);
        for (theirs, is_of_project) in [("https://b.example/", false), ("https://evil.example", true)] {
            settings.add(&format!("@b:registry={theirs}\n"), false);
            assert_eq!(settings.registry("@b/x").is_of_project, is_of_project, "{theirs}");
        }
        // The public registry is a choice as well, if the user's packages are in another one.
        settings.add(&format!("@b:registry={NPM_REGISTRY}/\n"), false);
        let chosen = Registry { url: NPM_REGISTRY.to_owned(), is_of_project: true };
        assert_eq!(settings.registry("@b/x"), chosen);
        let token = settings.authorization("https://npm.example").unwrap().1;
        assert_eq!(token, "Bearer mine");
        assert_eq!(settings.authorization("https://evil.example"), None);
    }

    #[test]
    fn certificates_are_text_lists_or_files() {
        const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\\nMAA=\\n-----END CERTIFICATE-----";
        for (text, is_trusted, expected) in [
            ("ca=null\ncafile=null", true, "usual"),
            (&format!("ca=\"{CERTIFICATE}\""), true, "own"),
            (&format!("ca[]=\"{CERTIFICATE}\"\nca[]={CERTIFICATE}"), true, "own"),
            ("ca=x", true, "`ca` in the settings of npm contains no certificate"),
            (
                "cafile=/missing.pem",
                true,
                "cannot use the certificates in /missing.pem, which `cafile` names",
            ),
            ("cafile=/missing.pem", false, "usual"),
            (&format!("ca={CERTIFICATE}"), false, "usual"),
        ] {
            let mut settings = Settings::default();
            settings.add(text, is_trusted);
            let found = settings.trust();
            let found = match &found {
                Ok(Trust { only: Some(_), more: None }) => "own".to_owned(),
                Ok(_) => "usual".to_owned(),
                Err(error) => error.to_string(),
            };
            assert!(found.contains(expected), "{text}: {found}");
        }
    }

    #[test]
    fn variables_have_any_case() {
        for (name, expected) in [
            ("NPM_CONFIG_REGISTRY", Some("registry")),
            ("npm_config_registry", Some("registry")),
            ("npm_config_@acme:registry", Some("@acme:registry")),
            ("npm_config_//npm.example/:_authToken", Some("//npm.example/:_authToken")),
            ("NPM_CONFIG", None),
            ("PATH", None),
        ] {
            assert_eq!(key_of(name).as_deref(), expected, "{name}");
        }
    }
}
