//! The commands for people, one file each. Only here is anything printed.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what commands for people do")]

pub mod check;
pub mod doctor;
pub mod list;
pub mod proxy;
pub mod search;
pub mod table;
pub mod r#try;

/// Tells what went wrong, and how to mend it.
pub fn complain(message: &str, hint: Option<&str>) {
    eprintln!("error: {message}");
    if let Some(hint) = hint {
        eprintln!("hint: {hint}");
    }
}
