//! A diagnostic for people, with the lines that it is about, as a compiler shows it.

use std::{borrow::Cow, ops::Range};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use skills_core::{Diagnostic, Severity};

/// How wide the text is.
const WIDTH: usize = 120;

/// A line that is longer is shown up to here.
const MAX_LINE_CHARS: usize = 400;

/// `diagnostic`, about the file at `path` with the text `source`.
pub(super) fn render(diagnostic: &Diagnostic, path: &str, source: &str, colors: bool) -> String {
    let level = if diagnostic.severity == Severity::Warning { Level::WARNING } else { Level::ERROR };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code);
    let group = match excerpt(diagnostic, source) {
        Some((line, span)) => Group::with_title(title).element(
            Snippet::source(line)
                .line_start(usize::try_from(diagnostic.line).unwrap_or(usize::MAX))
                .path(path)
                .annotation(AnnotationKind::Primary.span(span)),
        ),
        None => Group::with_title(title).element(Origin::path(path)),
    };
    let group = match &diagnostic.help {
        Some(help) => group.element(Level::HELP.message(help.as_str())),
        None => group,
    };
    let renderer = if colors { Renderer::styled() } else { Renderer::plain() };
    renderer.term_width(WIDTH).render(&[group])
}

/// The line of `diagnostic`, and the bytes in it to point at: a word or value from the column on, or the whole line.
fn excerpt<'a>(diagnostic: &Diagnostic, source: &'a str) -> Option<(Cow<'a, str>, Range<usize>)> {
    let number = usize::try_from(diagnostic.line).ok()?.checked_sub(1)?;
    let line = source.split('\n').nth(number)?.trim_end_matches('\r');
    let start = usize::try_from(diagnostic.column).ok()?.saturating_sub(1);
    let start = line.char_indices().nth(start).map_or(line.len(), |(at, _)| at);
    let rest = line[start..].trim_end();
    let end = start
        + if diagnostic.code == "invalid-yaml" {
            rest.chars().next().map_or(0, char::len_utf8)
        } else {
            rest.len()
        };
    let cut = line.char_indices().nth(MAX_LINE_CHARS).map_or(line.len(), |(at, _)| at).max(start);
    Some((Cow::Borrowed(&line[..cut]), start..end.min(cut)))
}
