//! [`SkillName`] and the rules for names.
//!
//! A name is what users type and models send back, so there are two questions, kept apart: what *is* a name at
//! all (anything with a visible character: half of the skills in the wild break a rule), and which rules of the
//! [specification](https://agentskills.io/specification) it breaks ([`NameRule::broken_by`]).

use std::fmt;

use serde::Serialize;

/// Longest name that the specification allows, in characters.
pub const MAX_NAME_CHARS: usize = 64;

/// The name of a skill: never empty, one line, no control or bidirectional-override characters.
///
/// Two names that differ only in case are the same skill to a user; compare with [`SkillName::key`].
///
/// ```
/// use skills_core::SkillName;
///
/// let name = SkillName::new(" Code\u{7}-Review ").unwrap();
/// assert_eq!(name.as_str(), "Code-Review");
/// assert_eq!(name.key(), "code-review");
/// assert!(SkillName::new(" \n").is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct SkillName(Box<str>);

impl SkillName {
    /// The name in `text` without what nobody can see or type; `None` when nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let clean: String = sanitize(text).split_whitespace().collect::<Vec<_>>().join(" ");
        (!clean.is_empty()).then(|| Self(clean.into()))
    }

    /// The name as it is shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as it is compared: lower case.
    pub fn key(&self) -> String {
        Self::key_of(&self.0)
    }

    /// How a name that somebody typed is compared with [`SkillName::key`].
    pub fn key_of(text: &str) -> String {
        text.trim().to_lowercase()
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for SkillName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// `text` without control characters (line breaks and tabs become spaces) and without the bidirectional and
/// invisible formatting characters that can make a reader see something else than a model.
pub fn sanitize(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\n' | '\r' | '\t' => Some(' '),
            c if c.is_control() || is_deceptive(c) => None,
            c => Some(c),
        })
        .collect()
}

/// Whether `c` reorders or hides the text around it (Unicode bidirectional controls, tags, zero-width marks).
pub fn is_deceptive(c: char) -> bool {
    matches!(c,
        '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2064}'
        | '\u{2066}'..='\u{2069}' | '\u{FEFF}' | '\u{E0000}'..='\u{E007F}')
}
