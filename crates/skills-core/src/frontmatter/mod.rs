//! `SKILL.md` in, metadata and diagnostics out.
//!
//! A `SKILL.md` is YAML between two `---` lines, and Markdown below ([specification]). Half of the files in the wild
//! break a rule, so there are three questions ([`Verdict`]), and [`parse`] answers the first: what can be **loaded**.
//! It never panics and never fails as a whole; whatever was recovered, guessed or left out is a [`Diagnostic`].
//! [`validate`] answers the other two: what breaks the **specification**, and what its **reference** would say.
//!
//! Strict YAML first; when that fails, one field at a time. This part reads no files and keeps no bodies.
//!
//! ```
//! use skills_core::frontmatter::{ParseContext, parse};
//!
//! let text = "---\nname: pdf\ndescription: Use when: the user has a PDF.\n---\nRun `scripts/read.py`.\n";
//! let parsed = parse(text, &ParseContext::default());
//! let frontmatter = parsed.frontmatter.as_ref().unwrap();
//! assert_eq!(frontmatter.description, "Use when: the user has a PDF.");
//! assert_eq!(parsed.body(text), "Run `scripts/read.py`.\n");
//! // The colon is not YAML, so there is something to say.
//! assert_eq!(parsed.diagnostics[0].code, "invalid-yaml");
//! ```
//!
//! [specification]: https://agentskills.io/specification

mod fields;
mod findings;
mod recover;
mod split;
#[cfg(test)]
mod tests;
mod text;
mod yaml;

use std::{borrow::Cow, path::Path, sync::Arc};

use crate::{Diagnostic, Instructions, Properties, Skill, SkillName, Source, Stored, Virtual};
use findings::Findings;
use split::{End, Split};
use text::Fault;

/// Largest `SKILL.md` that is loaded.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;
/// Largest frontmatter that is read, with everything before it. No more of a file is needed to [`parse`] it.
pub const MAX_FRONTMATTER_BYTES: usize = 64 * 1024;
/// Deepest nesting of YAML that is read.
pub const MAX_DEPTH: usize = 32;
/// Most YAML values that are read.
pub const MAX_NODES: usize = 10_000;
/// Longest description that the specification allows, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 1024;
/// Longest `compatibility` that the specification allows, in characters.
pub const MAX_COMPATIBILITY_CHARS: usize = 500;

/// What a text is measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// What can be loaded: an error means that there is no skill, everything else is a warning.
    #[default]
    Load,
    /// Every rule of the specification: each one that is broken is an error.
    Spec,
}

/// What is known about a text beside the text.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParseContext<'a> {
    /// The name of the skill's directory: the name of a skill without one, and what the name must match.
    pub directory: Option<&'a str>,
    /// The size of the whole file, when the text may be only its beginning.
    pub file_bytes: Option<u64>,
}

impl<'a> ParseContext<'a> {
    /// The context of a skill in the directory with this name (not its path).
    pub fn in_directory(name: &'a str) -> Self {
        Self { directory: Some(name), ..Self::default() }
    }
}

/// What the frontmatter says.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Frontmatter {
    /// The name, or that of the directory.
    pub name: SkillName,
    /// Trimmed and not empty; line breaks and tabs are its only control characters.
    pub description: String,
    /// Everything else.
    pub properties: Properties,
}

/// A text that was read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Parsed {
    /// `None` when the text cannot be loaded; then one of the diagnostics is an error.
    pub frontmatter: Option<Frontmatter>,
    /// The byte at which the body begins, in the text that was given.
    pub body_start: usize,
    /// The line at which the body begins, from 1.
    pub body_line: u32,
    /// What was found on the way, in no particular order.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// The instructions: `text` (the one that was parsed) without frontmatter and without blank lines before it.
    pub fn body<'t>(&self, text: &'t str) -> &'t str {
        let body = text.get(self.body_start..).unwrap_or_default();
        let indent_start = body.len() - body.trim_start().len();
        body[..indent_start].rfind(['\n', '\r']).map_or(body, |at| &body[at + 1..])
    }

    /// The skill in the directory `dir` (absolute), without its body; `None` when it cannot be loaded.
    pub fn into_stored(
        self,
        dir: impl Into<Arc<Path>>,
        file_name: &'static str,
    ) -> (Option<Skill>, Vec<Diagnostic>) {
        let skill = self.frontmatter.map(|it| it.into_skill(Source::Stored(Stored::new(dir, file_name))));
        (skill, self.diagnostics)
    }

    /// The skill with the body of `text` (the one that was parsed) in memory; `None` when it cannot be loaded.
    pub fn into_virtual(self, text: &str) -> (Option<Skill>, Vec<Diagnostic>) {
        let instructions = Instructions::Inline(self.body(text).into());
        let source = Source::Virtual(Virtual { instructions, tools: Vec::new() });
        (self.frontmatter.map(|it| it.into_skill(source)), self.diagnostics)
    }
}

impl Frontmatter {
    /// The skill that this describes.
    pub fn into_skill(self, source: Source) -> Skill {
        let mut skill = Skill::new(self.name, self.description, source);
        skill.properties = self.properties;
        skill
    }
}

/// Reads a `SKILL.md`, or at least its first [`MAX_FRONTMATTER_BYTES`].
pub fn parse(text: &str, context: &ParseContext<'_>) -> Parsed {
    parse_as(text, context, Findings::new(Verdict::Load))
}

/// The same for bytes; offsets in the result refer to [`decode`]`(bytes)`.
///
/// Bytes that are no UTF-8 are replaced, with a diagnostic; a character that the end of `bytes` cuts is left out.
pub fn parse_bytes(bytes: &[u8], context: &ParseContext<'_>) -> Parsed {
    parse_bytes_as(bytes, context, Findings::new(Verdict::Load))
}

/// The text in `bytes`: UTF-8, or UTF-16 with a byte order mark; what is neither becomes U+FFFD.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    text::decode(bytes).text
}

/// The instructions in a `SKILL.md`: everything below the frontmatter, or the whole text where there is none.
///
/// ```
/// # use skills_core::frontmatter::body;
/// assert_eq!(body("---\nname: a\n---\n\n# Title\n"), "# Title\n");
/// ```
pub fn body(text: &str) -> &str {
    parse(text, &ParseContext::default()).body(text)
}

/// What is wrong with a text, by one [`Verdict`].
pub fn validate(text: &str, context: &ParseContext<'_>, verdict: Verdict) -> Vec<Diagnostic> {
    sorted(parse_as(text, context, Findings::new(verdict)).diagnostics)
}

/// The same for bytes.
pub fn validate_bytes(bytes: &[u8], context: &ParseContext<'_>, verdict: Verdict) -> Vec<Diagnostic> {
    sorted(parse_bytes_as(bytes, context, Findings::new(verdict)).diagnostics)
}

fn sorted(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|it| (it.line, it.column));
    diagnostics
}

fn parse_bytes_as(bytes: &[u8], context: &ParseContext<'_>, mut findings: Findings) -> Parsed {
    let context = ParseContext { file_bytes: context.file_bytes.or(Some(bytes.len() as u64)), ..*context };
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
    parse_as(&decoded.text, &context, findings)
}

fn parse_as(text: &str, context: &ParseContext<'_>, mut findings: Findings) -> Parsed {
    let size = context.file_bytes.unwrap_or(text.len() as u64);
    let nothing = |findings: Findings| Parsed {
        frontmatter: None,
        body_start: 0,
        body_line: 1,
        diagnostics: findings.list,
    };
    if size > MAX_FILE_BYTES as u64 {
        let message = format!("the file has {size} bytes; at most {MAX_FILE_BYTES} are read");
        findings.fatal(
            Diagnostic::error("file-too-large", message).help("move details into files below `references/`"),
        );
        return nothing(findings);
    }
    let window = beginning(text);
    let (mark, window) = match window.strip_prefix('\u{FEFF}') {
        Some(rest) => (text.len() - text[3..].len(), rest),
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
    if split.end == End::Cut && (window.len() as u64) < size.saturating_sub(mark as u64) {
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

    let entries = entries(&yaml, composed, &mut findings);
    let frontmatter = entries.and_then(|entries| fields::read(&entries, &yaml, context, &mut findings));
    let body_start = mark + split.body;
    if text.len() as u64 == size && text[body_start..].trim().is_empty() {
        findings.advice(
            Diagnostic::warning("body-empty", "the skill has no instructions")
                .at(split.end_line, 0)
                .help("write below the frontmatter what to do"),
        );
    }
    let body_line = split.end_line + u32::from(matches!(split.end, End::Fence | End::IndentedFence));
    Parsed { frontmatter, body_start, body_line, diagnostics: findings.list }
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
                    limit: false,
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
