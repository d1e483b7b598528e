//! [`Grade`]: the result of one assertion.

use serde::{Deserialize, Serialize};

/// The grade of one assertion, with the field names of the standard.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// The weight in the pass rate of the run.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: f64,
    /// The share of the assertion that holds, from 0 to 1, if the assertion asks for a score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The verdict of the second grader, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<bool>,
}

fn one() -> f64 {
    1.0
}

/// Returns true for the default weight.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
#[expect(clippy::float_cmp, reason = "the default is exact")]
pub(super) fn is_one(weight: &f64) -> bool {
    *weight == 1.0
}

impl Grade {
    /// Creates a grade with evidence.
    pub(super) fn new(text: String, passed: bool, evidence: impl Into<String>) -> Self {
        Self {
            text,
            passed,
            evidence: evidence.into(),
            ungraded: false,
            skipped: false,
            weight: 1.0,
            score: None,
            second: None,
        }
    }

    /// Creates the grade of an assertion that doesn't hold, with the reason as evidence.
    pub(super) fn unmet(text: String, why: impl Into<String>) -> Self {
        Self::new(text, false, why)
    }

    /// Creates the grade of an assertion that could not be graded.
    pub(super) fn ungraded(text: String, why: impl Into<String>) -> Self {
        Self { ungraded: true, ..Self::new(text, false, why) }
    }

    /// Returns the share of the assertion that counts as passed, from 0 to 1.
    pub(super) fn share(&self) -> f64 {
        match self.score {
            _ if self.ungraded => 0.0,
            Some(score) => score,
            None => f64::from(u8::from(self.passed)),
        }
    }
}
