//! The result as JUnit XML: a suite for each agent, and a test case for each query and each task.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use acp_skills_eval::{AgentReport, Case, Configuration, Evaluation, Outcome, Report};

use crate::words::count;

/// The maximum length of a name, a message or the details, in characters. The rest is left out.
const MAX_CHARS: usize = 4_000;

/// A test case.
struct TestCase {
    class: &'static str,
    name: String,
    seconds: f64,
    result: TestResult,
}

/// The result of a test case. The texts are a message and details.
enum TestResult {
    Passed,
    Failed(String, String),
    /// The agent failed in all runs.
    Error(String, String),
    /// There are no runs.
    Skipped,
}

/// Returns the result as XML. Queries for validation are left out, so that the description is not tuned with them.
pub(super) fn xml(evaluation: &Evaluation, report: &Report) -> String {
    let suites: Vec<_> =
        report.agents.iter().map(|agent| (agent, cases(evaluation, report, agent))).collect();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string never fails.
    let _ = write_suites(&mut xml, &report.skill_name, &suites);
    xml
}

fn write_suites(xml: &mut String, skill: &str, suites: &[(&AgentReport, Vec<TestCase>)]) -> fmt::Result {
    let all: Vec<_> = suites.iter().flat_map(|(_, cases)| cases).collect();
    writeln!(xml, "<testsuites name=\"{}\" {}>", escaped(skill), figures(&all))?;
    for (agent, cases) in suites {
        let of_suite: Vec<_> = cases.iter().collect();
        writeln!(xml, "  <testsuite name=\"{}\" {}>", escaped(&agent.name), figures(&of_suite))?;
        for case in cases {
            let class = format!("{skill}.{}.{}", agent.name, case.class);
            let name = escaped(&case.name);
            write!(
                xml,
                "    <testcase classname=\"{}\" name=\"{name}\" time=\"{:.3}\"",
                escaped(&class),
                case.seconds
            )?;
            match &case.result {
                TestResult::Passed => xml.push_str("/>\n"),
                TestResult::Skipped => xml.push_str("><skipped/></testcase>\n"),
                TestResult::Failed(message, details) => problem(xml, "failure", message, details)?,
                TestResult::Error(message, details) => problem(xml, "error", message, details)?,
            }
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    Ok(())
}

fn problem(xml: &mut String, element: &str, message: &str, details: &str) -> fmt::Result {
    let (message, details) = (escaped(message), escaped(details));
    writeln!(xml, "><{element} message=\"{message}\">{details}</{element}></testcase>")
}

/// Returns the attributes with the number of test cases and their duration.
fn figures(cases: &[&TestCase]) -> String {
    let number = |is: fn(&TestResult) -> bool| cases.iter().filter(|case| is(&case.result)).count();
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3}\"",
        cases.len(),
        number(|result| matches!(result, TestResult::Failed(..))),
        number(|result| matches!(result, TestResult::Error(..))),
        number(|result| matches!(result, TestResult::Skipped)),
        cases.iter().map(|case| case.seconds).sum::<f64>()
    )
}

fn cases(evaluation: &Evaluation, report: &Report, agent: &AgentReport) -> Vec<TestCase> {
    let mut cases = Vec::new();
    for query in agent.triggers.iter().flat_map(|triggers| &triggers.queries) {
        let place = evaluation.queries.iter().position(|case| case.query == query.query);
        let case = Case::Query(place.unwrap_or(usize::MAX));
        let runs = runs(report, agent, &case);
        let should = if query.should_trigger { "should load" } else { "should not load" };
        let failed = || {
            let instead: Vec<_> = query.loaded_instead.keys().map(String::as_str).collect();
            let details = if instead.is_empty() {
                String::new()
            } else {
                format!("Loaded instead: {}", instead.join(", "))
            };
            let loaded =
                format!("{should}, but loaded in {} of {}", query.triggers, count(query.runs, "run"));
            TestResult::Failed(loaded, details)
        };
        let result = match (query.runs, query.pass) {
            (0, _) => without_result(&runs),
            (_, true) => TestResult::Passed,
            (_, false) => failed(),
        };
        let name = format!("{} ({should})", query.query);
        cases.push(TestCase { class: "queries", name, seconds: seconds(&runs), result });
    }
    for task in agent.benchmark.iter().flat_map(|benchmark| &benchmark.cases) {
        let case = Case::Eval(task.name.clone());
        let runs = runs(report, agent, &case);
        let result = match (task.undecided, task.pass) {
            (true, _) => without_result(&runs),
            (false, true) => TestResult::Passed,
            (false, false) => failed_task(&runs),
        };
        cases.push(TestCase { class: "tasks", name: task.name.clone(), seconds: seconds(&runs), result });
    }
    cases
}

/// Returns the runs of a case with the skill.
fn runs<'a>(report: &'a Report, agent: &'a AgentReport, case: &'a Case) -> Vec<&'a Outcome> {
    let of_case = report.outcomes.iter().filter(|outcome| outcome.run.agent == agent.name);
    of_case
        .filter(|outcome| outcome.run.case == *case && outcome.run.configuration == Configuration::WithSkill)
        .collect()
}

/// Returns the result of a case in which the agent failed in all runs.
fn without_result(runs: &[&Outcome]) -> TestResult {
    let Some(first) = runs.first() else { return TestResult::Skipped };
    let problem = first.problem().unwrap_or_default();
    TestResult::Error(format!("the agent failed: {problem}"), first.stderr.clone())
}

fn failed_task(runs: &[&Outcome]) -> TestResult {
    let decided: Vec<_> = runs.iter().filter(|run| run.problem().is_none()).collect();
    let failed = decided.iter().filter(|run| !run.is_passed()).count();
    let mut details = String::new();
    for run in &decided {
        if !run.is_passed() && run.grades.iter().all(|grade| grade.passed) {
            let _ = writeln!(details, "run {}: {}", run.run.number, super::summary::word(run.status));
        }
        for grade in run.grades.iter().filter(|grade| !grade.passed && !grade.skipped) {
            let _ = writeln!(details, "run {}: {} ({})", run.run.number, grade.text, grade.evidence);
        }
    }
    TestResult::Failed(format!("{failed} of {} failed", count(decided.len(), "run")), details)
}

#[expect(clippy::cast_precision_loss, reason = "durations are short")]
fn seconds(runs: &[&Outcome]) -> f64 {
    runs.iter().map(|run| run.duration_ms as f64 / 1000.0).sum()
}

/// Returns a text for XML 1.0, which has no control characters. The text also fits into an attribute.
fn escaped(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_./,:;()".contains(c);
    if text.chars().count() <= MAX_CHARS && text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut xml = String::new();
    for c in text.chars().take(MAX_CHARS) {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\n' => xml.push_str("&#10;"),
            '\t' => xml.push(' '),
            '\u{fffe}' | '\u{ffff}' => xml.push('\u{fffd}'),
            c if c.is_control() => xml.push('\u{fffd}'),
            c => xml.push(c),
        }
    }
    Cow::Owned(xml)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_into_attributes() {
        for (text, xml) in [
            ("plain text", "plain text"),
            ("<a href=\"x\">&", "&lt;a href=&quot;x&quot;&gt;&amp;"),
            ("a\nb\tc\u{1b}[0m", "a&#10;b c\u{fffd}[0m"),
            ("]]>", "]]&gt;"),
        ] {
            assert_eq!(escaped(text), xml);
        }
    }
}
