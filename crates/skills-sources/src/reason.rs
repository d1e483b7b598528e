//! [`Reason`]: why a value in an address or a lock file is invalid.

/// The reason why a value is invalid, as a clause of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Reason(String);

impl<T: Into<String>> From<T> for Reason {
    fn from(reason: T) -> Self {
        Self(reason.into())
    }
}
