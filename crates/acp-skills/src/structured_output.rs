//! Structured output: answers of an agent as Rust types.
//!
//! [`prompt_for`] adds the JSON schema of a type to a prompt, and [`parse`] finds the JSON in the agent's answer.
//! [`OneShot::parse`](crate::one_shot::OneShot::parse) does both for one prompt. Use the functions directly if your program
//! talks to the agent by other means.
//!
//! ```
//! use acp_skills::structured_output;
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct City {
//!     name: String,
//! }
//!
//! let prompt = structured_output::prompt_for::<City>("What is the capital of Switzerland?");
//! # let _ = prompt;
//! // … send the prompt to an agent …
//! let answer = "Here you are:\n```json\n{ \"name\": \"Bern\" }\n```";
//! assert_eq!(structured_output::parse::<City>(answer)?.name, "Bern");
//! # Ok::<(), structured_output::NotParsed>(())
//! ```

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Deserializer, Value};
use skills_core::tool::schema_of;

/// The error for an answer that doesn't contain the requested type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("answer does not match the requested type: {problem}\nanswer: {text}")]
pub struct NotParsed {
    /// The whole answer.
    pub text: String,
    /// The first mismatch, with its path in the JSON.
    pub problem: String,
}

/// Returns `prompt` with an instruction to answer with JSON that matches the schema of `T`.
pub fn prompt_for<T: JsonSchema>(prompt: &str) -> String {
    let schema = schema_of::<T>().unwrap_or(Value::Bool(true));
    format!("{prompt}\n\nAnswer with JSON that fits this schema, and nothing else:\n{schema}")
}

/// Finds a `T` in an answer. Fenced blocks are tried first, starting with the last one, and then the whole text.
///
/// # Errors
/// Returns [`NotParsed`] if there is no JSON in the answer, or none that matches `T`.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, NotParsed> {
    let mut problem = None;
    let fenced: Vec<_> = fenced(text).collect();
    for part in fenced.into_iter().rev().chain([text]) {
        match find(part) {
            Ok(found) => return Ok(found),
            Err(error) => problem = problem.or(error),
        }
    }
    let problem = problem.unwrap_or_else(|| "no JSON found".to_owned());
    Err(NotParsed { text: text.to_owned(), problem })
}

/// Returns the contents of the fenced blocks.
fn fenced(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").skip(1).step_by(2).map(|block| {
        // If the block starts with the name of a language, skip it.
        let begin = block.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(0);
        &block[begin..]
    })
}

/// Returns the first `T` in a text. The error describes the first JSON that doesn't match, if there is any.
fn find<T: DeserializeOwned>(text: &str) -> Result<T, Option<String>> {
    let mut problem = None;
    let mut read = |json: &str| {
        let mut json = Deserializer::from_str(json);
        serde_path_to_error::deserialize(&mut json).map_err(|error| {
            if !error.inner().is_syntax() && !error.inner().is_eof() {
                let path = error.path().to_string();
                let inner = error.into_inner();
                let place = if path == "." { String::new() } else { format!("`{path}`: ") };
                problem.get_or_insert(format!("{place}{inner}"));
            }
        })
    };
    // First try the whole text, which may be just a number or a string.
    if let Ok(value) = serde_json::from_str::<Value>(text.trim())
        && let Ok(found) = read(&value.to_string())
    {
        return Ok(found);
    }
    let mut at = 0;
    while let Some(next) = text[at..].find(['{', '[']) {
        let rest = &text[at + next..];
        if let Ok(found) = read(rest) {
            return Ok(found);
        }
        // Skip all of the JSON if it doesn't match, because a part of it is not the answer.
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        let length = match values.next() {
            Some(Ok(_)) => values.byte_offset(),
            _ => 1,
        };
        at += next + length;
    }
    Err(problem)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema, PartialEq)]
    struct City {
        /// Without the country.
        name: String,
        people: u32,
    }

    #[test]
    fn the_prompt_contains_the_schema() {
        let text = prompt_for::<City>("Which one?");
        assert!(text.starts_with("Which one?\n\nAnswer with JSON") && text.contains("Without the country."));
    }

    #[test]
    fn json_is_found_anywhere_in_the_answer() {
        let bern = || City { name: "Bern".to_owned(), people: 137 };
        for text in [
            r#"{"name":"Bern","people":137}"#,
            "Here it is:\n```json\n{\"name\": \"Bern\", \"people\": 137}\n```\nAnything else?",
            "```\n{\"name\": \"Bern\", \"people\": 137}```",
            "First ```json\n{\"name\":\"Chur\",\"people\":1}\n``` no, ```json\n{\"name\":\"Bern\",\"people\":137}\n```",
            r#"I looked at {"a":{"name":"Chur","people":1}} [and] {more}: {"name":"Bern","people":137}."#,
            "```rust\nfn main() {}\n```\n{\"name\":\"Bern\",\"people\":137}",
        ] {
            assert_eq!(parse::<City>(text).unwrap(), bern(), "{text}");
        }
        assert_eq!(parse::<Vec<u8>>("They are [1, 2].").unwrap(), [1, 2]);
        assert_eq!(parse::<u8>(" 7\n").unwrap(), 7);
    }

    #[test]
    fn errors_name_the_first_mismatch() {
        for (text, problem) in [
            ("No idea.", "no JSON found"),
            ("{not json}", "no JSON found"),
            (r#"{"name":"Bern"}"#, "missing field `people` at line 1 column 15"),
            (
                r#"So: {"name":"Bern","people":"many"}"#,
                "`people`: invalid type: string \"many\", expected u32 at line 1 column 30",
            ),
        ] {
            let error = parse::<City>(text).unwrap_err();
            assert_eq!((error.problem.as_str(), error.text.as_str()), (problem, text));
            assert!(error.to_string().ends_with(&format!("answer: {text}")));
        }
    }
}
