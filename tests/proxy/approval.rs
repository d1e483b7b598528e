//! `--approve own`: the proxy grants calls of its own reading tools, one by one.

use serde_json::{Value, json};

use crate::{
    editor::Proxy,
    fixture::{Connection, Fixture, MCP_2025, entry},
    skills::Skills,
};

crate::trials!(requests_that_never_become_calls, every_call_is_granted);

/// Starts a session with an agent whose calls are recognized, and with the skill `review`.
fn connected(skills: &Skills) -> (Fixture, Connection) {
    let mut fixture = Fixture::new(Proxy::new().flag("--skills", skills.path()));
    let info = json!({ "name": "qwen-code", "version": "1" });
    let result = json!({
        "protocolVersion": 1, "agentInfo": info, "agentCapabilities": { "mcpCapabilities": { "http": true } },
    });
    let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    fixture.exchange("initialize", params, json!({ "result": result }));
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    fixture.editor.menu();
    (fixture, connection)
}

/// Builds the agent's request to activate a skill.
fn asks(id: usize, skill: &str) -> Value {
    let name = "mcp__acp-skills__activate_skill";
    let call = json!({
        "toolCallId": format!("call {id}"), "title": name, "kind": "read", "rawInput": { "name": skill },
        "_meta": { "toolName": name },
    });
    let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }]);
    let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
    json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params })
}

fn is_question(message: &Value) -> bool {
    message["method"] == "session/request_permission"
}

fn requests_that_never_become_calls() {
    let skills = Skills::review();
    let (mut fixture, _) = connected(&skills);
    let lines: Vec<_> = (0..200).map(|id| asks(id, "review").to_string()).collect();
    fixture.agent_writes(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    for _ in 1..lines.len() {
        fixture.editor.wait_for("a request for permission", is_question);
    }
    let granted = fixture.received();
    assert_eq!(granted.len(), 1, "{granted:?}");
    assert_eq!((&granted[0]["id"], &granted[0]["result"]["outcome"]["optionId"]), (&json!(0), &json!("yes")));
    fixture.editor.unread();
    fixture.finish();
}

/// The next request may come before the proxy has noted the call, because it takes another way.
fn every_call_is_granted() {
    let skills = Skills::review();
    let (mut fixture, connection) = connected(&skills);
    for id in 0..30 {
        fixture.agent_sends(&asks(id, "review"));
        assert_eq!(fixture.agent_receives()["id"], id);
        fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    }
    let shown = fixture.editor.unread();
    assert!(!shown.iter().any(is_question), "{shown:?}");
    fixture.finish();
}
