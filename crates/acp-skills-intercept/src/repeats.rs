//! Removes the injected text from all other messages in which an agent may repeat it: extension notifications, results, errors,
//! and updates of any kind.
//!
//! Requests and tool calls are never edited, because they show what the agent does. A model that has seen our marks could
//! otherwise hide a part of a command between two of them.

use std::ops::Range;

use acp_skills_wire::{Edit, Kind, Message, Node, json};

use crate::{Interceptor, outputs::Pass, strip};

impl Interceptor {
    /// Removes the injected text from all strings of a line from the agent. This is the last step, after every other decision
    /// about the line.
    pub(crate) fn without_repeats(&self, line: &[u8], pass: Pass) -> Pass {
        let said = match &pass {
            Pass::Untouched => line,
            Pass::Edited(edited) => edited,
            Pass::Consumed => return pass,
        };
        if !self.reader.mark_scanner.has_mark(said) {
            return pass;
        }
        let edit = Message::parse(said).map(|message| clean(&message)).filter(|edit| !edit.is_empty());
        let edited = edit.map(|edit| edit.apply(said));
        edited.map_or(pass, Pass::Edited)
    }
}

/// Returns the edit that removes the injected text from a message.
fn clean(message: &Message<'_>) -> Edit {
    let mut edit = Edit::new();
    let update = message.param(&["update"]).filter(|_| message.method() == "session/update");
    let kind = update.and_then(|update| update.str("sessionUpdate")).unwrap_or_default();
    if message.kind() == Kind::Request || kind.starts_with("tool_call") {
        return edit;
    }
    let decided = words(update, &kind);
    for string in json::string_values(message.line) {
        if decided.contains(&string.span()) {
            continue;
        }
        if let Some(text) = string.as_text().and_then(|text| strip::string(&text)) {
            edit.set(string, &text.into());
        }
    }
    edit
}

/// Returns the spans of texts that were already processed in order, as chunks or blocks of a message.
fn words(update: Option<Node<'_>>, kind: &str) -> Vec<Range<usize>> {
    let Some(content) = update.and_then(|update| update.get("content")) else { return Vec::new() };
    let text = |block: Node<'_>| Some(block.get("text")?.span());
    match kind {
        "user_message" | "session_message" => content.elements().filter_map(text).collect(),
        _ if kind.ends_with("_chunk") => text(content).into_iter().collect(),
        _ => Vec::new(),
    }
}
