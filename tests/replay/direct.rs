//! Replays conversations that were recorded without the proxy. With the proxy, both sides must receive the same bytes, except for
//! the documented additions.

use std::collections::HashSet;

use acp_skills_intercept::{CatalogIn, McpMode, Policy, begins_with_ours};
use serde_json::{Value, json};

use super::{
    generated,
    ours::{is_menu_of_ours, is_ours, without, without_our_commands},
    play::{Proxy, policy},
    recording::{Recording, Side, recordings},
};

#[test]
fn both_sides_receive_the_same_bytes_except_for_documented_additions() {
    let recordings = recordings("direct");
    assert!(recordings.len() >= 5, "{} recordings", recordings.len());
    for recording in &recordings {
        for mcp in [McpMode::Auto, McpMode::Stdio, McpMode::Off] {
            for catalog_in in [CatalogIn::Auto, CatalogIn::Prompt, CatalogIn::Off] {
                differential(recording, policy(mcp, catalog_in));
            }
        }
    }
}

#[test]
fn every_message_of_the_schema_is_forwarded_unchanged() {
    for counts in generated::counts() {
        assert!(counts.iter().all(|&count| count > 0), "the schema has no messages of some kind: {counts:?}");
    }
    for conversation in generated::conversations(0..4) {
        for mcp in [McpMode::Auto, McpMode::Stdio, McpMode::Off] {
            for catalog_in in [CatalogIn::Auto, CatalogIn::Prompt, CatalogIn::Off] {
                differential(&conversation, policy(mcp, catalog_in));
            }
        }
    }
}

/// Replays a recording and compares every line that both sides receive.
pub(super) fn differential(recording: &Recording, policy: Policy) {
    let case = format!("{} {:?} {:?}", recording.name, policy.mcp, policy.catalog_in);
    let mut proxy = Proxy::new(&policy, "review");
    let mut expected = Expected::default();
    let mut added = 0;
    for (number, (side, line)) in recording.lines.iter().enumerate() {
        let case = format!("{case} line {}", number + 1);
        let message: Value = serde_json::from_str(line).unwrap();
        if *side == Side::Client && message["method"] == "initialize" {
            proxy = Proxy::new(&policy, "review");
            expected = Expected::default();
        }
        let seen = proxy.play(*side, line);
        let (same, other) = match side {
            Side::Client => (seen.to_agent, seen.to_client),
            Side::Agent => (seen.to_client, seen.to_agent),
        };
        assert!(other.is_empty(), "{case}: {other:?}");
        // If the agent sends a list of commands before the session is open, we have to wait with our menu until we've forwarded
        // the response.
        let (same, menus): (Vec<_>, Vec<_>) =
            same.into_iter().partition(|same| same == line || !is_menu_of_ours(same, line));
        assert!(
            menus.len() <= 1 && (menus.is_empty() || message["result"]["sessionId"].is_string()),
            "{case}"
        );
        let [same] = &same[..] else { panic!("{case}: {} lines for {line}", same.len()) };
        let restored = match side {
            Side::Client => expected.without_ours(&message, same, &policy),
            Side::Agent => {
                expected.observe(&message);
                without_our_commands(line, same)
            }
        };
        added += usize::from(same != line);
        match without_answers_to_skills(&message) {
            Some(expected) if *side == Side::Client => {
                assert_eq!(serde_json::from_str::<Value>(&restored).unwrap(), expected, "{case}");
            }
            _ => assert_eq!(&restored, line, "{case}"),
        }
    }
    let adds_nothing = policy.mcp == McpMode::Off && policy.catalog_in == CatalogIn::Off;
    assert!(added > 0 || adds_nothing, "{case}: the proxy added nothing");
}

/// Returns a prompt of avante without the repeated answers to `/skills`, or `None` if it repeats none.
fn without_answers_to_skills(prompt: &Value) -> Option<Value> {
    let mut changed = prompt.clone();
    let mut is_next = false;
    for block in changed["params"]["prompt"].as_array_mut()? {
        let text = block["text"].as_str().unwrap_or_default().to_owned();
        if is_next && text.starts_with("<previous_assistant_message>") {
            block["text"] = "<previous_assistant_message></previous_assistant_message>".into();
        }
        is_next = text == "<previous_user_message>/skills</previous_user_message>";
    }
    (changed != *prompt).then_some(changed)
}

/// The expected additions, derived from the conversation alone.
#[derive(Default)]
struct Expected {
    takes_system_prompt: bool,
    /// Sessions whose model has received the catalog.
    informed: HashSet<String>,
    /// The ids of requests to fork a session whose model has received the catalog.
    forks: Vec<Value>,
}

impl Expected {
    /// Updates the state from a message of the agent.
    fn observe(&mut self, message: &Value) {
        // This is in a different place in each version of the protocol.
        let v1 = "/result/agentCapabilities/sessionCapabilities/systemPrompt";
        let v2 = "/result/capabilities/session/systemPrompt";
        let marker = message.pointer(v1).or_else(|| message.pointer(v2));
        self.takes_system_prompt |= marker.is_some_and(Value::is_object);
        if self.forks.contains(&message["id"]) {
            self.informed.extend(message["result"]["sessionId"].as_str().map(str::to_owned));
        }
    }

    /// Removes the expected additions to `message` from `sent`. Panics if one is missing.
    fn without_ours(&mut self, message: &Value, sent: &str, policy: &Policy) -> String {
        let in_system = self.takes_system_prompt && policy.catalog_in == CatalogIn::Auto;
        match message["method"].as_str() {
            Some("session/new" | "session/load" | "session/resume" | "session/fork") => {
                let parent = message["params"]["sessionId"].as_str();
                if message["method"] == "session/fork" && parent.is_some_and(|id| self.informed.contains(id))
                {
                    self.forks.push(message["id"].clone());
                }
                let mut sent = sent.to_owned();
                let edited: Value = serde_json::from_str(&sent).unwrap();
                if policy.mcp != McpMode::Off {
                    let servers = edited["params"]["mcpServers"].as_array().unwrap();
                    let theirs = message["params"].get("mcpServers").map(|theirs| theirs.as_array().unwrap());
                    assert_eq!(servers.len(), theirs.map_or(0, Vec::len) + 1);
                    let ours = servers.last().unwrap();
                    // For Hermes, we use a new name for each session.
                    let name = ours["name"].as_str().unwrap();
                    assert!(name == "acp-skills" || name.starts_with("acp-skills-"), "{name}");
                    sent = match theirs {
                        Some(theirs) => without(&sent, &ours.to_string(), !theirs.is_empty()),
                        None => without(&sent, &format!("\"mcpServers\":[{ours}]"), true),
                    };
                }
                if in_system {
                    let ours = &edited["params"]["systemPrompt"];
                    assert_eq!(ours["mode"], "append");
                    let [block] = &ours["content"].as_array().unwrap()[..] else { panic!("{ours}") };
                    assert_is_catalog(block);
                    sent = without(&sent, &format!("\"systemPrompt\":{ours}"), true);
                }
                // If this is the adapter for Claude, we add our tools to the ones that can be used without asking for
                // permission. Note that we only do this if they're read-only.
                if message["params"].get("_meta").is_none()
                    && let Some(ours) = edited["params"].get("_meta")
                {
                    let tools = &ours["claudeCode"]["options"]["allowedTools"];
                    let only_ours = json!({ "claudeCode": { "options": { "allowedTools": tools } } });
                    assert_eq!(ours, &only_ours);
                    let tools = tools.as_array().unwrap().iter();
                    assert!(tools.clone().count() == 3 && tools.clone().all(is_ours), "{ours}");
                    sent = without(&sent, &format!("\"_meta\":{ours}"), true);
                }
                sent
            }
            Some("session/prompt") => {
                let session = message["params"]["sessionId"].as_str().unwrap();
                let blocks = message["params"]["prompt"].as_array().unwrap();
                let mut texts = blocks.iter().filter_map(|block| block["text"].as_str());
                let is_command = texts.any(|text| text.trim_start().starts_with(['/', '$']));
                let is_due = policy.catalog_in != CatalogIn::Off && !in_system && !is_command;
                if !is_due || !self.informed.insert(session.to_owned()) {
                    return sent.to_owned();
                }
                let edited: Value = serde_json::from_str(sent).unwrap();
                let prompt = edited["params"]["prompt"].as_array().unwrap();
                assert_eq!(prompt.len(), blocks.len() + 1);
                // Some agents use the start of the prompt to generate a title, so the catalog has to be added at the end.
                if !blocks.is_empty() && prompt[..blocks.len()] == blocks[..] {
                    assert_is_catalog(&prompt[blocks.len()]);
                    return without(sent, &prompt[blocks.len()].to_string(), true);
                }
                assert_is_catalog(&prompt[0]);
                let comma = if blocks.is_empty() { "" } else { "," };
                let ours = format!("{}{comma}", prompt[0]);
                without(sent, &ours, false)
            }
            _ => sent.to_owned(),
        }
    }
}

fn assert_is_catalog(block: &Value) {
    let text = block["text"].as_str().unwrap();
    let (open, rest) = text.split_once('\n').unwrap();
    assert!(
        begins_with_ours(text)
            && rest.ends_with(&format!("\n{}\n", open.replace('<', "</")))
            && rest.contains("<name>review</name>"),
        "{text}"
    );
}
