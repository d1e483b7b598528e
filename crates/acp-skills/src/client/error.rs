//! [`ClientError`]: errors in a conversation with an agent.

use std::io;

use acp_skills_intercept::{AUTH_REQUIRED, NOT_STARTED};
use serde_json::Value;
use skills_core::json::MAX_VALUES;

/// The maximum length of a described error in characters. An agent decides the length of its message.
const MAX_ERROR_CHARS: usize = 4_000;

/// An error that occurs when a client talks to an agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The caller cancelled the turn, for example by dropping its stream.
    #[error("conversation was cancelled")]
    Cancelled,
    /// The agent has closed its input.
    #[error("agent closed the connection")]
    Write(#[source] io::Error),
    /// The agent's output can't be read, or is not UTF-8.
    #[error("cannot read agent output")]
    Read(#[source] io::Error),
    /// The agent closed the connection while a request was pending.
    #[error("agent closed the connection before answering `{method}`")]
    Unanswered {
        /// The method of the request.
        method: String,
    },
    /// The agent answered a request with an error. If the agent has ended, the proxy answers in its place.
    #[error("{}", refusal(method, error))]
    Refused {
        /// The method of the request.
        method: String,
        /// The JSON-RPC error object.
        error: Value,
    },
    /// The agent's messages contain more than 64 MiB of text.
    #[error("agent sent more than 64 MiB of text")]
    TooLong,
    /// The agent sent a message with more than 262,144 values.
    #[error("agent sent a message with more than {MAX_VALUES} values")]
    TooManyValues,
    /// The agent sent a line that is not JSON.
    #[error("agent sent invalid JSON: {line}")]
    NotAMessage {
        /// The first 1,000 characters of the line.
        line: String,
        /// The syntax error.
        source: serde_json::Error,
    },
}

impl ClientError {
    /// Returns true if the agent asks the user to log in first. Not all agents use the error code of ACP for this.
    pub fn asks_to_log_in(&self) -> bool {
        let Self::Refused { error, .. } = self else { return false };
        let text = describe_error(error).to_lowercase();
        let words = ["log in", "login", "logged in", "authenticat", "unauthorized", "api key", "credential"];
        proxy_error(error).is_none()
            && (error["code"] == AUTH_REQUIRED || words.iter().any(|words| text.contains(words)))
    }

    /// Returns a hint that tells the user how to fix the problem, if one is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Refused { error, .. } => proxy_error(error)?.1,
            _ => None,
        }
    }
}

/// Returns the message and the hint of an error that the proxy sent in place of an agent that has ended.
fn proxy_error(error: &Value) -> Option<(&str, Option<&str>)> {
    let message = error["message"].as_str().filter(|_| error["code"] == NOT_STARTED)?;
    Some(message.split_once("\nhint: ").map_or((message, None), |(message, hint)| (message, Some(hint))))
}

fn refusal(method: &str, error: &Value) -> String {
    match proxy_error(error) {
        Some((message, _)) => message.to_owned(),
        None => format!("agent rejected `{method}`: {}", describe_error(error)),
    }
}

/// Returns a JSON-RPC error object as one line of text, such as `Internal error (-32603): the model is overloaded`.
///
/// If the value has no `message`, the result is its JSON. A text of more than 4,000 characters is cut.
pub fn describe_error(error: &Value) -> String {
    let text = whole_error(error);
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        Some((end, _)) => format!("{} … ({} more bytes)", &text[..end], text.len() - end),
        None => text,
    }
}

fn whole_error(error: &Value) -> String {
    let Some(message) = error["message"].as_str() else { return error.to_string() };
    let code = &error["code"];
    let data = match &error["data"] {
        Value::Null => String::new(),
        Value::String(text) => format!(": {text}"),
        // Most agents send an object that only contains `details`, so just show this text.
        Value::Object(data) if data.len() == 1 && data.get("details").is_some_and(Value::is_string) => {
            format!(": {}", data["details"].as_str().unwrap_or_default())
        }
        data => format!(": {data}"),
    };
    format!("{message} ({code}){data}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_errors_are_cut() {
        let long = "é".repeat(5_000_000);
        let cut = format!("{} … (9992005 more bytes)", "é".repeat(4_000));
        for error in
            [json!({ "code": 1, "message": long }), json!({ "code": 1, "message": "no", "data": long })]
        {
            let text = describe_error(&error);
            assert!(text.len() < 8_100, "{}", text.len());
        }
        assert_eq!(describe_error(&json!({ "code": 12, "message": long })), cut);
    }

    #[test]
    fn errors_as_the_user_reads_them() {
        for (error, expected, hint) in [
            (
                json!({ "code": -32000, "message": "Authentication required" }),
                "agent rejected `m`: Authentication required (-32000)",
                None,
            ),
            (
                json!({ "code": -32603, "message": "Internal error", "data": { "details": "exited" } }),
                "agent rejected `m`: Internal error (-32603): exited",
                None,
            ),
            (
                json!({ "code": -32603, "message": "Internal error", "data": "exited" }),
                "agent rejected `m`: Internal error (-32603): exited",
                None,
            ),
            (
                json!({ "code": 1, "message": "no", "data": { "details": "a", "more": 1 } }),
                r#"agent rejected `m`: no (1): {"details":"a","more":1}"#,
                None,
            ),
            (json!("no error at all"), r#"agent rejected `m`: "no error at all""#, None),
            (json!({ "code": NOT_STARTED, "message": "it exited\nhint: look" }), "it exited", Some("look")),
            (json!({ "code": NOT_STARTED, "message": "it exited" }), "it exited", None),
        ] {
            let error = ClientError::Refused { method: "m".to_owned(), error };
            assert_eq!((error.to_string().as_str(), error.hint()), (expected, hint));
        }
    }
}
