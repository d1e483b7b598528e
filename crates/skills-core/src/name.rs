//! [`SkillName`], and the specification's rules for names.
//!
//! Half of the skills in the wild break a rule, so any text with a visible character can be a [`SkillName`].
//! [`NameRule::broken_by`] returns the rules of the [specification](https://agentskills.io/specification) that a name breaks.

use std::{borrow::Cow, fmt};

use serde::Serialize;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

pub use crate::text::sanitize;

/// The maximum length of a name according to the specification, in characters.
pub const MAX_NAME_CHARS: usize = 64;

/// The maximum length of a name that is loaded, in characters. The limit exists because catalogs don't shorten names.
pub const MAX_LOADED_NAME_CHARS: usize = 256;

/// The name of a skill. It is a single line and never empty, and has no control or bidirectional characters.
///
/// Names that differ only in case or in Unicode normalization mean the same skill. To compare two names, compare their
/// [keys](SkillName::key).
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
    /// Creates a name from `text` without its invisible characters. Returns `None` if no character is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            // The fast path for nearly all names.
            return Some(Self(text.into()));
        }
        let clean: String = sanitize(text).split_whitespace().collect::<Vec<_>>().join(" ");
        (!clean.is_empty()).then(|| Self(clean.into()))
    }

    /// Returns the name for display.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the form of the name that is used for comparisons: in lower case and in the normalization form NFKC.
    ///
    /// The specification's reference implementation normalizes in the same way. It matters because some file systems
    /// decompose accented letters.
    pub fn key(&self) -> String {
        Self::key_of(&self.0)
    }

    /// Returns the key of a name that a user or a model wrote, to compare it with [`SkillName::key`].
    pub fn key_of(text: &str) -> String {
        normalized(text.trim()).to_lowercase()
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

/// A rule for names from the [specification](https://agentskills.io/specification#name-field).
///
/// ```
/// use skills_core::NameRule;
///
/// assert!(NameRule::broken_by("code-review", Some("code-review")).is_empty());
/// assert_eq!(
///     NameRule::broken_by("Code--Review", None),
///     [NameRule::Lowercase, NameRule::ConsecutiveHyphens],
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NameRule {
    /// The name has at most [`MAX_NAME_CHARS`] characters.
    Length,
    /// The name has no upper-case letters.
    Lowercase,
    /// The name neither starts nor ends with a hyphen.
    EdgeHyphen,
    /// The name has no two consecutive hyphens.
    ConsecutiveHyphens,
    /// The name consists of letters and digits of any script, and hyphens.
    Characters,
    /// The name equals the name of the skill's directory.
    Directory,
}

impl NameRule {
    /// Returns the rules that `name` breaks.
    ///
    /// `directory` is the name of the skill's directory. If it is `None`, [`NameRule::Directory`] is not checked. Both names are
    /// compared in the normalization form NFKC, as in the specification's reference implementation.
    pub fn broken_by(name: &str, directory: Option<&str>) -> Vec<Self> {
        let name = &*normalized(name.trim());
        let mut broken = Vec::new();
        let mut check = |rule, holds: bool| {
            if !holds {
                broken.push(rule);
            }
        };
        check(Self::Length, name.len() <= MAX_NAME_CHARS || name.chars().count() <= MAX_NAME_CHARS);
        check(
            Self::Lowercase,
            if name.is_ascii() {
                !name.bytes().any(|byte| byte.is_ascii_uppercase())
            } else {
                name.to_lowercase() == name
            },
        );
        check(Self::EdgeHyphen, !name.starts_with('-') && !name.ends_with('-'));
        check(Self::ConsecutiveHyphens, !name.contains("--"));
        check(Self::Characters, name.chars().all(is_name_character));
        check(Self::Directory, directory.is_none_or(|directory| normalized(directory) == name));
        broken
    }

    /// Returns the code of the diagnostic for this rule.
    pub fn code(self) -> &'static str {
        match self {
            Self::Length => "name-too-long",
            Self::Lowercase => "name-not-lowercase",
            Self::EdgeHyphen => "name-edge-hyphen",
            Self::ConsecutiveHyphens => "name-consecutive-hyphens",
            Self::Characters => "name-invalid-characters",
            Self::Directory => "name-not-directory",
        }
    }

    /// Describes how `name` breaks this rule.
    pub fn message(self, name: &str, directory: Option<&str>) -> String {
        let name = normalized(name.trim());
        match self {
            Self::Length => {
                format!(
                    "name has {} characters, but should have at most {MAX_NAME_CHARS}",
                    name.chars().count()
                )
            }
            Self::Lowercase => format!("name `{name}` contains upper-case letters"),
            Self::EdgeHyphen => format!("name `{name}` starts or ends with a hyphen"),
            Self::ConsecutiveHyphens => format!("name `{name}` has consecutive hyphens"),
            Self::Characters => {
                let found: String = name.chars().find(|&c| !is_name_character(c)).into_iter().collect();
                format!("name `{name}` contains {found:?}, but this character is not allowed")
            }
            Self::Directory => {
                format!("name `{name}` should match the directory name `{}`", directory.unwrap_or_default())
            }
        }
    }

    /// Returns a hint about how to fix `name`.
    pub fn help(self, name: &str, directory: Option<&str>) -> String {
        match (self, suggestion(name), directory) {
            (Self::Directory, Some(name), _) => {
                format!("rename the directory to `{name}`, or change the name to match")
            }
            (Self::Directory, None, Some(directory)) => format!("change the name to `{directory}`"),
            (Self::Length, ..) | (_, None, _) => {
                format!("use at most {MAX_NAME_CHARS} lower-case letters, digits and single hyphens")
            }
            (_, Some(name), _) => format!("use `{name}`"),
        }
    }
}

/// Returns a similar name that follows the rules, if there is one.
fn suggestion(name: &str) -> Option<String> {
    let words = normalized(name).to_lowercase();
    if words.chars().any(|c| !c.is_ascii() && !is_name_character(c)) {
        // If we dropped a character such as a combining mark, this would be another word.
        return None;
    }
    let words: Vec<&str> =
        words.split(|c: char| c == '-' || !is_name_character(c)).filter(|word| !word.is_empty()).collect();
    let name = words.join("-");
    (!name.is_empty() && name.chars().count() <= MAX_NAME_CHARS).then_some(name)
}

/// Returns true for hyphens, letters and numbers, but not for combining marks. The reference uses Python's `str.isalnum`.
fn is_name_character(c: char) -> bool {
    c == '-'
        || c.is_ascii_alphanumeric()
        || (!c.is_ascii()
            && matches!(
                c.general_category_group(),
                GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number
            ))
}

pub(crate) fn normalized(text: &str) -> Cow<'_, str> {
    if text.is_ascii() { Cow::Borrowed(text) } else { Cow::Owned(text.nfkc().collect()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equivalent_names_have_the_same_key() {
        for (name, other) in [
            ("Review", "rEVIEW"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("CAF\u{c9}", "cafe\u{301}"),
            ("\u{fb01}le", "file"),
            ("\u{ff50}df", "PDF"),
            ("p\u{200b}df", "pdf"),
        ] {
            let key = |name| SkillName::new(name).map(|name| name.key());
            assert_eq!(key(name), key(other), "{name:?} {other:?}");
            assert_eq!(key(name), Some(SkillName::key_of(other)), "{name:?} {other:?}");
        }
        assert_ne!(SkillName::key_of("cafe"), SkillName::key_of("caf\u{e9}"));
    }
}
