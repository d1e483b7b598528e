//! Version 2 of the protocol: a whole conversation, with the menu in responses, with echoes, and with turns that end by a
//! state update.

use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, MCP_2025, cwd, entry, texts},
    skills::Skills,
};

crate::trials!(a_conversation_in_version_2, over_the_bridge, a_waiting_prompt_is_cancelled);

/// Starts an agent that settles on version 2 and accepts MCP servers over `transport`.
fn version_2(proxy: crate::editor::Proxy, transport: &str) -> Fixture {
    let mut fixture = Fixture::new(proxy);
    let mut mcp = json!({});
    mcp[transport] = json!({});
    let (received, answer) = fixture.exchange(
        "initialize",
        json!({ "protocolVersion": 2, "info": { "name": "editor", "version": "1" }, "capabilities": {} }),
        json!({ "result": {
            "protocolVersion": 2,
            "info": { "name": "scripted", "version": "1" },
            "capabilities": { "session": { "mcp": mcp } },
        } }),
    );
    // We should pass on the version that the client and the agent agree on, even if it's not one that we know.
    assert_eq!(
        (&received["params"]["protocolVersion"], &answer["result"]["protocolVersion"]),
        (&json!(2), &json!(2))
    );
    fixture
}

/// Opens a session and returns the params that the agent received and the commands that the editor got.
fn new_session(fixture: &mut Fixture) -> (Value, Vec<String>) {
    let theirs = json!([{ "type": "command", "name": "web", "description": "Looks it up." }]);
    let outcome = json!({ "result": { "sessionId": "s", "availableCommands": theirs } });
    let (mut received, answer) = fixture.exchange("session/new", json!({ "cwd": cwd() }), outcome);
    let list = answer["result"]["availableCommands"].as_array().expect("a list").iter();
    let names = list.map(|command| {
        format!("{} {}", command["type"].as_str().unwrap(), command["name"].as_str().unwrap())
    });
    (received["params"].take(), names.collect())
}

fn update(fixture: &mut Fixture, update: &Value) {
    let params = json!({ "sessionId": "s", "update": update });
    fixture.agent_sends(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
}

/// Sends a prompt with a single text, which the agent echoes and works on, and checks the editor's messages. Returns the
/// blocks that the agent received.
fn turn(fixture: &mut Fixture, text: &str) -> Vec<Value> {
    let params = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": text }] });
    let id = fixture.editor.request("session/prompt", params);
    let received = fixture.agent_receives();
    let blocks = received["params"]["prompt"].as_array().expect("blocks").clone();
    update(fixture, &json!({ "sessionUpdate": "user_message", "messageId": "m", "content": blocks }));
    fixture.agent_replies(&received, json!({ "result": { "messageId": "m" } }));
    update(fixture, &json!({ "sessionUpdate": "state_update", "state": "running" }));
    update(fixture, &json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn" }));
    let [echo, accepted, running, idle] = [(); 4].map(|()| said(fixture));
    assert_eq!(echo["params"]["update"]["content"], json!([{ "type": "text", "text": text }]));
    assert_eq!((&accepted["id"], &accepted["result"]), (&id, &json!({ "messageId": "m" })));
    assert_eq!(running["params"]["update"]["state"], "running");
    assert_eq!(idle["params"]["update"]["stopReason"], "end_turn");
    blocks
}

/// Returns the next message for the editor that is not the answer to an order.
fn said(fixture: &mut Fixture) -> Value {
    fixture.editor.wait_for("a message of the agent", |message| {
        message["method"] == "session/update" || message["id"].is_number()
    })
}

fn a_conversation_in_version_2() {
    let skills = Skills::review();
    let mut fixture = version_2(skills.proxy(), "http");
    let (params, menu) = new_session(&mut fixture);
    assert_eq!(entry(&params)["type"], "http");
    assert_eq!(menu, ["command skills", "command review", "command web"]);
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let blocks = turn(&mut fixture, "hello");
    let [catalog, "hello"] = texts(&blocks)[..] else { panic!("{blocks:?}") };
    assert!(catalog.contains("<name>review</name>"), "{catalog}");
    let (body, failed) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(body.contains("# Review") && !failed, "{body}");
    // When we send a command to the agent, we split it into two blocks. The client should get it back as a single one.
    let blocks = turn(&mut fixture, "/review src/main.rs");
    let [ours, "src/main.rs"] = texts(&blocks)[..] else { panic!("{blocks:?}") };
    assert!(ours.contains("# Review"), "{ours}");
    // If we answer a prompt ourselves, it should look like a turn of the agent.
    let params = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills" }] });
    let id = fixture.editor.request("session/prompt", params);
    let [echo, accepted, running, message, idle] = [(); 5].map(|()| said(&mut fixture));
    assert_eq!(echo["params"]["update"]["content"][0]["text"], "/skills");
    assert_eq!(
        (&accepted["id"], &accepted["result"]["messageId"]),
        (&id, &echo["params"]["update"]["messageId"])
    );
    assert_eq!(running["params"]["update"]["state"], "running");
    let text = message["params"]["update"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("`/review`") && text.contains("active, by you"), "{text}");
    assert_eq!(idle["params"]["update"]["state"], "idle");
    fixture.finish();
}

fn over_the_bridge() {
    let skills = Skills::review();
    let mut fixture = version_2(skills.proxy(), "stdio");
    let (params, _) = new_session(&mut fixture);
    let ours = entry(&params);
    assert_eq!(ours["type"], "stdio");
    let connection = fixture.connect(&ours, MCP_2025);
    let (body, failed) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(body.contains("# Review") && !failed, "{body}");
    fixture.order("disconnect", json!({ "connection": connection.number })).expect("the connection is open");
    fixture.finish();
}

fn a_waiting_prompt_is_cancelled() {
    let skills = Skills::review();
    let mut fixture = version_2(skills.proxy().flag("--mcp-wait", "100000"), "http");
    new_session(&mut fixture);
    let params = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "hello" }] });
    let id = fixture.editor.request("session/prompt", params);
    fixture
        .editor
        .send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } }));
    assert_eq!(fixture.editor.answer(&id)["error"]["code"], -32800);
    assert_eq!(fixture.received(), Vec::<Value>::new());
    fixture.finish();
}
