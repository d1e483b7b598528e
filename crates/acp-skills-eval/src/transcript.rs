//! What was said in a run, in order: for people to read, and for the figures about it.

use std::{collections::BTreeMap, fmt::Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::permission::PermissionRequest;

/// How much of a tool's output is kept.
const MAX_OUTPUT_CHARS: usize = 2_000;

/// What an agent reports of the tokens that it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tokens {
    /// All of them.
    pub total: u64,
    /// Those that the model read.
    pub input: Option<u64>,
    /// Those that it wrote.
    pub output: Option<u64>,
}

/// Figures about a run, with the names of the skill-creator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Metrics {
    /// Calls by tool.
    pub tool_calls: BTreeMap<String, u64>,
    /// All calls.
    pub total_tool_calls: u64,
    /// Messages of the agent's and calls.
    pub total_steps: u64,
    /// Calls that failed.
    pub errors_encountered: u64,
    /// Characters in the agent's messages.
    pub output_chars: u64,
    /// Characters in the transcript.
    pub transcript_chars: u64,
}

/// One tool call, as its updates have described it so far.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolUse {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) kind: String,
    pub(super) status: String,
    pub(super) name: Option<String>,
    pub(super) input: Value,
    pub(super) locations: Value,
    /// Files that it says it changes.
    pub(super) content: Value,
    pub(super) output: String,
}

enum Entry {
    User(String),
    Agent(String),
    Thought(String),
    Tool(Box<ToolUse>),
    Permission(PermissionRequest),
    Note(String),
}

/// The conversation of one run.
#[derive(Default)]
pub(super) struct Transcript {
    entries: Vec<Entry>,
    usage: Option<Tokens>,
}

impl Transcript {
    pub(super) fn user(&mut self, text: &str) {
        self.entries.push(Entry::User(text.to_owned()));
    }

    pub(super) fn permission(&mut self, request: &PermissionRequest) {
        self.entries.push(Entry::Permission(request.clone()));
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.entries.push(Entry::Note(text.into()));
    }

    /// Takes an update in; returns the tool call that it is about.
    pub(super) fn update(&mut self, update: &Value) -> Option<&ToolUse> {
        let text = update["content"]["text"].as_str().unwrap_or_default();
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "agent_message_chunk" => match self.entries.last_mut() {
                Some(Entry::Agent(said)) => said.push_str(text),
                _ => self.entries.push(Entry::Agent(text.to_owned())),
            },
            "agent_thought_chunk" => match self.entries.last_mut() {
                Some(Entry::Thought(said)) => said.push_str(text),
                _ => self.entries.push(Entry::Thought(text.to_owned())),
            },
            "tool_call" | "tool_call_update" => return Some(self.tool(update)),
            "usage_update" => {
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

    fn tool(&mut self, update: &Value) -> &ToolUse {
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let known = self.entries.iter().rposition(|it| matches!(it, Entry::Tool(tool) if tool.id == id));
        let place = known.unwrap_or_else(|| {
            self.entries.push(Entry::Tool(Box::new(ToolUse { id: id.to_owned(), ..ToolUse::default() })));
            self.entries.len() - 1
        });
        let Entry::Tool(tool) = &mut self.entries[place] else { unreachable!("it was found as a tool call") };
        for (field, name) in
            [(&mut tool.title, "title"), (&mut tool.kind, "kind"), (&mut tool.status, "status")]
        {
            if let Some(text) = update[name].as_str() {
                text.clone_into(field);
            }
        }
        let name = update["name"].as_str().or(update["_meta"]["claudeCode"]["toolName"].as_str());
        if let Some(name) = name {
            tool.name = Some(name.to_owned());
        }
        for (field, name) in [
            (&mut tool.input, "rawInput"),
            (&mut tool.locations, "locations"),
            (&mut tool.content, "content"),
        ] {
            if !update[name].is_null() {
                field.clone_from(&update[name]);
            }
        }
        let said: String = update["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|block| block["content"]["text"].as_str())
            .collect();
        if !said.is_empty() {
            tool.output = shortened(&said, MAX_OUTPUT_CHARS);
        }
        tool
    }

    /// Takes what the agent says at the end of the turn.
    pub(super) fn end(&mut self, result: &Value) {
        let meta = &result["_meta"];
        let reports = [&result["usage"], &meta["usage"], &meta["quota"]["token_count"], meta];
        // The end of a turn speaks of the turn; updates speak of what is in the context.
        if let Some(tokens) = reports.into_iter().find_map(reported) {
            self.usage = Some(tokens);
        }
    }

    /// What the agent reported, if anything.
    pub(super) fn tokens(&self) -> Option<Tokens> {
        self.usage
    }

    /// Whether the agent did anything at all.
    pub(super) fn is_silent(&self) -> bool {
        !self.entries.iter().any(|entry| match entry {
            Entry::Agent(text) | Entry::Thought(text) => !text.trim().is_empty(),
            Entry::Tool(_) | Entry::Permission(_) => true,
            Entry::User(_) | Entry::Note(_) => false,
        })
    }

    /// All that the agent said to the user.
    pub(super) fn answer(&self) -> String {
        let said = self.entries.iter().filter_map(|entry| match entry {
            Entry::Agent(text) => Some(text.trim()),
            _ => None,
        });
        said.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// Every tool call.
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

    /// As a document.
    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            let _ = match entry {
                Entry::User(said) => write!(text, "## User\n\n{}\n\n", said.trim_end()),
                Entry::Agent(said) => write!(text, "## Agent\n\n{}\n\n", said.trim_end()),
                Entry::Thought(said) => write!(text, "## Thought\n\n{}\n\n", said.trim_end()),
                Entry::Tool(tool) => write!(text, "{}", tool.markdown()),
                Entry::Permission(request) => {
                    let became = if request.granted { "granted" } else { "refused" };
                    write!(
                        text,
                        "## Permission {became}: {}\n\n{}\n\n",
                        one_line(&request.title),
                        request.why
                    )
                }
                Entry::Note(note) => write!(text, "> {}\n\n", one_line(note)),
            };
        }
        text
    }
}

impl ToolUse {
    /// The tool's name where the agent says it, else its kind.
    pub(super) fn name(&self) -> &str {
        match (&self.name, self.kind.as_str()) {
            (Some(name), _) => name,
            (None, "") => "other",
            (None, kind) => kind,
        }
    }

    fn markdown(&self) -> String {
        let title = if self.title.is_empty() { self.name() } else { &self.title };
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

/// Tokens as agents report them.
fn reported(usage: &Value) -> Option<Tokens> {
    let number = |names: &[&str]| names.iter().find_map(|name| usage[*name].as_u64());
    let input = number(&["inputTokens", "input_tokens", "promptTokens", "prompt_tokens"]);
    let output = number(&["outputTokens", "output_tokens", "completionTokens", "completion_tokens"]);
    let total = number(&["totalTokens", "total_tokens"]);
    // One of two parts is no total.
    let total = total.or_else(|| Some(input? + output?))?;
    Some(Tokens { total, input, output })
}

/// A block that ends where the text does, whatever is in it.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}\n\n")
}

/// The beginning of a long text.
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
    fn tokens_are_what_agents_report_and_never_a_guess() {
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
    fn a_conversation_as_a_document() {
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
