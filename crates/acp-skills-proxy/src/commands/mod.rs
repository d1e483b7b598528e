//! The commands for people, one file each. Only here is anything printed.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what commands for people do")]

pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod eval;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod proxy;
pub(crate) mod report;
pub(crate) mod search;
pub(crate) mod table;
pub(crate) mod r#try;

use std::io::{self, Write};

/// Prints a text that may be long.
fn print(text: &str) -> io::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        // `list | head` has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Tells what went wrong, and how to mend it.
pub(crate) fn complain(message: &str, hint: Option<&str>) {
    eprintln!("error: {message}");
    if let Some(hint) = hint {
        eprintln!("hint: {hint}");
    }
}
