//! [`Rules`]: the rules of a scan, and the errors in tables of rules.

use std::{fmt, sync::Arc};

use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

use super::expression::Expressions;

/// The risk of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Usually harmless, but good to know.
    Low,
    /// Should be reviewed.
    Medium,
    /// Rarely legitimate.
    High,
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        })
    }
}

/// The rules of a scan: the built-in ones, possibly extended by a table of your own.
///
/// ```
/// use skills_core::scan::Rules;
///
/// let rules = Rules::built_in().extended("
/// rules:
///   - code: intranet
///     risk: high
///     in: text
///     patterns: ['https?://[a-z.-]+\\.corp\\.example']
///     reason: an address of ours
///     finds: ['https://wiki.corp.example/page']
///   - code: installer
///     risk: off
/// ")?;
/// assert!(rules.codes().any(|(code, _)| code == "intranet"));
/// assert!(!rules.codes().any(|(code, _)| code == "installer"));
/// # Ok::<(), skills_core::scan::RulesError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rules {
    pub(super) rules: Vec<Arc<Rule>>,
    /// Expressions with one group, which matches text that is invisible on a rendered page.
    pub(super) hidden: Vec<Regex>,
}

/// A rule: one row of the table.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) code: String,
    pub(super) risk: Risk,
    pub(super) reason: String,
    pub(super) help: Option<String>,
    pub(super) matcher: Matcher,
    pub(super) unless: Vec<Regex>,
}

/// The way in which a rule finds its matches.
#[derive(Debug, Clone)]
pub(super) enum Matcher {
    /// A regular expression. Matches that one of `except` also matches are ignored.
    Expression { place: Place, pattern: Expressions, except: Vec<Regex> },
    /// A detector that is implemented in code.
    Code(Detector),
}

/// The texts to which an expression is applied. The comments in `rules.yaml` explain the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Place {
    Text,
    Instructions,
    Hidden,
    Decoded,
    Tools,
}

/// The detectors that are implemented in code, because a regular expression cannot express them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Detector {
    TagCharacters,
    BidirectionalCharacters,
    HiddenData,
    InvisibleCharacters,
    ControlCharacters,
    EncodedProgram,
    ProgramFile,
    ArchiveFile,
    BinaryFile,
    LinkOutside,
    PathOutside,
    SpecialFile,
    NotScanned,
}

/// An error in a table of rules. The messages contain the code of the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The text is not valid YAML, or not a table of rules. Contains the message of the parser, with the position.
    #[error("{0}")]
    Syntax(String),
    /// A rule has missing, conflicting or invalid fields.
    #[error("rule `{code}` {problem}")]
    Rule {
        /// The code of the rule, or `hidden`.
        code: String,
        /// The problem, as the rest of a sentence after the code.
        problem: String,
    },
    /// A rule contains an invalid regular expression.
    #[error("invalid regular expression in rule `{code}`: {message}")]
    Expression {
        /// The code of the rule, or `hidden`.
        code: String,
        /// The message of the parser, with the position.
        message: String,
    },
    /// A rule doesn't match one of its `finds`, or matches one of its `passes`.
    #[error("rule `{code}` {} the example `{example}`", if *missed { "should match" } else { "should not match" })]
    Example {
        /// The code of the rule.
        code: String,
        /// The text of the example.
        example: String,
        /// True if the rule should match the example but doesn't. False if it is the other way round.
        missed: bool,
    },
}

impl Rules {
    /// Returns the code and the risk of each rule, in the order of the table.
    pub fn codes(&self) -> impl Iterator<Item = (&str, Risk)> {
        self.rules.iter().map(|rule| (rule.code.as_str(), rule.risk))
    }

    /// Returns the reason that the rule with this code reports, or `None` if there is no such rule.
    pub fn reason(&self, code: &str) -> Option<&str> {
        self.rules.iter().find(|rule| rule.code == code).map(|rule| rule.reason.as_str())
    }

    /// Returns the rule with this detector, or `None` if it is turned off.
    pub(super) fn detector(&self, detector: Detector) -> Option<&Arc<Rule>> {
        self.rules.iter().find(|rule| matches!(rule.matcher, Matcher::Code(own) if own == detector))
    }
}
