//! Replays `recordings/clients`, in which each file is named after its client.
//!
//! CodeCompanion sends a text block for each shared file, and an empty prompt for an empty message. toad and acpx send the user's
//! text with the files after or before it. Emacs splits the user's text where it mentions a file. avante repeats the user's
//! earlier messages, the newest first.

use acp_skills_intercept::{CatalogIn, McpMode};
use expect_test::expect;
use serde_json::Value;

use super::{
    direct::differential,
    play::{Proxy, policy},
    recording::{Recording, Side, recordings},
};

/// The only command of ours in these recordings is `/skills`, which the proxy answers itself.
#[test]
fn clients_and_agents_receive_the_same_bytes() {
    let recordings = recordings("clients");
    assert_eq!(recordings.len(), 5);
    for recording in &recordings {
        for mcp in [McpMode::Auto, McpMode::Stdio, McpMode::Off] {
            for catalog_in in [CatalogIn::Auto, CatalogIn::Prompt, CatalogIn::Off] {
                differential(&without_skills_command(recording), policy(mcp, catalog_in));
            }
        }
    }
}

/// Removes the turns of `/skills` from a recording.
fn without_skills_command(recording: &Recording) -> Recording {
    let mut asked = None;
    let is_kept = move |(_, line): &&(Side, String)| {
        let message: Value = serde_json::from_str(line).unwrap();
        let mut blocks = message["params"]["prompt"].as_array().into_iter().flatten();
        let first = blocks.find_map(|block| block["text"].as_str());
        if matches!(first, Some("/skills" | "<previous_user_message>/skills</previous_user_message>")) {
            asked = Some(message["id"].clone());
            return false;
        }
        let is_ours = asked.is_some();
        if is_ours && message["id"] == *asked.as_ref().unwrap() {
            asked = None;
        }
        !is_ours
    };
    let lines = recording.lines.iter().filter(is_kept).cloned().collect();
    Recording { name: recording.name.clone(), lines }
}

/// With a skill named `demo`, the command is replaced with a block of ours, and all other blocks stay the same.
#[test]
fn a_command_is_found_in_the_blocks_of_each_client() {
    let mut shown = String::new();
    for recording in &recordings("clients") {
        let policy = policy(McpMode::Auto, CatalogIn::Off);
        let mut proxy = Proxy::new(&policy, "demo");
        shown.extend([&recording.name, "\n"]);
        for (side, line) in &recording.lines {
            let message: Value = serde_json::from_str(line).unwrap();
            if *side == Side::Client && message["method"] == "initialize" {
                proxy = Proxy::new(&policy, "demo");
            }
            let seen = proxy.play(*side, line);
            if message["method"] != "session/prompt" {
                continue;
            }
            let [sent] = &seen.to_agent[..] else {
                // If nothing was sent to the agent, the proxy must have answered the prompt itself.
                let last: Value = serde_json::from_str(seen.to_client.last().unwrap()).unwrap();
                assert_eq!(last["id"], message["id"]);
                shown.extend(["  ", &blocks(&message), " -> answered\n"]);
                continue;
            };
            let sent: Value = serde_json::from_str(sent).unwrap();
            let before = blocks(&message);
            let after = blocks(&sent);
            let after = if before == after { "the same".to_owned() } else { after };
            shown.extend(["  ", &before, " -> ", &after, "\n"]);
            // We only change text, so any other blocks should be passed on as they are.
            assert_eq!(non_text_blocks(&sent), non_text_blocks(&message));
        }
    }
    expect![[r#"
        acp-el
          ["/demo look at", resource] -> [SKILL, "look at", resource]
          ["/demo look at", resource, " and", resource_link] -> [SKILL, "look at", resource, " and", resource_link]
          ["compare", resource, " /demo"] -> the same
          [resource, " /demo"] -> [resource, SKILL]
          ["/demo look at", resource] -> [SKILL, "look at", resource]
          ["  /demo"] -> [SKILL]
          ["hello"] -> the same
          ["delete build"] -> the same
          ["look at", resource, " /demo"] -> the same
        acpx
          ["/demo look at file"] -> [SKILL, "look at file"]
          ["/demo"] -> [SKILL]
          [resource_link, "/demo look at it"] -> [resource_link, SKILL, "look at it"]
          ["/demo look at it", resource] -> [SKILL, "look at it", resource]
          [resource, "/demo"] -> [resource, SKILL]
          ["/etc/hosts is wrong"] -> the same
          ["/skills"] -> answered
          ["what does /demo do?"] -> the same
          ["delete build"] -> the same
        avante
          [resource_link, "<previous_user_message>hello</previous_user_message>", "<system_context>Continuing from previous session with 1 recent user messages</system_context>"] -> the same
          [resource_link, "<previous_user_message>/demo look at it</previous_user_message>", "<previous_user_message>hello</previous_user_message>", "<system_context>Continuing from previous session with 2 recent user messages</system_context>"] -> [resource_link, SKILL, "look at it", "<previous_user_message>hello</previous_user_message>", "<system_context>Continuing from previous session with 2 recent user messages</system_context>"]
          [resource_link, "<previous_user_message>/demo</previous_user_message>", "<previous_user_message>/demo look at it</previous_user_message>", "<previous_user_message>hello</previous_user_message>", "<system_context>Continuing from previous session with 3 recent user messages</system_context>"] -> [resource_link, SKILL, "<previous_user_message>/demo look at it</previous_user_message>", "<previous_user_message>hello</previous_user_message>", "<system_context>Continuing from previous session with 3 recent user messages</system_context>"]
          [resource_link, "<previous_user_message>/skills</previous_user_message>", "<previous_user_message>/demo</previous_user_message>", "<previous_user_message>/demo look at it</previous_user_message>", "<previous_user_message>hello</previous_user_message>", "<system_context>Continuing from previous session with 4 recent user messages</system_context>"] -> answered
          [resource_link, "<previous_user_message>what does /demo do?</previous_user_message>", "<previous_user_message>/skills</previous_user_message>", "<previous_user_message>/demo</previous_user_message>", "<previous_user_message>/demo look at it</previous_user_message>", "<previous_user_message>hello</previous_user_message>", "<system_context>Continuing from previous session with 5 recent user messages</system_context>"] -> the same
          [resource_link, "<previous_user_message>hello</previous_user_message>", "<previous_assistant_message>I have no skill, with the words “<system_context>Continuing from previous session with 1 recent user system_context>”, and main.rs.</previous_assistant_message>", "<previous_user_message>/demo look at it</previous_user_message>", "<previous_assistant_message>I have no skill, with the words “<system_context>Continuing from previous session with 2 recent user system_context>”, and main.rs.</previous_assistant_message>", "<previous_user_message>/demo</previous_user_message>", "<previous_assistant_message>I have no skill, with the words “<system_context>Continuing from previous session with 3 recent user system_context>”, and main.rs.</previous_assistant_message>", "<previous_user_message>/skills</previous_user_message>", "<previous_assistant_message>I have no skill, with the words “<system_context>Continuing from previous session with 4 recent user system_context>”, and main.rs.</previous_assistant_message>", "<previous_user_message>what does /demo do?</previous_user_message>", "<previous_assistant_message>I have no skill, with the words “<system_context>Continuing from previous session with 5 recent user system_context>”, and main.rs.</previous_assistant_message>", "<previous_user_message>/demo again</previous_user_message>", "<system_context>Continuing from previous ACP session with 11 recent messages preserved for context</system_context>"] -> [resource_link, "<previous_user_message>hello</previous_user_message>", "<previous_assistant_message>I have no skill, with the words “<system_context>Continuing from previous session with 1 recent user system_context>”, and main.rs.</previous_assistant_message>", "<previous_user_message>/demo look at it</previous_user_message>", "<previous_assistant_message>I have no skill, with the words “<system_context>Continuing from previous session with 2 recent user system_context>”, and main.rs.</previous_assistant_message>", "<previous_user_message>/demo</previous_user_message>", "<previous_assistant_message>I have no skill, with the words “<system_context>Continuing from previous session with 3 recent user system_context>”, and main.rs.</previous_assistant_message>", "<previous_user_message>/skills</previous_user_message>", "<previous_assistant_message></previous_assistant_message>", "<previous_user_message>what does /demo do?</previous_user_message>", "<previous_assistant_message>I have no skill, with the words “<system_context>Continuing from previous session with 5 recent user system_context>”, and main.rs.</previous_assistant_message>", SKILL, "again", "<system_context>Continuing from previous ACP session with 11 recent messages preserved for context</system_context>"]
        codecompanion
          ["hello"] -> the same
          ["Sharing the following file as context: /home/user/project/main.rs", "/demo look at file `/home/user/project/main.rs` (with buffer number: 1)"] -> ["Sharing the following file as context: /home/user/project/main.rs", SKILL, "look at file `/home/user/project/main.rs` (with buffer number: 1)"]
          ["Sharing the following file as context: /home/user/project/main.rs", "file `/home/user/project/main.rs` (with buffer number: 1) /demo look"] -> the same
          ["/demo look at file"] -> [SKILL, "look at file"]
          ["delete build"] -> the same
          [] -> the same
          ["Sharing the following file as context: /home/user/project/main.rs", "file `/home/user/project/main.rs` (with buffer number: 1)"] -> the same
        toad
          ["/demo look at @main.rs", resource] -> [SKILL, "look at @main.rs", resource]
          ["compare @\"odd dir/ä \"b\".rs\""] -> the same
          ["hello"] -> the same
          ["delete build"] -> the same
    "#]].assert_eq(&shown);
}

fn prompt(message: &Value) -> &[Value] {
    message["params"]["prompt"].as_array().unwrap()
}

/// Returns the blocks that aren't text.
fn non_text_blocks(message: &Value) -> Vec<&Value> {
    prompt(message).iter().filter(|block| block["type"] != "text").collect()
}

/// Formats the blocks of a prompt for the expectation.
fn blocks(message: &Value) -> String {
    let blocks = prompt(message).iter().map(|block| match block["type"].as_str().unwrap() {
        "text" => match block["text"].as_str().unwrap() {
            text if text.starts_with("<acp-skills-proxy:") => "SKILL".to_owned(),
            text => format!("{text:?}"),
        },
        other => other.to_owned(),
    });
    format!("[{}]", blocks.collect::<Vec<_>>().join(", "))
}
