//! [`LoginNeeded`]: the agent asks the user to log in.

use std::ffi::OsString;

use acp_skills::one_shot::ClientError;
use serde_json::Value;
use skills_core::text::shown;

use acp_skills_setup::shell::shell_line;

/// An agent that opens no session, or does not answer a prompt, until the user has logged in.
#[derive(Debug, thiserror::Error)]
#[error("agent asks to log in: {source}")]
pub(super) struct LoginNeeded {
    source: ClientError,
    /// The login methods that the agent offers, as text.
    methods: Vec<String>,
}

/// Returns `error`, as a [`LoginNeeded`] if the agent asks the user to log in. `methods` are the `authMethods` of the agent, and `command`
/// is its command.
pub(super) fn needed(error: ClientError, methods: &Value, command: &[OsString]) -> anyhow::Error {
    if !error.asks_to_log_in() {
        return error.into();
    }
    let methods = methods.as_array().map(Vec::as_slice).unwrap_or_default();
    let methods = methods.iter().filter_map(|method| described(method, command)).collect();
    LoginNeeded { source: error, methods }.into()
}

/// Describes a login method: its name, and the command to type or the description.
fn described(method: &Value, command: &[OsString]) -> Option<String> {
    let name = method["name"].as_str().or(method["id"].as_str())?;
    let more = if method["type"] == "terminal" {
        let words = command.iter().map(|word| word.to_string_lossy().into_owned());
        let more =
            method["args"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        format!("run `{}`", shell_line(words.chain(more)))
    } else {
        method["description"].as_str().unwrap_or_default().to_owned()
    };
    let text = if more.is_empty() { name.to_owned() } else { format!("{name} ({more})") };
    Some(shown(&text).into_owned())
}

impl LoginNeeded {
    /// Returns the error if it is the cause of `error`.
    pub(super) fn of(error: &anyhow::Error) -> Option<&Self> {
        error.downcast_ref()
    }

    /// Returns a hint that names the login methods.
    pub(super) fn hint(&self) -> String {
        let then = "then run this command again";
        match self.methods.as_slice() {
            [] => format!("log in to the agent in its own terminal program, or set its API key, {then}"),
            methods => format!("log in to the agent, {then}; it offers: {}", methods.join(", ")),
        }
    }
}
