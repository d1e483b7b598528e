//! [`SyntaxError`]: errors in the text of a configuration file, for users who don't know the parser.

use std::{fmt, path::PathBuf};

use serde_yaml::Error;
use skills_sources::disk::shorten_home;

/// The minimum similarity of a suggested key, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.75;

/// An error in the text of a configuration file, such as ``unknown key `catlog_in`: skills.yaml:2:1``.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}: {}{place}", shorten_home(file))]
#[non_exhaustive]
pub struct SyntaxError {
    /// The file.
    pub file: PathBuf,
    /// The position of the error.
    pub place: Place,
    /// The problem.
    pub message: String,
    /// A suggestion for fixing the problem, if there is one.
    pub help: Option<String>,
}

/// A line and a column, both starting at 1. `None` if the position is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place(pub Option<(u64, u64)>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((line, column)) => write!(f, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

impl SyntaxError {
    /// Describes an error of the parser in `text`, the contents of `file`.
    pub(super) fn new(file: PathBuf, text: &str, error: &Error) -> Self {
        let error = original(error);
        let place = error.location().filter(|place| place.line() > 0);
        let place = place.map(|place| (place.line(), place.column()));
        let (message, help) = describe(error, place.and_then(|place| value_at(text, place)));
        Self { file, place: Place(place), message, help }
    }
}

/// Returns the value at a line and column in backticks, up to the end of the line and shortened to 40 characters.
fn value_at(text: &str, (line, column): (u64, u64)) -> Option<String> {
    const MAX_CHARS: usize = 40;
    let line = text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
    let rest = line.chars().skip(usize::try_from(column).ok()?.checked_sub(1)?);
    let value: String = rest.take(MAX_CHARS).collect();
    let value = value.trim();
    (!value.is_empty()).then(|| format!("`{value}`"))
}

/// Returns the error without the excerpt of the file that the parser adds.
fn original(error: &Error) -> &Error {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => original(error),
        error => error,
    }
}

/// Returns the problem, and a suggestion for fixing it.
fn describe(error: &Error, value: Option<String>) -> (String, Option<String>) {
    let value = value.unwrap_or_else(|| "this".to_owned());
    match error {
        // The first key of an entry of `skills` decides what it is.
        Error::SerdeUnknownField { field, expected, .. }
            if field == "skill" && expected.contains(&"description") =>
        {
            let help = "move `skill` above the other keys of this entry";
            ("`skill` must be the first key".to_owned(), Some(help.to_owned()))
        }
        Error::SerdeUnknownField { field, expected, .. } => {
            (format!("unknown key `{field}`"), suggestion(field, expected))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            (format!("`{variant}` should be one of {}", list(expected)), None)
        }
        Error::SerdeMissingField { field, .. } => (format!("missing key `{field}`"), None),
        Error::SerdeInvalidType { unexpected, expected, .. }
        | Error::SerdeInvalidValue { unexpected, expected, .. } => {
            (format!("expected {expected}, but found {unexpected}"), None)
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_ref().map_or_else(|| "a key".to_owned(), |key| format!("key `{key}`"));
            (format!("{key} appears twice"), Some("remove the duplicate".to_owned()))
        }
        Error::InvalidScalar { ty, .. } => (format!("{value} should be {}", kind(ty)), None),
        Error::Unexpected { expected, .. } => (format!("{value} should be {}", kind(expected)), None),
        Error::Eof { .. } => ("unexpected end of file".to_owned(), None),
        Error::MultipleDocuments { .. } => {
            ("file contains more than one document".to_owned(), Some("remove all `---` lines".to_owned()))
        }
        Error::UnknownAnchor { .. } => (
            "this alias (`*`) has no anchor (`&`)".to_owned(),
            Some("use quotes for text that starts with `*`".to_owned()),
        ),
        Error::ExternalMessage { msg, .. } => (format!("invalid YAML: {msg}"), Some(INDENTATION.to_owned())),
        Error::Message { msg, .. } => (format!("{value}: {msg}"), None),
        error => (error.render_with_formatter(&serde_yaml::UserMessageFormatter), None),
    }
}

const INDENTATION: &str = "check the indentation of this line and the previous line, and use quotes for text with `: `, ` #`, `[` or `{`";

/// Returns the name of a type for the user.
fn kind(name: &str) -> &str {
    match name {
        "boolean" | "bool" => "`true` or `false`",
        "floating point" => "a number",
        "sequence start" => "a list: `[a, b]`, or `- a` and `- b` on separate lines",
        "mapping start" => "keys with values: `key: value`",
        name if name.starts_with(['i', 'u']) => "a whole number",
        name => name,
    }
}

/// Suggests the most similar key, or lists all keys.
fn suggestion(word: &str, expected: &[&'static str]) -> Option<String> {
    let dashes = word.replace('-', "_");
    let similar = expected.iter().map(|name| (strsim::jaro_winkler(&dashes, &name.replace('-', "_")), *name));
    let best = similar.max_by(|a, b| a.0.total_cmp(&b.0))?;
    if best.0 >= MIN_SIMILARITY {
        return Some(format!("did you mean `{}`?", best.1));
    }
    Some(format!("known keys are {}", list(expected)))
}

fn list(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
