//! [`Diagnostic`]: what is wrong with a skill, where, and what to do about it.
//!
//! A bad skill is a diagnostic, never an outage: loading skills gives a value *and* a list of these.

use std::{borrow::Cow, fmt, io, path::Path};

use serde::Serialize;

use crate::text::{shown, shown_path};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// The skill works, but its author should know.
    Warning,
    /// The skill cannot be loaded, or breaks the rules it was checked against.
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

/// One finding about one file. Serializes to `{"code","severity","line","column","message","help"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnostic {
    /// A stable, kebab-case identifier such as `name-too-long`.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The line in the file, from 1; 0 when the finding is about the file as a whole.
    pub line: u32,
    /// The column in that line, in characters from 1; 0 when the finding is about the whole line or file.
    pub column: u32,
    /// What is wrong, as a lower-case fragment.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The system's code of the error behind it, as [`io::Error::raw_os_error`] has it. For programs that know what to do about
    /// some of them; it is not serialized, because it means something on one system only.
    #[serde(skip)]
    pub os_error: Option<i32>,
}

impl Diagnostic {
    /// A finding that prevents loading, or breaks a rule. The message may quote a stranger's file: it is made safe to show.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        let message = safe(message.into());
        Self { code, severity: Severity::Error, line: 0, column: 0, message, help: None, os_error: None }
    }

    /// A finding that prevents nothing.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, message) }
    }

    /// The same finding at a line and column, both from 1.
    #[must_use]
    pub fn at(self, line: u32, column: u32) -> Self {
        Self { line, column, ..self }
    }

    /// The same finding with a remedy.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(safe(help.into())), ..self }
    }

    /// The same finding with the error that is behind it, of which the system's code is kept. The message stays as it is.
    #[must_use]
    pub fn caused_by(self, error: &io::Error) -> Self {
        Self { os_error: error.raw_os_error(), ..self }
    }

    /// The finding as one text with the file it is about: `skill/SKILL.md:3:14: error[name-too-long]: …`.
    pub fn in_file(&self, file: &Path) -> String {
        let space = if self.line == 0 { " " } else { "" };
        format!("{}:{space}{self}", shown_path(file))
    }

    /// Whether this finding is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// `3:14: error[name-too-long]: …`, and the remedy in a second line when there is one.
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
    fn the_code_of_the_system_is_for_programs() {
        let error = io::Error::from_raw_os_error(24);
        let plain = Diagnostic::error("unreadable", "cannot read `a`");
        let diagnostic = plain.clone().caused_by(&error);
        assert_eq!(diagnostic.os_error, Some(24));
        assert_eq!(diagnostic.to_string(), plain.to_string());
        assert_eq!(serde_json::to_string(&diagnostic).unwrap(), serde_json::to_string(&plain).unwrap());
        assert_eq!(plain.caused_by(&io::Error::other("it is no file")).os_error, None);
    }

    #[test]
    fn nothing_of_a_strangers_text_reaches_the_terminal() {
        let diagnostic = Diagnostic::warning("name-not-directory", "the name `\u{1b}[2J\u{202e}a\nb` is odd")
            .help("rename \u{9b}31m")
            .at(3, 7);
        assert_eq!(
            diagnostic.in_file(Path::new("/s\u{7}/SKILL.md")),
            "/s\\u{7}/SKILL.md:3:7: warning[name-not-directory]: the name `\\u{1b}[2J\\u{202e}a b` is odd\n  help: rename \\u{9b}31m"
        );
    }
}
