//! The commands for people, one file each. Only here is anything printed.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what commands for people do")]

pub mod check;
pub mod doctor;
pub mod list;
pub mod proxy;
pub mod report;
pub mod search;
pub mod table;
pub mod r#try;

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
pub fn complain(message: &str, hint: Option<&str>) {
    eprintln!("error: {message}");
    if let Some(hint) = hint {
        eprintln!("hint: {hint}");
    }
}
