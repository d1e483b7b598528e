//! Conversations in which agents repeat text of ours. The client must see what its user typed, without our text.

use acp_skills_intercept::{Approve, CatalogIn, McpMode, Policy, Titles};
use serde_json::Value;

use super::{
    ours::{OURS, is_menu_of_ours, is_ours, without_our_commands, without_ours},
    play::{Proxy, policy},
    recording::{Recording, Side, recordings},
};

#[test]
fn repeated_text_comes_back_without_ours() {
    let recordings = recordings("proxied");
    let mut chunks = 0;
    let mut titles = 0;
    for recording in &recordings {
        for skill in ["demo", "other"] {
            let found = Clean::default().play(recording, skill);
            chunks += found.chunks;
            titles += found.titles;
        }
    }
    // These agents do show what they remember.
    assert!(chunks > 0 && titles > 0, "{chunks} chunks and {titles} titles held text of ours");
}

/// Plays a recording of an agent that repeats text of ours.
#[derive(Default)]
struct Clean {
    /// The typed prompts that reached the agent, each as a single text.
    typed: Vec<String>,
    /// The blocks of these prompts, without commands.
    blocks: Vec<String>,
    /// The history that the client has seen since it asked for it.
    history: String,
    /// True if the agent showed a part of the history. Some agents show none.
    replays: bool,
    loading: Option<Value>,
    chunks: usize,
    titles: usize,
}

impl Clean {
    fn play(mut self, recording: &Recording, skill: &str) -> Self {
        // When this was recorded, the editor itself answered the agent's requests for permission.
        let policy = policy(McpMode::Auto, CatalogIn::Prompt);
        let policy = Policy { approve: Approve::None, titles: Titles::Agent, ..policy };
        let mut proxy = Proxy::new(&policy, skill);
        for (number, (side, line)) in recording.lines.iter().enumerate() {
            let case = format!("{} with {skill}, line {}", recording.name, number + 1);
            let message: Value = serde_json::from_str(line).unwrap();
            if *side == Side::Client {
                if message["method"] == "initialize" {
                    proxy = Proxy::new(&policy, skill);
                }
                // The history of a session is complete once the client sends its next message.
                self.check_history(&case);
                self.hear_client(&message);
            }
            let seen = proxy.play(*side, line);
            if *side == Side::Agent {
                if message["method"] == "session/request_permission" && !seen.to_agent.is_empty() {
                    // This request is for a tool of ours, so the user is not asked.
                    let params = &message["params"];
                    let call = params.get("toolCall").unwrap_or(&params["subject"]["toolCall"]);
                    assert!(is_ours(&call["name"]), "{case}: {line}");
                    assert!(seen.to_client.is_empty(), "{case}: {:?}", seen.to_client);
                    continue;
                }
                assert!(seen.to_agent.is_empty(), "{case}");
                self.check(&case, line, &message, &seen.to_client);
            }
        }
        self.check_history(&recording.name);
        self
    }

    fn hear_client(&mut self, message: &Value) {
        match message["method"].as_str() {
            Some("session/prompt") => {
                let blocks = message["params"]["prompt"].as_array().unwrap();
                let texts = blocks.iter().filter_map(|block| block["text"].as_str()).map(str::to_owned);
                let text: String = texts.clone().collect();
                // Agents may put any separator between two blocks.
                if !text.starts_with('/') {
                    self.blocks.extend(texts);
                }
                self.typed.push(text);
            }
            Some("session/load" | "session/resume") => {
                self.loading = Some(message["id"].clone());
                self.history.clear();
                self.replays = false;
            }
            _ => {}
        }
    }

    /// Checks what the client sees of a line from the agent.
    fn check(&mut self, case: &str, line: &str, message: &Value, seen: &[String]) {
        // A refused request shows nothing.
        if message.get("error").is_some() && self.loading.as_ref() == Some(&message["id"]) {
            self.loading = None;
        }
        self.replays |= !user_blocks(message).is_empty();
        for line in seen {
            assert!(!OURS.iter().any(|word| line.contains(word)), "{case}: {line}");
            let update: Value = serde_json::from_str(line).unwrap();
            for block in user_blocks(&update) {
                self.history += block["text"].as_str().unwrap();
            }
        }
        if line.contains("\"MCP: acp-skills\"") || line.contains("\"name\":\"mcp__acp-skills__") {
            // Commands that an agent made from our prompts are replaced by ours. The agent's own commands stay.
            let list = |line: &str| {
                let mut message: Value = serde_json::from_str(line).unwrap();
                message["params"]["update"]["availableCommands"]
                    .take()
                    .as_array()
                    .cloned()
                    .unwrap_or_default()
            };
            let is_reflection = |command: &Value| {
                command["_meta"]["sourceLabel"] == "MCP: acp-skills"
                    || command["name"].as_str().is_some_and(|name| name.starts_with("mcp__acp-skills__"))
            };
            let theirs: Vec<_> = list(line).into_iter().filter(|command| !is_reflection(command)).collect();
            for seen in seen {
                let seen = list(seen);
                assert!(seen.ends_with(&theirs) && !seen.iter().any(is_reflection), "{case}: {seen:?}");
            }
            return;
        }
        if !OURS.iter().any(|word| line.contains(word)) {
            let seen = seen.iter().filter(|seen| *seen == line || !is_menu_of_ours(seen, line));
            let restored: Vec<_> = seen.map(|seen| without_our_commands(line, seen)).collect();
            assert_eq!(restored, [line], "{case}");
            return;
        }
        if !user_blocks(message).is_empty() {
            self.chunks += 1;
            assert!(seen.len() <= 1, "{case}: {seen:?}");
            return;
        }
        if titles(&mut message.clone()).is_empty() {
            // Agents repeat prompts in their own notifications. Only our text is removed from them.
            let mut expected = message.clone();
            without_ours(&mut expected);
            for line in seen {
                let mut seen: Value = serde_json::from_str(line).unwrap();
                without_ours(&mut seen);
                assert_eq!(seen, expected, "{case}");
            }
            return;
        }
        self.titles += 1;
        for line in seen {
            let seen: Value = serde_json::from_str(line).unwrap();
            let mut before = message.clone();
            let mut after = seen.clone();
            for title in titles(&mut after) {
                let title = title.take();
                let words = title.as_str().unwrap_or_else(|| panic!("{case}: {line}"));
                let is_typed = |typed: &String| {
                    let flat = typed.split_whitespace().collect::<Vec<_>>().join(" ");
                    flat.starts_with(words) || words.is_empty()
                };
                assert!(!words.is_empty() && self.typed.iter().any(is_typed), "{case}: title {words:?}");
            }
            // A title is removed or changed, and the rest stays the same.
            for message in [&mut before, &mut after] {
                forget_titles(message);
                // This covers previews and similar members.
                without_ours(message);
            }
            assert_eq!(after, before, "{case}");
        }
    }

    /// Asserts that the replay contains each prompt as it was typed, in order.
    fn check_history(&mut self, case: &str) {
        if self.loading.take().is_none() || !self.replays {
            return;
        }
        // Some agents join everything into a single line.
        let flat = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut history = self.history.clone();
        let mut blocks = self.blocks.clone();
        if !blocks.iter().all(|typed| history.contains(typed)) {
            (history, blocks) = (flat(&history), blocks.iter().map(flat).collect());
        }
        let mut rest = history.as_str();
        for typed in &blocks {
            let at = rest.find(typed.as_str());
            let at = at.unwrap_or_else(|| panic!("before {case}: no {typed:?} in {:?}", self.history));
            rest = &rest[at + typed.len()..];
        }
    }
}

/// Returns the blocks of a message that contain the user's text.
fn user_blocks(message: &Value) -> &[Value] {
    let update = &message["params"]["update"];
    match update["sessionUpdate"].as_str() {
        Some("user_message_chunk") => std::slice::from_ref(&update["content"]),
        Some("user_message") => update["content"].as_array().unwrap(),
        _ => &[],
    }
}

/// Returns the titles of sessions in a message.
fn titles(message: &mut Value) -> Vec<&mut Value> {
    if message["params"]["update"].get("title").is_some() {
        return message["params"]["update"].get_mut("title").into_iter().collect();
    }
    let sessions = message.pointer_mut("/result/sessions").and_then(Value::as_array_mut);
    sessions.into_iter().flatten().filter_map(|session| session.get_mut("title")).collect()
}

fn forget_titles(message: &mut Value) {
    let update = message.pointer_mut("/params/update").and_then(Value::as_object_mut);
    let sessions = update.is_none().then(|| message.pointer_mut("/result/sessions")).flatten();
    if let Some(sessions) = sessions.and_then(Value::as_array_mut) {
        for session in sessions.iter_mut().filter_map(Value::as_object_mut) {
            session.shift_remove("title");
        }
        return;
    }
    if let Some(update) = message.pointer_mut("/params/update").and_then(Value::as_object_mut) {
        update.shift_remove("title");
    }
}
