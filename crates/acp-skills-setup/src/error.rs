//! [`SetupError`]: the error for a name that is unknown, or a path that is not usable.

use std::{fmt::Display, io};

/// An error that the user can fix.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SetupError {
    message: String,
    hint: Option<String>,
    /// The cause. The message already contains its text.
    source: Option<io::Error>,
}

impl SetupError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, source: None }
    }

    /// Creates an error from the failed operation and its cause.
    pub(crate) fn failed(what: impl Display, error: io::Error) -> Self {
        Self { message: format!("{what}: {error}"), hint: None, source: Some(error) }
    }

    #[must_use]
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Returns a hint that explains how to fix the error, if there is one.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}
