//! Assertions as they are written in `evals.json`: a sentence, a sentence with a weight, or a check.

use std::path::{Component, Path};

use regex::escape;
use serde_json::{Map, Value, json};

use super::{super::grade::is_one, Assertion, Check, Pattern, Statement, TaskError};

/// The members of an object with a check. A typo in the name of a check must not turn it into something else.
const MEMBERS: [&str; 9] = [
    "file_exists",
    "file_matches",
    "answer_matches",
    "answer_lacks",
    "command",
    "exit",
    "text",
    "weight",
    "partial",
];
/// The further members of an object with a sentence, as other tools write them.
const OF_OTHER_TOOLS: [&str; 6] = ["name", "id", "type", "description", "pattern", "phrase"];
/// The maximum weight. It keeps sums of weights exact.
const MAX_WEIGHT: f64 = 1_000_000.0;

/// Reads an assertion.
///
/// # Errors
/// Returns [`TaskError::Assertion`] if the value is neither a sentence nor a known check, and another error if a check is
/// invalid.
pub(super) fn read(value: Value) -> Result<Assertion, TaskError> {
    let object = match value {
        Value::String(text) if !text.trim().is_empty() => return Ok(Assertion::sentence(text)),
        Value::Object(object) => object,
        other => return Err(TaskError::Assertion(other)),
    };
    let unknown = || Err(TaskError::Assertion(Value::Object(object.clone())));
    let weight = match object.get("weight") {
        None => 1.0,
        Some(weight) => {
            let is_valid = |weight: &f64| *weight > 0.0 && *weight <= MAX_WEIGHT;
            weight.as_f64().filter(is_valid).ok_or(TaskError::Weight)?
        }
    };
    let is_partial = object.get("partial").is_some_and(|partial| *partial == true);
    let is_member = |key: &String| MEMBERS.contains(&key.as_str());
    let statement = match check(&object)? {
        Some(check) if object.keys().all(is_member) => Statement::Check(check),
        Some(_) => return unknown(),
        None => match object.get("text").and_then(Value::as_str) {
            Some(text) if !text.trim().is_empty() && is_sentence(&object) => {
                of_other_tools(&object).map_or_else(|| Statement::Sentence(text.to_owned()), Statement::Check)
            }
            _ => return unknown(),
        },
    };
    if is_partial && matches!(statement, Statement::Check(_)) {
        return unknown();
    }
    Ok(Assertion { statement, weight, partial: is_partial })
}

/// Returns an assertion as it is written in the file.
pub(super) fn write(assertion: &Assertion) -> Value {
    let mut object = match &assertion.statement {
        Statement::Sentence(text) if is_one(&assertion.weight) && !assertion.partial => return json!(text),
        Statement::Sentence(text) => json!({ "text": text }),
        Statement::Check(check) => match check {
            Check::FileExists(file) => json!({ "file_exists": file }),
            Check::FileMatches(file, pattern) => json!({ "file_matches": [file, pattern.as_str()] }),
            Check::AnswerMatches(pattern) => json!({ "answer_matches": pattern.as_str() }),
            Check::AnswerLacks(pattern) => json!({ "answer_lacks": pattern.as_str() }),
            Check::Command(words, exit) => json!({ "command": words, "exit": exit }),
        },
    };
    if !is_one(&assertion.weight) {
        object["weight"] = json!(assertion.weight);
    }
    if assertion.partial {
        object["partial"] = json!(true);
    }
    object
}

/// Returns true if all members of an object belong to a sentence.
fn is_sentence(object: &Map<String, Value>) -> bool {
    let own = ["text", "weight", "partial"];
    object.keys().all(|key| own.contains(&key.as_str()) || OF_OTHER_TOOLS.contains(&key.as_str()))
}

/// Returns the check in an object, if it has one.
fn check(object: &Map<String, Value>) -> Result<Option<Check>, TaskError> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let pattern = |text: &str| {
        Pattern::new(text).map_err(|source| TaskError::Pattern { pattern: text.to_owned(), source })
    };
    let strings = |key: &str| -> Option<Vec<String>> {
        object.get(key)?.as_array()?.iter().map(|value| value.as_str().map(str::to_owned)).collect()
    };
    if let Some(file) = text("file_exists") {
        check_relative(file)?;
        return Ok(Some(Check::FileExists(file.to_owned())));
    }
    if let Some(answer) = text("answer_matches") {
        return Ok(Some(Check::AnswerMatches(pattern(answer)?)));
    }
    if let Some(answer) = text("answer_lacks") {
        return Ok(Some(Check::AnswerLacks(pattern(answer)?)));
    }
    if let Some([file, text]) = strings("file_matches").as_deref() {
        check_relative(file)?;
        return Ok(Some(Check::FileMatches(file.clone(), pattern(text)?)));
    }
    if let Some(words) = strings("command").filter(|words| !words.is_empty()) {
        let exit = match object.get("exit") {
            None => Some(0),
            Some(exit) => exit.as_i64().and_then(|exit| i32::try_from(exit).ok()),
        };
        let exit = exit.ok_or(TaskError::ExitCode)?;
        return Ok(Some(Check::Command(words, exit)));
    }
    Ok(None)
}

/// Returns the check that a sentence of another tool describes with `type`. A sentence with a `type` or a pattern that is
/// unknown here is judged by the grader.
fn of_other_tools(object: &Map<String, Value>) -> Option<Check> {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let pattern = match (text("pattern"), text("phrase")) {
        (Some(pattern), _) => Pattern::new(pattern).ok()?,
        (None, Some(phrase)) => Pattern::new(&format!("(?i){}", escape(phrase))).ok()?,
        (None, None) => return None,
    };
    match text("type")? {
        "contains_pattern" | "contains_phrase" | "contains" => Some(Check::AnswerMatches(pattern)),
        "not_contains_pattern" | "not_contains_phrase" | "not_contains" => Some(Check::AnswerLacks(pattern)),
        _ => None,
    }
}

/// Returns an error if a path is absolute or contains `..`. Links are checked later, when the file is opened.
pub(super) fn check_relative(path: &str) -> Result<(), TaskError> {
    let inside = |component: Component<'_>| matches!(component, Component::Normal(_) | Component::CurDir);
    if !path.is_empty() && Path::new(path).components().all(inside) {
        return Ok(());
    }
    Err(TaskError::Outside(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_are_sentences_or_checks() {
        for (value, text) in [
            (json!("It is short."), "It is short."),
            (json!({ "text": "It is short." }), "It is short."),
            (json!({ "text": "It is short.", "weight": 2.5, "partial": true }), "It is short."),
            (json!({ "text": "It is short.", "name": "short", "type": "manual" }), "It is short."),
            (json!({ "file_exists": "a/b.png", "weight": 3 }), "file `a/b.png` exists"),
            (json!({ "file_matches": ["a.md", "^#"] }), "file `a.md` matches `^#`"),
            (json!({ "answer_matches": "(?i)sql" }), "answer matches `(?i)sql`"),
            (json!({ "answer_lacks": "(?i)sql" }), "answer does not match `(?i)sql`"),
            (
                json!({ "text": "Names it", "type": "contains_phrase", "phrase": "a.b" }),
                "answer matches `(?i)a\\.b`",
            ),
            (
                json!({ "text": "Avoids it", "type": "not_contains_pattern", "pattern": "a.b" }),
                "answer does not match `a.b`",
            ),
            (json!({ "text": "Names it", "type": "contains_pattern", "pattern": "(?=x)" }), "Names it"),
            (json!({ "command": ["test", "-f", "x"] }), "`test -f x` exits with 0"),
            (json!({ "command": ["false"], "exit": 1 }), "`false` exits with 1"),
        ] {
            let assertion = read(value.clone()).unwrap();
            assert_eq!(assertion.text(), text, "{value}");
            let again = read(write(&assertion)).unwrap();
            assert_eq!(
                (again.text(), again.weight, again.partial),
                (text.to_owned(), assertion.weight, assertion.partial)
            );
        }
        for value in [
            json!(""),
            json!(7),
            json!({}),
            json!({ "file_exits": "typo" }),
            json!({ "file_exits": "typo", "text": "It is there." }),
            json!({ "file_exists": "../up" }),
            json!({ "file_exists": "/etc/passwd" }),
            json!({ "file_matches": ["a.md"] }),
            json!({ "file_matches": ["a.md", "("] }),
            json!({ "command": [] }),
            json!({ "command": ["true"], "exit": "zero" }),
            json!({ "file_exists": "a", "negated": true }),
            json!({ "file_exists": "a", "partial": true }),
            json!({ "text": "It is short.", "weight": 0 }),
            json!({ "text": "It is short.", "weight": "high" }),
        ] {
            assert!(read(value.clone()).is_err(), "{value}");
        }
    }
}
