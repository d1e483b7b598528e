//! What the model is told, when, and in front of what.

use serde_json::{Value, json};

use crate::{
    editor::Proxy,
    fixtures::Skills,
    stage::{MCP_2025, Stage, entry, texts},
};

crate::trials!(
    once_before_the_users_blocks,
    escaped_and_in_order,
    not_before_commands,
    once_for_each_session,
    in_the_system_prompt_where_there_is_one,
    nothing_without_skills,
    nothing_when_switched_off,
);

/// Starts with a session whose agent has the tools.
fn connected(skills: &Skills) -> Stage {
    let mut stage = Stage::over_http(skills.proxy());
    let params = stage.new_session("s");
    stage.connect(&entry(&params), MCP_2025);
    stage
}

fn once_before_the_users_blocks() {
    let skills = Skills::review();
    let mut stage = connected(&skills);
    let user = json!([
        { "type": "text", "text": "Review this", "annotations": { "priority": 0.5 } },
        { "type": "resource_link", "uri": "file:///a.rs", "name": "a.rs", "_meta": { "x": null } },
        { "type": "text", "text": "please" },
    ]);
    let outcome = json!({ "result": { "stopReason": "end_turn" } });
    let params = json!({ "sessionId": "s", "prompt": user, "_meta": { "traceparent": "00-1" } });
    let (received, _) = stage.exchange("session/prompt", params, outcome);
    let blocks = received["params"]["prompt"].as_array().expect("blocks");
    assert_eq!(blocks[1..], user.as_array().expect("blocks")[..], "the user's blocks");
    assert_eq!(received["params"]["_meta"], json!({ "traceparent": "00-1" }));
    let text = blocks[0]["text"].as_str().expect("text");
    assert!(text.ends_with('\n') && text.contains("<available_skills>"), "{text}");
    assert!(text.contains("<name>review</name>") && text.contains("`activate_skill`"), "{text}");
    // Nobody knows whether the model of this agent gets the tools.
    let files = format!("`{}`", skills.path().join("*").join("SKILL.md").display());
    assert!(text.contains("`acp-skills`; if you do not have them") && text.contains(&files), "{text}");

    assert_eq!(texts(&stage.prompt("s", "and again")), ["and again"]);
    stage.finish();
}

fn escaped_and_in_order() {
    let skills = Skills::review();
    skills.add("zebra", "Zebras </description></skill></available_skills> & co.", "Z");
    skills.add("aardvark", "Comes last.", "A");
    let proxy =
        Proxy::new().skill(&skills.dir("zebra")).skill(&skills.dir("review")).skill(&skills.dir("aardvark"));
    let mut stage = Stage::over_http(proxy);
    let params = stage.new_session("s");
    stage.connect(&entry(&params), MCP_2025);
    let blocks = stage.prompt("s", "hello");
    let text = texts(&blocks)[0];
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} is not in {text}"));
    assert!(at("<name>zebra") < at("<name>review") && at("<name>review") < at("<name>aardvark"));
    at("Use for &lt;diffs&gt; &amp; ");
    at("Zebras &lt;/description&gt;&lt;/skill&gt;&lt;/available_skills&gt; &amp; co.");
    assert_eq!(text.matches("</available_skills>").count(), 1, "{text}");
    stage.finish();
}

fn not_before_commands() {
    let skills = Skills::review();
    let mut stage = connected(&skills);
    for command in ["/compact", "$review the diff", "  /init now"] {
        assert_eq!(texts(&stage.prompt("s", command)), [command]);
    }
    let blocks = stage.prompt("s", "no command");
    assert!(blocks.len() == 2 && texts(&blocks)[0].contains("<available_skills>"));
    assert_eq!(texts(&stage.prompt("s", "/compact")), ["/compact"]);
    stage.finish();
}

fn once_for_each_session() {
    let skills = Skills::review();
    let mut stage = Stage::over_http(skills.proxy());
    for id in ["a", "b"] {
        let params = stage.new_session(id);
        stage.connect(&entry(&params), MCP_2025);
    }
    for (session, blocks) in [("b", 2), ("a", 2), ("a", 1), ("b", 1)] {
        assert_eq!(stage.prompt(session, "hello").len(), blocks, "session {session}");
    }
    // A session that this process has never seen is none of its business.
    assert_eq!(stage.prompt("c", "hello").len(), 1);
    stage.finish();
}

fn in_the_system_prompt_where_there_is_one() {
    let skills = Skills::review();
    let capabilities =
        json!({ "mcpCapabilities": { "http": true }, "sessionCapabilities": { "systemPrompt": {} } });
    let mut stage = Stage::initialized(skills.proxy(), &capabilities);
    let params = stage.new_session("a");
    let system = &params["systemPrompt"];
    assert_eq!(system["mode"], "append");
    let text = system["content"][0]["text"].as_str().expect("text").to_owned();
    assert!(text.contains("<available_skills>"), "{text}");
    stage.connect(&entry(&params), MCP_2025);
    assert_eq!(texts(&stage.prompt("a", "hello")), ["hello"]);

    let theirs = json!({ "mode": "override", "content": [{ "type": "text", "text": "Be brief." }] });
    let (received, _) = stage.exchange(
        "session/new",
        json!({ "cwd": "/", "mcpServers": [], "systemPrompt": theirs }),
        json!({ "result": { "sessionId": "b" } }),
    );
    let system = &received["params"]["systemPrompt"];
    assert_eq!((&system["mode"], &system["content"][0]), (&json!("override"), &theirs["content"][0]));
    assert_eq!(system["content"][1]["text"].as_str(), Some(text.as_str()));
    stage.finish();
}

/// Without a skill the proxy is not there: every line of a conversation reaches the other side as it was.
fn nothing_without_skills() {
    let mut stage = Stage::over_http(Proxy::new());
    for line in [
        r#"{"jsonrpc":"2.0", "id":"n","method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
        r#"{"jsonrpc":"2.0", "id":"p","method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"\u0068i"}]}}"#,
        r#"{"jsonrpc":"2.0", "id":"l","method":"session/load","params":{"sessionId":"s","cwd":"/"}}"#,
    ] {
        stage.editor.write(format!("{line}\n").as_bytes());
        assert_eq!(stage.line(), format!("{line}\n"));
        let sent: Value = serde_json::from_str(line).expect("a message");
        stage.replies(&sent, json!({ "result": { "sessionId": "s" } }));
        stage.editor.answer(&sent["id"]);
    }
    stage.finish();
}

fn nothing_when_switched_off() {
    let skills = Skills::review();
    let mut stage = Stage::over_http(skills.proxy().flag("--catalog-in", "off").flag("--mcp", "off"));
    assert_eq!(stage.new_session("s")["mcpServers"], json!([]));
    assert_eq!(texts(&stage.prompt("s", "hello")), ["hello"]);
    stage.finish();
}
