//! Reserves stdin and stdout for the protocol, so that no dependency can read or write them.
//!
//! | file | owns |
//! |---|---|
//! | `unix` | takes the descriptors; text that a dependency prints afterwards goes to stderr |
//! | `windows` | takes the handles |
//! | `waiting` | reads and writes on Unix if another process has made a stream non-blocking |
//! | `hangup` | detects on Unix that the editor has closed its end |
//! | `read_ahead` | detects the same on Windows |

#[cfg(unix)]
mod hangup;
// This is also compiled on other systems, so that we can run the tests there.
#[cfg(any(test, windows))]
mod read_ahead;
#[cfg_attr(unix, path = "stdio/unix.rs")]
#[cfg_attr(windows, path = "stdio/windows.rs")]
mod system;
#[cfg(unix)]
mod waiting;

use std::io::{self, IsTerminal};

use acp_skills_runtime::relay::Ends;

/// Returns true if both stdin and stdout are terminals.
#[expect(clippy::disallowed_methods, reason = "nothing is printed")]
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Returns true if stdin is a terminal, so that a person may have typed the command.
pub(crate) fn stdin_is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// Copies of stdin and stdout, with which a failed start is reported to the client. They stay valid if stdin and stdout are
/// replaced.
pub(crate) struct Spare {
    pub(crate) reader: system::Stream,
    pub(crate) writer: system::Stream,
}

/// Copies stdin and stdout. `None` if one of them is a terminal or closed.
#[expect(clippy::disallowed_methods, reason = "nothing is printed")]
pub(crate) fn spare() -> Option<Spare> {
    if io::stdin().is_terminal() || io::stdout().is_terminal() { None } else { system::copies().ok() }
}

/// Takes stdin and stdout for the protocol, without the standard library's buffers.
///
/// # Errors
/// Returns an error if stdin or stdout is closed, or if the system has no descriptors left.
pub(crate) fn take() -> io::Result<Ends> {
    system::take()
}
