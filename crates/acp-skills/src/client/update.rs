//! [`Update`]: the updates that an agent sends during a turn.

use serde_json::Value;

/// A [session update](https://agentclientprotocol.com/protocol/v1/schema#sessionupdate), borrowed from its JSON.
///
/// ```
/// use acp_skills::client::Update;
/// use serde_json::json;
///
/// let chunk = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "Hello" } });
/// assert_eq!(Update::read(&chunk), Update::Message("Hello"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Update<'a> {
    /// A piece of the agent's message to the user.
    Message(&'a str),
    /// A piece of the agent's reasoning.
    Thought(&'a str),
    /// A new tool call, or a change to one. The value is the whole update.
    ToolCall(&'a Value),
    /// Any other update, and chunks of messages and thoughts that are not text. The value is the whole update.
    Other(&'a Value),
}

impl<'a> Update<'a> {
    /// Reads the member `update` of a `session/update` notification.
    pub fn read(update: &'a Value) -> Self {
        let text = update["content"]["text"].as_str();
        match (update["sessionUpdate"].as_str().unwrap_or_default(), text) {
            ("agent_message_chunk", Some(text)) => Self::Message(text),
            ("agent_thought_chunk", Some(text)) => Self::Thought(text),
            ("tool_call" | "tool_call_update", _) => Self::ToolCall(update),
            _ => Self::Other(update),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn updates_are_read_by_kind() {
        let image = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "image" } });
        let thought = json!({ "sessionUpdate": "agent_thought_chunk", "content": { "text": "Hm" } });
        let call = json!({ "sessionUpdate": "tool_call_update", "content": [] });
        for (update, expected) in [
            (&image, Update::Other(&image)),
            (&thought, Update::Thought("Hm")),
            (&call, Update::ToolCall(&call)),
            (&json!(null), Update::Other(&json!(null))),
        ] {
            assert_eq!(Update::read(update), expected);
        }
    }
}
