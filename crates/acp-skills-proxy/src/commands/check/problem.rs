//! [`Problem`]: a violation of the specification or a finding of a scan.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use serde::{Serialize, Serializer, ser::SerializeMap};
use skills_core::{
    Diagnostic, Severity,
    scan::{Finding, Risk},
};

/// A problem in a file of a skill.
#[derive(Debug)]
pub(super) struct Problem {
    pub code: String,
    pub severity: Severity,
    /// The line, starting at 1. 0 if the problem concerns the whole file.
    pub line: u32,
    /// The column, starting at 1. 0 if the problem concerns the whole line or file.
    pub column: u32,
    pub message: String,
    pub help: Option<String>,
    /// The details of a scan's finding. `None` for a violation of the specification.
    pub found: Option<Found>,
}

/// The details of a scan's finding.
#[derive(Debug)]
pub(super) struct Found {
    pub risk: Risk,
    /// The file, relative to the skill's directory. Empty if the finding concerns the whole skill.
    pub file: String,
    pub excerpt: String,
    /// The range of bytes to mark in the excerpt.
    pub mark: Range<usize>,
}

impl Problem {
    pub(super) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Returns the path of the file with the problem. `skill` is the path of the `SKILL.md`.
    pub(super) fn file(&self, skill: &Path) -> PathBuf {
        match (&self.found, skill.parent()) {
            (Some(found), Some(dir)) if found.file.is_empty() => dir.to_owned(),
            (Some(found), Some(dir)) => dir.join(&found.file),
            _ => skill.to_owned(),
        }
    }
}

impl From<Diagnostic> for Problem {
    fn from(diagnostic: Diagnostic) -> Self {
        Self {
            code: diagnostic.code.to_owned(),
            severity: diagnostic.severity,
            line: diagnostic.line,
            column: diagnostic.column,
            message: diagnostic.message,
            help: diagnostic.help,
            found: None,
        }
    }
}

impl From<Finding> for Problem {
    fn from(finding: Finding) -> Self {
        Self {
            severity: finding.severity(),
            message: finding.message(),
            code: finding.code,
            line: finding.line,
            column: finding.column,
            help: finding.help,
            found: Some(Found {
                risk: finding.risk,
                file: finding.file,
                excerpt: finding.excerpt,
                mark: finding.mark,
            }),
        }
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("code", &self.code)?;
        fields.serialize_entry("severity", &self.severity)?;
        fields.serialize_entry("line", &self.line)?;
        // If this is about the whole line, use column 1.
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
