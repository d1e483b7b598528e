//! Parses and validates `SKILL.md` files.
//!
//! A `SKILL.md` has a frontmatter, which is YAML between two `---` lines, and a body in Markdown ([specification]). Half of the
//! files in the wild break a rule, so [`parse`] loads as much as possible. It never panics and never fails as a whole. If a
//! value was recovered, guessed or left out, a [`Diagnostic`] says so.
//!
//! [`validate`] checks a file by one of three standards ([`Verdict`]): can it be loaded, does it follow the specification, and
//! does the specification's reference validator accept it?
//!
//! The frontmatter is parsed as YAML. If that fails, the fields are parsed one by one. This module doesn't read files.
//!
//! ```
//! use skills_core::frontmatter::{ParseContext, parse};
//!
//! let text = "---\nname: pdf\ndescription: Use when: the user has a PDF.\n---\nRun `scripts/read.py`.\n";
//! let parsed = parse(text, &ParseContext::default());
//! let frontmatter = parsed.frontmatter.as_ref().unwrap();
//! assert_eq!(frontmatter.description, "Use when: the user has a PDF.");
//! assert_eq!(parsed.body(text), "Run `scripts/read.py`.\n");
//! // The second colon is invalid YAML, so there is a diagnostic.
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
    order,
    skill::{Instructions, Properties, Skill, Source, Stored, Virtual},
};

/// The maximum size of a `SKILL.md` in bytes.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;
/// The maximum size of the frontmatter in bytes, including everything before it. To [`parse`] a file, no more than this is
/// needed.
pub const MAX_FRONTMATTER_BYTES: usize = 32 * 1024;
/// The maximum nesting depth of the YAML.
pub const MAX_DEPTH: usize = 32;
/// The maximum number of YAML values.
pub const MAX_NODES: usize = 2_000;
/// The maximum length of a description according to the specification, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 1024;
/// The maximum length of `compatibility` according to the specification, in characters.
pub const MAX_COMPATIBILITY_CHARS: usize = 500;

/// A standard that a `SKILL.md` is checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Verdict {
    /// The file can be loaded. An error means that there is no skill. All other problems are warnings.
    #[default]
    Load,
    /// The file follows the [specification](https://agentskills.io/specification). Each broken rule is an error.
    Spec,
    /// The specification's reference validator, `skills-ref validate`, accepts the file. It is stricter than the specification.
    Reference,
}

/// The context of a text that is parsed.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParseContext<'a> {
    /// The name of the skill's directory, if known. The skill's name must match it, and it is the default for a missing name.
    pub directory: Option<&'a str>,
    /// The size of the whole file in bytes, if the text is only its beginning.
    pub file_bytes: Option<u64>,
}

impl<'a> ParseContext<'a> {
    /// Creates the context of a skill whose directory has this name. This is not the path of the directory.
    pub fn in_directory(name: &'a str) -> Self {
        Self { directory: Some(name), ..Self::default() }
    }
}

/// The parsed frontmatter of a `SKILL.md`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Frontmatter {
    /// The name. If the file has none, it is the name of the directory.
    pub name: SkillName,
    /// The description, which is trimmed and not empty. It has no control characters except line breaks and tabs.
    pub description: String,
    /// All other fields.
    pub properties: Properties,
}

/// The result of parsing a `SKILL.md`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Parsed {
    /// The frontmatter, or `None` if the text can't be loaded. In this case, at least one diagnostic is an error.
    pub frontmatter: Option<Frontmatter>,
    /// The byte offset of the body in the text.
    pub body_start: usize,
    /// The line of the body, starting at 1.
    pub body_line: u32,
    /// Problems in the text, in no particular order.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Returns the body of `text` without leading blank lines. `text` must be the text that was parsed.
    pub fn body<'t>(&self, text: &'t str) -> &'t str {
        let body = text.get(self.body_start..).unwrap_or_default();
        let indent_start = body.len() - body.trim_start().len();
        body[..indent_start].rfind(['\n', '\r']).map_or(body, |at| &body[at + 1..])
    }

    /// Returns true if the text can be loaded, its frontmatter is closed, and it has a body. If only the beginning of the file
    /// was parsed, a body is assumed.
    pub(crate) fn is_complete(&self) -> bool {
        self.frontmatter.is_some() && !self.diagnostics.iter().any(is_half_saved)
    }

    /// Returns a stored skill in `dir`, an absolute path, and the diagnostics. The skill is `None` if it can't be loaded.
    pub fn into_stored(
        self,
        dir: impl Into<Arc<Path>>,
        file_name: &'static str,
    ) -> (Option<Skill>, Vec<Diagnostic>) {
        let skill = self
            .frontmatter
            .map(|frontmatter| frontmatter.into_skill(Source::Stored(Stored::new(dir, file_name))));
        (skill, self.diagnostics)
    }

    /// Returns a virtual skill with the body of `text`, which must be the text that was parsed, and the diagnostics. The skill is
    /// `None` if it can't be loaded.
    pub fn into_virtual(self, text: &str) -> (Option<Skill>, Vec<Diagnostic>) {
        let instructions = Instructions::Inline(self.body(text).into());
        let source = Source::Virtual(Virtual { instructions, tools: Vec::new() });
        (self.frontmatter.map(|frontmatter| frontmatter.into_skill(source)), self.diagnostics)
    }
}

impl Frontmatter {
    /// Returns the skill with this metadata and a source.
    pub fn into_skill(self, source: Source) -> Skill {
        let mut skill = Skill::new(self.name, self.description, source);
        skill.properties = self.properties;
        skill
    }
}

/// Parses a `SKILL.md`.
///
/// `text` can be the whole file or at least its first [`MAX_FRONTMATTER_BYTES`]. In the second case, set
/// [`ParseContext::file_bytes`].
pub fn parse(text: &str, context: &ParseContext<'_>) -> Parsed {
    document::read(text, context, Verdict::Load)
}

/// Parses a `SKILL.md` from bytes. Offsets in the result refer to the text that [`decode`] returns.
///
/// Invalid UTF-8 is replaced and reported. A character that is cut off at the end of `bytes` is left out.
pub fn parse_bytes(bytes: &[u8], context: &ParseContext<'_>) -> Parsed {
    document::read_bytes(bytes, context, Verdict::Load)
}

/// Decodes UTF-8, or UTF-16 with a byte order mark. Invalid characters become U+FFFD.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    text::decode(bytes).text
}

/// Returns the body of a `SKILL.md`: the text below the frontmatter, or the whole text if there is no frontmatter.
///
/// ```
/// # use skills_core::frontmatter::body;
/// assert_eq!(body("---\nname: a\n---\n\n# Title\n"), "# Title\n");
/// ```
pub fn body(text: &str) -> &str {
    parse(text, &ParseContext::default()).body(text)
}

/// Returns the body like [`body`], without parsing the frontmatter.
pub(crate) fn quick_body(text: &str) -> &str {
    split::split(text).map_or(text, |split| &text[split.body..])
}

/// Checks the text of a whole file against a standard. Returns the problems in the order of their positions.
///
/// ```
/// use skills_core::frontmatter::{ParseContext, Verdict, validate};
///
/// let text = "---\nname: pdf\ndescription: Reads PDF files.\nallowed-tools: [Read]\n---\nBody\n";
/// let codes = |verdict| -> Vec<_> {
///     let problems = validate(text, &ParseContext::in_directory("PDF"), verdict);
///     problems.iter().map(|problem| (problem.code, problem.is_error())).collect()
/// };
/// assert_eq!(codes(Verdict::Load), [("name-not-directory", false)]);
/// assert_eq!(codes(Verdict::Spec), [("name-not-directory", true), ("allowed-tools-format", true)]);
/// // The reference validator stops at the first YAML feature that it doesn't support.
/// assert_eq!(codes(Verdict::Reference), [("invalid-yaml", true)]);
/// ```
pub fn validate(text: &str, context: &ParseContext<'_>, verdict: Verdict) -> Vec<Diagnostic> {
    match verdict {
        Verdict::Reference if text.len() > MAX_FILE_BYTES => vec![document::too_large(text.len() as u64)],
        Verdict::Reference => reference::validate(text, context),
        Verdict::Load | Verdict::Spec => sorted(document::read(text, context, verdict).diagnostics),
    }
}

/// Checks the bytes of a whole file against a standard. See [`validate`].
pub fn validate_bytes(bytes: &[u8], context: &ParseContext<'_>, verdict: Verdict) -> Vec<Diagnostic> {
    if verdict == Verdict::Reference {
        return match std::str::from_utf8(bytes) {
            Ok(text) => validate(text, context, verdict),
            Err(error) => {
                let message = format!("invalid UTF-8 at byte {}", error.valid_up_to());
                vec![Diagnostic::error("invalid-utf8", message)]
            }
        };
    }
    sorted(document::read_bytes(bytes, context, verdict).diagnostics)
}

/// Returns true for findings that can mean that the file was read in the middle of a save.
pub(crate) fn is_half_saved(finding: &Diagnostic) -> bool {
    matches!(finding.code, "frontmatter-not-closed" | "body-empty")
}

fn sorted(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    order::sort_by_key(&mut diagnostics, |diagnostic| (diagnostic.line, diagnostic.column));
    diagnostics
}
