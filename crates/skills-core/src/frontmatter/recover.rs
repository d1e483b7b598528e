//! Recovers fields from frontmatter that is not valid YAML.
//!
//! A field is a line `key:` and everything up to the next such line. Each field is parsed separately, so that an error in one
//! field doesn't affect the others. If the value of a text field is invalid YAML, the literal text is used. An invalid mapping is
//! recovered entry by entry, and other invalid values are left out.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use super::{
    findings::Findings,
    keys::{Field, kebab},
    split::{key, lines},
    yaml::{Cause, Kind, Node, Position, Problem, compose},
};
use crate::diagnostic::Diagnostic;

/// The fields of a mapping, in the order of the file.
pub(super) type Entries<'a> = Vec<(Node<'a>, Node<'a>)>;

/// The maximum number of fields that are parsed separately.
const MAX_FIELDS: usize = 512;
/// The number of levels at which mappings are recovered: the top level, and the one below for `metadata`.
const MAX_LEVELS: u32 = 2;

/// Parses the fields of `source`, which can't be parsed as a whole because of `problem`.
pub(super) fn recover<'a>(source: &'a str, problem: &Problem, findings: &mut Findings) -> Entries<'a> {
    let before = findings.list.len();
    let entries = level(source, 0..source.len(), 1, 1, findings);
    if findings.list.len() == before && !entries.is_empty() {
        // If each field is valid on its own, we can only report the error for the whole text.
        findings.broken(
            invalid(&format!("invalid YAML in frontmatter: {}", problem.message))
                .at(problem.line + findings.lines_before, problem.column),
        );
    }
    entries
}

/// Returns the literal text after the key at `key_start`, without interpreting it as YAML. Returns `None` if the key is not at
/// the beginning of a line.
pub(super) fn literal_after(source: &str, key_start: Position) -> Option<Cow<'_, str>> {
    let line_start = source.get(..key_start.byte)?.rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let indent = key_start.byte - line_start;
    if !source[line_start..key_start.byte].bytes().all(|byte| byte == b' ') {
        return None;
    }
    let (_, colon) = key_at(&source[line_start..], indent)?;
    let start = line_start + colon;
    let end = lines(source, start).skip(1).find(|line| key_at(line.text, indent).is_some());
    Some(literal(&source[start..end.map_or(source.len(), |line| line.start)]))
}

/// A field: a line `key:` and everything up to the next key.
struct Block<'a> {
    key: &'a str,
    start: Position,
    /// The range of the value in `source`.
    value: Range<usize>,
    line: u32,
}

/// Parses the fields of one level. `range` is their range in `source`, and `first` the number of its first line.
fn level<'a>(
    source: &'a str,
    range: Range<usize>,
    first: u32,
    depth: u32,
    findings: &mut Findings,
) -> Entries<'a> {
    let mut entries = Entries::new();
    let mut seen = HashSet::new();
    let fields = fields(&source[..range.end], range.start, first, findings);
    if fields.len() > MAX_FIELDS {
        findings.broken(findings.at(
            fields[MAX_FIELDS].start,
            invalid(&format!("invalid YAML with too many fields; using only the first {MAX_FIELDS}")),
        ));
    }
    for field in fields.into_iter().take(MAX_FIELDS) {
        if !seen.insert(field.key) {
            duplicate(field.start, field.key, findings);
            continue;
        }
        if let Some(value) = value(source, &field, depth, findings) {
            entries.push((Node::literal(Cow::Borrowed(field.key), field.start), value));
        }
    }
    entries
}

/// Reports a duplicate key.
pub(super) fn duplicate(position: Position, key: &str, findings: &mut Findings) {
    let finding =
        Diagnostic::warning("duplicate-key", format!("duplicate field `{key}`; using the first value"))
            .help("remove the duplicate");
    findings.broken(findings.at(position, finding));
}

/// Parses the value of `field`. Returns `None` if it can't be used.
fn value<'a>(source: &'a str, field: &Block<'a>, depth: u32, findings: &mut Findings) -> Option<Node<'a>> {
    let shift = Position { line: field.line - 1, column: 0, byte: line_start(source, field.start.byte) };
    let problem = match compose(&source[shift.byte..field.value.end]) {
        Ok(composed) => {
            for (position, key) in composed.duplicates {
                duplicate(moved(position, shift), &key, findings);
            }
            match composed.root.map(|root| root.kind) {
                Some(Kind::Map { mut entries, flow: false }) if entries.len() == 1 => {
                    let (_, mut value) = entries.swap_remove(0);
                    move_node(&mut value, shift);
                    return Some(value);
                }
                // In YAML, `name:value` is a single word.
                _ => Problem {
                    line: 1,
                    column: field.start.column,
                    message: Cow::Borrowed("expected a space after the colon"),
                    cause: Cause::Syntax,
                },
            }
        }
        Err(problem) => problem,
    };
    let line = problem.line + shift.line + findings.lines_before;
    let column = problem.column;
    let text = &source[field.value.clone()];
    let is_text = Field::named(&kebab(field.key)).is_some_and(Field::is_text);
    if problem.cause == Cause::Limit || (!is_text && is_structured(text)) {
        if depth < MAX_LEVELS
            && problem.cause != Cause::Limit
            && text.trim_start_matches([' ', '\t']).starts_with(['\n', '\r'])
        {
            let entries = level(source, field.value.clone(), field.line, depth + 1, findings);
            if !entries.is_empty() {
                let kind = Kind::Map { entries, flow: false };
                return Some(Node { kind, start: field.start, end: field.value.end, marked: false });
            }
        }
        let message = format!("ignoring invalid value for `{}`: {}", field.key, problem.message);
        findings.broken(Diagnostic::warning("field-left-out", message).at(line, column));
        return None;
    }
    let message = format!("invalid YAML value for `{}`: {}", field.key, problem.message);
    findings.broken(invalid(&message).at(line, column));
    let start = Position { byte: field.value.start, ..field.start };
    Some(Node::literal(literal(text), start))
}

fn invalid(message: &str) -> Diagnostic {
    Diagnostic::warning("invalid-yaml", message)
        .help("put the text in quotes, or in indented lines after `>-`; using the literal text for now")
}

/// Returns true if `value` looks like a list or a mapping, so that its literal text is useless.
fn is_structured(value: &str) -> bool {
    let inline = value.trim_start_matches([' ', '\t']);
    if inline.starts_with(['\n', '\r']) {
        let first = value.trim_start();
        return first.starts_with("- ") || key(first.lines().next().unwrap_or_default()).is_some();
    }
    // If the bracket is closed at the end or not at all, this should be a collection, but `[Beta] text` and `{{x}}` are just
    // text.
    match inline.as_bytes().first() {
        Some(b'[') => inline.trim_end().ends_with(']') || !inline.contains(']'),
        Some(b'{') => {
            !inline.starts_with("{{") && (inline.trim_end().ends_with('}') || !inline.contains('}'))
        }
        _ => false,
    }
}

/// Finds the fields in `source`, starting at the byte offset `from`, which is in line `first`.
fn fields<'a>(source: &'a str, from: usize, first: u32, findings: &mut Findings) -> Vec<Block<'a>> {
    let mut fields: Vec<Block<'a>> = Vec::new();
    let mut indent = None;
    let mut reported = false;
    for (line, number) in lines(source, from).zip(first..) {
        let column = line.text.len() - line.text.trim_start_matches(' ').len();
        let here = *indent.get_or_insert(column);
        let Some((key, colon)) = key_at(line.text, here) else {
            if fields.is_empty() {
                // The first field determines the indentation.
                indent = None;
                let text = line.text.trim_start();
                if !text.is_empty() && !text.starts_with('#') && !std::mem::replace(&mut reported, true) {
                    let finding =
                        Diagnostic::warning("not-a-field", "ignoring line: expected a `key: value` pair");
                    findings.broken(finding.at(number + findings.lines_before, 0));
                }
            }
            continue;
        };
        if let Some(before) = fields.last_mut() {
            before.value.end = line.start;
        }
        let start = Position {
            line: number,
            column: u32::try_from(here).unwrap_or(u32::MAX) + 1,
            byte: line.start + here,
        };
        fields.push(Block { key, start, value: line.start + colon..source.len(), line: number });
        if fields.len() > MAX_FIELDS {
            break;
        }
    }
    fields
}

/// Returns the key that starts after exactly `indent` spaces, and the byte offset after its colon.
fn key_at(line: &str, indent: usize) -> Option<(&str, usize)> {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    if blanks != indent {
        return None;
    }
    let text = line[indent..].split(['\n', '\r']).next()?;
    let (key, colon) = key(text).or_else(|| {
        // We only accept a missing space after the colon for these two fields, because every skill needs them.
        ["name", "description"].into_iter().find_map(|known| {
            text.strip_prefix(known)?.starts_with(':').then(|| (&text[..known.len()], known.len() + 1))
        })
    })?;
    Some((key, indent + colon))
}

/// Returns the text that the author of `value` probably meant.
fn literal(value: &str) -> Cow<'_, str> {
    let trimmed = value.trim();
    let mut rest = trimmed.lines();
    let first = rest.next().unwrap_or_default();
    let folded = match first.as_bytes() {
        [style @ (b'|' | b'>'), indicators @ ..]
            if indicators.iter().all(|byte| matches!(byte, b'+' | b'-' | b'0'..=b'9' | b' ')) =>
        {
            let text = trimmed[first.len()..].trim_start_matches(['\n', '\r']);
            return Cow::Owned(if *style == b'|' { dedent(text) } else { fold(text) });
        }
        _ if trimmed.contains(['\n', '\r']) => Cow::Owned(fold(trimmed)),
        _ => Cow::Borrowed(trimmed),
    };
    unquote(folded)
}

/// Removes surrounding quotes, even if they are not closed. Text such as `"a" and "b"` is kept.
fn unquote(text: Cow<'_, str>) -> Cow<'_, str> {
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        return text;
    };
    let inner = match text[1..].strip_suffix(quote) {
        Some(inner) if !closes_early(inner, quote) => inner,
        None if !text[1..].contains(quote) => &text[1..],
        _ => return text,
    };
    Cow::Owned(if quote == '"' { inner.replace("\\\"", "\"") } else { inner.replace("''", "'") })
}

/// Returns true if the first `quote` in `inner` looks like a closing quote: after a word, and not within it as in `it's`.
fn closes_early(inner: &str, quote: char) -> bool {
    inner.find(quote).is_some_and(|at| {
        let before = inner[..at].chars().next_back();
        let after = inner[at + 1..].chars().next();
        before.is_none_or(|c| !c.is_whitespace() && c != '\\' && c != quote)
            && after.is_none_or(|c| !c.is_alphanumeric() && c != quote)
    })
}

/// Joins lines with spaces. An empty line becomes a line break.
fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for line in text.lines().map(str::trim) {
        if line.is_empty() {
            folded.push('\n');
        } else {
            if !folded.is_empty() && !folded.ends_with('\n') {
                folded.push(' ');
            }
            folded.push_str(line);
        }
    }
    folded
}

/// Removes the common indentation of all lines.
fn dedent(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let shared = text.lines().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or_default();
    let lines: Vec<&str> = text.lines().map(|line| line.get(shared..).unwrap_or_default()).collect();
    lines.join("\n")
}

fn line_start(source: &str, byte: usize) -> usize {
    source[..byte].rfind(['\n', '\r']).map_or(0, |at| at + 1)
}

fn moved(position: Position, by: Position) -> Position {
    Position { line: position.line + by.line, byte: position.byte + by.byte, ..position }
}

fn move_node(node: &mut Node<'_>, by: Position) {
    node.start = moved(node.start, by);
    node.end += by.byte;
    match &mut node.kind {
        Kind::Text { .. } => {}
        Kind::List { items, .. } => items.iter_mut().for_each(|item| move_node(item, by)),
        Kind::Map { entries, .. } => entries.iter_mut().for_each(|(key, value)| {
            move_node(key, by);
            move_node(value, by);
        }),
    }
}
