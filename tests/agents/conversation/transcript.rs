//! Reads the messages of a conversation and the requests to the model.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ENTRY, OURS, Observations};
use crate::client::{Client, Side};

/// Returns the line with the answer to the request of this id.
pub(super) fn line_of(client: &Client, id: u64) -> String {
    let answers = |line: &str| {
        serde_json::from_str::<Value>(line)
            .is_ok_and(|message| message["id"] == id && message.get("method").is_none())
    };
    let line = client.transcript.iter().find(|(side, line)| *side == Side::Agent && answers(line));
    line.map(|(_, line)| line.clone()).unwrap_or_default()
}

/// Returns true if the agent's answer to `initialize` has this session capability.
pub(super) fn can(initialize: &str, what: &str) -> bool {
    let answer = serde_json::from_str::<Value>(initialize).unwrap_or_default();
    let capability = &answer["result"]["agentCapabilities"]["sessionCapabilities"][what];
    !capability.is_null() && *capability != false
}

/// Returns the names of all commands that the client received in any session, because agents send their lists at any time.
pub(super) fn commands(client: &Client) -> Vec<String> {
    let messages = client.agent_messages(0);
    let updates =
        messages.iter().filter_map(|message| message["params"]["update"]["availableCommands"].as_array());
    let names = updates.flatten().filter_map(|command| Some(command["name"].as_str()?.to_owned()));
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Returns all requests to the model as text.
pub(super) fn text_of(asked: &[Value]) -> String {
    asked.iter().map(|asked| asked.to_string() + "\n").collect()
}

/// Returns true if the catalog is part of the system prompt.
pub(super) fn is_in_system(asked: &[Value]) -> bool {
    asked.iter().any(|asked| {
        let is_system = |message: &&Value| message["role"] == "system" || message["role"] == "developer";
        let list = |key: &str| asked[key].as_array().cloned().unwrap_or_default();
        let messages = [list("messages"), list("input")].concat();
        let mut system: Vec<String> = messages.iter().filter(is_system).map(Value::to_string).collect();
        system.extend(["system", "instructions", "systemInstruction"].map(|key| asked[key].to_string()));
        system.iter().any(|text| text.contains(ENTRY))
    })
}

pub(super) fn find_leaks(seen: &mut Observations, client: &Client, when: &str) {
    for (side, line) in &client.transcript {
        let found = OURS.iter().find(|word| *side == Side::Agent && line.contains(**word));
        if let Some(word) = found {
            let start: String = line.chars().take(400).collect();
            seen.leaks.push(format!("{when}, {word:?}: {start}"));
        }
    }
}
