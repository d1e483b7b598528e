//! [`Diagnostic`]: a problem of a skill, its position in the file, and a hint.
//!
//! Problems in a skill don't make loading fail as a whole. Functions return what could be loaded and a list of diagnostics.

use std::{borrow::Cow, fmt, io, path::Path};

use serde::Serialize;

use crate::text::{shown, shown_path};

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// The skill can be used, but its author should fix a problem.
    Warning,
    /// The skill can't be loaded, or breaks a rule of the specification that it was checked against.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A problem in a file.
///
/// Its JSON form is `{"code","severity","line","column","message","help"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// A stable, kebab-case identifier such as `name-too-long`.
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The line in the file, starting at 1. It is 0 if the problem concerns the whole file.
    pub line: u32,
    /// The column in characters, starting at 1. It is 0 if the problem concerns the whole line or file.
    pub column: u32,
    /// A description of the problem that starts in lower case and has no final period.
    pub message: String,
    /// A hint that explains how to fix the problem.
    pub help: Option<String>,
    /// The error code of the operating system ([`io::Error::raw_os_error`]), if an I/O error caused the problem.
    ///
    /// It is not serialized, because its meaning depends on the system.
    #[serde(skip)]
    pub os_error: Option<i32>,
}

impl Diagnostic {
    /// Creates an error about the whole file.
    ///
    /// The message may quote untrusted text, because control and invisible characters are escaped ([`shown`]).
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        let message = safe(message.into());
        Self { code, severity: Severity::Error, line: 0, column: 0, message, help: None, os_error: None }
    }

    /// Creates a warning about the whole file. Its message is escaped like that of an error.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    /// Sets the position. Lines and columns start at 1, and a column of 0 means the whole line.
    #[must_use]
    pub fn at(self, line: u32, column: u32) -> Self {
        Self { line, column, ..self }
    }

    /// Adds a hint. Control and invisible characters in it are escaped.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(safe(help.into())), ..self }
    }

    /// Keeps the error code of the I/O error that caused the problem. The message doesn't change.
    #[must_use]
    pub fn caused_by(self, error: &io::Error) -> Self {
        Self { os_error: error.raw_os_error(), ..self }
    }

    /// Formats the diagnostic with the path of its file: `skill/SKILL.md:3:14: error[name-too-long]: …`.
    pub fn in_file(&self, file: &Path) -> String {
        let space = if self.line == 0 { " " } else { "" };
        format!("{}:{space}{self}", shown_path(file))
    }

    /// Returns true if the severity is [`Severity::Error`].
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Formats the diagnostic as `3:14: error[name-too-long]: …`, with the hint in a second line.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, _) => {}
            (line, 0) => write!(f, "{line}: ")?,
            (line, column) => write!(f, "{line}:{column}: ")?,
        }
        write!(f, "{}[{}]: {}", self.severity, self.code, self.message)?;
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

fn safe(text: String) -> String {
    match shown(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(safe) => safe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_os_error_is_neither_displayed_nor_serialized() {
        let error = io::Error::from_raw_os_error(24);
        let plain = Diagnostic::error("unreadable", "cannot read `a`");
        let diagnostic = plain.clone().caused_by(&error);
        assert_eq!(diagnostic.os_error, Some(24));
        assert_eq!(diagnostic.to_string(), plain.to_string());
        assert_eq!(serde_json::to_string(&diagnostic).unwrap(), serde_json::to_string(&plain).unwrap());
        assert_eq!(plain.caused_by(&io::Error::other("it is no file")).os_error, None);
    }

    #[test]
    fn control_characters_in_a_diagnostic_are_escaped() {
        let diagnostic = Diagnostic::warning("name-not-directory", "the name `\u{1b}[2J\u{202e}a\nb` is odd")
            .help("rename \u{9b}31m")
            .at(3, 7);
        assert_eq!(
            diagnostic.in_file(Path::new("/s\u{7}/SKILL.md")),
            "/s\\u{7}/SKILL.md:3:7: warning[name-not-directory]: the name `\\u{1b}[2J\\u{202e}a b` is odd\n  help: rename \\u{9b}31m"
        );
    }
}
