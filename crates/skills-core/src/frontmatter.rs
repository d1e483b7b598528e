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

mod document;
mod fields;
mod findings;
mod keys;
mod recover;
mod reference;
mod split;
#[cfg(test)]
mod tests;
mod text;
mod yaml;

use std::{borrow::Cow, path::Path, sync::Arc};

use crate::{
    diagnostic::Diagnostic,
    name::SkillName,
    skill::{Instructions, Properties, Skill, Source, Stored, Virtual},
};

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
#[non_exhaustive]
pub enum Verdict {
    /// What can be loaded: an error means that there is no skill, everything else is a warning.
    #[default]
    Load,
    /// Every rule of the specification: each one that is broken is an error.
    Spec,
    /// What the specification's reference validator, `skills-ref validate`, says: stricter than the rules.
    Reference,
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

    /// Whether the text can be loaded, its frontmatter is closed, and it has a body as far as it is known.
    pub(crate) fn is_complete(&self) -> bool {
        self.frontmatter.is_some() && !self.diagnostics.iter().any(is_half_saved)
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
    document::read(text, context, Verdict::Load)
}

/// The same for bytes; offsets in the result refer to [`decode`]`(bytes)`.
///
/// Bytes that are not UTF-8 are replaced, with a diagnostic; a character cut off by the end of `bytes` is left out.
pub fn parse_bytes(bytes: &[u8], context: &ParseContext<'_>) -> Parsed {
    document::read_bytes(bytes, context, Verdict::Load)
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

/// What is wrong with the text of a whole file, by one [`Verdict`].
///
/// ```
/// use skills_core::frontmatter::{ParseContext, Verdict, validate};
///
/// let text = "---\nname: pdf\ndescription: Reads PDF files.\nallowed-tools: [Read]\n---\nBody\n";
/// let codes = |verdict| -> Vec<_> {
///     validate(text, &ParseContext::in_directory("PDF"), verdict).iter().map(|it| (it.code, it.is_error())).collect()
/// };
/// assert_eq!(codes(Verdict::Load), [("name-not-directory", false)]);
/// assert_eq!(codes(Verdict::Spec), [("name-not-directory", true), ("allowed-tools-format", true)]);
/// // The reference stops at the first thing that it cannot read.
/// assert_eq!(codes(Verdict::Reference), [("invalid-yaml", true)]);
/// ```
pub fn validate(text: &str, context: &ParseContext<'_>, verdict: Verdict) -> Vec<Diagnostic> {
    match verdict {
        Verdict::Reference if text.len() > MAX_FILE_BYTES => vec![document::too_large(text.len() as u64)],
        Verdict::Reference => reference::validate(text, context),
        Verdict::Load | Verdict::Spec => sorted(document::read(text, context, verdict).diagnostics),
    }
}

/// The same for bytes.
pub fn validate_bytes(bytes: &[u8], context: &ParseContext<'_>, verdict: Verdict) -> Vec<Diagnostic> {
    if verdict == Verdict::Reference {
        return match std::str::from_utf8(bytes) {
            Ok(text) => validate(text, context, verdict),
            Err(error) => {
                let message = format!("the file is not UTF-8 from byte {} on", error.valid_up_to());
                vec![Diagnostic::error("invalid-utf8", message)]
            }
        };
    }
    sorted(document::read_bytes(bytes, context, verdict).diagnostics)
}

/// Whether this is what a file shows that is cut: of some it is true for good, of others while they are being saved.
pub(crate) fn is_half_saved(finding: &Diagnostic) -> bool {
    matches!(finding.code, "frontmatter-not-closed" | "body-empty")
}

fn sorted(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|it| (it.line, it.column));
    diagnostics
}
