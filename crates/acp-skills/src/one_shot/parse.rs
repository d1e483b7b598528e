//! An answer as a Rust type: the schema goes along with the prompt, and the JSON is found in what comes back.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Deserializer, Value};
use skills_core::tool::schema_of;

/// An answer that is not what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("the answer is not what was asked for: {problem}\nthe answer: {text}")]
pub struct NotParsed {
    /// All that the agent said.
    pub text: String,
    /// What is wrong with it.
    pub problem: String,
}

/// A prompt that asks for a `T`.
pub fn request<T: JsonSchema>(prompt: &str) -> String {
    let schema = schema_of::<T>().unwrap_or(Value::Bool(true));
    format!("{prompt}\n\nAnswer with JSON that fits this schema, and nothing else:\n{schema}")
}

/// The `T` in an answer: in a fenced block, the last one first, or anywhere in the text.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, NotParsed> {
    let mut problem = None;
    let fenced: Vec<_> = fenced(text).collect();
    for part in fenced.into_iter().rev().chain([text]) {
        match find(part) {
            Ok(found) => return Ok(found),
            Err(error) => problem = problem.or(error),
        }
    }
    let problem = problem.unwrap_or_else(|| "there is no JSON in it".to_owned());
    Err(NotParsed { text: text.to_owned(), problem })
}

/// The contents of the fenced blocks.
fn fenced(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").skip(1).step_by(2).map(|block| {
        // Without the name of the language.
        let begin = block.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(0);
        &block[begin..]
    })
}

/// The first `T` in a text; else what is wrong with the first JSON that there is.
fn find<T: DeserializeOwned>(text: &str) -> Result<T, Option<String>> {
    let mut problem = None;
    let mut read = |json: &str| {
        let mut json = Deserializer::from_str(json);
        serde_path_to_error::deserialize(&mut json).map_err(|error| {
            if !error.inner().is_syntax() && !error.inner().is_eof() {
                let (path, inner) = (error.path().to_string(), error.into_inner());
                let place = if path == "." { String::new() } else { format!("`{path}`: ") };
                problem.get_or_insert(format!("{place}{inner}"));
            }
        })
    };
    // The whole text may be a number or a string.
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
        // What is inside of JSON that does not fit is not meant.
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
    fn asks_for_the_schema() {
        let text = request::<City>("Which one?");
        assert!(text.starts_with("Which one?\n\nAnswer with JSON") && text.contains("Without the country."));
    }

    #[test]
    fn finds_it_anywhere() {
        let bern = || City { name: "Bern".to_owned(), people: 137 };
        for text in [
            r#"{"name":"Bern","people":137}"#,
            "Here it is:\n```json\n{\"name\": \"Bern\", \"people\": 137}\n```\nAnything else?",
            "```\n{\"name\": \"Bern\", \"people\": 137}```",
            "First ```json\n{\"name\":\"Chur\",\"people\":1}\n``` no, ```json\n{\"name\":\"Bern\",\"people\":137}\n```",
            r#"I looked at {"a":{"name":"Chur","people":1}} [and] {more}: {"name":"Bern","people":137}."#,
            "```rust\nfn main() {}\n```\n{\"name\":\"Bern\",\"people\":137}",
        ] {
            assert_eq!(read::<City>(text).unwrap(), bern(), "{text}");
        }
        assert_eq!(read::<Vec<u8>>("They are [1, 2].").unwrap(), [1, 2]);
        assert_eq!(read::<u8>(" 7\n").unwrap(), 7);
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, problem) in [
            ("No idea.", "there is no JSON in it"),
            ("{not json}", "there is no JSON in it"),
            (r#"{"name":"Bern"}"#, "missing field `people` at line 1 column 15"),
            (
                r#"So: {"name":"Bern","people":"many"}"#,
                "`people`: invalid type: string \"many\", expected u32 at line 1 column 30",
            ),
        ] {
            let error = read::<City>(text).unwrap_err();
            assert_eq!((error.problem.as_str(), error.text.as_str()), (problem, text));
            assert!(error.to_string().ends_with(&format!("the answer: {text}")));
        }
    }
}
