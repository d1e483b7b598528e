//! Windows has no such limits, explains its errors itself, and recognizes programs by their extensions.

use std::io;

/// Returns `None`, because the messages of the system are clear enough.
pub(crate) fn limit_hint(_error: &io::Error) -> Option<String> {
    None
}

/// Returns a hint for a file that cannot be executed.
pub(crate) fn make_executable_hint(_shown: &str) -> String {
    "file is not a program".to_owned()
}

/// Does nothing, because there are no such signals.
pub(crate) fn catch_harmless_signals() {}

/// Returns `Ok`, because there is no such limit.
#[expect(clippy::unnecessary_wraps, reason = "the limit exists on Unix")]
pub(crate) fn check_address_space() -> io::Result<()> {
    Ok(())
}
