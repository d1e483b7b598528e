//! [`Finding`] and [`Report`]: the results of a scan.

use std::{borrow::Cow, collections::HashSet, ops::Range, time::Instant};

use serde::Serialize;

use super::{
    MAX_FINDINGS,
    rules::{Detector, Risk, Rule, Rules},
};
use crate::{
    catalog::one_line,
    diagnostic::Severity,
    order,
    text::{hidden, plain_spaces, shown},
};

/// The maximum number of characters before the match in an excerpt.
const BEFORE_CHARS: usize = 40;
/// The maximum number of characters in an excerpt.
const EXCERPT_CHARS: usize = 160;

/// A part of a skill that a person should review.
///
/// Serializes to `{"code","risk","file","line","column","excerpt","reason","detail"?,"help"?}`. All texts are escaped, so they
/// are safe to display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The code of the rule, such as `fetch-and-run`.
    pub code: String,
    /// The risk of the rule.
    pub risk: Risk,
    /// The path of the file, relative to the skill's directory and separated by `/`. Empty if the finding is about the whole
    /// skill.
    pub file: String,
    /// The line in the file, starting at 1. Zero if the finding is about the whole file or skill.
    pub line: u32,
    /// The column in the line, in characters starting at 1. Zero if `line` is zero.
    pub column: u32,
    /// The part of the line around the match, at most 160 characters before escaping. Empty if `line` is zero.
    pub excerpt: String,
    /// The byte range of the match in `excerpt`.
    #[serde(skip)]
    pub mark: Range<usize>,
    /// The problem, as a fragment without a capital letter or full stop.
    pub reason: String,
    /// More information, such as decoded text or the type of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// A suggestion for the author of the skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Finding {
    /// Returns [`Severity::Error`] for high risks, and [`Severity::Warning`] otherwise.
    pub fn severity(&self) -> Severity {
        if self.risk == Risk::High { Severity::Error } else { Severity::Warning }
    }

    /// Returns true if the scan could not read a part of the skill: a file that exceeds a limit, an archive, a compiled
    /// program, or a binary file of unknown type. Such a part can contain anything.
    pub fn is_unread(&self) -> bool {
        matches!(self.code.as_str(), "not-scanned" | "archive-file" | "program-file" | "binary-file")
    }

    /// Returns true if the other finding has the same match, or one that begins with it or is the beginning of it.
    fn is_same(&self, other: &Self) -> bool {
        let words = |finding: &Self| one_line(&finding.excerpt[finding.mark.clone()]);
        let begins = |a: &Self, b: &Self| words(a).starts_with(&words(b));
        (&self.code, &self.file) == (&other.code, &other.file) && (begins(self, other) || begins(other, self))
    }

    /// Returns the reason, followed by the detail if there is one.
    pub fn message(&self) -> String {
        match &self.detail {
            Some(detail) => format!("{}: {detail}", self.reason),
            None => self.reason.clone(),
        }
    }
}

/// The result of a scan. Serializes to `{"findings","files","bytes"}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The findings, sorted by file, line and column.
    pub findings: Vec<Finding>,
    /// The number of scanned files.
    pub files: usize,
    /// The number of bytes that were read from text files.
    pub bytes: u64,
}

impl Report {
    /// Returns the highest risk of all findings, or `None` if there are no findings.
    pub fn risk(&self) -> Option<Risk> {
        self.findings.iter().map(|finding| finding.risk).max()
    }
}

/// A text with an index of its lines. All its spaces are plain ones, because a model reads others like them.
pub(super) struct Lines<'t> {
    path: &'t str,
    text: Cow<'t, str>,
    /// The byte offset of the start of each line.
    starts: Vec<usize>,
    /// The number of lines before the text, if it is a part of a file.
    before: usize,
}

impl<'t> Lines<'t> {
    pub(super) fn new(path: &'t str, text: &'t str) -> Self {
        Self::after(0, path, text)
    }

    /// Indexes a part of a file that begins after the first `before` lines.
    pub(super) fn after(before: usize, path: &'t str, text: &'t str) -> Self {
        let text = plain_spaces(text);
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        let starts = std::iter::once(0).chain(breaks).collect();
        Self { path, text, starts, before }
    }

    pub(super) fn path(&self) -> &'t str {
        self.path
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the line that contains the byte `at`: its number starting at 0, its text, and its byte offset.
    fn around(&self, at: usize) -> (usize, &str, usize) {
        let line = self.starts.partition_point(|&start| start <= at) - 1;
        let start = self.starts[line];
        let end = self.starts.get(line + 1).map_or(self.text.len(), |&next| next - 1);
        (line, self.text[start..end].trim_end_matches('\r'), start)
    }
}

/// The findings of a running scan.
pub(super) struct Findings<'r> {
    pub(super) rules: &'r Rules,
    pub(super) files: usize,
    /// The number of bytes that were read from texts.
    pub(super) bytes: u64,
    /// The number of bytes that were read from binary files.
    pub(super) binary_bytes: u64,
    /// The time after which no more content is scanned.
    pub(super) deadline: Option<Instant>,
    found: Vec<Finding>,
    /// The code, file and line of each finding, so that a rule is reported only once per line.
    seen: HashSet<(String, String, u32)>,
    is_full: bool,
}

impl<'r> Findings<'r> {
    pub(super) fn new(rules: &'r Rules) -> Self {
        Self {
            rules,
            files: 0,
            bytes: 0,
            binary_bytes: 0,
            deadline: None,
            found: Vec::new(),
            seen: HashSet::new(),
            is_full: false,
        }
    }

    /// Returns true if the deadline has passed.
    pub(super) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Adds a finding of `rule` for the bytes from `start` to `end`.
    pub(super) fn add(
        &mut self,
        rule: &Rule,
        lines: &Lines<'_>,
        start: usize,
        end: usize,
        detail: Option<&str>,
    ) {
        // Expressions match bytes, so a match may start or end within a character.
        let start = lines.text.floor_char_boundary(start);
        let end = lines.text.ceil_char_boundary(end);
        let (number, line, line_start) = lines.around(start);
        // Check this first, because the position within a long line takes long to find.
        if !self.is_new(rule, lines.path, number_of(lines.before + number + 1)) {
            return;
        }
        let column = line.get(..start - line_start).map_or(0, |before| before.chars().count());
        let (excerpt, mark) = excerpt(line, start - line_start, end - line_start);
        let position = (number_of(lines.before + number + 1), number_of(column + 1));
        self.push(rule, lines.path, position, excerpt, mark, detail);
    }

    /// Adds a finding of the rule with this detector for the bytes from `start` to `end`.
    pub(super) fn add_detected(
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
                Some(spells) => Some(Cow::Owned(format!("hidden text is \"{spells}\""))),
                None => detail.map(Cow::Borrowed),
            };
            self.add(rule, lines, start, end, detail.as_deref());
        }
    }

    /// Adds a finding of the rule with this detector for a whole file, or for the whole skill if `path` is empty.
    pub(super) fn add_for_file(&mut self, detector: Detector, path: &str, detail: Option<&str>) {
        if let Some(rule) = self.rules.detector(detector) {
            self.push(rule, path, (0, 0), String::new(), 0..0, detail);
        }
    }

    /// Adds a finding for content that is not scanned.
    pub(super) fn add_unread(&mut self, path: &str, why: &str) {
        self.add_for_file(Detector::NotScanned, path, Some(why));
    }

    /// Adds the findings in a text that was decoded from this line of a file, unless the file has a finding with the same match.
    pub(super) fn add_decoded(&mut self, path: &str, line: usize, text: &str) {
        let mut decoded = Self::new(self.rules);
        super::scan_all(path, text, &mut decoded);
        for finding in decoded.found {
            let is_new = !self.found.iter().any(|other| finding.is_same(other));
            if is_new && self.found.len() < MAX_FINDINGS {
                self.found.push(Finding { line: number_of(line), ..finding });
            } else {
                self.is_full |= is_new;
            }
        }
    }

    /// Returns true if there is room for a finding of this rule in this line.
    fn is_new(&mut self, rule: &Rule, path: &str, line: u32) -> bool {
        if self.found.len() == MAX_FINDINGS {
            self.is_full = true;
            return false;
        }
        !self.seen.contains(&(rule.code.clone(), path.to_owned(), line))
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
        if !self.is_new(rule, path, line) {
            return;
        }
        self.seen.insert((rule.code.clone(), path.to_owned(), line));
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
        if self.is_full && self.rules.detector(Detector::NotScanned).is_some() {
            self.found.pop();
            self.add_unread("", &format!("more than {MAX_FINDINGS} findings"));
        }
        order::sort_by(&mut self.found, |a, b| {
            (&a.file, a.line, a.column, &a.code).cmp(&(&b.file, b.line, b.column, &b.code))
        });
        Report { findings: self.found, files: self.files, bytes: self.bytes }
    }
}

fn number_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Truncates a text to the length of an excerpt.
fn cut(text: &str) -> &str {
    text.char_indices().nth(EXCERPT_CHARS).map_or(text, |(at, _)| &text[..at])
}

/// Returns the escaped part of `line` around the bytes from `start` to `end`, and their byte range in that part.
fn excerpt(line: &str, start: usize, end: usize) -> (String, Range<usize>) {
    let start = start.min(line.len());
    let end = line.ceil_char_boundary(end.clamp(start, line.len()));
    let from = line[..start].char_indices().rev().nth(BEFORE_CHARS - 1).map_or(0, |(at, _)| at);
    let to = line[from..].char_indices().nth(EXCERPT_CHARS).map_or(line.len(), |(at, _)| from + at);
    let end = end.min(to);
    // Escape the whole part at once, because joiners are only valid next to certain characters.
    let line = &line[from..to];
    let start = start - from;
    let end = end - from;
    let mut text = String::new();
    let mut mark_start = None;
    let mut mark_end = None;
    let mut copied = 0;
    // Maps byte offsets in the line to those in the escaped text.
    let mut note = |at: usize, length: usize| {
        mark_start = mark_start.or((at >= start).then_some(length));
        mark_end = mark_end.or((at >= end).then_some(length));
    };
    for (at, c) in hidden(line) {
        for (more, _) in line[copied..at].char_indices() {
            note(copied + more, text.len() + more);
        }
        text.push_str(&line[copied..at]);
        note(at, text.len());
        if c == '\t' {
            text.push(' ');
        } else {
            text.extend(c.escape_unicode());
        }
        copied = at + c.len_utf8();
    }
    for (more, _) in line[copied..].char_indices() {
        note(copied + more, text.len() + more);
    }
    text.push_str(&line[copied..]);
    let mark = mark_start.unwrap_or(text.len())..mark_end.unwrap_or(text.len());
    let trimmed = text.len() - text.trim_start().len();
    let indent = trimmed.min(mark.start);
    let end = text.trim_end().len().max(mark.end);
    (text[indent..end].to_owned(), mark.start - indent..mark.end - indent)
}
