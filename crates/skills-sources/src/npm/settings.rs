//! The user's settings for npm: `registry`, `@SCOPE:registry`, the credentials of registries, `ca` and `cafile`, from `NPM_CONFIG_…`, from the user's
//! [`.npmrc`](https://docs.npmjs.com/cli/configuring-npm/npmrc), from the `npmrc` of this machine, and from the `.npmrc` beside the
//! configuration file.
//!
//! A setting that can't be read is an error. Otherwise, a package of a private registry would be taken from the public one, where anyone
//! can publish a package with this name.
//!
//! The file beside the configuration file can be that of a project, which is not trusted with secrets: it can only name registries, and
//! `${NAME}` is not replaced in it. Credentials are only used for the registry that they are for.

use std::{
    collections::HashMap,
    env, io,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use skills_core::{exec::find_program, fetch::Authorities};

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

#[derive(Debug, Clone, PartialEq)]
enum SettingValue {
    Text(String),
    /// The value contains an environment variable that is not set, or that is not replaced in the file of a project.
    Unknown,
}

struct Setting {
    value: SettingValue,
    /// The value without the file of a project, if there is one.
    of_user: Option<SettingValue>,
}

/// The registry of a package.
#[derive(Debug, PartialEq)]
pub(crate) struct Registry {
    /// The URL, without a `/` at its end.
    pub(crate) url: String,
    /// True if settings of the project have chosen it.
    pub(crate) is_of_project: bool,
    /// True if a setting of the user names a registry for the package.
    pub(crate) is_named: bool,
}

impl SettingValue {
    fn of(text: Option<String>) -> Self {
        text.map_or(Self::Unknown, Self::Text)
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Unknown => None,
        }
    }
}

impl Setting {
    fn of_user(value: SettingValue) -> Self {
        Self { of_user: Some(value.clone()), value }
    }
}

impl Settings {
    /// Reads the settings. `directory` is that of the configuration file.
    ///
    /// # Errors
    /// Returns an error if a file exists but can't be read.
    pub(crate) fn read(directory: Option<&Path>) -> Result<Self, GitError> {
        let variables = env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        // `npx` and `npm exec` set these variables, also from the `.npmrc` of the project in which they run. A user who starts the proxy
        // with them can set the same variables in capitals.
        let is_of_npm = env::var_os("npm_execpath").is_some() && !cfg!(windows);
        let (of_npm, variables): (Vec<_>, Vec<_>) =
            variables.partition(|(name, _)| is_of_npm && name.starts_with(PREFIX));
        let by_key = |variables: Vec<(String, String)>| -> HashMap<_, _> {
            let variables = variables.into_iter().filter_map(|(name, value)| Some((key_of(&name)?, value)));
            variables.filter(|(_, value)| !value.is_empty()).collect()
        };
        let (of_npm, variables) = (by_key(of_npm), by_key(variables));
        let user = match variables.get("userconfig") {
            Some(named) => {
                let unknown = || GitError::Package(format!("a variable in `{named}` is not set"));
                Some(expand_home(Path::new(&expanded(named).ok_or_else(unknown)?)))
            }
            None => in_home(".npmrc"),
        };
        let mut of_user = Self::default();
        if let Some(user) = &user {
            of_user.add_file(user, true)?;
        }
        let path = |key: &str| {
            let of_variable = variables.get(key).and_then(|path| expanded(path));
            let path = of_variable.or_else(|| of_user.get(key).map(str::to_owned))?;
            Some(expand_home(Path::new(&path)))
        };
        let mut settings = Self::default();
        if let Some(machine) = path("globalconfig").or_else(|| of_machine(path("prefix"))) {
            settings.add_file(&machine, true)?;
        }
        settings.0.extend(of_user.0);
        let project = directory.map(|directory| directory.join(".npmrc"));
        // The user's file can also be beside the configuration file.
        if let Some(project) = project.filter(|project| user.as_ref() != Some(project)) {
            settings.add_file(&project, false)?;
        }
        for (key, value) in of_npm.into_iter().filter(|(key, _)| is_registry(key)) {
            settings.set_by_project(&key, SettingValue::Text(value));
        }
        for (key, value) in variables {
            settings.0.insert(key, Setting::of_user(SettingValue::Text(value)));
        }
        Ok(settings)
    }

    fn add_file(&mut self, path: &Path, is_trusted: bool) -> Result<(), GitError> {
        match bounded::read(path, MAX_BYTES) {
            // npm also reads files that are not UTF-8.
            Ok(bytes) => self.add(String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}'), is_trusted),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => {
                let why = format!("cannot read {}: {}", path.display(), error_text(&error));
                return Err(GitError::Package(why));
            }
        }
        Ok(())
    }

    fn add(&mut self, text: &str, is_trusted: bool) {
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with([';', '#'])) {
            let Some((key, value)) = line.split_once('=') else { continue };
            let (key, value) = (unquoted(key.trim()), unquoted(value.trim()));
            if is_trusted {
                let key = expanded(key).unwrap_or_else(|| key.to_owned());
                let value = expanded(value);
                match key.strip_suffix("[]") {
                    // Each line adds to the list. Only certificates are read as a list.
                    Some(list) => {
                        let all = self.0.get(list).and_then(|setting| setting.value.text());
                        let all = format!("{}\n{}", all.unwrap_or_default(), value.unwrap_or_default());
                        self.0.insert(list.to_owned(), Setting::of_user(SettingValue::Text(all)));
                    }
                    None => drop(self.0.insert(key, Setting::of_user(SettingValue::of(value)))),
                }
            } else if is_registry(key) {
                let value = SettingValue::of(Some(value.to_owned()).filter(|value| !value.contains("${")));
                self.set_by_project(key, value);
            }
        }
    }

    fn set_by_project(&mut self, key: &str, value: SettingValue) {
        let of_user = self.0.get(key).and_then(|setting| setting.of_user.clone());
        self.0.insert(key.to_owned(), Setting { value, of_user });
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.value.text().filter(|value| !value.is_empty())
    }

    /// Returns the registry of a package.
    ///
    /// # Errors
    /// Returns an error if the setting that names it contains a variable that is not set.
    pub(crate) fn registry(&self, package: &str) -> Result<Registry, GitError> {
        let scope = package.split_once('/').map(|(scope, _)| format!("{scope}:registry"));
        let keys = || scope.as_deref().into_iter().chain(["registry"]);
        let find = |value: fn(&Setting) -> Option<&SettingValue>| {
            let values = keys().filter_map(|key| Some((key, value(self.0.get(key)?)?)));
            match values.into_iter().find(|(_, value)| value.text() != Some("")) {
                Some((key, value)) => value.text().ok_or_else(|| key.to_owned()),
                None => Ok(NPM_REGISTRY),
            }
        };
        let url = find(|setting| Some(&setting.value)).map_err(|key| unknown(&key))?;
        let url = url.trim_end_matches('/').to_owned();
        let of_user = find(|setting| setting.of_user.as_ref());
        let is_of_project =
            of_user.is_err() || of_user.is_ok_and(|of_user| of_user.trim_end_matches('/') != url);
        let of_user = |key: &str| self.0.get(key)?.of_user.as_ref()?.text();
        let is_named = keys().any(|key| of_user(key).is_some_and(|url| !url.is_empty()));
        Ok(Registry { url, is_of_project, is_named })
    }

    /// Returns the root certificates: `cafile` or `ca`, and those of `NODE_EXTRA_CA_CERTS`, which are ignored if there are others.
    ///
    /// # Errors
    /// Returns an error if a file can't be read, or if a setting contains no certificate, or a variable that is not set.
    pub(crate) fn trust(&self) -> Result<Trust, GitError> {
        let read = |path: &Path, setting| {
            Authorities::read(path, setting).map_err(|error| GitError::Package(error.to_string()))
        };
        let get = |key| {
            if self.0.get(key).is_some_and(|setting| setting.value == SettingValue::Unknown) {
                return Err(unknown(key));
            }
            Ok(self.get(key).filter(|value| *value != "null"))
        };
        if let Some(path) = get("cafile")? {
            return Ok(Trust { only: Some(read(&expand_home(Path::new(path)), "cafile")?), more: None });
        }
        if let Some(text) = get("ca")? {
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
        let plain = place.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
        if plain.split(['/', '\\']).any(|part| part == "..") {
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

/// Returns the error for a setting that contains a variable without a value.
fn unknown(key: &str) -> GitError {
    let why = format!(
        "`{key}` in the settings of npm contains an environment variable that is not set or not allowed"
    );
    GitError::Package(why)
}

/// Returns true if a key names a registry.
fn is_registry(key: &str) -> bool {
    key == "registry" || key.starts_with('@') && key.ends_with(":registry")
}

/// Returns the key of an environment variable, as npm reads it. URLs keep their case.
fn key_of(name: &str) -> Option<String> {
    let (prefix, key) = name.split_at_checked(PREFIX.len())?;
    if !prefix.eq_ignore_ascii_case(PREFIX) {
        return None;
    }
    if key.starts_with("//") {
        return Some(key.to_owned());
    }
    let mut key = key.to_ascii_lowercase();
    let dashes = key.get(1..).map(|rest| rest.replace('_', "-"));
    if let Some(dashes) = dashes {
        key.replace_range(1.., &dashes);
    }
    Some(key)
}

/// Returns the file with the settings of this machine. Its directory is the one of npm, which is beside Node.js by default.
fn of_machine(prefix: Option<PathBuf>) -> Option<PathBuf> {
    let beside_node = || {
        let node = dunce::canonicalize(find_program(Path::new("node"), None)?).ok()?;
        let dir = node.parent()?;
        (if cfg!(windows) { Some(dir) } else { dir.parent() }).map(Path::to_owned)
    };
    Some(prefix.or_else(beside_node)?.join("etc/npmrc"))
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
mod tests;
