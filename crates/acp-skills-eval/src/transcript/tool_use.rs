//! [`ToolUse`]: a tool call of a run.

use std::fmt::Write;

use serde_json::Value;

use super::{one_line, shortened};

/// The maximum length of the kept name of a tool. It is stored with each run.
const MAX_NAME_CHARS: usize = 200;
/// The maximum length of the kept output of a tool.
const MAX_OUTPUT_CHARS: usize = 2_000;

/// A tool call, combined from its updates so far.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct ToolUse {
    pub(in super::super) id: String,
    pub(in super::super) title: String,
    pub(in super::super) kind: String,
    pub(in super::super) status: String,
    pub(in super::super) name: Option<String>,
    pub(in super::super) input: Value,
    pub(in super::super) locations: Value,
    /// The content blocks, such as diffs of the changed files.
    pub(in super::super) content: Value,
    pub(in super::super) output: String,
}

impl ToolUse {
    /// Applies an update of the call. Returns the change of its size in bytes.
    pub(super) fn apply(&mut self, update: &Value) -> isize {
        let before = self.size();
        let texts = [(&mut self.title, "title"), (&mut self.kind, "kind"), (&mut self.status, "status")];
        for (field, name) in texts {
            if let Some(text) = update[name].as_str() {
                text.clone_into(field);
            }
        }
        let name = update["name"].as_str().or(update["_meta"]["claudeCode"]["toolName"].as_str());
        if let Some(name) = name {
            self.name = Some(shortened(name, MAX_NAME_CHARS));
        }
        for (field, name) in [
            (&mut self.input, "rawInput"),
            (&mut self.locations, "locations"),
            (&mut self.content, "content"),
        ] {
            if !update[name].is_null() {
                field.clone_from(&update[name]);
            }
        }
        let output: String = update["content"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|block| block["content"]["text"].as_str())
            .collect();
        if !output.is_empty() {
            self.output = shortened(&output, MAX_OUTPUT_CHARS);
        }
        self.size().cast_signed() - before.cast_signed()
    }

    /// Returns the approximate size in bytes of everything that the agent chose.
    fn size(&self) -> usize {
        let texts = [&self.title, &self.kind, &self.status, &self.output].map(String::len);
        let values = [&self.input, &self.locations, &self.content].map(size);
        texts.into_iter().chain(values).sum::<usize>() + self.name.as_ref().map_or(0, String::len)
    }

    /// Returns the name of the tool if the agent sends it, and its kind otherwise.
    pub(in super::super) fn name(&self) -> &str {
        match (&self.name, self.kind.as_str()) {
            (Some(name), _) => name,
            (None, "") => "other",
            (None, kind) => kind,
        }
    }

    /// Returns the call's title, or the name of the tool if there is no title.
    pub(in super::super) fn title_or_name(&self) -> &str {
        if self.title.is_empty() { self.name() } else { &self.title }
    }

    pub(super) fn markdown(&self) -> String {
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

/// Returns the approximate size of a value in memory.
fn size(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(size).sum(),
            // An entry of a map also has its key and a hash.
            Value::Object(members) => members.iter().map(|(key, value)| key.len() + 48 + size(value)).sum(),
            _ => 0,
        }
}

/// Returns a fenced block. Its fence is longer than any sequence of backticks in the text.
fn fenced(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}\n\n")
}
