//! The cases of a skill, read from the files that the standard and its skill-creator name.
//!
//! - `evals/evals.json`: `{"skill_name", "evals": [{"id", "prompt", "expected_output", "files", "assertions"}]}`;
//!   `expectations` is another name for `assertions`.
//! - `evals/eval_queries.json`, or `evals/trigger-evals.json`: `[{"query", "should_trigger"}]`.
//!
//! Unknown fields are passed over. An assertion is a sentence, for a grader, or an object, which is [`Check`]ed by the
//! program.

use std::{
    collections::HashSet,
    fs, io,
    path::{Component, Path},
};

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use skills_core::files::{FileError, SkillFiles};

use super::EvaluationError;

/// Where the cases of a skill are, in its directory.
pub const OUTPUT_CASES: &str = "evals/evals.json";
/// Where its queries are: the first one that exists.
pub const TRIGGER_CASES: [&str; 2] = ["evals/eval_queries.json", "evals/trigger-evals.json"];

/// How long a file of cases may be.
const MAX_CASES_BYTES: u64 = 64 * 1024 * 1024;

/// A request that should load the skill, or one that should not.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct TriggerCase {
    /// What the user says.
    pub query: String,
    /// Whether the model should load the skill for it.
    pub should_trigger: bool,
}

/// A task, and what must be true when it is done.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OutputCase {
    /// `id`, as it stands in the file: a number or a string.
    pub id: Value,
    /// What its directory and its row in a table are called, without `eval-`.
    pub name: String,
    /// What the user says.
    pub prompt: String,
    /// What a good result is, for the grader.
    pub expected_output: String,
    /// Files that the agent gets, relative to the skill's directory.
    pub files: Vec<String>,
    /// What must be true.
    pub assertions: Vec<Assertion>,
    /// Whether the skill should be loaded for it: `should_trigger`, true when it is not said.
    pub should_trigger: bool,
}

impl OutputCase {
    /// Whether a grader is needed.
    pub fn has_sentences(&self) -> bool {
        self.assertions.iter().any(|assertion| matches!(assertion, Assertion::Sentence(_)))
    }
}

/// What must be true of a result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Assertion {
    /// Judged by a grader.
    Sentence(String),
    /// Checked by the program.
    Check(Check),
}

impl Assertion {
    /// The assertion as a text, for people.
    pub fn text(&self) -> String {
        match self {
            Self::Sentence(text) => text.clone(),
            Self::Check(check) => check.text(),
        }
    }
}

/// An assertion that needs no judgement. Files are relative to the run's directory.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Check {
    /// `{"file_exists": "chart.png"}`
    FileExists(String),
    /// `{"file_matches": ["report.md", "## Summary"]}`, with a regular expression.
    FileMatches(String, Regex),
    /// `{"answer_matches": "(?i)sql injection"}`: what the agent said.
    AnswerMatches(Regex),
    /// `{"command": ["python3", "check.py"], "exit": 0}`, run in the run's directory.
    Command(Vec<String>, i32),
}

impl Check {
    fn text(&self) -> String {
        match self {
            Self::FileExists(file) => format!("the file `{file}` exists"),
            Self::FileMatches(file, pattern) => format!("the file `{file}` matches `{pattern}`"),
            Self::AnswerMatches(pattern) => format!("the answer matches `{pattern}`"),
            Self::Command(words, exit) => format!("`{}` exits with {exit}", words.join(" ")),
        }
    }
}

/// Reads queries from `path`.
///
/// # Errors
/// The file cannot be read, or is no list of queries.
pub fn read_queries(path: &Path) -> Result<Vec<TriggerCase>, EvaluationError> {
    let text = fs::read_to_string(path)
        .map_err(|source| EvaluationError::Unreadable { path: path.to_owned(), source })?;
    queries(path, &text)
}

fn queries(path: &Path, text: &str) -> Result<Vec<TriggerCase>, EvaluationError> {
    let cases: Vec<TriggerCase> = parse(path, text)?;
    let mut seen = HashSet::new();
    for case in &cases {
        if case.query.trim().is_empty() {
            return Err(wrong(path, "a query is empty"));
        }
        if !seen.insert(&case.query) {
            return Err(wrong(path, format!("the query {:?} is there twice", case.query)));
        }
    }
    Ok(cases)
}

/// The queries of the skill in `dir`, if it has some.
///
/// # Errors
/// As [`read_queries`].
pub(super) fn find_queries(dir: &Path) -> Result<Vec<TriggerCase>, EvaluationError> {
    for name in TRIGGER_CASES {
        if let Some(text) = read_below(dir, name)? {
            return queries(&dir.join(name), &text);
        }
    }
    Ok(Vec::new())
}

/// The output cases of the skill in `dir`, if it has some.
///
/// # Errors
/// The file cannot be read, or a case in it is wrong.
pub(super) fn find_output_cases(dir: &Path) -> Result<Vec<OutputCase>, EvaluationError> {
    let path = dir.join(OUTPUT_CASES);
    let Some(text) = read_below(dir, OUTPUT_CASES)? else { return Ok(Vec::new()) };
    let file: EvalsFile = parse(&path, &text)?;
    let mut names = HashSet::new();
    let mut cases = Vec::new();
    for (place, raw) in file.evals.into_iter().enumerate() {
        let case = raw.case().map_err(|message| wrong(&path, format!("evals[{place}]: {message}")))?;
        if !names.insert(case.name.clone()) {
            return Err(wrong(&path, format!("two cases are called `{}`", case.name)));
        }
        cases.push(case);
    }
    Ok(cases)
}

#[derive(Deserialize)]
struct EvalsFile {
    evals: Vec<RawCase>,
}

#[derive(Deserialize)]
struct RawCase {
    id: Value,
    #[serde(alias = "eval_name")]
    name: Option<String>,
    prompt: String,
    #[serde(default)]
    expected_output: Option<String>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    assertions: Vec<Value>,
    #[serde(default)]
    expectations: Vec<Value>,
    should_trigger: Option<bool>,
}

impl RawCase {
    fn case(self) -> Result<OutputCase, String> {
        let id = match &self.id {
            Value::Number(number) => number.to_string(),
            Value::String(text) if !text.trim().is_empty() => text.clone(),
            _ => return Err("`id` is neither a number nor a string".to_owned()),
        };
        let name = directory_name(self.name.as_deref().unwrap_or(&id));
        if name.is_empty() {
            return Err("no directory can be named by its id".to_owned());
        }
        if self.prompt.trim().is_empty() {
            return Err("`prompt` is empty".to_owned());
        }
        for file in &self.files {
            stays_below(file).map_err(|why| format!("`files`: {why}"))?;
        }
        let raw = self.assertions.into_iter().chain(self.expectations);
        let mut assertions: Vec<_> = raw.map(assertion).collect::<Result<_, _>>()?;
        let expected_output = self.expected_output.unwrap_or_default();
        if assertions.is_empty() && !expected_output.trim().is_empty() {
            // A case that says nothing more exact says at least this.
            assertions
                .push(Assertion::Sentence(format!("The result is what was expected: {expected_output}")));
        }
        let should_trigger = self.should_trigger.unwrap_or(true);
        let (id, prompt, files) = (self.id, self.prompt, self.files);
        Ok(OutputCase { id, name, prompt, expected_output, files, assertions, should_trigger })
    }
}

/// One assertion: a sentence, a sentence as `text`, or a check.
fn assertion(value: Value) -> Result<Assertion, String> {
    let object = match value {
        Value::String(text) if !text.trim().is_empty() => return Ok(Assertion::Sentence(text)),
        Value::Object(object) => object,
        other => return Err(format!("{other} is no assertion")),
    };
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let pattern = |text: &str| Regex::new(text).map_err(|error| format!("`{text}`: {error}"));
    let strings = |key: &str| -> Option<Vec<String>> {
        object.get(key)?.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
    };
    let unknown = || Err(format!("{} is no assertion that can be checked", Value::Object(object.clone())));
    let known = |key: &String| {
        ["file_exists", "file_matches", "answer_matches", "command", "exit", "text"].contains(&key.as_str())
    };
    if !object.keys().all(known) {
        return unknown();
    }
    if let Some(file) = text("file_exists") {
        stays_below(file)?;
        return Ok(Assertion::Check(Check::FileExists(file.to_owned())));
    }
    if let Some(answer) = text("answer_matches") {
        return Ok(Assertion::Check(Check::AnswerMatches(pattern(answer)?)));
    }
    if let Some([file, text]) = strings("file_matches").as_deref() {
        stays_below(file)?;
        return Ok(Assertion::Check(Check::FileMatches(file.clone(), pattern(text)?)));
    }
    if let Some(words) = strings("command").filter(|words| !words.is_empty()) {
        let exit = match object.get("exit") {
            None => Some(0),
            Some(exit) => exit.as_i64().and_then(|exit| i32::try_from(exit).ok()),
        };
        let exit = exit.ok_or("`exit` is no exit code")?;
        return Ok(Assertion::Check(Check::Command(words, exit)));
    }
    match text("text") {
        Some(text) if !text.trim().is_empty() && object.len() == 1 => {
            Ok(Assertion::Sentence(text.to_owned()))
        }
        _ => unknown(),
    }
}

/// Whether a path of a case stays in the directory that it is relative to. The file system is asked again when the file is
/// opened.
fn stays_below(path: &str) -> Result<(), String> {
    let inside = |it: Component<'_>| matches!(it, Component::Normal(_) | Component::CurDir);
    if !path.is_empty() && Path::new(path).components().all(inside) {
        return Ok(());
    }
    Err(format!("`{path}` does not stay in the directory"))
}

/// A short name for a directory that every system takes.
fn directory_name(text: &str) -> String {
    let mut name = String::new();
    for c in text.trim().chars().take(64) {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_lowercase()),
            '_' | '.' if !name.is_empty() => name.push(c),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    name.trim_end_matches(['-', '.']).to_owned()
}

/// The text of a file of the skill in `dir`, if it has one. It is a skill's, so that it is read as all of its files are: no link
/// leads out, and what is no file is not waited for.
fn read_below(dir: &Path, name: &str) -> Result<Option<String>, EvaluationError> {
    let unreadable = |source| EvaluationError::Unreadable { path: dir.join(name), source };
    let files = SkillFiles::open(dir).map_err(|error| unreadable(io::Error::other(error)))?;
    match files.head(name, MAX_CASES_BYTES) {
        Ok(head) if !head.complete => {
            Err(unreadable(io::Error::other(format!("it has more than {MAX_CASES_BYTES} bytes"))))
        }
        Ok(head) => {
            let text = String::from_utf8(head.bytes);
            text.map(Some).map_err(|_| unreadable(io::Error::other("it is not UTF-8")))
        }
        Err(FileError::NotFound { .. }) => Ok(None),
        Err(error) => Err(unreadable(io::Error::other(error))),
    }
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, EvaluationError> {
    let mut json = serde_json::Deserializer::from_str(text.trim_start_matches('\u{feff}'));
    serde_path_to_error::deserialize(&mut json).map_err(|error| wrong(path, error.to_string()))
}

fn wrong(path: &Path, message: impl Into<String>) -> EvaluationError {
    EvaluationError::Cases { path: path.to_owned(), message: message.into() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cases_are_files_of_the_skill() {
        let skill = tempfile::tempdir().unwrap();
        let evals = skill.path().join("evals");
        assert!(find_output_cases(skill.path()).unwrap().is_empty());
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
            for error in
                [find_output_cases(skill.path()).unwrap_err(), find_queries(skill.path()).unwrap_err()]
            {
                let told = error.to_string();
                assert!(told.contains("leads outside") && !told.contains("secret"), "{told}");
            }
            // Whoever opens it waits for somebody who writes.
            fs::remove_file(evals.join("evals.json")).unwrap();
            let fifo = std::process::Command::new("mkfifo").arg(evals.join("evals.json")).status().unwrap();
            assert!(fifo.success());
            let told = find_output_cases(skill.path()).unwrap_err().to_string();
            assert!(told.contains("is not a regular file"), "{told}");
            // Links within the skill are its own affair.
            symlink("../queries", evals.join("trigger-evals.json")).unwrap();
            fs::remove_file(evals.join("eval_queries.json")).unwrap();
            assert_eq!(find_queries(skill.path()).unwrap().len(), 1);
        }
    }

    #[test]
    fn assertions_are_sentences_or_checks() {
        for (value, text) in [
            (json!("It is short."), "It is short."),
            (json!({ "text": "It is short." }), "It is short."),
            (json!({ "file_exists": "a/b.png" }), "the file `a/b.png` exists"),
            (json!({ "file_matches": ["a.md", "^#"] }), "the file `a.md` matches `^#`"),
            (json!({ "answer_matches": "(?i)sql" }), "the answer matches `(?i)sql`"),
            (json!({ "command": ["test", "-f", "x"] }), "`test -f x` exits with 0"),
            (json!({ "command": ["false"], "exit": 1 }), "`false` exits with 1"),
        ] {
            assert_eq!(assertion(value.clone()).unwrap().text(), text, "{value}");
        }
        for value in [
            json!(""),
            json!(7),
            json!({}),
            json!({ "file_exits": "typo" }),
            json!({ "file_exists": "../up" }),
            json!({ "file_exists": "/etc/passwd" }),
            json!({ "file_matches": ["a.md"] }),
            json!({ "file_matches": ["a.md", "("] }),
            json!({ "command": [] }),
            json!({ "command": ["true"], "exit": "zero" }),
            json!({ "file_exists": "a", "negated": true }),
        ] {
            assert!(assertion(value.clone()).is_err(), "{value}");
        }
    }

    #[test]
    fn directory_names_are_plain() {
        for (text, name) in [
            ("1", "1"),
            ("Top months", "top-months"),
            ("../../etc", "etc"),
            ("a  &  b!", "a-b"),
            ("ünï", "n"),
            ("...", ""),
        ] {
            assert_eq!(directory_name(text), name, "{text}");
        }
    }
}
