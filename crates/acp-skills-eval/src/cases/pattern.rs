//! [`Pattern`]: a regular expression of an assertion.

use std::fmt;

use regex::{Regex, RegexBuilder};

/// The maximum size of a compiled expression, in bytes. The time of a search is proportional to this and to the length of the text: the worst
/// expressions need a minute of a core for a file of 4 MiB, so a search has a timeout as well.
const MAX_BYTES: usize = 128 * 1024;

/// A valid regular expression, which is only compiled while it is used: the author of a skill can write thousands of them, and a short
/// one can need megabytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Checks an expression.
    ///
    /// # Errors
    /// Returns an error if the syntax is invalid, or if the compiled expression is larger than 128 KiB.
    pub fn new(text: &str) -> Result<Self, regex::Error> {
        compile(text).map(|_| Self(text.to_owned()))
    }

    /// Returns the first match in a text.
    pub(in super::super) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        compile(&self.0).ok()?.find(text).map(|found| found.as_str())
    }

    /// Returns the expression as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(MAX_BYTES).dfa_size_limit(MAX_BYTES).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_pattern_is_limited() {
        assert_eq!(Pattern::new("b+").unwrap().find("abbc"), Some("bb"));
        for text in ["(", r"[\pL\pN]{150}"] {
            assert!(Pattern::new(text).is_err(), "{text}");
        }
    }
}
