//! Parses a whole file: decodes it, splits it, and parses the YAML or recovers fields from it.

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

/// Parses the bytes of a file, or of its beginning.
pub(super) fn read_bytes(bytes: &[u8], context: &ParseContext<'_>, verdict: Verdict) -> Parsed {
    let mut findings = Findings::new(verdict);
    // We don't need to decode more than this, since a larger file will be rejected anyway.
    let decoded = text::decode(&bytes[..bytes.len().min(MAX_FILE_BYTES)]);
    match decoded.fault {
        Some(Fault::Invalid { offset }) => {
            let line = decoded.text.as_bytes()[..offset].split(|&byte| byte == b'\n').count();
            findings.broken(
                Diagnostic::warning("invalid-utf8", "invalid UTF-8 was replaced by U+FFFD")
                    .at(u32::try_from(line).unwrap_or(u32::MAX), 0)
                    .help("save the file as UTF-8"),
            );
        }
        Some(Fault::Utf16) => {
            findings.broken(
                Diagnostic::warning("utf16", "file is encoded as UTF-16").help("save the file as UTF-8"),
            );
        }
        None => {}
    }
    read_text(&decoded.text, bytes.len(), context, findings)
}

/// Parses the text of a file, or of its beginning.
pub(super) fn read(text: &str, context: &ParseContext<'_>, verdict: Verdict) -> Parsed {
    read_text(text, text.len(), context, Findings::new(verdict))
}

/// Parses `text`, which had `given` bytes before it was decoded.
fn read_text(text: &str, given: usize, context: &ParseContext<'_>, mut findings: Findings) -> Parsed {
    let size = context.file_bytes.unwrap_or(given as u64);
    let is_beginning = size > given as u64;
    let Some(Start { mark, window, mut split }) = find_frontmatter(text, size, is_beginning, &mut findings)
    else {
        return Parsed { frontmatter: None, body_start: 0, body_line: 1, diagnostics: findings.list };
    };

    let (mut yaml, mut dropped) = text::printable(split.yaml);
    let mut composed = yaml::compose(&yaml);
    if composed.is_err()
        && let Some(earlier) = split::split_earlier(window, &split)
    {
        let (other, also_dropped) = text::printable(earlier.yaml);
        if yaml::compose(&other).is_ok() {
            split = earlier;
            yaml = other;
            dropped = also_dropped;
            composed = yaml::compose(&yaml);
        }
    }
    report_split(&split, &mut findings);
    findings.lines_before = split.line - 1;
    if let Some(offset) = dropped {
        report_control_character(&split, offset, &mut findings);
    }

    if let Err(problem) = &composed
        && problem.cause == Cause::QuoteIndent
        && let Some(fixed) = yaml::indent_quoted(&yaml, problem)
    {
        findings.broken(
            Diagnostic::warning("invalid-yaml", "quoted text continues without indentation")
                .at(problem.line + findings.lines_before, problem.column)
                .help("indent all lines of the text, or use a single line"),
        );
        yaml = Cow::Owned(fixed);
        composed = yaml::compose(&yaml);
    }
    let entries = entries(&yaml, composed, &mut findings);
    let frontmatter = entries.and_then(|entries| fields::read(&entries, &yaml, context, &mut findings));
    let body_start = mark + split.body;
    if !is_beginning && text[body_start..].trim().is_empty() {
        findings.advice(
            Diagnostic::warning("body-empty", "skill has no instructions")
                .at(split.end_line, 0)
                .help("add instructions after the frontmatter"),
        );
    }
    let body_line = split.end_line + u32::from(matches!(split.end, End::Fence | End::IndentedFence));
    Parsed { frontmatter, body_start, body_line, diagnostics: findings.list }
}

/// The beginning of a file.
struct Start<'a> {
    /// The length of the byte order mark.
    mark: usize,
    /// The part of the text that may contain the frontmatter, without the byte order mark.
    window: &'a str,
    split: Split<'a>,
}

/// Finds the frontmatter at the beginning of `text`. Returns `None` if the file can't be loaded, and reports why.
fn find_frontmatter<'a>(
    text: &'a str,
    size: u64,
    is_beginning: bool,
    findings: &mut Findings,
) -> Option<Start<'a>> {
    if size > MAX_FILE_BYTES as u64 {
        findings.fatal(too_large(size));
        return None;
    }
    let window = beginning(text);
    let (mark, window) = match window.strip_prefix('\u{FEFF}') {
        Some(rest) => ('\u{FEFF}'.len_utf8(), rest),
        None => (0, window),
    };
    if mark > 0 {
        let message = "file starts with a byte order mark";
        findings.advice(Diagnostic::warning("byte-order-mark", message).at(1, 1));
    }
    let Some(split) = split::split(window) else {
        let help = "start the file with `---`, `name:`, `description:` and `---` on separate lines";
        let finding =
            Diagnostic::error("frontmatter-missing", "file does not start with frontmatter").at(1, 1);
        findings.fatal(finding.help(help));
        return None;
    };
    if split.end == End::Cut && (is_beginning || mark + window.len() < text.len()) {
        let message = format!("frontmatter does not end within {MAX_FRONTMATTER_BYTES} bytes");
        let finding = Diagnostic::error("frontmatter-too-large", message);
        findings.fatal(finding.help("add a line `---` to close the frontmatter"));
        return None;
    }
    Some(Start { mark, window, split })
}

/// Reports that the control character at `offset` of the YAML is ignored.
fn report_control_character(split: &Split<'_>, offset: usize, findings: &mut Findings) {
    let line = split::lines(&split.yaml[..offset], 0).count().max(1);
    let line = u32::try_from(line).unwrap_or(u32::MAX).saturating_add(findings.lines_before);
    let message = "ignoring control character in frontmatter";
    findings
        .broken(Diagnostic::warning("control-character", message).at(line, 0).help("remove this character"));
}

/// Returns the diagnostic for a file that is too large. `size` is in bytes.
pub(super) fn too_large(size: u64) -> Diagnostic {
    Diagnostic::error(
        "file-too-large",
        format!("file has {size} bytes, but at most {MAX_FILE_BYTES} are allowed"),
    )
    .help("move details to files in `references/`")
}

/// Returns at most the first [`MAX_FRONTMATTER_BYTES`] of `text`, without a partial character at the end.
fn beginning(text: &str) -> &str {
    if text.len() <= MAX_FRONTMATTER_BYTES {
        return text;
    }
    let end = (0..=MAX_FRONTMATTER_BYTES).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or_default()]
}

/// Reports deviations from the layout that the specification requires.
fn report_split(split: &Split<'_>, findings: &mut Findings) {
    if split.leading_blank {
        findings.broken(
            Diagnostic::warning("leading-blank-lines", "found blank lines before frontmatter")
                .at(1, 0)
                .help("remove blank lines to start the file with `---`"),
        );
    }
    if split.indented_open {
        findings.broken(
            Diagnostic::warning("indented-fence", "opening `---` is indented")
                .at(split.line - 1, 1)
                .help("remove the spaces before `---`"),
        );
    }
    match split.end {
        End::Fence => {}
        End::IndentedFence => findings.broken(
            Diagnostic::warning("indented-fence", "closing `---` is indented")
                .at(split.end_line, 1)
                .help("remove the spaces before `---`"),
        ),
        End::Prose | End::Cut => findings.broken(
            Diagnostic::warning(
                "frontmatter-not-closed",
                "frontmatter is not closed, but probably ends here",
            )
            .at(split.end_line, 0)
            .help("add a line `---` to separate the frontmatter from the body"),
        ),
    }
}

/// Returns the fields of the frontmatter, or `None` if there are none. If the YAML is invalid, fields are recovered one by one.
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
                    message: Cow::Borrowed("expected a mapping"),
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
                format!("frontmatter has no `key: value` line: {}", problem.message),
            )
            .at(problem.line + findings.lines_before, problem.column)
            .help("add `name:` and `description:` to the frontmatter"),
        );
        return None;
    }
    Some(recovered)
}
