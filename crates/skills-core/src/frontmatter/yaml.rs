//! A bounded composer: the events of `granit-parser` in, a small tree with positions out.
//!
//! A tree and not serde, because recovery needs what serde hides: where a value stands, whether it was plain, and
//! whether a tag or an anchor ate a part of it. Text stays the literal text of the file (`1.10`, `yes`). Duplicate
//! keys are reported and the first one stays; aliases, depth and size beyond the caps are refused.

use std::{borrow::Cow, collections::HashSet};

use granit_parser::{
    ErrorKind, Event, Marker, Options, Parser, ScalarStyle, Span, StrInput, StructureStyle, Tag,
};
use serde_json::{Map, Number, Value};

use super::{MAX_DEPTH, MAX_NODES, split::lines};

/// A place in the text that was composed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Position {
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    /// From 0.
    pub byte: usize,
}

/// One node of the tree.
#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub kind: Kind<'a>,
    pub start: Position,
    /// The byte behind the node.
    pub end: usize,
    /// Whether a tag or an anchor stands before the node: text that was meant literally, nearly always.
    pub marked: bool,
}

/// What a node is.
#[derive(Debug, Clone)]
pub(super) enum Kind<'a> {
    Text {
        text: Cow<'a, str>,
        /// Written without quotes, in the flow of the line.
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

/// Why a text has no tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub line: u32,
    pub column: u32,
    pub message: Cow<'static, str>,
    pub cause: Cause,
}

/// What can be done about a [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// It is no YAML.
    Syntax,
    /// It may be good YAML, but it is larger than we read.
    Limit,
    /// A quoted text goes on in the next line without indentation; see [`indent_quoted`].
    QuoteIndent,
}

/// A tree, and the keys that stand twice in one mapping.
#[derive(Debug)]
pub(super) struct Composed<'a> {
    /// `None` when the text holds nothing but comments.
    pub root: Option<Node<'a>>,
    pub duplicates: Vec<(Position, String)>,
}

/// The tree of the single YAML document in `source`.
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
                return Err(problem(span.start, "a second YAML document begins here"));
            }
            Event::StreamStart | Event::StreamEnd | Event::DocumentStart(..) | Event::DocumentEnd => {}
            event => root = Some(composer.node(event, span, 0)?),
        }
    }
    Ok(Composed { root, duplicates: composer.duplicates })
}

/// `source`, of which `problem` says [`Cause::QuoteIndent`], with the indentation that YAML 1.2 wants and most parsers
/// do not; `None` when that is not all that is wrong.
pub(super) fn indent_quoted(source: &str, problem: &Problem) -> Option<String> {
    /// Lines that are indented; each costs a parse.
    const MAX_LINES: usize = 16;
    /// More than any block has; what stands at the start of such a line is not part of the text.
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
    // Another crate may have switched the feature on; no event of a comment may arrive here.
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

    /// The node that `event` begins, with everything in it.
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
                // The parser says `~` where nothing stands.
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
            Event::Alias(_) | Event::UnresolvedAlias(_) => Err(problem(span.start, "aliases are not read")),
            _ => Err(problem(span.start, "unexpected structure")),
        }
    }

    /// The next event inside a collection that began at `start`.
    fn inside(&mut self, start: Marker) -> Result<(Event<'a>, Span), Problem> {
        self.next()?.ok_or_else(|| problem(start, "a list or mapping that begins here does not end"))
    }
}

const TOO_DEEP: &str = "nested too deeply";
const TOO_MANY: &str = "too many values";

/// The keys of one mapping: compared one by one while they are few, hashed when they are many.
#[derive(Default)]
struct Keys(HashSet<Box<str>>);

impl Keys {
    const FEW: usize = 16;

    /// Whether `key` is new, given the `entries` so far.
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
    /// A text that stands at `start`, as if it were quoted.
    pub(super) fn literal(text: Cow<'a, str>, start: Position) -> Self {
        Self { kind: Kind::Text { text, plain: false }, start, end: start.byte, marked: false }
    }

    /// The text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether the node says "nothing": no value at all, `~` or `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Text { text, plain: true }
            if matches!(text.as_ref(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The node as JSON. Numbers stay numbers only if that does not change their text: `1.10` becomes a string.
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
