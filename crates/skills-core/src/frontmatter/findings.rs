//! [`Findings`]: collects diagnostics, with severities that depend on the [`Verdict`].

use super::{Verdict, yaml::Position};
use crate::diagnostic::{Diagnostic, Severity};

/// The maximum number of findings. Further findings are dropped, unless they are fatal.
const MAX_FINDINGS: usize = 100;

/// The diagnostics of one parse.
pub(super) struct Findings {
    verdict: Verdict,
    /// The number of lines before the YAML, because positions in the YAML are relative to its start.
    pub lines_before: u32,
    pub list: Vec<Diagnostic>,
}

impl Findings {
    pub(super) fn new(verdict: Verdict) -> Self {
        Self { verdict, lines_before: 0, list: Vec::new() }
    }

    /// Returns true if the file is checked against the specification.
    pub(super) fn wants_spec(&self) -> bool {
        self.verdict != Verdict::Load
    }

    /// Adds an error, because the skill can't be loaded.
    pub(super) fn fatal(&mut self, finding: Diagnostic) {
        self.list.push(Diagnostic { severity: Severity::Error, ..finding });
    }

    /// Adds a finding about a broken rule of the specification. It is an error for [`Verdict::Spec`] and otherwise a warning.
    pub(super) fn broken(&mut self, finding: Diagnostic) {
        let severity = if self.wants_spec() { Severity::Error } else { Severity::Warning };
        self.push(Diagnostic { severity, ..finding });
    }

    /// Adds a warning about something that the specification allows.
    pub(super) fn advice(&mut self, finding: Diagnostic) {
        self.push(Diagnostic { severity: Severity::Warning, ..finding });
    }

    fn push(&mut self, finding: Diagnostic) {
        if self.list.len() < MAX_FINDINGS {
            self.list.push(finding);
        }
    }

    /// Converts a position in the YAML to a line and column of the file.
    pub(super) fn place(&self, position: Position) -> (u32, u32) {
        (position.line + self.lines_before, position.column)
    }

    /// Sets the position of `finding` to a position in the YAML.
    pub(super) fn at(&self, position: Position, finding: Diagnostic) -> Diagnostic {
        let (line, column) = self.place(position);
        finding.at(line, column)
    }
}
