//! [`Grade`]: the result of one assertion.

use serde::{Deserialize, Serialize};

/// The grade of one assertion, with the field names of the standard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Grade {
    /// The text of the assertion.
    pub text: String,
    /// True if the assertion holds. This needs evidence.
    pub passed: bool,
    /// The evidence for the grade, or the reason why there is none.
    pub evidence: String,
    /// True if the assertion could not be graded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ungraded: bool,
    /// True if the assertion was not graded because there is no grader (`--no-grader`). It then doesn't count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}

impl Grade {
    /// Creates a grade with evidence.
    pub(super) fn new(text: String, passed: bool, evidence: impl Into<String>) -> Self {
        Self { text, passed, evidence: evidence.into(), ungraded: false, skipped: false }
    }

    /// Creates the grade of an assertion that doesn't hold, with the reason as evidence.
    pub(super) fn unmet(text: String, why: impl Into<String>) -> Self {
        Self::new(text, false, why)
    }

    /// Creates the grade of an assertion that could not be graded.
    pub(super) fn ungraded(text: String, why: impl Into<String>) -> Self {
        Self { ungraded: true, ..Self::new(text, false, why) }
    }
}
