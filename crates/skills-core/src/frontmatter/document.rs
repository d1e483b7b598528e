//! A whole file: its bytes, its two parts, and the way from strict YAML to recovery.

use std::borrow::Cow;

use super::{
    MAX_FILE_BYTES, MAX_FRONTMATTER_BYTES, ParseContext, Parsed, Verdict, fields,
    findings::Findings,
    recover,
    split::{self, End, Split},
    text::{self, Fault},
    yaml::{self, Cause},
};
use crate::diagnostic::Diagnostic;

/// Reads the bytes of a file, or its beginning.
pub(super) fn read_bytes(bytes: &[u8], context: &ParseContext<'_>, verdict: Verdict) -> Parsed {
    let mut findings = Findings::new(verdict);
    // A file that is refused for its size is not decoded before.
    let decoded = text::decode(&bytes[..bytes.len().min(MAX_FILE_BYTES)]);
    match decoded.fault {
        Some(Fault::Invalid { offset }) => {
            let line = decoded.text.as_bytes()[..offset].split(|&byte| byte == b'\n').count();
            findings.broken(
                Diagnostic::warning(
                    "invalid-utf8",
                    "this line is not UTF-8; what cannot be read was replaced by U+FFFD",
                )
                .at(u32::try_from(line).unwrap_or(u32::MAX), 0)
                .help("save the file as UTF-8"),
            );
        }
        Some(Fault::Utf16) => {
            findings
                .broken(Diagnostic::warning("utf16", "the file is UTF-16").help("save the file as UTF-8"));
        }
        None => {}
    }
    read_text(&decoded.text, bytes.len(), context, findings)
}

/// Reads the text of a file, or its beginning.
pub(super) fn read(text: &str, context: &ParseContext<'_>, verdict: Verdict) -> Parsed {
    read_text(text, text.len(), context, Findings::new(verdict))
}

/// Reads `text`, which was `given` bytes before it was decoded.
fn read_text(text: &str, given: usize, context: &ParseContext<'_>, mut findings: Findings) -> Parsed {
    let size = context.file_bytes.unwrap_or(given as u64);
    let is_beginning = size > given as u64;
    let nothing = |findings: Findings| Parsed {
        frontmatter: None,
        body_start: 0,
        body_line: 1,
        diagnostics: findings.list,
    };
    if size > MAX_FILE_BYTES as u64 {
        findings.fatal(too_large(size));
        return nothing(findings);
    }
    let window = beginning(text);
    let (mark, window) = match window.strip_prefix('\u{FEFF}') {
        Some(rest) => ('\u{FEFF}'.len_utf8(), rest),
        None => (0, window),
    };
    if mark > 0 {
        findings.advice(
            Diagnostic::warning("byte-order-mark", "the file begins with a byte order mark").at(1, 1),
        );
    }
    let Some(mut split) = split::split(window) else {
        findings.fatal(
            Diagnostic::error("frontmatter-missing", "the file does not begin with frontmatter")
                .at(1, 1)
                .help("begin the file with a line `---`, `name:` and `description:` lines, and a line `---`"),
        );
        return nothing(findings);
    };
    if split.end == End::Cut && (is_beginning || mark + window.len() < text.len()) {
        let message = format!("the frontmatter does not end within {MAX_FRONTMATTER_BYTES} bytes");
        findings
            .fatal(Diagnostic::error("frontmatter-too-large", message).help("close it with a line `---`"));
        return nothing(findings);
    }

    let (mut yaml, mut dropped) = text::printable(split.yaml);
    let mut composed = yaml::compose(&yaml);
    if composed.is_err()
        && let Some(earlier) = split::split_earlier(window, &split)
    {
        let (other, also_dropped) = text::printable(earlier.yaml);
        if yaml::compose(&other).is_ok() {
            (split, yaml, dropped) = (earlier, other, also_dropped);
            composed = yaml::compose(&yaml);
        }
    }
    report_split(&split, &mut findings);
    findings.lines_before = split.line - 1;
    if let Some(offset) = dropped {
        let line = split::lines(&split.yaml[..offset], 0).count().max(1);
        findings.broken(
            Diagnostic::warning("control-character", "a control character in the frontmatter is left out")
                .at(u32::try_from(line).unwrap_or(u32::MAX).saturating_add(findings.lines_before), 0)
                .help("remove it"),
        );
    }

    if let Err(problem) = &composed
        && problem.cause == Cause::QuoteIndent
        && let Some(fixed) = yaml::indent_quoted(&yaml, problem)
    {
        findings.broken(
            Diagnostic::warning("invalid-yaml", "a quoted text goes on here without indentation")
                .at(problem.line + findings.lines_before, problem.column)
                .help("indent the lines of the text, or write it in one line"),
        );
        yaml = Cow::Owned(fixed);
        composed = yaml::compose(&yaml);
    }
    let entries = entries(&yaml, composed, &mut findings);
    let frontmatter = entries.and_then(|entries| fields::read(&entries, &yaml, context, &mut findings));
    let body_start = mark + split.body;
    if !is_beginning && text[body_start..].trim().is_empty() {
        findings.advice(
            Diagnostic::warning("body-empty", "the skill has no instructions")
                .at(split.end_line, 0)
                .help("write below the frontmatter what to do"),
        );
    }
    let body_line = split.end_line + u32::from(matches!(split.end, End::Fence | End::IndentedFence));
    Parsed { frontmatter, body_start, body_line, diagnostics: findings.list }
}

/// What is said of a file with `size` bytes.
pub(super) fn too_large(size: u64) -> Diagnostic {
    Diagnostic::error(
        "file-too-large",
        format!("the file has {size} bytes; at most {MAX_FILE_BYTES} are read"),
    )
    .help("move details into files below `references/`")
}

/// The first [`MAX_FRONTMATTER_BYTES`] of `text`, without a character that this cuts.
fn beginning(text: &str) -> &str {
    if text.len() <= MAX_FRONTMATTER_BYTES {
        return text;
    }
    let end = (0..=MAX_FRONTMATTER_BYTES).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or_default()]
}

fn report_split(split: &Split<'_>, findings: &mut Findings) {
    if split.leading_blank {
        findings.broken(
            Diagnostic::warning("leading-blank-lines", "blank lines stand before the frontmatter")
                .at(1, 0)
                .help("remove them: the first line must be `---`"),
        );
    }
    if split.indented_open {
        findings.broken(
            Diagnostic::warning("indented-fence", "the opening `---` is indented")
                .at(split.line - 1, 1)
                .help("remove the blanks before it"),
        );
    }
    match split.end {
        End::Fence => {}
        End::IndentedFence => findings.broken(
            Diagnostic::warning("indented-fence", "the closing `---` is indented")
                .at(split.end_line, 1)
                .help("remove the blanks before it"),
        ),
        End::Prose | End::Cut => findings.broken(
            Diagnostic::warning(
                "frontmatter-not-closed",
                "the frontmatter is not closed; it seems to end here",
            )
            .at(split.end_line, 0)
            .help("add a line `---` between the frontmatter and the body"),
        ),
    }
}

/// The fields of the frontmatter, read as a whole or one by one; `None` when it has none.
fn entries<'a>(
    yaml: &'a str,
    composed: Result<yaml::Composed<'a>, yaml::Problem>,
    findings: &mut Findings,
) -> Option<recover::Entries<'a>> {
    let problem = match composed {
        Ok(composed) => {
            let duplicates = composed.duplicates;
            match composed.root {
                None => return Some(Vec::new()),
                Some(yaml::Node { kind: yaml::Kind::Map { entries, .. }, .. }) => {
                    for (position, key) in duplicates {
                        recover::duplicate(position, &key, findings);
                    }
                    return Some(entries);
                }
                Some(root) => yaml::Problem {
                    line: root.start.line,
                    column: root.start.column,
                    message: Cow::Borrowed("it is no mapping"),
                    cause: Cause::Syntax,
                },
            }
        }
        Err(problem) => problem,
    };
    let recovered = recover::recover(yaml, &problem, findings);
    if recovered.is_empty() {
        findings.fatal(
            Diagnostic::error(
                "frontmatter-not-a-mapping",
                format!("the frontmatter has no `key: value` line: {}", problem.message),
            )
            .at(problem.line + findings.lines_before, problem.column)
            .help("write `name:` and `description:` lines between the two `---`"),
        );
        return None;
    }
    Some(recovered)
}
