//! [`Transcript`]: the conversation of a run as a document, and statistics about it.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write,
};

use acp_skills::client::Update;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::permission::PermissionAnswer;

/// The maximum length of the kept output of a tool.
const MAX_OUTPUT_CHARS: usize = 2_000;

/// The maximum size of the text in a transcript. Later text is counted, but not kept.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// The maximum number of tool calls in a transcript.
const MAX_TOOL_CALLS: usize = 10_000;
/// The maximum size of the inputs, the locations and the contents of all tool calls, in bytes.
const MAX_TOOL_BYTES: usize = 32 * 1024 * 1024;
/// The maximum length of the id, the title, the kind, the status and the name of a tool call.
const MAX_WORD_CHARS: usize = 8_000;

/// The number of tokens that an agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tokens {
    /// All tokens.
    pub total: u64,
    /// Tokens that the model read, if the agent reports them.
    pub input: Option<u64>,
    /// Tokens that the model wrote, if the agent reports them.
    pub output: Option<u64>,
}

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

/// A tool call, combined from its updates so far.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolUse {
    pub(super) title: String,
    pub(super) kind: String,
    pub(super) status: String,
    pub(super) name: Option<String>,
    pub(super) input: Value,
    pub(super) locations: Value,
    /// The content blocks, such as diffs of the changed files.
    pub(super) content: Value,
    pub(super) output: String,
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
    /// The size of the text that was not kept.
    left_out: usize,
    /// The place of each tool call in `entries`, by id.
    tools: HashMap<String, usize>,
    /// The size of the kept inputs, locations and contents of tool calls.
    tool_bytes: usize,
    /// The number of inputs, locations, contents and tool calls that were not kept.
    left_out_of_tools: usize,
    usage: Option<Tokens>,
}

impl Transcript {
    pub(super) fn user(&mut self, text: &str) {
        self.entries.push(Entry::User(text.to_owned()));
    }

    pub(super) fn permission(&mut self, answer: &PermissionAnswer) {
        self.entries.push(Entry::Permission(answer.clone()));
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.has_room(text.len()) {
            self.entries.push(Entry::Note(text));
        }
    }

    /// Counts a text of this size. Returns true if it should be kept.
    fn has_room(&mut self, bytes: usize) -> bool {
        let has_room = self.left_out == 0 && self.kept + bytes <= MAX_TEXT_BYTES;
        *(if has_room { &mut self.kept } else { &mut self.left_out }) += bytes;
        has_room
    }

    /// Adds an update. Returns the tool call that it belongs to, if any. Returns `None` if there are too many tool calls.
    pub(super) fn update(&mut self, update: &Value) -> Option<&ToolUse> {
        match Update::read(update) {
            Update::Message(piece) | Update::Thought(piece) if !self.has_room(piece.len()) => {}
            Update::Message(piece) => match self.entries.last_mut() {
                Some(Entry::Agent(text)) => text.push_str(piece),
                _ => self.entries.push(Entry::Agent(piece.to_owned())),
            },
            Update::Thought(piece) => match self.entries.last_mut() {
                Some(Entry::Thought(text)) => text.push_str(piece),
                _ => self.entries.push(Entry::Thought(piece.to_owned())),
            },
            Update::ToolCall(update) => return self.tool(update),
            Update::Other(update) if update["sessionUpdate"] == "usage_update" => {
                let used = update["used"].as_u64();
                self.usage = used.map(|total| Tokens { total, input: None, output: None }).or(self.usage);
            }
            _ => {}
        }
        if let Some(reported) = reported(&update["_meta"]["usage"]) {
            self.usage = Some(reported);
        }
        None
    }

    fn tool(&mut self, update: &Value) -> Option<&ToolUse> {
        let id = shortened(update["toolCallId"].as_str().unwrap_or_default(), MAX_WORD_CHARS);
        let place = match self.tools.get(&id) {
            Some(place) => *place,
            None if self.tools.len() == MAX_TOOL_CALLS => {
                self.left_out_of_tools += 1;
                return None;
            }
            None => {
                self.tools.insert(id, self.entries.len());
                self.entries.push(Entry::Tool(Box::default()));
                self.entries.len() - 1
            }
        };
        let Entry::Tool(tool) = &mut self.entries[place] else { unreachable!("position of a tool call") };
        for (field, name) in
            [(&mut tool.title, "title"), (&mut tool.kind, "kind"), (&mut tool.status, "status")]
        {
            if let Some(text) = update[name].as_str() {
                *field = shortened(text, MAX_WORD_CHARS);
            }
        }
        let name = update["name"].as_str().or(update["_meta"]["claudeCode"]["toolName"].as_str());
        if let Some(name) = name {
            tool.name = Some(shortened(name, MAX_WORD_CHARS));
        }
        for (field, name) in [
            (&mut tool.input, "rawInput"),
            (&mut tool.locations, "locations"),
            (&mut tool.content, "content"),
        ] {
            if update[name].is_null() {
                continue;
            }
            let bytes = self.tool_bytes - size(field) + size(&update[name]);
            if bytes <= MAX_TOOL_BYTES {
                self.tool_bytes = bytes;
                field.clone_from(&update[name]);
            } else {
                self.left_out_of_tools += 1;
            }
        }
        let output: String = update["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|block| block["content"]["text"].as_str())
            .collect();
        if !output.is_empty() {
            tool.output = shortened(&output, MAX_OUTPUT_CHARS);
        }
        Some(tool)
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
        if self.left_out_of_tools > 0 {
            let _ =
                write!(text, "> {} tool calls or parts of them were left out\n\n", self.left_out_of_tools);
        }
        text
    }
}

impl ToolUse {
    /// Returns the name of the tool if the agent sends it, and its kind otherwise.
    pub(super) fn name(&self) -> &str {
        match (&self.name, self.kind.as_str()) {
            (Some(name), _) => name,
            (None, "") => "other",
            (None, kind) => kind,
        }
    }

    /// Returns the call's title, or the name of the tool if there is no title.
    pub(super) fn title_or_name(&self) -> &str {
        if self.title.is_empty() { self.name() } else { &self.title }
    }

    fn markdown(&self) -> String {
        let title = self.title_or_name();
        let status = if self.status.is_empty() { "pending" } else { &self.status };
        let mut text = format!("## Tool call: {} ({status})\n\n", one_line(title));
        if !self.input.is_null() {
            let _ = write!(text, "{}", fenced(&shortened(&self.input.to_string(), MAX_OUTPUT_CHARS), "json"));
        }
        if !self.output.is_empty() {
            let _ = write!(text, "{}", fenced(self.output.trim_end(), ""));
        }
        text
    }
}

/// Returns the size in memory of what a value contains, approximately.
fn size(value: &Value) -> usize {
    let inner = |value: &Value| size_of::<Value>() + size(value);
    match value {
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(inner).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + inner(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Reads a token count. The field names differ between agents.
fn reported(usage: &Value) -> Option<Tokens> {
    let number = |names: &[&str]| names.iter().find_map(|name| usage[*name].as_u64());
    let input = number(&["inputTokens", "input_tokens", "promptTokens", "prompt_tokens"]);
    let output = number(&["outputTokens", "output_tokens", "completionTokens", "completion_tokens"]);
    let total = number(&["totalTokens", "total_tokens"]);
    // If there's no total, we need both parts to compute it.
    let total = total.or_else(|| Some(input? + output?))?;
    Some(Tokens { total, input, output })
}

/// Returns a fenced block. Its fence is longer than any sequence of backticks in the text.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}\n\n")
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
        transcript.update(&json!({ "sessionUpdate": "usage_update", "used": 15, "size": 100 }));
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

    #[test]
    fn tool_calls_have_limits() {
        let mut transcript = Transcript::default();
        let call = |id: usize, bytes: usize| json!({ "sessionUpdate": "tool_call", "toolCallId": id.to_string(), "status": "pending", "rawInput": "x".repeat(bytes) });
        // A later update replaces the input of an earlier one, so that only one counts.
        for _ in 0..3 {
            transcript.update(&call(0, MAX_TOOL_BYTES - 100));
        }
        assert_eq!((transcript.left_out_of_tools, transcript.tools().count()), (0, 1));
        let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed", "rawInput": "x".repeat(200) });
        let tool = transcript.update(&update).unwrap();
        assert_eq!((tool.status.as_str(), &tool.input), ("completed", &Value::Null));
        transcript.update(&call(0, 0));
        for id in 1..=MAX_TOOL_CALLS {
            transcript.update(&call(id, 1));
        }
        assert!(transcript.update(&call(MAX_TOOL_CALLS, 0)).is_none());
        assert_eq!(transcript.tools().count(), MAX_TOOL_CALLS);
        assert!(transcript.markdown().ends_with("> 3 tool calls or parts of them were left out\n\n"));
        // An update of a known call is kept.
        let done = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "failed" });
        assert_eq!(transcript.update(&done).unwrap().status, "failed");
        assert_eq!(transcript.metrics().errors_encountered, 1);
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
