//! Our own stdin and stdout: taken away from everybody else, because stdout is the wire.
//!
//! | file | owns |
//! |---|---|
//! | `unix` | taking the descriptors; what any dependency prints afterwards goes to stderr |
//! | `windows` | taking the handles |
//! | `hangup` | how it is noticed on Unix that the editor has gone |
//! | `read_ahead` | how it is noticed on Windows |

#[cfg(unix)]
mod hangup;
// On other systems for its tests, which are the same everywhere.
#[cfg(any(test, windows))]
mod read_ahead;
#[cfg_attr(unix, path = "stdio/unix.rs")]
#[cfg_attr(windows, path = "stdio/windows.rs")]
mod system;

use std::{
    fs::File,
    io::{self, IsTerminal},
};

use acp_skills_runtime::relay::Ends;

/// Whether a person sits at both ends.
#[expect(clippy::disallowed_methods, reason = "nothing is printed")]
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Both, for a last word to a client. They are as they are now, whatever becomes of stdin and stdout.
pub(crate) struct Spare {
    pub(crate) reader: File,
    pub(crate) writer: File,
}

/// Keeps both for a last word; nothing when they are a person's, or closed.
#[expect(clippy::disallowed_methods, reason = "nothing is printed")]
pub(crate) fn spare() -> Option<Spare> {
    if io::stdin().is_terminal() || io::stdout().is_terminal() { None } else { system::copies().ok() }
}

/// Takes stdin and stdout for the protocol, without the standard library's buffers.
///
/// # Errors
/// They are closed, or the system is out of what it takes to keep them.
pub(crate) fn take() -> io::Result<Ends> {
    system::take()
}
