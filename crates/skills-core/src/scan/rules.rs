//! What a scan looks for: a rule, and the lists of them.

use std::{fmt, sync::Arc};

use regex::bytes::Regex;
use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    /// Good to know.
    Low,
    /// Worth a look.
    Medium,
    /// Hardly ever innocent.
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

/// What a scan looks for.
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
    /// Expressions with one group: what readers of a page do not see.
    pub(super) hidden: Vec<Regex>,
}

/// One row of the table.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) code: String,
    pub(super) risk: Risk,
    pub(super) reason: String,
    pub(super) help: Option<String>,
    pub(super) matcher: Matcher,
    pub(super) unless: Vec<Regex>,
}

/// What a rule finds its matches with.
#[derive(Debug, Clone)]
pub(super) enum Matcher {
    /// An expression, but for what one of `except` matches as well.
    Expression { place: Place, pattern: Regex, except: Vec<Regex> },
    /// Code.
    Code(Detector),
}

/// Where expressions are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Place {
    Text,
    Instructions,
    Hidden,
    Decoded,
    Tools,
}

/// What no expression can say.
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

/// What is wrong with a table of rules. The texts name the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The text is no table of rules.
    #[error("{0}")]
    Syntax(String),
    /// A rule says too little or too much.
    #[error("the rule `{code}` {problem}")]
    Rule {
        /// Its `code`.
        code: String,
        /// A fragment that goes on after the name.
        problem: String,
    },
    /// An expression is none.
    #[error("the rule `{code}` has an expression that is none: {message}")]
    Expression {
        /// The `code` of its rule, or `hidden`.
        code: String,
        /// What the parser says, with the place.
        message: String,
    },
    /// One of a rule's own examples shows that it does not do what it should.
    #[error("the rule `{code}` {} its example `{example}`", if *missed { "does not find" } else { "finds something in" })]
    Example {
        /// Its `code`.
        code: String,
        /// The text.
        example: String,
        /// Whether it should have been found.
        missed: bool,
    },
}

impl Rules {
    /// The code of each rule and its risk, in the order of the table.
    pub fn codes(&self) -> impl Iterator<Item = (&str, Risk)> {
        self.rules.iter().map(|rule| (rule.code.as_str(), rule.risk))
    }

    /// What is wrong where the rule with this code finds something.
    pub fn reason(&self, code: &str) -> Option<&str> {
        self.rules.iter().find(|rule| rule.code == code).map(|rule| rule.reason.as_str())
    }

    /// The rules that look with code, by what they look for.
    pub(super) fn detector(&self, detector: Detector) -> Option<&Arc<Rule>> {
        self.rules.iter().find(|rule| matches!(rule.matcher, Matcher::Code(it) if it == detector))
    }
}
