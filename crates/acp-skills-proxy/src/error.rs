//! Errors of the user's world: the exit codes that the program ends with, and what to do about them.

mod agent;

use std::{env, error::Error, fmt::Display, io, path::Path, process::ExitCode};

use acp_skills::{
    agents::AgentError,
    config::ConfigError,
    one_shot::{ClientError, OneShotError, StartError},
};
use acp_skills_runtime::relay::standalone::StandaloneError;
use skills_core::{
    discovery::{Discovery, LoadError, Root},
    files::SKILL_FILE_NAMES,
    text::{shown, shown_path},
};

use crate::{output, system};

/// The agent was not found (as in GNU `env`).
pub(crate) const EXIT_NOT_FOUND: u8 = 127;
/// The proxy itself failed (as in GNU `env`).
pub(crate) const EXIT_PROXY_FAILED: u8 = 125;
/// The command line, the configuration or a skill named in it is wrong.
pub(crate) const EXIT_USAGE: u8 = 2;

/// An error of the user's world: it is told without ado, and ends the program with [`EXIT_USAGE`].
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct UsageError {
    message: String,
    hint: Option<String>,
    /// What is behind it, which the message has told.
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl UsageError {
    /// What is wrong.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, source: None }
    }

    /// What `error` says. Where a limit of the system is behind it, what to do about that is the hint.
    pub(crate) fn of(error: impl Error + Send + Sync + 'static) -> Self {
        Self { message: error.to_string(), hint: None, source: Some(error.into()) }
    }

    /// The same for an error that does not say what failed: `cannot write …`.
    pub(crate) fn failed(what: impl Display, error: impl Error + Send + Sync + 'static) -> Self {
        Self { message: format!("{what}: {error}"), ..Self::of(error) }
    }

    /// The message and its remedy in one line.
    #[cfg(test)]
    pub(crate) fn to_string_with_hint(&self) -> String {
        self.hint.iter().fold(self.message.clone(), |line, hint| format!("{line}; {hint}"))
    }

    /// The same with a remedy.
    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Tells what went wrong. Returns the exit code for it.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    output::complain(&message(error), hint(error).as_deref());
    ExitCode::from(code(error))
}

/// The error and its causes, without what the one before has said already.
pub(crate) fn message(error: &anyhow::Error) -> String {
    if let Some(config) = error.downcast_ref::<ConfigError>() {
        // It has its causes in its own words.
        return config.to_string();
    }
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        said if said.contains(&cause) => text,
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
    let is_usage = find::<UsageError>(error).is_some() || find::<ConfigError>(error).is_some();
    if is_usage && limit(error).is_none() { EXIT_USAGE } else { EXIT_PROXY_FAILED }
}

/// What to do about it, where that is known.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    known_hint(error).or_else(|| {
        let is_gone = env::current_dir().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        is_gone.then(|| "the directory that this was started in is gone: start it in another one".to_owned())
    })
}

fn known_hint(error: &anyhow::Error) -> Option<String> {
    if let Some(usage) = find::<UsageError>(error) {
        return limit(error).or_else(|| usage.hint.clone());
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
            "it is a file; `--skills` takes a directory to look in, `--skill` that of one skill".to_owned(),
        ),
        ConfigError::NoSuchRoot(path) => not_expanded(path),
        config => config.hint().map(str::to_owned),
    })
}

/// What to do about the limit of the system that is behind it, if one is. That is nobody's mistake.
fn limit(error: &anyhow::Error) -> Option<String> {
    if let Some(error) = find::<io::Error>(error) {
        return system::limit_hint(error);
    }
    let codes = find::<LoadError>(error)?.diagnostics.iter().filter_map(|finding| finding.os_error);
    codes.map(io::Error::from_raw_os_error).find_map(|error| system::limit_hint(&error))
}

/// What to do about a path that is not there because nobody expands what it begins with.
pub(crate) fn not_expanded(path: &Path) -> Option<String> {
    let first = path.components().next()?.as_os_str().to_str()?;
    let is_variable =
        first.starts_with(['~', '$']) || first.len() > 2 && first.starts_with('%') && first.ends_with('%');
    is_variable.then(|| {
        format!(
            "of what a shell expands, only `~` and `$HOME` are: write out what `{}` stands for",
            shown(first)
        )
    })
}

/// What went wrong in the conversation with the agent, if that is what went wrong.
fn client_error(error: &anyhow::Error) -> Option<&ClientError> {
    match find(error) {
        Some(OneShotError::Client(client)) => Some(client),
        _ => find(error),
    }
}

/// Why the agent did not start, if that is what went wrong.
fn start_error(error: &anyhow::Error) -> Option<&StartError> {
    match (find(error), find(error)) {
        (Some(StandaloneError::Start(start)), _) | (_, Some(OneShotError::Start(start))) => Some(start),
        _ => find(error),
    }
}

/// The error of this type, wherever in the chain of causes it is.
fn find<E: Error + Send + Sync + 'static>(error: &anyhow::Error) -> Option<&E> {
    error.downcast_ref().or_else(|| error.chain().find_map(|cause| cause.downcast_ref()))
}

/// What may have been meant by a `--skill` that is none.
fn no_skill(path: &Path) -> Option<String> {
    let has_skill = |dir: &Path| SKILL_FILE_NAMES.iter().any(|name| dir.join(name).exists());
    if path.is_file() {
        let dir = path.parent().filter(|dir| has_skill(dir));
        return Some(match dir {
            Some(dir) => format!("`--skill` takes the directory of a skill: `--skill {}`", shown_path(dir)),
            None => "`--skill` takes the directory of a skill, with a file named SKILL.md".to_owned(),
        });
    }
    if !path.exists() {
        let here = env::current_dir().ok();
        return not_expanded(here.as_deref().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path));
    }
    // A skill that is broken is not to be looked for further down.
    let below = if has_skill(path) { return None } else { Discovery::new([Root::scanned(path)]).find() };
    let shown = shown_path(path);
    match below.len() {
        0 => None,
        count => Some(format!(
            "there are skills below it ({count}): `--skills {shown}` takes all of them, in a configuration `roots`"
        )),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use skills_core::Diagnostic;

    use super::*;

    /// A limit of the system is not the user's mistake; a file that quotes one is.
    #[test]
    fn limits() {
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
