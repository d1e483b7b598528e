//! What can go wrong in a conversation with an agent.

use std::io;

use acp_skills_intercept::NOT_STARTED;
use serde_json::Value;

/// Why a conversation cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Somebody gave the conversation up.
    #[error("the conversation was given up")]
    Cancelled,
    /// The agent does not listen any more.
    #[error("the agent is gone")]
    Write(#[source] io::Error),
    /// What the agent says cannot be read.
    #[error("cannot read what the agent says")]
    Read(#[source] io::Error),
    /// The agent closed the connection instead of answering.
    #[error("the agent is gone before it answered `{method}`")]
    Unanswered {
        /// The request.
        method: String,
    },
    /// The agent answered with an error, or the proxy in its place, because it is gone.
    #[error("{}", refusal(method, error))]
    Refused {
        /// The request.
        method: String,
        /// The JSON-RPC error object.
        error: Value,
    },
    /// The agent sent a line that is no JSON.
    #[error("no message: {line}")]
    NotAMessage {
        /// The line.
        line: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

impl ClientError {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Refused { error, .. } => in_its_place(error)?.1,
            _ => None,
        }
    }
}

/// What the proxy says in place of an agent that is gone, and what to do about it.
fn in_its_place(error: &Value) -> Option<(&str, Option<&str>)> {
    let message = error["message"].as_str().filter(|_| error["code"] == NOT_STARTED)?;
    Some(message.split_once("\nhint: ").map_or((message, None), |(message, hint)| (message, Some(hint))))
}

fn refusal(method: &str, error: &Value) -> String {
    match in_its_place(error) {
        Some((message, _)) => message.to_owned(),
        None => format!("the agent refuses `{method}`: {}", in_words(error)),
    }
}

/// A JSON-RPC error for people to read: `Internal error (-32603): the model is overloaded`.
fn in_words(error: &Value) -> String {
    let (Some(message), code) = (error["message"].as_str(), &error["code"]) else { return error.to_string() };
    let data = match &error["data"] {
        Value::Null => String::new(),
        Value::String(text) => format!(": {text}"),
        // What most agents have there, and nothing else.
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
    fn what_people_read() {
        for (error, expected, hint) in [
            (
                json!({ "code": -32000, "message": "Authentication required" }),
                "the agent refuses `m`: Authentication required (-32000)",
                None,
            ),
            (
                json!({ "code": -32603, "message": "Internal error", "data": { "details": "exited" } }),
                "the agent refuses `m`: Internal error (-32603): exited",
                None,
            ),
            (
                json!({ "code": -32603, "message": "Internal error", "data": "exited" }),
                "the agent refuses `m`: Internal error (-32603): exited",
                None,
            ),
            (
                json!({ "code": 1, "message": "no", "data": { "details": "a", "more": 1 } }),
                r#"the agent refuses `m`: no (1): {"details":"a","more":1}"#,
                None,
            ),
            (json!("no error at all"), r#"the agent refuses `m`: "no error at all""#, None),
            (json!({ "code": NOT_STARTED, "message": "it exited\nhint: look" }), "it exited", Some("look")),
            (json!({ "code": NOT_STARTED, "message": "it exited" }), "it exited", None),
        ] {
            let error = ClientError::Refused { method: "m".to_owned(), error };
            assert_eq!((error.to_string().as_str(), error.hint()), (expected, hint));
        }
    }
}
