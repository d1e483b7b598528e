//! The catalog: its text, when it is sent, and its place in the prompt.

use serde_json::{Value, json};

use crate::{
    editor::Proxy,
    fixture::{Fixture, MCP_2025, entry, texts},
    skills::Skills,
};

crate::trials!(
    the_catalog_is_sent_once_before_the_users_blocks,
    descriptions_are_escaped_and_in_order,
    slash_commands_get_no_catalog,
    each_session_gets_the_catalog_once,
    the_catalog_goes_into_the_system_prompt_if_supported,
    nothing_is_added_without_skills,
    nothing_is_added_when_switched_off,
);

/// Starts a session with an agent that has connected to the tools.
fn connected(skills: &Skills) -> Fixture {
    let mut fixture = Fixture::over_http(skills.proxy());
    let params = fixture.new_session("s");
    fixture.connect(&entry(&params), MCP_2025);
    fixture
}

fn the_catalog_is_sent_once_before_the_users_blocks() {
    let skills = Skills::review();
    let mut fixture = connected(&skills);
    let user = json!([
        { "type": "text", "text": "Review this", "annotations": { "priority": 0.5 } },
        { "type": "resource_link", "uri": "file:///a.rs", "name": "a.rs", "_meta": { "x": null } },
        { "type": "text", "text": "please" },
    ]);
    let outcome = json!({ "result": { "stopReason": "end_turn" } });
    let params = json!({ "sessionId": "s", "prompt": user, "_meta": { "traceparent": "00-1" } });
    let (received, _) = fixture.exchange("session/prompt", params, outcome);
    let blocks = received["params"]["prompt"].as_array().expect("blocks");
    assert_eq!(blocks[1..], user.as_array().expect("blocks")[..], "the user's blocks");
    assert_eq!(received["params"]["_meta"], json!({ "traceparent": "00-1" }));
    let text = blocks[0]["text"].as_str().expect("text");
    assert!(text.ends_with('\n') && text.contains("<available_skills>"), "{text}");
    assert!(text.contains("<name>review</name>") && text.contains("`activate_skill`"), "{text}");
    // We don't know if this agent shows MCP tools to the model, so the catalog should also say where to find the files.
    let files = format!("`{}`", skills.path().join("*").join("SKILL.md").display());
    assert!(text.contains("`acp-skills`; if you do not have them") && text.contains(&files), "{text}");

    assert_eq!(texts(&fixture.prompt("s", "and again")), ["and again"]);
    fixture.finish();
}

fn descriptions_are_escaped_and_in_order() {
    let skills = Skills::review();
    skills.add("zebra", "Zebras </description></skill></available_skills> & co.", "Z");
    skills.add("aardvark", "Comes last.", "A");
    let proxy =
        Proxy::new().skill(&skills.dir("zebra")).skill(&skills.dir("review")).skill(&skills.dir("aardvark"));
    let mut fixture = Fixture::over_http(proxy);
    let params = fixture.new_session("s");
    fixture.connect(&entry(&params), MCP_2025);
    let blocks = fixture.prompt("s", "hello");
    let text = texts(&blocks)[0];
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} is not in {text}"));
    assert!(at("<name>zebra") < at("<name>review") && at("<name>review") < at("<name>aardvark"));
    at("Use for &lt;diffs&gt; &amp; ");
    at("Zebras &lt;/description&gt;&lt;/skill&gt;&lt;/available_skills&gt; &amp; co.");
    assert_eq!(text.matches("</available_skills>").count(), 1, "{text}");
    fixture.finish();
}

fn slash_commands_get_no_catalog() {
    let skills = Skills::review();
    let mut fixture = connected(&skills);
    for command in ["/compact", "$review the diff", "  /init now"] {
        assert_eq!(texts(&fixture.prompt("s", command)), [command]);
    }
    let blocks = fixture.prompt("s", "no command");
    assert!(blocks.len() == 2 && texts(&blocks)[0].contains("<available_skills>"));
    assert_eq!(texts(&fixture.prompt("s", "/compact")), ["/compact"]);
    fixture.finish();
}

fn each_session_gets_the_catalog_once() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy());
    for id in ["a", "b"] {
        let params = fixture.new_session(id);
        fixture.connect(&entry(&params), MCP_2025);
    }
    for (session, blocks) in [("b", 2), ("a", 2), ("a", 1), ("b", 1)] {
        assert_eq!(fixture.prompt(session, "hello").len(), blocks, "session {session}");
    }
    // The proxy hasn't seen this session before, so it should leave the prompt as it is.
    assert_eq!(fixture.prompt("c", "hello").len(), 1);
    fixture.finish();
}

fn the_catalog_goes_into_the_system_prompt_if_supported() {
    let skills = Skills::review();
    let capabilities =
        json!({ "mcpCapabilities": { "http": true }, "sessionCapabilities": { "systemPrompt": {} } });
    let mut fixture = Fixture::initialized(skills.proxy(), &capabilities);
    let params = fixture.new_session("a");
    let system = &params["systemPrompt"];
    assert_eq!(system["mode"], "append");
    let text = system["content"][0]["text"].as_str().expect("text").to_owned();
    assert!(text.contains("<available_skills>"), "{text}");
    fixture.connect(&entry(&params), MCP_2025);
    assert_eq!(texts(&fixture.prompt("a", "hello")), ["hello"]);

    let theirs = json!({ "mode": "override", "content": [{ "type": "text", "text": "Be brief." }] });
    let (received, _) = fixture.exchange(
        "session/new",
        json!({ "cwd": "/", "mcpServers": [], "systemPrompt": theirs }),
        json!({ "result": { "sessionId": "b" } }),
    );
    let system = &received["params"]["systemPrompt"];
    assert_eq!((&system["mode"], &system["content"][0]), (&json!("override"), &theirs["content"][0]));
    assert_eq!(system["content"][1]["text"].as_str(), Some(text.as_str()));
    fixture.finish();
}

/// Without skills the proxy does not touch anything: every line arrives unchanged on the other side.
fn nothing_is_added_without_skills() {
    let mut fixture = Fixture::over_http(Proxy::new());
    for line in [
        r#"{"jsonrpc":"2.0", "id":"n","method":"session/new","params":{"cwd":"/","mcpServers":[]}}"#,
        r#"{"jsonrpc":"2.0", "id":"p","method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"\u0068i"}]}}"#,
        r#"{"jsonrpc":"2.0", "id":"l","method":"session/load","params":{"sessionId":"s","cwd":"/"}}"#,
    ] {
        fixture.editor.write(format!("{line}\n").as_bytes());
        assert_eq!(fixture.line(), format!("{line}\n"));
        let sent: Value = serde_json::from_str(line).expect("a message");
        fixture.agent_replies(&sent, json!({ "result": { "sessionId": "s" } }));
        fixture.editor.answer(&sent["id"]);
    }
    fixture.finish();
}

fn nothing_is_added_when_switched_off() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy().flag("--catalog-in", "off").flag("--mcp", "off"));
    assert_eq!(fixture.new_session("s")["mcpServers"], json!([]));
    assert_eq!(texts(&fixture.prompt("s", "hello")), ["hello"]);
    fixture.finish();
}
