//! Parses tables of rules from YAML, compiles their expressions, and checks them with their own examples.

use std::{
    str::FromStr,
    sync::{Arc, LazyLock},
};

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use super::{
    expression::Expressions,
    rules::{Detector, Matcher, Place, Risk, Rule, Rules, RulesError},
    text,
};

/// The built-in rules as YAML. The comments in this text document the format.
pub const BUILT_IN: &str = include_str!("rules.yaml");

/// The maximum size of a compiled expression in bytes.
const MAX_EXPRESSION_BYTES: usize = 8 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    hidden: Vec<String>,
    #[serde(default)]
    rules: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    code: String,
    risk: RowRisk,
    r#in: Option<Place>,
    detector: Option<Detector>,
    #[serde(default)]
    patterns: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
    #[serde(default)]
    unless: Vec<String>,
    reason: Option<String>,
    help: Option<String>,
    #[serde(default)]
    finds: Vec<String>,
    #[serde(default)]
    passes: Vec<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RowRisk {
    Low,
    Medium,
    High,
    Off,
}

impl Rules {
    /// Returns the built-in rules ([`BUILT_IN`]).
    ///
    /// # Panics
    /// Panics if the built-in rules are invalid. A test ensures that they are valid.
    pub fn built_in() -> &'static Self {
        static RULES: LazyLock<Rules> = LazyLock::new(|| {
            let none = Rules { rules: Vec::new(), hidden: Vec::new() };
            none.with(BUILT_IN, true, false).expect("the built-in rules should be valid")
        });
        &RULES
    }

    /// Returns these rules extended by those of `table`, which is YAML in the format of [`BUILT_IN`].
    ///
    /// A rule with an existing code replaces that rule. If it has only a code and a risk, it changes the risk, or removes the
    /// rule if the risk is `off`. The examples of each new rule are checked.
    ///
    /// # Errors
    /// Returns [`RulesError::Syntax`] if the text is not a table, [`RulesError::Rule`] if the fields of a rule are invalid,
    /// [`RulesError::Expression`] for an invalid regular expression, and [`RulesError::Example`] if an example fails.
    pub fn extended(&self, table: &str) -> Result<Self, RulesError> {
        self.clone().with(table, false, true)
    }

    fn with(mut self, table: &str, with_detectors: bool, with_examples: bool) -> Result<Self, RulesError> {
        let table: Table = serde_yaml::from_str(table).map_err(|error| {
            RulesError::Syntax(error.render_with_formatter(&serde_yaml::UserMessageFormatter))
        })?;
        for pattern in table.hidden {
            let pattern = expression("hidden", &pattern)?;
            if pattern.captures_len() != 2 {
                let problem = "should have exactly one group, for the hidden text".to_owned();
                return Err(RulesError::Rule { code: "hidden".to_owned(), problem });
            }
            self.hidden.push(pattern);
        }
        for row in table.rules {
            self.add(row, with_detectors, with_examples)?;
        }
        Ok(self)
    }

    fn add(&mut self, row: Row, with_detectors: bool, with_examples: bool) -> Result<(), RulesError> {
        let wrong =
            |problem: &str| Err(RulesError::Rule { code: row.code.clone(), problem: problem.to_owned() });
        let is_code = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if row.code.is_empty() || row.code.len() > 64 || !row.code.chars().all(is_code) {
            return wrong("has an invalid code; use 1 to 64 lowercase letters, digits and hyphens");
        }
        let known = self.rules.iter().position(|rule| rule.code == row.code);
        let risk = match row.risk {
            RowRisk::Low => Risk::Low,
            RowRisk::Medium => Risk::Medium,
            RowRisk::High => Risk::High,
            RowRisk::Off => {
                return match known {
                    Some(at) => {
                        self.rules.remove(at);
                        Ok(())
                    }
                    None => wrong("does not exist and cannot be turned off"),
                };
            }
        };
        let matcher = match (row.detector, row.r#in) {
            (None, None) if row.patterns.is_empty() && row.reason.is_none() => {
                let Some(at) = known else {
                    return wrong("is new and requires `in`, `patterns` and `reason`");
                };
                let rule = Rule { risk, ..Rule::clone(&self.rules[at]) };
                self.rules[at] = Arc::new(rule);
                return Ok(());
            }
            (Some(detector), None) if row.patterns.is_empty() && with_detectors => Matcher::Code(detector),
            (Some(_), _) => return wrong("has a `detector`, which is only allowed in built-in rules"),
            (None, Some(_)) if row.patterns.is_empty() => return wrong("requires `patterns`"),
            (None, None) => {
                return wrong("requires `in`: text, instructions, hidden, decoded or tools");
            }
            (None, Some(place)) => {
                for pattern in &row.patterns {
                    expression(&row.code, pattern)?;
                }
                // Only the built-in expressions are known to be the same if they are searched in parts.
                let pattern =
                    Expressions::new(&row.patterns, with_detectors, |part| expression(&row.code, part))?;
                if pattern.search(b"").next(0).is_some() {
                    return wrong("should not match empty text");
                }
                let whole = |pattern: &String| expression(&row.code, &format!(r"\A(?:{pattern})\z"));
                let except = row.except.iter().map(whole).collect::<Result<_, _>>()?;
                Matcher::Expression { place, pattern, except }
            }
        };
        let Some(reason) = row.reason.clone() else { return wrong("requires a `reason`") };
        let unless: Result<_, _> = row.unless.iter().map(|pattern| expression(&row.code, pattern)).collect();
        let code = row.code.clone();
        let help = row.help.clone();
        let rule = Arc::new(Rule { code, risk, reason, help, matcher, unless: unless? });
        if with_examples {
            self.try_examples(&rule, &row.finds, &row.passes)?;
        }
        match known {
            Some(at) => self.rules[at] = rule,
            None => self.rules.push(rule),
        }
        Ok(())
    }

    fn try_examples(&self, rule: &Rule, finds: &[String], passes: &[String]) -> Result<(), RulesError> {
        let finds = finds.iter().map(|example| (example, true));
        let examples = finds.chain(passes.iter().map(|example| (example, false)));
        for (example, expected) in examples {
            if text::finds(self, rule, example) != expected {
                let code = rule.code.clone();
                let example = example.clone();
                return Err(RulesError::Example { code, example, missed: expected });
            }
        }
        Ok(())
    }
}

impl FromStr for Rules {
    type Err = RulesError;

    /// Returns the built-in rules extended by those of `table`.
    fn from_str(table: &str) -> Result<Self, RulesError> {
        Self::built_in().extended(table)
    }
}

/// Compiles an expression. It matches bytes instead of Unicode characters. Therefore a search is one pass of a small
/// automaton, and a letter of another script directly before a word doesn't hide the start of that word.
fn expression(code: &str, pattern: &str) -> Result<Regex, RulesError> {
    let built = RegexBuilder::new(pattern)
        .case_insensitive(true)
        .multi_line(true)
        .unicode(false)
        .size_limit(MAX_EXPRESSION_BYTES)
        .build();
    built.map_err(|error| RulesError::Expression { code: code.to_owned(), message: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_rules_match_their_examples() {
        let none = Rules { rules: Vec::new(), hidden: Vec::new() };
        let rules = none.with(BUILT_IN, true, true).unwrap_or_else(|error| panic!("{error}"));
        let mut codes: Vec<_> = rules.codes().map(|(code, _)| code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), rules.rules.len());
        let table: Table = serde_yaml::from_str(BUILT_IN).unwrap();
        for row in table.rules {
            assert!(row.detector.is_some() || !row.finds.is_empty(), "{} has no example", row.code);
            assert!(row.detector.is_some() || !row.passes.is_empty(), "{} has no counterexample", row.code);
        }
    }

    #[test]
    fn errors_in_tables_are_reported() {
        for (table, expected) in [
            ("rules: [{code: A, risk: high}]", "rule `A` has an invalid code; use 1 to 64 lowercase letters"),
            ("rules: [{code: a, risk: high}]", "rule `a` is new and requires `in`, `patterns` and `reason`"),
            ("rules: [{code: a, risk: off}]", "rule `a` does not exist and cannot be turned off"),
            ("rules: [{code: a, risk: high, in: text, reason: r}]", "rule `a` requires `patterns`"),
            ("rules: [{code: a, risk: high, patterns: [x], reason: r}]", "rule `a` requires `in`"),
            ("rules: [{code: a, risk: high, in: text, patterns: [x]}]", "rule `a` requires a `reason`"),
            (
                "rules: [{code: a, risk: high, in: text, patterns: ['x*'], reason: r}]",
                "should not match empty text",
            ),
            (
                "rules: [{code: a, risk: high, in: text, patterns: ['(x'], reason: r}]",
                "invalid regular expression in rule `a`",
            ),
            (
                "rules: [{code: a, risk: high, in: text, patterns: ['x)|(?:y'], reason: r}]",
                "invalid regular expression in rule `a`",
            ),
            ("rules: [{code: a, risk: high, in: text, patterns: ['(?=x)'], reason: r}]", "look-around"),
            (
                "rules: [{code: a, risk: high, in: text, patterns: ['\\w{900}{900}'], reason: r}]",
                "size limit",
            ),
            (
                "rules: [{code: a, risk: high, detector: binary-file, reason: r}]",
                "which is only allowed in built-in rules",
            ),
            (
                "rules: [{code: a, risk: high, in: text, patterns: [x], reason: r, finds: [y]}]",
                "rule `a` should match the example `y`",
            ),
            (
                "rules: [{code: a, risk: high, in: text, patterns: [x], reason: r, passes: [yx]}]",
                "rule `a` should not match the example `yx`",
            ),
            ("hidden: ['x']", "rule `hidden` should have exactly one group"),
            ("rules: [{code: a, risk: hgih}]", "hgih"),
            ("rulez: []", "rulez"),
            ("rules: [", "1"),
        ] {
            let error = Rules::built_in().extended(table).expect_err(table).to_string();
            assert!(error.contains(expected), "{table}: {error}");
        }
    }

    #[test]
    fn a_table_changes_adds_and_removes_rules() {
        let table = "
rules:
  - {code: installer, risk: high}
  - {code: path-outside, risk: off}
  - {code: fetch-and-run, risk: low, in: text, patterns: [xyz], reason: another}
  - {code: own, risk: medium, in: hidden, patterns: [secret], reason: r, finds: ['<!-- secret -->'], passes: [secret]}
";
        let rules = Rules::built_in().extended(table).unwrap();
        let risk = |wanted| rules.codes().find(|(code, _)| *code == wanted).map(|(_, risk)| risk);
        assert_eq!(risk("installer"), Some(Risk::High));
        assert_eq!(risk("path-outside"), None);
        assert_eq!(risk("own"), Some(Risk::Medium));
        assert_eq!(
            (risk("fetch-and-run"), rules.reason("fetch-and-run")),
            (Some(Risk::Low), Some("another"))
        );
        let installer = Rules::built_in().codes().find(|(code, _)| *code == "installer");
        assert_eq!(installer, Some(("installer", Risk::Low)));
        assert_eq!("".parse::<Rules>().map(|rules| rules.rules.len()), Ok(Rules::built_in().rules.len()));
    }

    /// A search in parts takes little time in a text with many parts, and finds the same as the whole expression.
    #[test]
    fn expressions_with_gaps_are_searched_in_linear_time() {
        let words = "send token x secrets yy post zzz to upload password ".repeat(40_000);
        let started = std::time::Instant::now();
        let report = super::super::scan_text("SKILL.md", &words, Rules::built_in());
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        assert!(started.elapsed() < std::time::Duration::from_secs(10), "{:?}", started.elapsed());
    }

    proptest::proptest! {
        #[test]
        fn expressions_with_gaps_find_the_same_in_parts(parts in proptest::collection::vec(
            proptest::prop_oneof![
                proptest::sample::select(vec![
                    " ", "\n", ".", ", ", "send", "access token", "secrets", " to ", "https://a.b", "x@y.z", "ignore", "previous",
                    "do not tell", "the user", "this", "agent must", "run", "cat ", "open ", "~/.ssh/", "id_rsa", "home()", "HOME\"'",
                    "don't mention it", "about", "contents of", "api key", "e.com", "[", "é", "                    ",
                ]).prop_map(str::to_owned).boxed(),
                "[a-z ]{0,50}".boxed(),
            ], 0..60)) {
            static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
                let table: Table = serde_yaml::from_str(BUILT_IN).unwrap();
                table.rules.into_iter().filter(|row| !row.patterns.is_empty()).collect()
            });
            static EXPRESSIONS: LazyLock<Vec<[Expressions; 2]>> = LazyLock::new(|| {
                let compile = |row: &Row, with_gaps| Expressions::new(&row.patterns, with_gaps, |part| expression("", part)).unwrap();
                ROWS.iter().map(|row| [false, true].map(|with_gaps| compile(row, with_gaps))).collect()
            });
            let text = parts.concat();
            for (row, [whole, in_parts]) in ROWS.iter().zip(EXPRESSIONS.iter()) {
                let mut searches = [whole, in_parts].map(|expressions| expressions.search(text.as_bytes()));
                let mut at = 0;
                loop {
                    let [expected, found] = searches.each_mut().map(|search| search.next(at));
                    proptest::prop_assert_eq!(expected, found, "{} from byte {} of {:?}", row.code, at, text);
                    let Some((start, end)) = found else { break };
                    at = end.max(start + 1);
                }
            }
        }
    }

    use proptest::strategy::Strategy;
}
