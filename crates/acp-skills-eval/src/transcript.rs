//! [`Transcript`]: the conversation of a run as a document, and statistics about it.

mod tool_use;

use std::{collections::BTreeMap, fmt::Write};

use acp_skills::client::Update;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) use self::tool_use::ToolUse;
use super::{
    permission::PermissionAnswer,
    usage::{Cost, Tokens, cost, reported},
};

/// The maximum size of the text in a transcript. Later text is counted, but not kept.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// The maximum size of the tool calls and permission requests of a run. A run whose agent sends more has failed, because leaving
/// some of them out could change its result.
pub(super) const MAX_CALL_BYTES: usize = 64 * 1024 * 1024;

/// The maximum number of texts in a transcript. Even a short one needs about a hundred bytes.
const MAX_TEXTS: usize = 32 * 1024;

/// The size that a tool call or a permission request counts at least.
const MIN_CALL_BYTES: usize = 1024;

/// Statistics about a run, with the field names of the skill-creator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Metrics {
    /// The number of calls of each tool, by the name or kind of the tool.
    pub tool_calls: BTreeMap<String, u64>,
    /// The number of tool calls.
    pub total_tool_calls: u64,
    /// The number of messages and tool calls of the agent.
    pub total_steps: u64,
    /// The number of tool calls that failed.
    pub errors_encountered: u64,
    /// The number of characters in the agent's messages.
    pub output_chars: u64,
    /// The number of characters in the transcript.
    pub transcript_chars: u64,
}

enum Entry {
    User(String),
    Agent(String),
    Thought(String),
    Tool(Box<ToolUse>),
    Permission(PermissionAnswer),
    Note(String),
}

/// The conversation of one run.
#[derive(Default)]
pub(super) struct Transcript {
    entries: Vec<Entry>,
    /// The size of the kept text of the agent's messages, thoughts and notes.
    kept: usize,
    /// The number of the kept texts.
    texts: usize,
    /// The size of the text that was not kept.
    left_out: usize,
    /// The size of the tool calls and permission requests.
    calls: usize,
    usage: Option<Tokens>,
    cost: Option<Cost>,
}

impl Transcript {
    pub(super) fn user(&mut self, text: &str) {
        self.entries.push(Entry::User(text.to_owned()));
    }

    /// Returns true if the tool calls and permission requests exceed [`MAX_CALL_BYTES`].
    pub(super) fn is_full(&self) -> bool {
        self.calls > MAX_CALL_BYTES
    }

    pub(super) fn permission(&mut self, answer: &PermissionAnswer) {
        self.calls += MIN_CALL_BYTES + answer.title.len() + answer.kind.len() + answer.why.len();
        self.entries.push(Entry::Permission(answer.clone()));
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.has_room(text.len()) {
            self.push(Entry::Note(text));
        }
    }

    /// Adds an entry whose text was counted.
    fn push(&mut self, entry: Entry) {
        self.texts += 1;
        self.entries.push(entry);
    }

    /// Counts a text of this size. Returns true if it should be kept.
    fn has_room(&mut self, bytes: usize) -> bool {
        let has_room = self.left_out == 0 && self.kept + bytes <= MAX_TEXT_BYTES && self.texts < MAX_TEXTS;
        *(if has_room { &mut self.kept } else { &mut self.left_out }) += bytes;
        has_room
    }

    /// Adds an update. Returns the tool call that it belongs to, if any.
    pub(super) fn update(&mut self, update: &Value) -> Option<&ToolUse> {
        match Update::read(update) {
            Update::Message(piece) | Update::Thought(piece) if !self.has_room(piece.len()) => {}
            Update::Message(piece) => match self.entries.last_mut() {
                Some(Entry::Agent(text)) => text.push_str(piece),
                _ => self.push(Entry::Agent(piece.to_owned())),
            },
            Update::Thought(piece) => match self.entries.last_mut() {
                Some(Entry::Thought(text)) => text.push_str(piece),
                _ => self.push(Entry::Thought(piece.to_owned())),
            },
            Update::ToolCall(update) => return Some(self.tool(update)),
            Update::Other(update) if update["sessionUpdate"] == "usage_update" => {
                let used = update["used"].as_u64();
                self.usage = used.map(|total| Tokens { total, input: None, output: None }).or(self.usage);
                // The agent sends the costs of the whole session each time.
                self.cost = cost(&update["cost"]).or_else(|| self.cost.take());
            }
            _ => {}
        }
        if let Some(reported) = reported(&update["_meta"]["usage"]) {
            self.usage = Some(reported);
        }
        None
    }

    fn tool(&mut self, update: &Value) -> &ToolUse {
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let known =
            self.entries.iter().rposition(|entry| matches!(entry, Entry::Tool(tool) if tool.id == id));
        let place = known.unwrap_or_else(|| {
            self.calls += MIN_CALL_BYTES + id.len();
            self.entries.push(Entry::Tool(Box::new(ToolUse { id: id.to_owned(), ..ToolUse::default() })));
            self.entries.len() - 1
        });
        let Entry::Tool(tool) = &mut self.entries[place] else { unreachable!("position of a tool call") };
        self.calls = self.calls.saturating_add_signed(tool.apply(update));
        tool
    }

    /// Adds the agent's response at the end of the turn.
    pub(super) fn end(&mut self, result: &Value) {
        let meta = &result["_meta"];
        let reports = [&result["usage"], &meta["usage"], &meta["quota"]["token_count"], meta];
        // Prefer the number from the response, which is for the whole turn. The one from updates is only for the
        // current context.
        if let Some(tokens) = reports.into_iter().find_map(reported) {
            self.usage = Some(tokens);
        }
    }

    /// Returns the tokens that the agent reported, if any.
    pub(super) fn tokens(&self) -> Option<Tokens> {
        self.usage
    }

    /// Returns the costs that the agent reported, if any.
    pub(super) fn cost(&self) -> Option<&Cost> {
        self.cost.as_ref()
    }

    /// Returns true if the agent has sent no text and no tool call.
    pub(super) fn is_silent(&self) -> bool {
        !self.entries.iter().any(|entry| match entry {
            Entry::Agent(text) | Entry::Thought(text) => !text.trim().is_empty(),
            Entry::Tool(_) | Entry::Permission(_) => true,
            Entry::User(_) | Entry::Note(_) => false,
        })
    }

    /// Returns the text of all messages to the user, separated by empty lines.
    pub(super) fn answer(&self) -> String {
        let messages = self.entries.iter().filter_map(|entry| match entry {
            Entry::Agent(text) => Some(text.trim()),
            _ => None,
        });
        messages.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// Returns all tool calls.
    pub(super) fn tools(&self) -> impl Iterator<Item = &ToolUse> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Tool(tool) => Some(&**tool),
            _ => None,
        })
    }

    pub(super) fn metrics(&self) -> Metrics {
        let mut metrics =
            Metrics { output_chars: self.answer().chars().count() as u64, ..Metrics::default() };
        metrics.transcript_chars = self.markdown().chars().count() as u64;
        for entry in &self.entries {
            match entry {
                Entry::Agent(_) => metrics.total_steps += 1,
                Entry::Tool(tool) => {
                    metrics.total_steps += 1;
                    metrics.total_tool_calls += 1;
                    metrics.errors_encountered += u64::from(tool.status == "failed");
                    *metrics.tool_calls.entry(tool.name().to_owned()).or_default() += 1;
                }
                _ => {}
            }
        }
        metrics
    }

    /// Returns the transcript as a Markdown document.
    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            let _ = match entry {
                Entry::User(prompt) => write!(text, "## User\n\n{}\n\n", prompt.trim_end()),
                Entry::Agent(message) => write!(text, "## Agent\n\n{}\n\n", message.trim_end()),
                Entry::Thought(thought) => write!(text, "## Thought\n\n{}\n\n", thought.trim_end()),
                Entry::Tool(tool) => write!(text, "{}", tool.markdown()),
                Entry::Permission(PermissionAnswer { title, granted, why, .. }) => {
                    let result = if *granted { "granted" } else { "refused" };
                    write!(text, "## Permission {result}: {}\n\n{why}\n\n", one_line(title))
                }
                Entry::Note(note) => write!(text, "> {}\n\n", one_line(note)),
            };
        }
        if self.left_out > 0 {
            let _ = write!(text, "> {} more bytes of text were left out\n\n", self.left_out);
        }
        text
    }
}

/// Returns the first `max_chars` characters of a text, with a note about the rest.
pub(super) fn shortened(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{} … ({} more bytes)", &text[..end], text.len() - end),
        None => text.to_owned(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tokens_are_reported_and_never_estimated() {
        for (result, total) in [
            (json!({ "usage": { "totalTokens": 30, "inputTokens": 20, "outputTokens": 10 } }), Some(30)),
            (json!({ "usage": { "inputTokens": 20, "outputTokens": 10 } }), Some(30)),
            (json!({ "usage": { "inputTokens": 20 } }), None),
            (
                json!({ "_meta": { "quota": { "token_count": { "input_tokens": 2, "output_tokens": 1 } } } }),
                Some(3),
            ),
            (json!({ "_meta": { "promptTokens": 5, "completionTokens": 1 } }), Some(6)),
            (json!({ "stopReason": "end_turn" }), None),
        ] {
            let mut transcript = Transcript::default();
            transcript.end(&result);
            assert_eq!(transcript.tokens().map(|tokens| tokens.total), total, "{result}");
        }
        let mut transcript = Transcript::default();
        transcript.update(&json!({ "sessionUpdate": "usage_update", "used": 15, "size": 100, "cost": { "amount": 0.25, "currency": "USD" } }));
        transcript.update(&json!({ "sessionUpdate": "usage_update", "used": 15, "size": 100, "cost": { "amount": -1, "currency": "USD" } }));
        assert_eq!(transcript.cost(), Some(&Cost { amount: 0.25, currency: "USD".to_owned() }));
        assert_eq!(transcript.tokens().unwrap().total, 15);
        transcript.end(&json!({ "stopReason": "end_turn" }));
        assert_eq!(transcript.tokens().unwrap().total, 15);
    }

    #[test]
    fn a_transcript_has_a_limit() {
        let mut transcript = Transcript::default();
        let piece = "x".repeat(1024 * 1024);
        let chunk =
            json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": piece } });
        for _ in 0..100 {
            transcript.update(&chunk);
        }
        let text = transcript.markdown();
        assert!(text.len() < MAX_TEXT_BYTES + 1000, "{}", text.len());
        assert!(text.ends_with(&format!("> {} more bytes of text were left out\n\n", 96 * 1024 * 1024)));
        assert!(!transcript.is_silent());
    }

    /// Each of these floods has to end with an error, and must not keep much more than the limit.
    #[test]
    fn calls_and_requests_have_a_limit() {
        let long = "x".repeat(1024 * 1024);
        let call = |id: usize, input: &str| json!({ "sessionUpdate": "tool_call", "toolCallId": id.to_string(), "rawInput": { "x": input } });
        let full = |most: usize, update: &dyn Fn(&mut Transcript, usize)| {
            let mut transcript = Transcript::default();
            (1..most).find(|&number| {
                update(&mut transcript, number);
                transcript.is_full()
            })
        };
        assert_eq!(full(100, &|transcript, id| drop(transcript.update(&call(id, &long)).cloned())), Some(64));
        assert_eq!(full(100, &|transcript, _| drop(transcript.update(&call(1, &long)).cloned())), None);
        let requests = full(100_000, &|transcript, _| {
            transcript.permission(&PermissionAnswer {
                title: String::new(),
                kind: String::new(),
                granted: false,
                why: String::new(),
            });
        });
        assert_eq!(requests, Some(64 * 1024 + 1));
    }

    #[test]
    fn many_short_texts_have_a_limit() {
        let mut transcript = Transcript::default();
        for number in 0..100_000 {
            let kind = ["agent_message_chunk", "agent_thought_chunk"][number % 2];
            transcript.update(&json!({ "sessionUpdate": kind, "content": { "type": "text", "text": "x" } }));
        }
        assert!(transcript.entries.len() < 40_000, "{}", transcript.entries.len());
    }

    #[test]
    fn a_transcript_is_a_document() {
        let mut transcript = Transcript::default();
        transcript.user("Hello");
        let chunk = |text| json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
        transcript.update(&chunk("Hel"));
        transcript.update(&chunk("lo."));
        transcript.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": "1", "title": "Run\n# x", "kind": "execute", "status": "pending", "rawInput": { "command": "ls" } }));
        transcript.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "failed", "content": [{ "type": "content", "content": { "type": "text", "text": "```\n# out" } }] }));
        transcript.update(&chunk("Done."));
        assert_eq!(
            transcript.markdown(),
            "## User\n\nHello\n\n## Agent\n\nHello.\n\n## Tool call: Run # x (failed)\n\n```json\n{\"command\":\"ls\"}\n```\n\n\
             ````\n```\n# out\n````\n\n## Agent\n\nDone.\n\n"
        );
        assert_eq!(transcript.answer(), "Hello.\n\nDone.");
        let metrics = transcript.metrics();
        assert_eq!((metrics.total_tool_calls, metrics.total_steps, metrics.errors_encountered), (1, 3, 1));
        assert_eq!(metrics.tool_calls["execute"], 1);
    }
}
