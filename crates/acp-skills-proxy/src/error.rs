//! Errors of the user's world, and the exit codes that the program ends with.

use std::process::ExitCode;

use acp_skills::{
    config::ConfigError,
    one_shot::{OneShotError, StartError},
    relay::standalone::StandaloneError,
};

use crate::commands;

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
}

impl UsageError {
    /// What is wrong.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    /// The same with a remedy.
    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

/// Tells what went wrong. Returns the exit code for it.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    let usage = error.downcast_ref::<UsageError>();
    let config = error.downcast_ref::<ConfigError>();
    let start = start_error(error);
    let (code, hint) = match (usage, config, start) {
        (Some(usage), ..) => (EXIT_USAGE, usage.hint.clone()),
        (_, Some(config), _) => (EXIT_USAGE, config.hint().map(str::to_owned)),
        (.., Some(start)) => (start.exit_code(), Some(AGENT_HINT.to_owned())),
        (None, None, None) => (EXIT_PROXY_FAILED, None),
    };
    commands::complain(&format!("{error:#}"), hint.as_deref());
    ExitCode::from(code)
}

/// Why the agent did not start, if that is what went wrong.
fn start_error(error: &anyhow::Error) -> Option<&StartError> {
    if let Some(StandaloneError::Start(error)) = error.downcast_ref() {
        return Some(error);
    }
    if let Some(OneShotError::Start(error)) = error.downcast_ref() {
        return Some(error);
    }
    error.downcast_ref()
}

const AGENT_HINT: &str =
    "the agent command goes after `--`, for example `acp-skills-proxy --skill DIR -- npx …`";
