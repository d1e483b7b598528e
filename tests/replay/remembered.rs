//! Replays conversations in which the agent's history holds text of ours. The client must receive the user's text and nothing of
//! ours.

use acp_skills_intercept::{Approve, CatalogIn, McpMode, Policy, Titles};
use serde_json::Value;

use super::{
    ours::{OURS, is_menu_of_ours, is_ours, without_our_commands, without_ours},
    play::{Proxy, policy},
    recording::{Recording, Side, recordings},
};

#[test]
fn replayed_history_has_no_text_of_ours() {
    let recordings = recordings("proxied");
    let mut chunks = 0;
    let mut titles = 0;
    for recording in &recordings {
        for skill in ["demo", "other"] {
            let found = Checker::default().play(recording, skill);
            chunks += found.chunks;
            titles += found.titles;
        }
    }
    // If agents never sent our text back to us, this test would be useless.
    assert!(chunks > 0 && titles > 0, "{chunks} chunks and {titles} titles held text of ours");
}

/// Replays a recording, and checks what the client receives.
#[derive(Default)]
struct Checker {
    /// The prompts of the user, each as one text.
    typed: Vec<String>,
    /// The blocks of prompts that aren't commands.
    blocks: Vec<String>,
    /// The user's messages that the client has received since it began to load the session.
    history: String,
    /// True if the agent has replayed a message of the user. Some agents replay nothing.
    replays: bool,
    loading: Option<Value>,
    chunks: usize,
    titles: usize,
}

impl Checker {
    fn play(mut self, recording: &Recording, skill: &str) -> Self {
        // At the time of these recordings, we didn't answer any permission requests, so don't do that here either.
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
                // If the client sends something, we know that the history is complete.
                self.check_history(&case);
                self.observe_client(&message);
            }
            let seen = proxy.play(*side, line);
            if *side == Side::Agent {
                if message["method"] == "session/request_permission" && !seen.to_agent.is_empty() {
                    // If we answer a permission request ourselves, it must be for one of our tools.
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

    fn observe_client(&mut self, message: &Value) {
        match message["method"].as_str() {
            Some("session/prompt") => {
                let blocks = message["params"]["prompt"].as_array().unwrap();
                let texts = blocks.iter().filter_map(|block| block["text"].as_str()).map(str::to_owned);
                let text: String = texts.clone().collect();
                // We have to check each block separately, since each agent might put a different separator between them.
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

    /// Checks the lines that the client receives for one line of the agent.
    fn check(&mut self, case: &str, line: &str, message: &Value, seen: &[String]) {
        // If there was an error, the session could not be loaded, and we have no history to check.
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
            // Some agents create commands from our MCP prompts. We replace these with our own, but leave all of the others as
            // they are.
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
            // This is an extension that sends the prompt back to us. We remove our text from it, but nothing else.
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
            // The title may be different now, or it may have been removed, but everything else should be the same.
            for message in [&mut before, &mut after] {
                remove_titles(message);
                // Our text could also be in other members, such as previews.
                without_ours(message);
            }
            assert_eq!(after, before, "{case}");
        }
    }

    /// Checks that the replayed history contains all of the user's prompts in order.
    fn check_history(&mut self, case: &str) {
        if self.loading.take().is_none() || !self.replays {
            return;
        }
        // Don't compare line breaks, because some agents replace them with spaces.
        let flat = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut history = self.history.clone();
        let mut blocks = self.blocks.clone();
        if !blocks.iter().all(|typed| history.contains(typed)) {
            history = flat(&history);
            blocks = blocks.iter().map(flat).collect();
        }
        let mut rest = history.as_str();
        for typed in &blocks {
            let at = rest.find(typed.as_str());
            let at = at.unwrap_or_else(|| panic!("before {case}: no {typed:?} in {:?}", self.history));
            rest = &rest[at + typed.len()..];
        }
    }
}

/// Returns the content blocks of the user's message in a session update, or an empty slice.
fn user_blocks(message: &Value) -> &[Value] {
    let update = &message["params"]["update"];
    match update["sessionUpdate"].as_str() {
        Some("user_message_chunk") => std::slice::from_ref(&update["content"]),
        Some("user_message") => update["content"].as_array().unwrap(),
        _ => &[],
    }
}

/// Returns the session titles in a message.
fn titles(message: &mut Value) -> Vec<&mut Value> {
    if message["params"]["update"].get("title").is_some() {
        return message["params"]["update"].get_mut("title").into_iter().collect();
    }
    let sessions = message.pointer_mut("/result/sessions").and_then(Value::as_array_mut);
    sessions.into_iter().flatten().filter_map(|session| session.get_mut("title")).collect()
}

fn remove_titles(message: &mut Value) {
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
