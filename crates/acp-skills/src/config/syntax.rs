//! What is wrong with the text of a configuration file, in words for people who do not know its parser.

use std::{fmt, path::PathBuf};

use serde_yaml::Error;

/// How alike two words have to be, from 0 to 1, for one to be meant by the other.
const ALIKE: f64 = 0.75;

/// What is wrong with the text of a configuration file: `skills.yaml:2:1: there is no key `catlog_in``.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}:{place}{message}", file.display())]
#[non_exhaustive]
pub struct SyntaxError {
    /// The file.
    pub file: PathBuf,
    /// Where in it.
    pub place: Place,
    /// What is wrong there.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// A place in a file: line and column, both from 1; nothing when it is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(pub Option<(u64, u64)>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((line, column)) => write!(f, "{line}:{column}: "),
            None => write!(f, " "),
        }
    }
}

impl SyntaxError {
    /// What `error` says of `text`, which is in `file`.
    pub(super) fn new(file: PathBuf, text: &str, error: &Error) -> Self {
        let error = original(error);
        let place = error.location().filter(|place| place.line() > 0);
        let place = place.map(|place| (place.line(), place.column()));
        let (message, help) = words(error, place.and_then(|place| value_at(text, place)));
        Self { file, place: Place(place), message, help }
    }
}

/// The value that begins at a line and column, for people: short, and on one line.
fn value_at(text: &str, (line, column): (u64, u64)) -> Option<String> {
    const MAX_CHARS: usize = 40;
    let line = text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
    let rest = line.chars().skip(usize::try_from(column).ok()?.checked_sub(1)?);
    let value: String = rest.take(MAX_CHARS).collect();
    let value = value.trim();
    (!value.is_empty()).then(|| format!("`{value}`"))
}

/// The error itself, without the lines around it.
fn original(error: &Error) -> &Error {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => original(error),
        error => error,
    }
}

/// What is wrong, and what to do about it.
fn words(error: &Error, value: Option<String>) -> (String, Option<String>) {
    let value = value.unwrap_or_else(|| "this".to_owned());
    match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            (format!("there is no key `{field}`"), meant(field, expected))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            (format!("`{variant}` is not one of {}", list(expected)), None)
        }
        Error::SerdeMissingField { field, .. } => (format!("the key `{field}` is missing"), None),
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            (format!("this is the {unexpected}, and should be {expected}"), None)
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_ref().map_or_else(|| "a key".to_owned(), |key| format!("the key `{key}`"));
            (format!("{key} is there twice"), Some("keep one of the two".to_owned()))
        }
        Error::InvalidScalar { ty, .. } => (format!("{value} should be {}", kind(ty)), None),
        Error::Unexpected { expected, .. } => (format!("{value} should be {}", kind(expected)), None),
        Error::Eof { .. } => ("the file ends in the middle of something".to_owned(), None),
        Error::MultipleDocuments { .. } => (
            "there is more than one document in the file".to_owned(),
            Some("take out the lines `---`".to_owned()),
        ),
        Error::UnknownAnchor { .. } => (
            "this alias (`*`) has no anchor (`&`)".to_owned(),
            Some("put text that begins with `*` in quotes".to_owned()),
        ),
        Error::ExternalMessage { msg, .. } => {
            (format!("this is no valid YAML: {msg}"), Some(INDENTATION.to_owned()))
        }
        Error::Message { msg, .. } => (format!("{value}: {msg}"), None),
        error => (error.render_with_formatter(&serde_yaml::UserMessageFormatter), None),
    }
}

const INDENTATION: &str =
    "look at the indentation here and in the line above, and put text with `: `, ` #`, `[` or `{` in quotes";

/// What the parser calls a type, for people.
fn kind(name: &str) -> &str {
    match name {
        "boolean" | "bool" => "`true` or `false`",
        "floating point" => "a number",
        "sequence start" => "a list: `[a, b]`, or `- a` and `- b` on lines of their own",
        "mapping start" => "keys with values: `key: value`",
        name if name.starts_with(['i', 'u']) => "a whole number",
        name => name,
    }
}

/// What was meant by `word`, or all that can be.
fn meant(word: &str, expected: &[&'static str]) -> Option<String> {
    let dashes = word.replace('-', "_");
    let alike = expected.iter().map(|name| (strsim::jaro_winkler(&dashes, &name.replace('-', "_")), *name));
    let best = alike.max_by(|a, b| a.0.total_cmp(&b.0))?;
    if best.0 >= ALIKE {
        return Some(format!("did you mean `{}`?", best.1));
    }
    Some(format!("the keys are {}", list(expected)))
}

fn list(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
