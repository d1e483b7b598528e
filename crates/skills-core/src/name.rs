//! [`SkillName`] and the rules for names.
//!
//! A name is what users type and models send back, so there are two questions, kept apart: what *is* a name at
//! all (anything with a visible character: half of the skills in the wild break a rule), and which rules of the
//! [specification](https://agentskills.io/specification) it breaks ([`NameRule::broken_by`]).

use std::{borrow::Cow, fmt};

use serde::Serialize;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

pub use crate::text::sanitize;

/// Longest name that the specification allows, in characters.
pub const MAX_NAME_CHARS: usize = 64;

/// A skill with a longer name, in characters, is not loaded: catalogs show names whole.
pub const MAX_LOADED_NAME_CHARS: usize = 256;

/// The name of a skill: never empty, one line, no control or bidirectional-override characters.
///
/// Two names that differ only in case, or in how a character is put together, are the same skill to a user; compare with
/// [`SkillName::key`].
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
    /// The name in `text` without invisible characters; `None` when nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            // Nearly every name; nothing to clean.
            return Some(Self(text.into()));
        }
        let clean: String = sanitize(text).split_whitespace().collect::<Vec<_>>().join(" ");
        (!clean.is_empty()).then(|| Self(clean.into()))
    }

    /// The name as it is shown.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as it is compared: in lower case, and in the normalization form NFKC as in the specification's reference. Some
    /// file systems give other characters for a letter with an accent than keyboards do.
    pub fn key(&self) -> String {
        Self::key_of(&self.0)
    }

    /// The key of a name as a user typed it, to be compared with [`SkillName::key`].
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

/// A rule of the specification for names.
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
    /// At most [`MAX_NAME_CHARS`] characters.
    Length,
    /// No upper-case letters.
    Lowercase,
    /// No hyphen at the start or the end.
    EdgeHyphen,
    /// No two hyphens in a row.
    ConsecutiveHyphens,
    /// Nothing but letters and digits of any script, and hyphens.
    Characters,
    /// The same as the name of the skill's directory.
    Directory,
}

impl NameRule {
    /// The rules that `name` breaks, each once; `directory` is the name of the skill's directory, when there is one.
    ///
    /// As in the specification's reference, both are compared in the normalization form NFKC.
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

    /// The code of the diagnostic.
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

    /// What is wrong with `name`, which breaks this rule.
    pub fn message(self, name: &str, directory: Option<&str>) -> String {
        let name = normalized(name.trim());
        match self {
            Self::Length => {
                format!("the name has {} characters; {MAX_NAME_CHARS} are allowed", name.chars().count())
            }
            Self::Lowercase => format!("the name `{name}` has upper-case letters"),
            Self::EdgeHyphen => format!("the name `{name}` begins or ends with a hyphen"),
            Self::ConsecutiveHyphens => format!("the name `{name}` has two hyphens in a row"),
            Self::Characters => {
                let found: String = name.chars().find(|&c| !is_name_character(c)).into_iter().collect();
                format!("the name `{name}` has the character {found:?}")
            }
            Self::Directory => {
                format!("the name `{name}` is not that of its directory `{}`", directory.unwrap_or_default())
            }
        }
    }

    /// What to do about it.
    pub fn help(self, name: &str, directory: Option<&str>) -> String {
        match (self, suggestion(name), directory) {
            (Self::Directory, Some(name), _) => {
                format!("rename the directory to `{name}`, or change the name")
            }
            (Self::Directory, None, Some(directory)) => format!("change the name to `{directory}`"),
            (Self::Length, ..) | (_, None, _) => {
                format!("use at most {MAX_NAME_CHARS} lower-case letters, digits and single hyphens")
            }
            (_, Some(name), _) => format!("write `{name}`"),
        }
    }
}

/// The nearest name that follows the rules, when there is one.
fn suggestion(name: &str) -> Option<String> {
    let words = normalized(name).to_lowercase();
    if words.chars().any(|c| !c.is_ascii() && !is_name_character(c)) {
        // A mark that is left out leaves another word.
        return None;
    }
    let words: Vec<&str> =
        words.split(|c: char| c == '-' || !is_name_character(c)).filter(|word| !word.is_empty()).collect();
    let name = words.join("-");
    (!name.is_empty() && name.chars().count() <= MAX_NAME_CHARS).then_some(name)
}

/// As `str.isalnum` of the reference: letters and numbers, but no combining marks.
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
    fn names_that_are_the_same_to_a_user() {
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
