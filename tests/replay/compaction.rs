//! Replays all recordings with an active skill. No agent compacted a conversation in them, so nothing may be restored.

use acp_skills_intercept::{CatalogIn, McpMode};
use serde_json::{Value, json};

use super::{
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

#[test]
fn recordings_restore_nothing() {
    let mut restored = 0;
    for directory in ["direct", "proxied", "clients"] {
        for recording in recordings(directory) {
            assert_eq!(restorations(&recording, false), 0, "{directory} {}", recording.name);
            restored += restorations(&recording, true);
        }
    }
    // If a compaction were not noticed, this test would be useless.
    assert!(restored > 20, "{restored} restorations after compactions");
}
