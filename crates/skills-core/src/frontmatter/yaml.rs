//! Composes a tree of [`Node`]s with positions from the events of `granit-parser`, with limits on depth and size.
//!
//! We don't use serde, because recovery needs information that serde hides: the position of a value, its quotes, and its tags
//! and anchors. Scalars keep their literal text (`1.10`, `yes`). Duplicate keys are reported and the first one is kept. Aliases
//! are not supported.

use std::{borrow::Cow, collections::HashSet};

use granit_parser::{
    ErrorKind, Event, Marker, Options, Parser, ScalarStyle, Span, StrInput, StructureStyle, Tag,
};
use serde_json::{Map, Number, Value};

use super::{MAX_DEPTH, MAX_NODES, split::lines};

/// A position in the YAML text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Position {
    /// The line, starting at 1.
    pub line: u32,
    /// The column in characters, starting at 1.
    pub column: u32,
    /// The byte offset, starting at 0.
    pub byte: usize,
}

/// A node of the tree.
#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub kind: Kind<'a>,
    pub start: Position,
    /// The byte offset after the node.
    pub end: usize,
    /// True if the node has a tag or an anchor. Nearly always, the author meant literal text.
    pub marked: bool,
}

/// The type and the content of a node.
#[derive(Debug, Clone)]
pub(super) enum Kind<'a> {
    Text {
        text: Cow<'a, str>,
        /// True if the text is neither quoted nor a block.
        plain: bool,
    },
    List {
        items: Vec<Node<'a>>,
        flow: bool,
    },
    Map {
        entries: Vec<(Node<'a>, Node<'a>)>,
        flow: bool,
    },
}

/// The reason why a text can't be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub line: u32,
    pub column: u32,
    pub message: Cow<'static, str>,
    pub cause: Cause,
}

/// The kind of a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The text is invalid YAML.
    Syntax,
    /// The text exceeds a limit.
    Limit,
    /// A quoted text continues in the next line without indentation. See [`indent_quoted`].
    QuoteIndent,
}

/// A parsed text, with the duplicate keys of its mappings.
#[derive(Debug)]
pub(super) struct Composed<'a> {
    /// The root node, or `None` if the text has only comments.
    pub root: Option<Node<'a>>,
    pub duplicates: Vec<(Position, String)>,
}

/// Parses `source`, which must be a single YAML document.
pub(super) fn compose(source: &str) -> Result<Composed<'_>, Problem> {
    let mut composer = Composer {
        parser: Parser::new_from_str_with_options(source, options()),
        nodes: 0,
        duplicates: Vec::new(),
    };
    let mut root = None;
    while let Some((event, span)) = composer.next()? {
        match event {
            Event::DocumentStart(..) if root.is_some() => {
                return Err(problem(span.start, "expected a single YAML document"));
            }
            Event::StreamStart | Event::StreamEnd | Event::DocumentStart(..) | Event::DocumentEnd => {}
            event => root = Some(composer.node(event, span, 0)?),
        }
    }
    Ok(Composed { root, duplicates: composer.duplicates })
}

/// Adds the indentation of quoted text that YAML 1.2 requires, although most parsers don't. `problem` must be a
/// [`Cause::QuoteIndent`]. Returns `None` if the text has other problems too.
pub(super) fn indent_quoted(source: &str, problem: &Problem) -> Option<String> {
    /// The maximum number of lines that are indented, because we parse the text again for each line.
    const MAX_LINES: usize = 16;
    /// An indentation that is larger than that of any block. Leading spaces of such a line are not part of the text.
    const INDENT: &str = "                                        ";

    let mut fixed = source.to_owned();
    let mut line = problem.line;
    for _ in 0..MAX_LINES {
        let start = lines(&fixed, 0).nth(usize::try_from(line).ok()?.checked_sub(1)?)?.start;
        fixed.insert_str(start, INDENT);
        match compose(&fixed) {
            Ok(_) => return Some(fixed),
            Err(next) if next.cause == Cause::QuoteIndent && next.line > line => line = next.line,
            Err(_) => return None,
        }
    }
    None
}

fn options() -> Options {
    let mut options = granit_parser::options! {
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    // We don't handle events for comments, but another crate may have enabled this feature of the parser.
    options.set_emit_comments(false);
    options
}

struct Composer<'a> {
    parser: Parser<'a, StrInput<'a>>,
    nodes: usize,
    duplicates: Vec<(Position, String)>,
}

impl<'a> Composer<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, Problem> {
        self.parser.next_event().transpose().map_err(|error| {
            let cause = match error.kind() {
                ErrorKind::RecursionLimitExceeded => Cause::Limit,
                ErrorKind::InvalidQuotedScalarIndent => Cause::QuoteIndent,
                _ => Cause::Syntax,
            };
            let message =
                if cause == Cause::Limit { Cow::Borrowed(TOO_DEEP) } else { Cow::Owned(error.info()) };
            Problem { message, cause, ..problem(*error.marker(), "") }
        })
    }

    /// Composes the node that starts with `event`.
    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node<'a>, Problem> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(Problem { cause: Cause::Limit, ..problem(span.start, TOO_MANY) });
        }
        if depth >= MAX_DEPTH {
            return Err(Problem { cause: Cause::Limit, ..problem(span.start, TOO_DEEP) });
        }
        let start = position(span.start);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                // For a missing value, the parser returns `~`.
                let text =
                    if plain && span.start.index() == span.end.index() { Cow::Borrowed("") } else { text };
                let kind = Kind::Text { text, plain };
                Ok(Node { kind, start, end: byte(span.end), marked: marked(anchor, tag.as_deref()) })
            }
            Event::SequenceStart(style, anchor, tag) => {
                let mut items = Vec::new();
                loop {
                    let (event, span) = self.inside(span.start)?;
                    if event == Event::SequenceEnd {
                        let kind = Kind::List { items, flow: style == StructureStyle::Flow };
                        return Ok(Node {
                            kind,
                            start,
                            end: byte(span.end),
                            marked: marked(anchor, tag.as_deref()),
                        });
                    }
                    items.push(self.node(event, span, depth + 1)?);
                }
            }
            Event::MappingStart(style, anchor, tag) => {
                let mut entries = Vec::new();
                let mut seen = Keys::default();
                loop {
                    let (event, span) = self.inside(span.start)?;
                    if event == Event::MappingEnd {
                        let kind = Kind::Map { entries, flow: style == StructureStyle::Flow };
                        return Ok(Node {
                            kind,
                            start,
                            end: byte(span.end),
                            marked: marked(anchor, tag.as_deref()),
                        });
                    }
                    let key = self.node(event, span, depth + 1)?;
                    let (event, span) = self.inside(span.start)?;
                    let value = self.node(event, span, depth + 1)?;
                    if let Some(text) = key.text()
                        && !seen.insert(text, &entries)
                    {
                        self.duplicates.push((key.start, text.to_owned()));
                    } else {
                        entries.push((key, value));
                    }
                }
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                Err(problem(span.start, "YAML aliases are not supported"))
            }
            _ => Err(problem(span.start, "unexpected structure")),
        }
    }

    /// Returns the next event in a collection that starts at `start`.
    fn inside(&mut self, start: Marker) -> Result<(Event<'a>, Span), Problem> {
        self.next()?.ok_or_else(|| problem(start, "list or mapping is not closed"))
    }
}

const TOO_DEEP: &str = "nested too deeply";
const TOO_MANY: &str = "too many values";

/// The keys of a mapping. They are compared one by one if there are few, and hashed if there are many.
#[derive(Default)]
struct Keys(HashSet<Box<str>>);

impl Keys {
    const FEW: usize = 16;

    /// Returns true if `key` is new. `entries` are the previous entries.
    fn insert(&mut self, key: &str, entries: &[(Node<'_>, Node<'_>)]) -> bool {
        if entries.len() < Self::FEW {
            return !entries.iter().any(|(earlier, _)| earlier.text() == Some(key));
        }
        if self.0.is_empty() {
            self.0.extend(entries.iter().filter_map(|(earlier, _)| earlier.text().map(Box::from)));
        }
        self.0.insert(key.into())
    }
}

impl<'a> Node<'a> {
    /// Creates a quoted text at `start`.
    pub(super) fn literal(text: Cow<'a, str>, start: Position) -> Self {
        Self { kind: Kind::Text { text, plain: false }, start, end: start.byte, marked: false }
    }

    /// Returns the text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns true if the node has no value, or the value `~` or `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Text { text, plain: true }
            if matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// Converts the node to JSON. A number becomes a JSON number only if this keeps its text, so `1.10` becomes a string.
    pub(super) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Text { plain: true, .. } if self.is_null() => Value::Null,
            Kind::Text { text, plain: true } => plain_value(text),
            Kind::Text { text, plain: false } => Value::String(text.as_ref().to_owned()),
            Kind::List { items, .. } => Value::Array(items.iter().map(Node::to_value).collect()),
            Kind::Map { entries, .. } => {
                let mut map = Map::with_capacity(entries.len());
                for (key, value) in entries {
                    let key = key.text().map_or_else(|| key.to_value().to_string(), str::to_owned);
                    map.entry(key).or_insert_with(|| value.to_value());
                }
                Value::Object(map)
            }
        }
    }
}

fn plain_value(text: &str) -> Value {
    match text {
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let number = match text.as_bytes() {
        [b'-', b'0'..=b'9', ..] | [b'0'..=b'9', ..] => text
            .parse::<i64>()
            .map(Number::from)
            .ok()
            .or_else(|| text.parse().ok().and_then(Number::from_f64))
            .filter(|number| number.to_string() == text),
        _ => None,
    };
    number.map_or_else(|| Value::String(text.to_owned()), Value::Number)
}

fn marked(anchor: usize, tag: Option<&Tag>) -> bool {
    anchor != 0 || tag.is_some()
}

fn position(marker: Marker) -> Position {
    Position { line: number(marker.line()), column: number(marker.col() + 1), byte: byte(marker) }
}

fn byte(marker: Marker) -> usize {
    marker.byte_offset().unwrap_or_default()
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn problem(marker: Marker, message: &'static str) -> Problem {
    let Position { line, column, .. } = position(marker);
    Problem { line, column, message: Cow::Borrowed(message), cause: Cause::Syntax }
}
