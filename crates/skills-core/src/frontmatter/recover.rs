//! Recovers what it can from frontmatter that is not valid YAML: one field at a time, and text as it stands.
//!
//! A field is a `key:` line with everything below it up to the next one. Each is read alone, so that one unquoted
//! colon costs nothing but its own quotes. Text that YAML refuses becomes the literal text of the file; a list or
//! mapping that it refuses is recovered entry by entry where it has some, and left out otherwise.

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

/// Most fields that are read one by one.
const MAX_FIELDS: usize = 512;
/// Mappings are recovered in the top level and one below it (`metadata`).
const MAX_LEVELS: u32 = 2;

/// What can be read of `source`, which `problem` keeps from being read as a whole.
pub(super) fn recover<'a>(source: &'a str, problem: &Problem, findings: &mut Findings) -> Entries<'a> {
    let before = findings.list.len();
    let entries = level(source, 0..source.len(), 1, 1, findings);
    if findings.list.len() == before && !entries.is_empty() {
        // No field is to blame alone, so say what the parser said.
        findings.broken(
            invalid(&format!("the frontmatter is no valid YAML: {}", problem.message))
                .at(problem.line + findings.lines_before, problem.column),
        );
    }
    entries
}

/// The literal text behind `key`, which begins a line of `source`; what YAML reads of it does not count.
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

struct Block<'a> {
    key: &'a str,
    start: Position,
    /// The value, in `source`.
    value: Range<usize>,
    line: u32,
}

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
            invalid(&format!("only the first {MAX_FIELDS} fields of invalid YAML are read")),
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

/// Reports a key that stands twice.
pub(super) fn duplicate(position: Position, key: &str, findings: &mut Findings) {
    let finding = Diagnostic::warning(
        "duplicate-key",
        format!("`{key}` stands here a second time; the first one counts"),
    )
    .help("remove one of the two");
    findings.broken(findings.at(position, finding));
}

/// The value of `field`; `None` when nothing can be made of it.
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
                // `name:value`, which is one word to YAML.
                _ => Problem {
                    line: 1,
                    column: field.start.column,
                    message: Cow::Borrowed("a blank is missing behind the colon"),
                    cause: Cause::Syntax,
                },
            }
        }
        Err(problem) => problem,
    };
    let (line, column) = (problem.line + shift.line + findings.lines_before, problem.column);
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
        let message =
            format!("the value of `{}` cannot be read and is left out: {}", field.key, problem.message);
        findings.broken(Diagnostic::warning("field-left-out", message).at(line, column));
        return None;
    }
    let message = format!("the value of `{}` is no valid YAML: {}", field.key, problem.message);
    findings.broken(invalid(&message).at(line, column));
    let start = Position { byte: field.value.start, ..field.start };
    Some(Node::literal(literal(text), start))
}

fn invalid(message: &str) -> Diagnostic {
    Diagnostic::warning("invalid-yaml", message)
        .help("put the text in quotes, or on indented lines below `>-`; until then it is taken as it stands")
}

/// Whether `value` is meant as a list or a mapping, so that its literal text says nothing.
fn is_structured(value: &str) -> bool {
    let inline = value.trim_start_matches([' ', '\t']);
    if inline.starts_with(['\n', '\r']) {
        let first = value.trim_start();
        return first.starts_with("- ") || key(first.lines().next().unwrap_or_default()).is_some();
    }
    // `[Beta] text` and `{{x}}` are text; a closed or never closed collection is not.
    match inline.as_bytes().first() {
        Some(b'[') => inline.trim_end().ends_with(']') || !inline.contains(']'),
        Some(b'{') => {
            !inline.starts_with("{{") && (inline.trim_end().ends_with('}') || !inline.contains('}'))
        }
        _ => false,
    }
}

/// The fields in `source` from the byte `from` on, which is in the line `first`.
fn fields<'a>(source: &'a str, from: usize, first: u32, findings: &mut Findings) -> Vec<Block<'a>> {
    let mut fields: Vec<Block<'a>> = Vec::new();
    let (mut indent, mut reported) = (None, false);
    for (line, number) in lines(source, from).zip(first..) {
        let column = line.text.len() - line.text.trim_start_matches(' ').len();
        let here = *indent.get_or_insert(column);
        let Some((key, colon)) = key_at(line.text, here) else {
            if fields.is_empty() {
                // The first field decides.
                indent = None;
                let text = line.text.trim_start();
                if !text.is_empty() && !text.starts_with('#') && !std::mem::replace(&mut reported, true) {
                    let finding =
                        Diagnostic::warning("not-a-field", "this line is no `key: value` and is left out");
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

/// The key that begins behind `indent` blanks, and the byte behind its colon.
fn key_at(line: &str, indent: usize) -> Option<(&str, usize)> {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    if blanks != indent {
        return None;
    }
    let text = line[indent..].split(['\n', '\r']).next()?;
    let (key, colon) = key(text).or_else(|| {
        // Nothing but these two is worth a guess without a blank behind the colon.
        ["name", "description"].into_iter().find_map(|known| {
            text.strip_prefix(known)?.starts_with(':').then(|| (&text[..known.len()], known.len() + 1))
        })
    })?;
    Some((key, indent + colon))
}

/// The text that the author of `value` meant.
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

/// Without the quotes around it, closed or not; `"a" and "b"` keeps them.
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

/// Whether the first `quote` in `inner` reads as a closing one: behind a word, and not inside it as in `it's`.
fn closes_early(inner: &str, quote: char) -> bool {
    inner.find(quote).is_some_and(|at| {
        let before = inner[..at].chars().next_back();
        let after = inner[at + 1..].chars().next();
        before.is_none_or(|c| !c.is_whitespace() && c != '\\' && c != quote)
            && after.is_none_or(|c| !c.is_alphanumeric() && c != quote)
    })
}

/// Lines joined by blanks; an empty line stays a line break.
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
