//! [`Problem`]: what is wrong with a skill, whether a rule of the specification says so or a scan.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use serde::{Serialize, Serializer, ser::SerializeMap};
use skills_core::{
    Diagnostic, Severity,
    scan::{Finding, Risk},
};

/// One thing that is wrong.
#[derive(Debug)]
pub(super) struct Problem {
    pub code: String,
    pub severity: Severity,
    /// From 1; 0 where the file as a whole is meant.
    pub line: u32,
    /// From 1; 0 where the whole line or file is meant.
    pub column: u32,
    pub message: String,
    pub help: Option<String>,
    /// What else a scan says.
    pub found: Option<Found>,
}

/// What a scan says beside that.
#[derive(Debug)]
pub(super) struct Found {
    pub risk: Risk,
    /// The file, relative to the skill's directory; empty for the skill as a whole.
    pub file: String,
    pub excerpt: String,
    /// What in the excerpt is meant, in bytes.
    pub mark: Range<usize>,
}

impl Problem {
    pub(super) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The file that it is about, when `skill` is the `SKILL.md`.
    pub(super) fn file(&self, skill: &Path) -> PathBuf {
        match (&self.found, skill.parent()) {
            (Some(found), Some(dir)) if found.file.is_empty() => dir.to_owned(),
            (Some(found), Some(dir)) => dir.join(&found.file),
            _ => skill.to_owned(),
        }
    }
}

impl From<Diagnostic> for Problem {
    fn from(it: Diagnostic) -> Self {
        Self {
            code: it.code.to_owned(),
            severity: it.severity,
            line: it.line,
            column: it.column,
            message: it.message,
            help: it.help,
            found: None,
        }
    }
}

impl From<Finding> for Problem {
    fn from(it: Finding) -> Self {
        Self {
            severity: it.severity(),
            message: it.message(),
            code: it.code,
            line: it.line,
            column: it.column,
            help: it.help,
            found: Some(Found { risk: it.risk, file: it.file, excerpt: it.excerpt, mark: it.mark }),
        }
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("code", &self.code)?;
        fields.serialize_entry("severity", &self.severity)?;
        fields.serialize_entry("line", &self.line)?;
        // Also where it is the whole line that is meant.
        fields.serialize_entry("column", &self.column.max(self.line.min(1)))?;
        fields.serialize_entry("message", &self.message)?;
        fields.serialize_entry("help", &self.help)?;
        if let Some(found) = &self.found {
            fields.serialize_entry("risk", &found.risk)?;
            fields.serialize_entry("file", &found.file)?;
            fields.serialize_entry("excerpt", &found.excerpt)?;
        }
        fields.end()
    }
}
