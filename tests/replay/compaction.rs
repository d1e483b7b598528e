//! Replays all recordings with an active skill. In `recordings/compacted`, the agent compacts the conversation once, and the next
//! prompt restores the skill. In all others, nothing may be restored; in `recordings/uncompacted`, `/compact` fails or is cancelled.

use acp_skills_intercept::{CatalogIn, McpMode};
use serde_json::{Value, json};

use super::{
    ours::{is_menu_of_ours, without_our_commands},
    play::{Proxy, policy},
    recording::{Recording, Side, recordings},
};

/// Replays a recording, and returns the number of restorations. With `compacts`, the agent compacts the conversation after each
/// turn.
fn restorations(recording: &Recording, compacts: bool) -> usize {
    let proxy = || Proxy::new(&policy(McpMode::Auto, CatalogIn::Auto), "review").with_active_skills();
    let mut current = proxy();
    let mut count = 0;
    let mut session = Value::Null;
    for (number, (side, line)) in recording.lines.iter().enumerate() {
        let message: Value = serde_json::from_str(line).unwrap();
        if message["method"] == "initialize" {
            count += current.restorations;
            current = proxy();
        }
        if message["method"] == "session/prompt" {
            session = message["params"]["sessionId"].clone();
        }
        current.play(*side, line);
        if compacts && message.pointer("/result/stopReason").is_some() {
            let update = json!({ "sessionUpdate": "compaction_update", "compactionId": number.to_string(), "status": "completed" });
            let params = json!({ "sessionId": session, "update": update });
            let line = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
            current.play(Side::Agent, &line.to_string());
        }
    }
    count + current.restorations
}

/// Real agents that compact a conversation with `/compact`, or on their own (Gemini and Qwen). Copilot also completes a compaction
/// that was cancelled.
#[test]
fn real_compactions_are_noticed() {
    let recordings = recordings("compacted");
    assert!(recordings.len() >= 7, "{} recordings", recordings.len());
    for recording in &recordings {
        let policy = policy(McpMode::Auto, CatalogIn::Auto);
        let mut proxy = Proxy::new(&policy, "review").with_active_skills();
        for (side, line) in &recording.lines {
            let seen = proxy.play(*side, line);
            if *side == Side::Agent {
                // Our menu can be added; all other lines are the same.
                let is_theirs = |seen: &&String| !is_menu_of_ours(seen, line);
                let received: Vec<_> = seen.to_client.iter().filter(is_theirs).collect();
                let [received] = received[..] else { panic!("{}: {line}", recording.name) };
                assert_eq!(&without_our_commands(line, received), line, "{}", recording.name);
            }
        }
        assert_eq!(proxy.restorations, 1, "{}", recording.name);
    }
}

#[test]
fn recordings_restore_nothing() {
    let mut restored = 0;
    for directory in ["direct", "proxied", "clients", "uncompacted"] {
        for recording in recordings(directory) {
            assert_eq!(restorations(&recording, false), 0, "{directory} {}", recording.name);
            restored += restorations(&recording, true);
        }
    }
    // If a compaction were not noticed, this test would be useless.
    assert!(restored > 20, "{restored} restorations after compactions");
}
