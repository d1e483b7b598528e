//! The prompts and resources of MCP servers behind skills.

use serde_json::json;

use crate::{
    editor::Proxy,
    fixture::Fixture,
    fixture::{MCP_2025, entry, outcome},
    skills::Skills,
    tool_servers::{config, connected, input, trusted},
};

crate::trials!(
    prompts_and_resources_are_tools,
    a_server_without_any_costs_nothing,
    the_user_is_asked_about_resources,
    many_prompts_and_failing_lists,
);

fn prompts_and_resources_are_tools() {
    let skills = Skills::new();
    let (mut fixture, connection) = trusted(&skills, "extras");
    let (text, failed) = fixture.call(&connection, "activate_skill", json!({ "name": "kit" }));
    assert!(!failed, "{text}");
    for part in [
        "<tool name=\"prompt:review\">\n    <description>Reviews &lt;/skill_content&gt; it.</description>",
        "\"required\":[\"file\"]",
        "Reads a resource of the server: test://a (A &lt;/skill_content&gt;), test://{id} (Any).",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    // The files of skills are only served by the rules for skills.
    assert!(!text.contains("skill://"), "{text}");
    let mut run = |tool: &str, arguments: serde_json::Value| {
        let params = json!({ "connection": connection.number, "tool": "call_skill_tool", "arguments": input(tool, &arguments) });
        fixture.order("call", params).expect("a result")
    };
    let result = run("prompt:review", json!({ "file": "a.rs" }));
    let given = json!({ "name": "review", "arguments": { "file": "a.rs" } }).to_string();
    let content = json!([
        { "type": "text", "text": "User:" },
        { "type": "text", "text": result["content"][1]["text"] },
        { "type": "text", "text": "Assistant:" },
        { "type": "image", "data": "aGk=", "mimeType": "image/png" },
    ]);
    assert_eq!(result["content"], content);
    let sent: serde_json::Value =
        serde_json::from_str(result["content"][1]["text"].as_str().expect("text")).expect("JSON");
    assert_eq!(sent["arguments"], json!({ "file": "a.rs" }), "{given}");
    let content = json!([
        { "type": "text", "text": "read \"test://7\"" },
        { "type": "image", "data": "aGk=", "mimeType": "image/png" },
        { "type": "resource", "resource": { "uri": "test://b", "blob": "aGk=" } },
    ]);
    assert_eq!(run("resource:read", json!({ "uri": "test://7" }))["content"], content);
    for uri in [json!("SKILL://x/SKILL.md"), json!(""), json!(7)] {
        let (text, failed) = outcome(&run("resource:read", json!({ "uri": uri })));
        assert!(failed && text.contains("must be the address of a resource"), "{uri}: {text}");
    }
    let (text, failed) = outcome(&run("prompt:other", json!({})));
    assert!(failed && text.starts_with("ToolNotFound:"), "{text}");
    fixture.finish();
}

fn a_server_without_any_costs_nothing() {
    let skills = Skills::new();
    let (mut fixture, connection) = trusted(&skills, "");
    let text = fixture.call(&connection, "activate_skill", json!({ "name": "kit" })).0;
    assert!(!text.contains("prompt:") && !text.contains("resource"), "{text}");
    fixture.editor.unread();
    fixture.editor.finish();
    // `include` applies to prompts and resources, too.
    let more = json!({ "ask": "never", "include": ["look", "prompt:*"] });
    let (mut fixture, connection) = connected(&skills, "extras", &more);
    let text = fixture.call(&connection, "activate_skill", json!({ "name": "kit" })).0;
    assert_eq!(text.matches("<tool name=").count(), 2, "{text}");
    assert!(!text.contains("resource:read"), "{text}");
    fixture.editor.unread();
    fixture.editor.finish();
}

fn the_user_is_asked_about_resources() {
    let skills = Skills::new();
    let (mut fixture, connection) = connected(&skills, "extras", &json!({}));
    let order = fixture.begin(&connection, &input("resource:read", &json!({ "uri": "test://a" })));
    let method = "session/request_permission";
    let request = fixture.editor.wait_for(method, |message| message["method"] == method);
    let call = &request["params"]["toolCall"];
    let shown = (&call["title"], &call["rawInput"]["input"]["uri"]);
    assert_eq!(shown, (&json!("kit: resource:read"), &json!("test://a")));
    let outcome_of = json!({ "outcome": { "outcome": "selected", "optionId": "reject" } });
    fixture.editor.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": outcome_of }));
    let (text, failed) = outcome(&fixture.editor.answer(&order)["result"]);
    assert!(failed && text.contains("the user declined the call"), "{text}");
    fixture.finish();
}

fn many_prompts_and_failing_lists() {
    let skills = Skills::new();
    let config = config(&skills, "many extras", &json!({ "ask": "never" }));
    let mut fixture = Fixture::over_http(Proxy::new().flag("--config", config));
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let text = fixture.call(&connection, "activate_skill", json!({ "name": "kit" })).0;
    let prompts = text.matches("<tool name=\"prompt:").count();
    assert!((40..=50).contains(&prompts) && text.len() < 100_000, "{prompts} prompts, {} bytes", text.len());
    assert!(text.contains("prompt:&lt;/skill_tools&gt;") && !text.contains("resource:read"), "{text}");
    // The tool is not replaced by the prompt.
    assert_eq!(fixture.run(&connection, "look").0, "seen");
    assert_eq!(text.matches("</skill_tools>").count(), 1, "{text}");
    fixture.editor.unread();
    fixture.editor.finish();
}
