//! The format of `evals.json`, and the checks of its contents.

use std::path::{Component, Path};

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::{Assertion, Check, OutputCase, TaskError};

/// The contents of `evals.json`.
#[derive(Deserialize)]
pub(super) struct EvalsFile {
    pub(super) evals: Vec<RawCase>,
}

/// A task as it is written in the file.
#[derive(Deserialize)]
pub(super) struct RawCase {
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
    /// Checks the task and returns it with defaults for missing fields.
    pub(super) fn case(self) -> Result<OutputCase, TaskError> {
        let id = match &self.id {
            Value::Number(number) => number.to_string(),
            Value::String(text) if !text.trim().is_empty() => text.clone(),
            _ => return Err(TaskError::Id),
        };
        let name = directory_name(self.name.as_deref().unwrap_or(&id));
        if name.is_empty() {
            return Err(TaskError::Name);
        }
        if self.prompt.trim().is_empty() {
            return Err(TaskError::EmptyPrompt);
        }
        for file in &self.files {
            check_relative(file)?;
        }
        let raw = self.assertions.into_iter().chain(self.expectations);
        let mut assertions: Vec<_> = raw.map(assertion).collect::<Result<_, _>>()?;
        let expected_output = self.expected_output.unwrap_or_default();
        if assertions.is_empty() && !expected_output.trim().is_empty() {
            let sentence = format!("The result is what was expected: {expected_output}");
            assertions.push(Assertion::Sentence(sentence));
        }
        let should_trigger = self.should_trigger.unwrap_or(true);
        Ok(OutputCase {
            id: self.id,
            name,
            prompt: self.prompt,
            expected_output,
            files: self.files,
            assertions,
            should_trigger,
        })
    }
}

/// Reads an assertion: a sentence, an object with a sentence as `text`, or a check.
fn assertion(value: Value) -> Result<Assertion, TaskError> {
    let object = match value {
        Value::String(text) if !text.trim().is_empty() => return Ok(Assertion::Sentence(text)),
        Value::Object(object) => object,
        other => return Err(TaskError::Assertion(other)),
    };
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let pattern = |text: &str| {
        Regex::new(text).map_err(|source| TaskError::Pattern { pattern: text.to_owned(), source })
    };
    let strings = |key: &str| -> Option<Vec<String>> {
        object.get(key)?.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
    };
    let unknown = || Err(TaskError::Assertion(Value::Object(object.clone())));
    let known = |key: &String| {
        ["file_exists", "file_matches", "answer_matches", "command", "exit", "text"].contains(&key.as_str())
    };
    if !object.keys().all(known) {
        return unknown();
    }
    if let Some(file) = text("file_exists") {
        check_relative(file)?;
        return Ok(Assertion::Check(Check::FileExists(file.to_owned())));
    }
    if let Some(answer) = text("answer_matches") {
        return Ok(Assertion::Check(Check::AnswerMatches(pattern(answer)?)));
    }
    if let Some([file, text]) = strings("file_matches").as_deref() {
        check_relative(file)?;
        return Ok(Assertion::Check(Check::FileMatches(file.clone(), pattern(text)?)));
    }
    if let Some(words) = strings("command").filter(|words| !words.is_empty()) {
        let exit = match object.get("exit") {
            None => Some(0),
            Some(exit) => exit.as_i64().and_then(|exit| i32::try_from(exit).ok()),
        };
        let exit = exit.ok_or(TaskError::ExitCode)?;
        return Ok(Assertion::Check(Check::Command(words, exit)));
    }
    match text("text") {
        Some(text) if !text.trim().is_empty() && object.len() == 1 => {
            Ok(Assertion::Sentence(text.to_owned()))
        }
        _ => unknown(),
    }
}

/// Returns an error if a path is absolute or contains `..`. Links are checked later, when the file is opened.
fn check_relative(path: &str) -> Result<(), TaskError> {
    let inside = |component: Component<'_>| matches!(component, Component::Normal(_) | Component::CurDir);
    if !path.is_empty() && Path::new(path).components().all(inside) {
        return Ok(());
    }
    Err(TaskError::Outside(path.to_owned()))
}

/// Returns a short directory name that is valid on all systems. It is empty if the text has no suitable character.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn assertions_are_sentences_or_checks() {
        for (value, text) in [
            (json!("It is short."), "It is short."),
            (json!({ "text": "It is short." }), "It is short."),
            (json!({ "file_exists": "a/b.png" }), "file `a/b.png` exists"),
            (json!({ "file_matches": ["a.md", "^#"] }), "file `a.md` matches `^#`"),
            (json!({ "answer_matches": "(?i)sql" }), "answer matches `(?i)sql`"),
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
