//! The cases of a skill: queries and tasks, read from the files that the standard and its skill-creator define.
//!
//! - `evals/evals.json`: `{"skill_name", "evals": [{"id", "prompt", "expected_output", "files", "assertions"}]}`;
//!   `expectations` is another name for `assertions`.
//! - `evals/eval_queries.json`, or `evals/trigger-evals.json`: `[{"query", "should_trigger"}]`.
//!
//! - The files of NVIDIA's skills: the tasks are a list or in `cases`, with `question`, `ground_truth`, `expected_behavior` and
//!   `expected_skill`, which is null if no skill should be loaded.
//!
//! Unknown fields are ignored. An assertion is either a sentence, which a grader judges, or an object that describes a
//! [`Check`].

mod assertion;
mod file;
mod pattern;

use std::{collections::HashSet, io, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
pub use skills_core::evaluation::{OUTPUT_CASES, TRIGGER_CASES};
use skills_core::{
    files::{FileError, SkillFiles},
    json::{MAX_VALUES, has_more_values_than},
};
use skills_sources::disk::patient;

use self::file::{EvalsFile, RawCase, Shape};
pub use self::pattern::Pattern;
use super::{CaseError, EvaluationError, TaskError};

/// The maximum number of JSON values in a file with cases or results. Each needs up to 300 bytes of memory.
pub(super) const MAX_FILE_VALUES: usize = 2 * MAX_VALUES;
/// The maximum size of a file of cases.
const MAX_CASES_BYTES: u64 = 64 * 1024 * 1024;
/// The maximum size of a file of queries that is named on the command line.
const MAX_QUERIES_BYTES: u64 = MAX_CASES_BYTES;

/// A query: a prompt that should load the skill, or one that should not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TriggerCase {
    /// The prompt.
    pub query: String,
    /// True if the model should load the skill.
    pub should_trigger: bool,
    /// True if an agent wrote the query and it has not been reviewed.
    #[serde(default)]
    pub drafted: bool,
}

/// A task, and the assertions about its result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OutputCase {
    /// The `id` from the file: a number or a string.
    pub id: Value,
    /// The name for directories and tables, without the prefix `eval-`.
    pub name: String,
    /// The prompt.
    pub prompt: String,
    /// The prompts of the later turns, which are sent after the agent has answered the one before.
    pub turns: Vec<String>,
    /// The description of a good result for the grader. It can be empty.
    pub expected_output: String,
    /// The files that are copied for the agent, relative to the skill's directory.
    pub files: Vec<String>,
    /// The assertions about the result. If the file has none, `expected_output` becomes the only one.
    pub assertions: Vec<Assertion>,
    /// True if the skill should be loaded (`should_trigger`). The default is true.
    pub should_trigger: bool,
    /// True if an agent wrote the task and it has not been reviewed (`drafted`).
    pub drafted: bool,
}

impl OutputCase {
    /// Returns true if the task needs a grader.
    pub fn has_sentences(&self) -> bool {
        self.assertions.iter().any(|assertion| matches!(assertion.statement, Statement::Sentence(_)))
    }

    /// Returns the task as it is written in `evals.json`. Reading it gives the same task.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "name": self.name,
            "prompt": self.prompt,
            "turns": self.turns,
            "expected_output": self.expected_output,
            "files": self.files,
            "assertions": self.assertions.iter().map(assertion::write).collect::<Vec<_>>(),
            "should_trigger": self.should_trigger,
            "drafted": self.drafted,
        })
    }
}

/// A statement that must be true of a result, with its weight.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Assertion {
    /// The statement.
    pub statement: Statement,
    /// The weight in the pass rate of a run, more than 0. The default is 1.
    pub weight: f64,
    /// True if the grader gives a score from 0 to 1 for a sentence, so that a part of it counts too.
    pub partial: bool,
}

/// The statement of an assertion.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Statement {
    /// A sentence that the grader judges.
    Sentence(String),
    /// A check that the program performs.
    Check(Check),
}

impl Assertion {
    /// Creates an assertion with a sentence and the default weight.
    pub(super) fn sentence(text: String) -> Self {
        Self { statement: Statement::Sentence(text), weight: 1.0, partial: false }
    }

    /// Returns the assertion as text for the user.
    pub fn text(&self) -> String {
        match &self.statement {
            Statement::Sentence(text) => text.clone(),
            Statement::Check(check) => check.text(),
        }
    }
}

/// An assertion that the program can check. Files are relative to the run's directory.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Check {
    /// `{"file_exists": "chart.png"}`
    FileExists(String),
    /// `{"file_matches": ["report.md", "## Summary"]}`, with a regular expression.
    FileMatches(String, Pattern),
    /// `{"answer_matches": "(?i)sql injection"}`, with a regular expression for the agent's messages.
    AnswerMatches(Pattern),
    /// `{"answer_lacks": "pip install"}`, with a regular expression that must not match the agent's messages.
    AnswerLacks(Pattern),
    /// `{"command": ["python3", "check.py"], "exit": 0}`, run in the run's directory. The default exit code is 0.
    Command(Vec<String>, i32),
}

impl Check {
    pub(super) fn text(&self) -> String {
        match self {
            Self::FileExists(file) => format!("file `{file}` exists"),
            Self::FileMatches(file, pattern) => format!("file `{file}` matches `{pattern}`"),
            Self::AnswerMatches(pattern) => format!("answer matches `{pattern}`"),
            Self::AnswerLacks(pattern) => format!("answer does not match `{pattern}`"),
            Self::Command(words, exit) => format!("`{}` exits with {exit}", words.join(" ")),
        }
    }
}

/// Reads queries from `path`.
///
/// # Errors
/// Returns [`EvaluationError::Unreadable`] if the file can't be read, and [`EvaluationError::Cases`] if it is not a list of
/// queries, or if a query is empty or appears twice.
pub fn read_queries(path: &Path) -> Result<Vec<TriggerCase>, EvaluationError> {
    let text = patient::read_text(path, MAX_QUERIES_BYTES)
        .map_err(|source| EvaluationError::Unreadable { path: path.to_owned(), source })?;
    queries(path, &text)
}

fn queries(path: &Path, text: &str) -> Result<Vec<TriggerCase>, EvaluationError> {
    let cases: Vec<TriggerCase> = parse(path, text)?;
    let mut seen = HashSet::new();
    for case in &cases {
        if case.query.trim().is_empty() {
            return Err(invalid(path, CaseError::EmptyQuery));
        }
        if !seen.insert(&case.query) {
            return Err(invalid(path, CaseError::DuplicateQuery(case.query.clone())));
        }
    }
    Ok(cases)
}

/// Reads the queries of the skill in `dir`. The result is empty if the skill has no file of queries.
///
/// # Errors
/// See [`read_queries`].
pub(super) fn find_queries(dir: &Path) -> Result<Vec<TriggerCase>, EvaluationError> {
    for name in TRIGGER_CASES {
        if let Some(text) = read_below(dir, name)? {
            return queries(&dir.join(name), &text);
        }
    }
    Ok(Vec::new())
}

/// Reads the tasks of the skill in `dir` with the name `skill`. The result is empty if the skill has no file of tasks.
///
/// # Errors
/// Returns [`EvaluationError::Unreadable`] if the file can't be read, and [`EvaluationError::Cases`] if a task is invalid.
pub(super) fn find_output_cases(dir: &Path, skill: &str) -> Result<Vec<OutputCase>, EvaluationError> {
    let Some(text) = read_below(dir, OUTPUT_CASES)? else { return Ok(Vec::new()) };
    output_cases(&dir.join(OUTPUT_CASES), &text, skill)
}

/// Reads the tasks of the skill `skill` from a text in one of the published forms.
fn output_cases(path: &Path, text: &str, skill: &str) -> Result<Vec<OutputCase>, EvaluationError> {
    let is_list = text.trim_start_matches('\u{feff}').trim_start().starts_with('[');
    let raw: Vec<RawCase> = if is_list {
        parse(path, text)?
    } else if parse::<Shape>(path, text).is_ok_and(|shape| shape.is_single()) {
        vec![parse(path, text)?]
    } else {
        parse::<EvalsFile>(path, text)?.evals
    };
    checked(path, raw, skill)
}

/// Reads tasks that [`OutputCase::to_json`] wrote.
pub(super) fn read_output_cases(path: &Path, value: &Value) -> Result<Vec<OutputCase>, EvaluationError> {
    output_cases(path, &value.to_string(), "")
}

/// Returns the tasks, of which each must have its own name.
fn checked(path: &Path, raw: Vec<RawCase>, skill: &str) -> Result<Vec<OutputCase>, EvaluationError> {
    let mut names = HashSet::new();
    let mut cases = Vec::new();
    for (place, raw) in raw.into_iter().enumerate() {
        let case = raw.case(skill).map_err(|error| invalid(path, CaseError::Task(place, error)))?;
        if !names.insert(case.name.clone()) {
            return Err(invalid(path, CaseError::DuplicateName(case.name)));
        }
        cases.push(case);
    }
    Ok(cases)
}

/// Reads a text file of the skill in `dir`. Returns `None` if it doesn't exist.
///
/// The file belongs to the skill, so it is read like all files of skills: links must stay inside, and special files such as
/// FIFOs are refused.
fn read_below(dir: &Path, name: &str) -> Result<Option<String>, EvaluationError> {
    let unreadable = |source| EvaluationError::Unreadable { path: dir.join(name), source };
    let files = SkillFiles::open(dir).map_err(|error| unreadable(io::Error::other(error)))?;
    match files.head(name, MAX_CASES_BYTES) {
        Ok(head) if !head.complete => {
            Err(unreadable(io::Error::other(format!("file is larger than {MAX_CASES_BYTES} bytes"))))
        }
        Ok(head) => {
            let text = String::from_utf8(head.bytes);
            text.map(Some).map_err(|_| unreadable(io::Error::other("file is not valid UTF-8")))
        }
        Err(FileError::NotFound { .. }) => Ok(None),
        Err(error) => Err(unreadable(io::Error::other(error))),
    }
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, EvaluationError> {
    if has_more_values_than(text.as_bytes(), MAX_FILE_VALUES) {
        let why = format!("file has more than {MAX_FILE_VALUES} values");
        let source = io::Error::new(io::ErrorKind::InvalidData, why);
        return Err(EvaluationError::Unreadable { path: path.to_owned(), source });
    }
    let mut json = serde_json::Deserializer::from_str(text.trim_start_matches('\u{feff}'));
    serde_path_to_error::deserialize(&mut json).map_err(|error| invalid(path, CaseError::Json(error)))
}

fn invalid(path: &Path, problem: CaseError) -> EvaluationError {
    EvaluationError::Cases { path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Each file has the form of files that are published.
    #[test]
    fn published_forms_are_read() {
        let task = |skill: Value| json!({ "id": "a-1", "question": "Do it", "expected_skill": skill, "expected_script": null, "ground_truth": "It is done.", "expected_behavior": ["The agent did it"] });
        let plain = |skill: &str| task(json!(skill));
        let mut silent = plain("demo");
        silent["should_trigger"] = json!(false);
        let mut either = plain("other");
        either["acceptable_skills"] = json!(["demo"]);
        for (file, triggers, assertions) in [
            (json!([plain("demo")]), true, &["The agent did it"][..]),
            (json!([task(Value::Null)]), false, &["The agent did it"]),
            (json!([plain("other")]), false, &["The agent did it"]),
            (json!([either]), true, &["The agent did it"]),
            (json!([silent]), false, &["The agent did it"]),
            (
                json!({ "version": "1.0", "skill": "demo", "cases": [plain("demo")] }),
                true,
                &["The agent did it"],
            ),
            (plain("demo"), true, &["The agent did it"]),
            (
                json!({ "evals": [{ "id": 1, "turns": ["Do it", "Do more"], "must_not": ["Break it"] }] }),
                true,
                &["The agent did not do this: Break it"],
            ),
        ] {
            let cases = output_cases(Path::new("evals.json"), &file.to_string(), "demo").unwrap();
            let [case] = cases.as_slice() else { panic!("{file}") };
            let texts: Vec<_> = case.assertions.iter().map(Assertion::text).collect();
            assert_eq!((case.prompt.as_str(), case.should_trigger), ("Do it", triggers), "{file}");
            assert_eq!(texts, assertions, "{file}");
            let again = read_output_cases(Path::new("x"), &json!([case.to_json()])).unwrap();
            assert_eq!(format!("{again:?}"), format!("{cases:?}"), "{file}");
        }
        assert!(output_cases(Path::new("evals.json"), "[]", "demo").unwrap().is_empty());
    }

    #[test]
    fn links_of_cases_must_stay_inside_the_skill() {
        let skill = tempfile::tempdir().unwrap();
        let evals = skill.path().join("evals");
        assert!(find_output_cases(skill.path(), "skill").unwrap().is_empty());
        assert!(find_queries(skill.path()).unwrap().is_empty());
        fs::create_dir(&evals).unwrap();
        fs::write(skill.path().join("queries"), r#"[{"query":"x","should_trigger":true}]"#).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;

            let outside = tempfile::NamedTempFile::new().unwrap();
            fs::write(outside.path(), "\"a secret\"").unwrap();
            symlink(outside.path(), evals.join("evals.json")).unwrap();
            symlink(outside.path(), evals.join("eval_queries.json")).unwrap();
            for error in [
                find_output_cases(skill.path(), "skill").unwrap_err(),
                find_queries(skill.path()).unwrap_err(),
            ] {
                let message = error.to_string();
                assert!(
                    message.contains("is outside of the skill") && !message.contains("secret"),
                    "{message}"
                );
            }
            fs::remove_file(evals.join("evals.json")).unwrap();
            fs::write(evals.join("evals.json"), format!("[{}0]", "0,".repeat(600_000))).unwrap();
            let message = find_output_cases(skill.path(), "skill").unwrap_err().to_string();
            assert!(message.contains("more than 524288 values"), "{message}");
            // We must not open a FIFO here, or we would block until something is written to it.
            fs::remove_file(evals.join("evals.json")).unwrap();
            let fifo = std::process::Command::new("mkfifo").arg(evals.join("evals.json")).status().unwrap();
            assert!(fifo.success());
            let message = find_output_cases(skill.path(), "skill").unwrap_err().to_string();
            assert!(message.contains("is not a regular file"), "{message}");
            // Links are allowed if they point to a file in the skill.
            symlink("../queries", evals.join("trigger-evals.json")).unwrap();
            fs::remove_file(evals.join("eval_queries.json")).unwrap();
            assert_eq!(find_queries(skill.path()).unwrap().len(), 1);
        }
    }
}
