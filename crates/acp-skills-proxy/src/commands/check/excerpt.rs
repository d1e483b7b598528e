//! Renders a problem with an excerpt of the file, in the style of a compiler.

use std::{borrow::Cow, ops::Range};

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use skills_core::Severity;

use super::problem::Problem;

/// The maximum width of the text in columns.
const WIDTH: usize = 120;

/// The maximum number of characters of a line. The rest of the line is cut off.
const MAX_LINE_CHARS: usize = 400;

/// Renders `problem` in the file at `path`. `source` is the text of the `SKILL.md`.
pub(super) fn render(problem: &Problem, path: &str, source: &str, colors: bool) -> String {
    let level = if problem.severity == Severity::Warning { Level::WARNING } else { Level::ERROR };
    let title = level.primary_title(problem.message.as_str()).id(problem.code.as_str());
    let line_number = usize::try_from(problem.line).unwrap_or(usize::MAX);
    let group = match (&problem.found, excerpt(problem, source)) {
        (Some(found), _) if problem.line > 0 => {
            let before = found.excerpt[..found.mark.start].chars().count();
            let column = usize::try_from(problem.column).unwrap_or(usize::MAX);
            let mark = |shift| AnnotationKind::Primary.span(found.mark.start + shift..found.mark.end + shift);
            match (column - 1).checked_sub(before).filter(|_| column <= MAX_LINE_CHARS) {
                // Use spaces for the part of the line before the excerpt, so that we get the right column.
                Some(indent) => Group::with_title(title).element(
                    Snippet::source(" ".repeat(indent) + &found.excerpt)
                        .line_start(line_number)
                        .path(path)
                        .annotation(mark(indent)),
                ),
                None => Group::with_title(title)
                    .element(Origin::path(path).line(line_number).char_column(column))
                    .element(
                        Snippet::source(found.excerpt.as_str()).line_start(line_number).annotation(mark(0)),
                    ),
            }
        }
        (None, Some((line, span))) => Group::with_title(title).element(
            Snippet::source(line)
                .line_start(line_number)
                .path(path)
                .annotation(AnnotationKind::Primary.span(span)),
        ),
        _ => Group::with_title(title).element(Origin::path(path)),
    };
    let group = match &problem.help {
        Some(help) => group.element(Level::HELP.message(help.as_str())),
        None => group,
    };
    let renderer = if colors { Renderer::styled() } else { Renderer::plain() };
    renderer.term_width(WIDTH).render(&[group])
}

/// Returns the line of `problem` and the range of bytes to mark: from the column to the end of the line, or a single character for
/// invalid YAML.
fn excerpt<'a>(problem: &Problem, source: &'a str) -> Option<(Cow<'a, str>, Range<usize>)> {
    let number = usize::try_from(problem.line).ok()?.checked_sub(1)?;
    let line = source.split('\n').nth(number)?.trim_end_matches('\r');
    let start = usize::try_from(problem.column).ok()?.saturating_sub(1);
    let start = line.char_indices().nth(start).map_or(line.len(), |(at, _)| at);
    let rest = line[start..].trim_end();
    let end = start
        + if problem.code == "invalid-yaml" {
            rest.chars().next().map_or(0, char::len_utf8)
        } else {
            rest.len()
        };
    let cut = line.char_indices().nth(MAX_LINE_CHARS).map_or(line.len(), |(at, _)| at).max(start);
    Some((Cow::Borrowed(&line[..cut]), start..end.min(cut)))
}
