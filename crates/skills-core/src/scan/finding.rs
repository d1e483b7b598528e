//! [`Finding`]: what was found, where, and why it matters.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use serde::Serialize;

use super::{
    MAX_FINDINGS,
    rules::{Detector, Risk, Rule, Rules},
};
use crate::{
    diagnostic::Severity,
    text::{hidden, shown},
};

/// How much of a line is shown before what was found, and in all, in characters.
const BEFORE_CHARS: usize = 40;
const EXCERPT_CHARS: usize = 160;

/// Something in a skill that should make a person look twice. Serializes to `{"code","risk","file","line","column",
/// "excerpt","reason","detail"?,"help"?}`. Every text is safe to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The code of the rule, such as `fetch-and-run`.
    pub code: String,
    /// How much it matters.
    pub risk: Risk,
    /// The file, relative to the skill's directory and separated by `/`; empty for the skill as a whole.
    pub file: String,
    /// The line in the file, from 1; 0 when the finding is about the file as a whole.
    pub line: u32,
    /// The column in that line, in characters from 1; 0 as for `line`.
    pub column: u32,
    /// The line around what was found, in one line and cut; empty as for `line`.
    pub excerpt: String,
    /// What in `excerpt` was found, in bytes.
    #[serde(skip)]
    pub mark: Range<usize>,
    /// Why it matters, as a fragment.
    pub reason: String,
    /// What else is known: what characters spell, what base64 decodes to, what kind of file it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Finding {
    /// High risks are errors, all others are warnings.
    pub fn severity(&self) -> Severity {
        if self.risk == Risk::High { Severity::Error } else { Severity::Warning }
    }

    /// The reason with the detail behind it.
    pub fn message(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{}: {detail}", self.reason),
            None => self.reason.clone(),
        }
    }
}

/// What a scan found. Serializes to `{"findings","files","bytes"}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The findings, by file, line and column.
    pub findings: Vec<Finding>,
    /// How many files were looked at.
    pub files: usize,
    /// How many bytes of text were read.
    pub bytes: u64,
}

impl Report {
    /// The greatest risk that was found.
    pub fn risk(&self) -> Option<Risk> {
        self.findings.iter().map(|it| it.risk).max()
    }
}

/// The lines of a text.
pub(super) struct Lines<'t> {
    path: &'t str,
    text: &'t str,
    /// Where each begins.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn new(path: &'t str, text: &'t str) -> Self {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        Self { path, text, starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// The line with the byte `at`, from 0, and where it is.
    fn around(&self, at: usize) -> (usize, &'t str, usize) {
        let line = self.starts.partition_point(|&start| start <= at) - 1;
        let start = self.starts[line];
        let end = self.starts.get(line + 1).map_or(self.text.len(), |&next| next - 1);
        (line, self.text[start..end].trim_end_matches('\r'), start)
    }
}

/// Findings that are made.
pub(super) struct Findings<'r> {
    pub(super) rules: &'r Rules,
    pub(super) files: usize,
    pub(super) bytes: u64,
    found: Vec<Finding>,
    /// What was found in a line before is not said again.
    seen: HashSet<(String, String, u32)>,
    is_full: bool,
}

impl<'r> Findings<'r> {
    pub(super) fn new(rules: &'r Rules) -> Self {
        Self { rules, files: 0, bytes: 0, found: Vec::new(), seen: HashSet::new(), is_full: false }
    }

    /// A finding of `rule` in the bytes from `start` to `end`.
    pub(super) fn add(
        &mut self,
        rule: &Rule,
        lines: &Lines<'_>,
        start: usize,
        end: usize,
        detail: Option<&str>,
    ) {
        // Expressions find bytes, and may begin or end inside of a character.
        let (start, end) = (lines.text.floor_char_boundary(start), lines.text.ceil_char_boundary(end));
        let (number, line, line_start) = lines.around(start);
        let column = line.get(..start - line_start).map_or(0, |before| before.chars().count());
        let (excerpt, mark) = excerpt(line, start - line_start, end - line_start);
        let position = (number_of(number + 1), number_of(column + 1));
        self.push(rule, lines.path, position, excerpt, mark, detail);
    }

    /// The same for the rule that looks with code.
    pub(super) fn place(
        &mut self,
        detector: Detector,
        lines: &Lines<'_>,
        start: usize,
        end: usize,
        detail: Option<&str>,
    ) {
        if let Some(rule) = self.rules.detector(detector) {
            let spells = detail.filter(|_| detector == Detector::TagCharacters);
            let detail = match spells {
                Some(spells) => Some(Cow::Owned(format!("they spell \"{spells}\""))),
                None => detail.map(Cow::Borrowed),
            };
            self.add(rule, lines, start, end, detail.as_deref());
        }
    }

    /// The same for a whole file, or the whole skill when `path` is empty.
    pub(super) fn whole(&mut self, detector: Detector, path: &str, detail: Option<&str>) {
        if let Some(rule) = self.rules.detector(detector) {
            self.push(rule, path, (0, 0), String::new(), 0..0, detail);
        }
    }

    fn push(
        &mut self,
        rule: &Rule,
        path: &str,
        (line, column): (u32, u32),
        excerpt: String,
        mark: Range<usize>,
        detail: Option<&str>,
    ) {
        if self.found.len() == MAX_FINDINGS {
            self.is_full = true;
            return;
        }
        if !self.seen.insert((rule.code.clone(), path.to_owned(), line)) {
            return;
        }
        self.found.push(Finding {
            code: rule.code.clone(),
            risk: rule.risk,
            file: shown(path).into_owned(),
            line,
            column,
            excerpt,
            mark,
            reason: shown(&rule.reason).into_owned(),
            detail: detail.map(|detail| cut(&shown(cut(detail))).to_owned()),
            help: rule.help.as_deref().map(|help| shown(help).into_owned()),
        });
    }

    pub(super) fn into_report(mut self) -> Report {
        if self.is_full
            && let Some(rule) = self.rules.detector(Detector::NotScanned)
        {
            self.found.pop();
            let detail = format!("there are more than {MAX_FINDINGS} findings");
            self.push(rule, "", (0, 0), String::new(), 0..0, Some(&detail));
        }
        self.found
            .sort_by(|a, b| (&a.file, a.line, a.column, &a.code).cmp(&(&b.file, b.line, b.column, &b.code)));
        Report { findings: self.found, files: self.files, bytes: self.bytes }
    }
}

fn number_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The beginning of a text.
fn cut(text: &str) -> &str {
    text.char_indices().nth(EXCERPT_CHARS).map_or(text, |(at, _)| &text[..at])
}

/// The part of `line` around the bytes from `start` to `end`, safe to show, and where they are in it.
fn excerpt(line: &str, start: usize, end: usize) -> (String, Range<usize>) {
    let start = start.min(line.len());
    let end = line.ceil_char_boundary(end.clamp(start, line.len()));
    let from = line[..start].char_indices().rev().nth(BEFORE_CHARS - 1).map_or(0, |(at, _)| at);
    let to = line[from..].char_indices().nth(EXCERPT_CHARS).map_or(line.len(), |(at, _)| from + at);
    let end = end.min(to);
    // Each part for itself would see joiners without what is beside them.
    let line = &line[from..to];
    let (start, end) = (start - from, end - from);
    let mut text = String::new();
    let (mut mark, mut copied) = ((None, None), 0);
    let mut note = |at: usize, length: usize| {
        mark.0 = mark.0.or((at >= start).then_some(length));
        mark.1 = mark.1.or((at >= end).then_some(length));
    };
    for (at, c) in hidden(line) {
        for (more, _) in line[copied..at].char_indices() {
            note(copied + more, text.len() + more);
        }
        text.push_str(&line[copied..at]);
        note(at, text.len());
        if c == '\t' {
            text.push(' ')
        } else {
            text.extend(c.escape_unicode())
        }
        copied = at + c.len_utf8();
    }
    for (more, _) in line[copied..].char_indices() {
        note(copied + more, text.len() + more);
    }
    text.push_str(&line[copied..]);
    let mark = mark.0.unwrap_or(text.len())..mark.1.unwrap_or(text.len());
    let trimmed = text.len() - text.trim_start().len();
    let indent = trimmed.min(mark.start);
    let end = text.trim_end().len().max(mark.end);
    (text[indent..end].to_owned(), mark.start - indent..mark.end - indent)
}
