//! Collects diagnostics and weighs each of them by the verdict that is asked for.

use super::{Verdict, yaml::Position};
use crate::diagnostic::{Diagnostic, Severity};

/// Most findings that are kept beside a fatal one; a file with more has said enough.
const MAX_FINDINGS: usize = 100;

/// The diagnostics of one parse.
pub(super) struct Findings {
    verdict: Verdict,
    /// Lines before the YAML: positions in it are counted from its own start.
    pub lines_before: u32,
    pub list: Vec<Diagnostic>,
}

impl Findings {
    pub(super) fn new(verdict: Verdict) -> Self {
        Self { verdict, lines_before: 0, list: Vec::new() }
    }

    /// Whether the rules of the specification were asked for.
    pub(super) fn wants_spec(&self) -> bool {
        self.verdict != Verdict::Load
    }

    /// Nothing can be loaded.
    pub(super) fn fatal(&mut self, finding: Diagnostic) {
        self.list.push(Diagnostic { severity: Severity::Error, ..finding });
    }

    /// A rule of the specification is broken: an error against the specification, a warning for a loader.
    pub(super) fn broken(&mut self, finding: Diagnostic) {
        let severity = if self.wants_spec() { Severity::Error } else { Severity::Warning };
        self.push(Diagnostic { severity, ..finding });
    }

    /// No rule is broken, but the author should know.
    pub(super) fn advice(&mut self, finding: Diagnostic) {
        self.push(Diagnostic { severity: Severity::Warning, ..finding });
    }

    fn push(&mut self, finding: Diagnostic) {
        if self.list.len() < MAX_FINDINGS {
            self.list.push(finding);
        }
    }

    /// The place in the file of a place in the YAML.
    pub(super) fn place(&self, position: Position) -> (u32, u32) {
        (position.line + self.lines_before, position.column)
    }

    /// `finding` at a place in the YAML.
    pub(super) fn at(&self, position: Position, finding: Diagnostic) -> Diagnostic {
        let (line, column) = self.place(position);
        finding.at(line, column)
    }
}
