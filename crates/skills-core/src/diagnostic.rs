//! [`Diagnostic`]: what is wrong with a skill, where, and what to do about it.
//!
//! A bad skill is a diagnostic, never an outage: whoever loads skills gets a value *and* a list of these.

use std::{fmt, path::Path};

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// The skill works; somebody should know.
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
}

impl Diagnostic {
    /// A finding that prevents loading, or breaks a rule.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, severity: Severity::Error, line: 0, column: 0, message: message.into(), help: None }
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
        Self { help: Some(help.into()), ..self }
    }

    /// The finding as one text with the file it is about: `skill/SKILL.md:3:14: error[name-too-long]: …`.
    pub fn in_file(&self, file: &Path) -> String {
        let space = if self.line == 0 { " " } else { "" };
        format!("{}:{space}{self}", file.display())
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
