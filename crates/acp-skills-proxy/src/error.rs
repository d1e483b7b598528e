//! Errors for the user: messages, hints and exit codes.

mod agent;

use std::{env, error::Error, fmt::Display, io, path::Path, process::ExitCode};

use acp_skills::{
    agents::AgentError,
    config::{ConfigError, error_text, shorten_home},
    one_shot::{ClientError, OneShotError, StartError},
};
use acp_skills_runtime::relay::standalone::StandaloneError;
use acp_skills_setup::SetupError;
use skills_core::{
    discovery::{Discovery, LoadError, Root},
    files::SKILL_FILE_NAMES,
    text::shown,
};

use crate::{output, system, words::count};

/// The exit code if the agent was not found, as in GNU `env`.
pub(crate) const EXIT_NOT_FOUND: u8 = 127;
/// The exit code if the proxy itself failed, as in GNU `env`.
pub(crate) const EXIT_PROXY_FAILED: u8 = 125;
/// The exit code if the command line, the configuration or a selected skill is invalid.
pub(crate) const EXIT_USAGE: u8 = 2;

/// An error that the user can fix. It ends the program with [`EXIT_USAGE`].
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct UsageError {
    message: String,
    hint: Option<String>,
    /// The cause. The message already contains its text.
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl UsageError {
    /// Creates an error with a message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, source: None }
    }

    /// Creates an error with the message of `error`. If a limit of the system is the cause, the hint explains how to raise it.
    pub(crate) fn of(error: impl Error + Send + Sync + 'static) -> Self {
        Self { message: error.to_string(), hint: None, source: Some(error.into()) }
    }

    /// Creates an error from the failed operation, such as `cannot write FILE`, and its cause.
    pub(crate) fn failed(what: impl Display, error: impl Error + Send + Sync + 'static) -> Self {
        Self { message: format!("{what}: {error}"), ..Self::of(error) }
    }

    /// Creates an error from the failed operation, such as `cannot write events`, its cause, and the path.
    pub(crate) fn at(what: impl Display, path: &Path, error: impl Error + Send + Sync + 'static) -> Self {
        let message = format!("{what}: {}: {}", error_text(&error), shorten_home(path));
        Self { message, ..Self::of(error) }
    }

    /// Returns the message and the hint in one line.
    #[cfg(test)]
    pub(crate) fn to_string_with_hint(&self) -> String {
        self.hint.iter().fold(self.message.clone(), |line, hint| format!("{line}; {hint}"))
    }

    /// Adds a hint.
    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Prints an error and its hint. Returns the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    output::complain(&message(error), hint(error).as_deref());
    ExitCode::from(code(error))
}

/// Returns the message of an error and its causes. A cause is left out if an earlier message contains it.
pub(crate) fn message(error: &anyhow::Error) -> String {
    if let Some(config) = error.downcast_ref::<ConfigError>() {
        // The causes are already included in this message.
        return config.to_string();
    }
    if let Some(start) = start_error(error) {
        // This message contains its cause as well.
        return start.to_string();
    }
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        earlier if earlier.contains(&cause) || earlier.contains(&error_text(&cause)) => text,
        _ => format!("{text}: {cause}"),
    })
}

fn code(error: &anyhow::Error) -> u8 {
    if let Some(start) = start_error(error) {
        return start.exit_code();
    }
    match find(error) {
        Some(AgentError::Unknown { .. }) => return EXIT_USAGE,
        Some(_) => return EXIT_NOT_FOUND,
        None => {}
    }
    let is_usage = find::<UsageError>(error).is_some()
        || find::<ConfigError>(error).is_some()
        || find::<SetupError>(error).is_some();
    if is_usage && limit(error).is_none() { EXIT_USAGE } else { EXIT_PROXY_FAILED }
}

/// Returns a hint that explains how to fix the error, if there is one.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    known_hint(error).or_else(|| {
        let is_gone = env::current_dir().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        is_gone.then(|| {
            "the working directory no longer exists; run the command in another directory".to_owned()
        })
    })
}

fn known_hint(error: &anyhow::Error) -> Option<String> {
    if let Some(usage) = find::<UsageError>(error) {
        return limit(error).or_else(|| usage.hint.clone());
    }
    if let Some(setup) = find::<SetupError>(error) {
        return limit(error).or_else(|| setup.hint().map(str::to_owned));
    }
    if let Some(agent) = find::<AgentError>(error) {
        return Some(agent.hint());
    }
    if let Some(hint) = client_error(error).and_then(ClientError::hint) {
        return Some(hint.to_owned());
    }
    if let Some(start) = start_error(error) {
        return agent::hint(start).or_else(|| limit(error));
    }
    limit(error).or_else(|| match find(error)? {
        ConfigError::Skill { path, .. } => no_skill(path),
        ConfigError::NoSuchRoot(path) if path.is_file() => Some(
            "the path is a file; `--skills` takes a directory to search, and `--skill` takes the directory of a skill".to_owned(),
        ),
        ConfigError::NoSuchRoot(path) => not_expanded(path),
        config => config.hint().map(str::to_owned),
    })
}

/// Returns a hint if a limit of the system is the cause. Such an error is not a mistake in the command line.
fn limit(error: &anyhow::Error) -> Option<String> {
    if let Some(error) = find::<io::Error>(error) {
        return system::limit_hint(error);
    }
    let codes = find::<LoadError>(error)?.diagnostics.iter().filter_map(|finding| finding.os_error);
    codes.map(io::Error::from_raw_os_error).find_map(|error| system::limit_hint(&error))
}

/// Returns a hint for a missing path that starts with a variable or `~NAME`, because only a shell expands these.
pub(crate) fn not_expanded(path: &Path) -> Option<String> {
    let first = path.components().next()?.as_os_str().to_str()?;
    let is_variable =
        first.starts_with(['~', '$']) || first.len() > 2 && first.starts_with('%') && first.ends_with('%');
    is_variable
        .then(|| format!("only `~` and `$HOME` are expanded here; replace `{}` with its value", shown(first)))
}

/// Returns the error of the conversation with the agent, if it is the cause.
fn client_error(error: &anyhow::Error) -> Option<&ClientError> {
    match find(error) {
        Some(OneShotError::Client(client)) => Some(client),
        _ => find(error),
    }
}

/// Returns the error of starting the agent, if it is the cause.
fn start_error(error: &anyhow::Error) -> Option<&StartError> {
    match (find(error), find(error)) {
        (Some(StandaloneError::Start(start)), _) | (_, Some(OneShotError::Start(start))) => Some(start),
        _ => find(error),
    }
}

/// Returns the first error of type `E` in the chain of causes.
fn find<E: Error + Send + Sync + 'static>(error: &anyhow::Error) -> Option<&E> {
    error.downcast_ref().or_else(|| error.chain().find_map(|cause| cause.downcast_ref()))
}

/// Suggests a fix for a `--skill` without a skill.
fn no_skill(path: &Path) -> Option<String> {
    let has_skill = |dir: &Path| SKILL_FILE_NAMES.iter().any(|name| dir.join(name).exists());
    if path.is_file() {
        let dir = path.parent().filter(|dir| has_skill(dir));
        return Some(match dir {
            Some(dir) => format!("`--skill` takes the directory of a skill: `--skill {}`", shorten_home(dir)),
            None => "`--skill` takes the directory of a skill, with a file named SKILL.md".to_owned(),
        });
    }
    if !path.exists() {
        let here = env::current_dir().ok();
        return not_expanded(here.as_deref().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path));
    }
    // A directory with an invalid SKILL.md is still meant to be a skill, so we don't look for skills below it.
    let below = if has_skill(path) { return None } else { Discovery::new([Root::scanned(path)]).find() };
    let shown = shorten_home(path);
    match below.len() {
        0 => None,
        found => Some(format!(
            "the directory contains {}; use `--skills {shown}`, or `roots` in a configuration file, to use all of them",
            count(found, "skill")
        )),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use skills_core::Diagnostic;

    use super::*;

    /// A limit of the system is a failure of the proxy. An invalid file that only quotes such an error is a mistake of the user.
    #[test]
    fn limits_have_a_hint_and_an_exit_code() {
        let too_many = || io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error());
        let skill = |finding: Diagnostic| ConfigError::Skill {
            path: "/skills/a".into(),
            source: LoadError::new("/skills/a/SKILL.md", vec![finding]),
        };
        let finding = || Diagnostic::error("unreadable", format!("cannot read `SKILL.md`: {}", too_many()));
        let unreadable = |source| ConfigError::Unreadable { path: "/skills.yaml".into(), source };
        for (error, is_limit) in [
            (skill(finding().caused_by(&too_many())).into(), true),
            (skill(finding()).into(), false),
            (skill(finding().caused_by(&io::ErrorKind::NotFound.into())).into(), false),
            (unreadable(too_many()).into(), true),
            (unreadable(io::ErrorKind::NotFound.into()).into(), false),
            (UsageError::failed("cannot write x", too_many()).into(), true),
            (UsageError::failed("cannot write x", too_many()).hint("look at it").into(), true),
            (UsageError::of(unreadable(too_many())).into(), true),
            (UsageError::new(too_many().to_string()).into(), false),
        ] {
            let error: anyhow::Error = error;
            let expected = if is_limit { EXIT_PROXY_FAILED } else { EXIT_USAGE };
            assert_eq!(code(&error), expected, "{error:?}");
            let hint = hint(&error);
            assert_eq!(hint.is_some_and(|hint| hint.contains("ulimit -n")), is_limit, "{error:?}");
        }
    }
}
