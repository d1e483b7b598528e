//! Predicts the findings of `skills-ref validate`, the specification's reference validator.
//!
//! It differs from the specification: it splits the file at each `---`, even within a line, and parses the frontmatter with
//! StrictYAML, which rejects flow style, tags, anchors and uneven indentation. All scalars are text. The messages are
//! equal to those of the validator, so that results can be compared, but messages about YAML depend on the parser.

use std::{borrow::Cow, ops::Range};

use super::{
    MAX_COMPATIBILITY_CHARS, MAX_DESCRIPTION_CHARS, ParseContext,
    split::lines,
    yaml::{self, Cause, Kind, Node, Position},
};
use crate::{
    diagnostic::Diagnostic,
    name::{MAX_NAME_CHARS, NameRule, normalized},
    order,
};

const FENCE: &str = "---";
/// The allowed fields, sorted as the reference prints them.
const ALLOWED: [&str; 6] = ["allowed-tools", "compatibility", "description", "license", "metadata", "name"];

/// Returns the findings of the reference for the text of a file.
pub(super) fn validate(text: &str, context: &ParseContext<'_>) -> Vec<Diagnostic> {
    let mut parts = text.splitn(3, FENCE);
    if parts.next() != Some("") {
        let message = "SKILL.md must start with YAML frontmatter (---)";
        return vec![Diagnostic::error("frontmatter-missing", message).at(1, 1)];
    }
    let (Some(yaml), Some(_)) = (parts.next(), parts.next()) else {
        let message = "SKILL.md frontmatter not properly closed with ---";
        return vec![Diagnostic::error("frontmatter-not-closed", message).at(1, 0)];
    };
    // Note that the YAML starts on the line of the fence, right after it.
    let place = |position: Position| {
        (position.line, if position.line == 1 { position.column + 3 } else { position.column })
    };
    let invalid = |position: Position, message: &str| {
        let (line, column) = place(position);
        let message = format!("Invalid YAML in frontmatter: {message}");
        vec![Diagnostic::error("invalid-yaml", message).at(line, column)]
    };
    let fixed;
    let mut yaml = yaml;
    let mut composed = yaml::compose(yaml);
    if let Err(problem) = &composed
        && problem.cause == Cause::QuoteIndent
        && let Some(text) = yaml::indent_quoted(yaml, problem)
    {
        fixed = text;
        yaml = &fixed;
        composed = yaml::compose(yaml);
    }
    let composed = match composed {
        Ok(composed) => composed,
        Err(problem) => {
            let position = Position { line: problem.line, column: problem.column, byte: 0 };
            return invalid(position, &problem.message);
        }
    };
    if let Some((position, key)) = composed.duplicates.first() {
        return invalid(*position, &format!("Duplicate key '{key}' found"));
    }
    let root = composed.root.as_ref();
    if let Some((position, message)) = root.and_then(disallowed) {
        return invalid(position, message);
    }
    if let Some(position) = stray_tab(yaml, root) {
        return invalid(position, "found character '\\t' that cannot start any token");
    }
    let Some(Node { kind: Kind::Map { entries, .. }, .. }) = root else {
        let message = "SKILL.md frontmatter must be a YAML mapping";
        return vec![Diagnostic::error("frontmatter-not-a-mapping", message).at(1, 0)];
    };

    let mut fields = Fields { entries, found: Vec::new() };
    fields.unexpected();
    fields.name(context.directory);
    fields.description();
    fields.compatibility();
    let located = fields.found.into_iter().map(|(position, finding)| match position {
        Some(position) => {
            let (line, column) = place(position);
            finding.at(line, column)
        }
        None => finding,
    });
    located.collect()
}

/// Returns the first construct in `node` that StrictYAML rejects.
fn disallowed(node: &Node<'_>) -> Option<(Position, &'static str)> {
    if node.marked {
        return Some((node.start, "Found disallowed tag or anchor tokens"));
    }
    match &node.kind {
        Kind::Map { flow: true, .. } | Kind::List { flow: true, .. } => {
            Some((node.start, "Found ugly disallowed JSONesque flow mapping"))
        }
        Kind::Text { .. } => None,
        Kind::List { items, .. } => items.iter().find_map(disallowed),
        Kind::Map { entries, .. } => {
            let inside = entries.iter().find_map(|(key, value)| {
                let merge = matches!(&key.kind, Kind::Text { text, plain: true } if text == "<<");
                if merge && value.text().is_some() {
                    return Some((value.start, "expected a mapping or list of mappings for merging"));
                }
                disallowed(key).or_else(|| disallowed(value))
            });
            inside.or_else(|| {
                let values = entries.iter().map(|(_, value)| value);
                let mut maps = values.filter(|value| matches!(value.kind, Kind::Map { .. }));
                let column = maps.next()?.start.column;
                let uneven = maps.find(|map| map.start.column != column)?;
                Some((uneven.start, "Found mapping with indentation inconsistent with previous mapping"))
            })
        }
    }
}

/// Returns the position of the first tab outside of quotes, block texts and comments, where the scanner of the reference
/// rejects it.
fn stray_tab(yaml: &str, root: Option<&Node<'_>>) -> Option<Position> {
    if !yaml.contains('\t') {
        return None;
    }
    let mut protected = Vec::new();
    if let Some(root) = root {
        protect(root, &mut protected);
    }
    order::sort_by_key(&mut protected, |range| range.start);
    let mut protected = protected.into_iter().peekable();
    let bytes = yaml.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        while protected.next_if(|range| range.end <= at).is_some() {}
        if let Some(range) = protected.peek().filter(|range| range.contains(&at)) {
            at = range.end;
            continue;
        }
        match bytes[at] {
            b'#' if at == 0 || bytes[at - 1].is_ascii_whitespace() => {
                at += bytes[at..]
                    .iter()
                    .position(|byte| matches!(byte, b'\n' | b'\r'))
                    .unwrap_or(bytes.len() - at);
            }
            b'\t' => {
                let before = &yaml[..at];
                let line = lines(before, 0).count().max(1) + usize::from(before.ends_with(['\n', '\r']));
                let column = before.rsplit(['\n', '\r']).next().unwrap_or_default().chars().count() + 1;
                let number = |value| u32::try_from(value).unwrap_or(u32::MAX);
                return Some(Position { line: number(line), column: number(column), byte: at });
            }
            _ => at += 1,
        }
    }
    None
}

/// Collects the ranges of quoted texts and block texts in `node`.
fn protect(node: &Node<'_>, ranges: &mut Vec<Range<usize>>) {
    match &node.kind {
        Kind::Text { plain: true, .. } => {}
        Kind::Text { plain: false, .. } => ranges.push(node.start.byte..node.end.max(node.start.byte + 1)),
        Kind::List { items, .. } => items.iter().for_each(|item| protect(item, ranges)),
        Kind::Map { entries, .. } => entries.iter().for_each(|(key, value)| {
            protect(key, ranges);
            protect(value, ranges);
        }),
    }
}

struct Fields<'r, 'a> {
    entries: &'r [(Node<'a>, Node<'a>)],
    found: Vec<(Option<Position>, Diagnostic)>,
}

impl<'r, 'a> Fields<'r, 'a> {
    fn get(&self, name: &str) -> Option<&'r Node<'a>> {
        self.entries.iter().find(|(key, _)| key.text() == Some(name)).map(|(_, value)| value)
    }

    fn error(&mut self, node: Option<&Node<'_>>, code: &'static str, message: impl Into<String>) {
        self.found.push((node.map(|node| node.start), Diagnostic::error(code, message)));
    }

    fn unexpected(&mut self) {
        let mut unexpected: Vec<(Cow<'_, str>, &Node<'_>)> = self
            .entries
            .iter()
            .map(|(key, _)| {
                (key.text().map_or_else(|| Cow::Owned(key.to_value().to_string()), Cow::Borrowed), key)
            })
            .filter(|(name, _)| !ALLOWED.contains(&name.as_ref()))
            .collect();
        let Some(&(_, first)) = unexpected.first() else {
            return;
        };
        order::sort_by(&mut unexpected, |(a, _), (b, _)| a.cmp(b));
        let names: Vec<&str> = unexpected.iter().map(|(name, _)| name.as_ref()).collect();
        let allowed = ALLOWED.map(|name| format!("'{name}'")).join(", ");
        let message =
            format!("Unexpected fields in frontmatter: {}. Only [{allowed}] are allowed.", names.join(", "));
        self.error(Some(first), "unexpected-field", message);
    }

    /// Returns the text of a required field. Reports a missing or empty field.
    fn required(&mut self, name: &str, missing: &'static str) -> Option<(&'r Node<'a>, &'r str)> {
        let Some(node) = self.get(name) else {
            self.error(None, missing, format!("Missing required field in frontmatter: {name}"));
            return None;
        };
        let text = node.text().filter(|text| !text.trim().is_empty());
        if text.is_none() {
            self.error(Some(node), missing, format!("Field '{name}' must be a non-empty string"));
        }
        text.map(|text| (node, text))
    }

    fn name(&mut self, directory: Option<&str>) {
        let Some((node, written)) = self.required("name", "name-missing") else {
            return;
        };
        let name = normalized(written.trim());
        for rule in NameRule::broken_by(written, directory) {
            let message = match rule {
                NameRule::Length => {
                    let count = name.chars().count();
                    format!("Skill name '{name}' exceeds {MAX_NAME_CHARS} character limit ({count} chars)")
                }
                NameRule::Lowercase => format!("Skill name '{name}' must be lowercase"),
                NameRule::EdgeHyphen => "Skill name cannot start or end with a hyphen".to_owned(),
                NameRule::ConsecutiveHyphens => "Skill name cannot contain consecutive hyphens".to_owned(),
                NameRule::Characters => format!(
                    "Skill name '{name}' contains invalid characters. Only letters, digits, and hyphens are allowed."
                ),
                NameRule::Directory => {
                    let directory = directory.unwrap_or_default();
                    format!("Directory name '{directory}' must match skill name '{name}'")
                }
            };
            self.error(Some(node), rule.code(), message);
        }
    }

    fn description(&mut self) {
        let Some((node, text)) = self.required("description", "description-missing") else {
            return;
        };
        let count = text.chars().count();
        if count > MAX_DESCRIPTION_CHARS {
            let message =
                format!("Description exceeds {MAX_DESCRIPTION_CHARS} character limit ({count} chars)");
            self.error(Some(node), "description-too-long", message);
        }
    }

    fn compatibility(&mut self) {
        let Some(node) = self.get("compatibility") else {
            return;
        };
        let Some(text) = node.text() else {
            self.error(Some(node), "compatibility-not-text", "Field 'compatibility' must be a string");
            return;
        };
        let count = text.chars().count();
        if count > MAX_COMPATIBILITY_CHARS {
            let message =
                format!("Compatibility exceeds {MAX_COMPATIBILITY_CHARS} character limit ({count} chars)");
            self.error(Some(node), "compatibility-too-long", message);
        }
    }
}
