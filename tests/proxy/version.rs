//! Version 2 of the protocol: a whole conversation, with the menu in responses, echoes, and turns that the state ends.

use serde_json::{Value, json};

use crate::{
    fixtures::Skills,
    stage::{MCP_2025, Stage, cwd, entry, texts},
};

crate::trials!(a_conversation, over_the_bridge, a_prompt_that_waits_is_cancelled);

/// A stage whose agent settles on version 2 and takes MCP servers over `transport`.
fn stage(proxy: crate::editor::Proxy, transport: &str) -> Stage {
    let mut stage = Stage::new(proxy);
    let mut mcp = json!({});
    mcp[transport] = json!({});
    let (received, answer) = stage.exchange(
        "initialize",
        json!({ "protocolVersion": 2, "info": { "name": "editor", "version": "1" }, "capabilities": {} }),
        json!({ "result": {
            "protocolVersion": 2,
            "info": { "name": "scripted", "version": "1" },
            "capabilities": { "session": { "mcp": mcp } },
        } }),
    );
    // Nobody but the two sides negotiates.
    assert_eq!(
        (&received["params"]["protocolVersion"], &answer["result"]["protocolVersion"]),
        (&json!(2), &json!(2))
    );
    stage
}

/// Opens a session. Returns the params that the agent received and the commands that the editor got.
fn new_session(stage: &mut Stage) -> (Value, Vec<String>) {
    let theirs = json!([{ "type": "command", "name": "web", "description": "Looks it up." }]);
    let outcome = json!({ "result": { "sessionId": "s", "availableCommands": theirs } });
    let (mut received, answer) = stage.exchange("session/new", json!({ "cwd": cwd() }), outcome);
    let list = answer["result"]["availableCommands"].as_array().expect("a list").iter();
    let names = list.map(|it| format!("{} {}", it["type"].as_str().unwrap(), it["name"].as_str().unwrap()));
    (received["params"].take(), names.collect())
}

fn update(stage: &mut Stage, update: &Value) {
    let params = json!({ "sessionId": "s", "update": update });
    stage.says(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
}

/// Sends a prompt of one text, has the agent echo it and work, and checks what the editor sees. Returns what the agent
/// received.
fn turn(stage: &mut Stage, text: &str) -> Vec<Value> {
    let params = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": text }] });
    let id = stage.editor.request("session/prompt", params);
    let received = stage.takes();
    let blocks = received["params"]["prompt"].as_array().expect("blocks").clone();
    update(stage, &json!({ "sessionUpdate": "user_message", "messageId": "m", "content": blocks }));
    stage.replies(&received, json!({ "result": { "messageId": "m" } }));
    update(stage, &json!({ "sessionUpdate": "state_update", "state": "running" }));
    update(stage, &json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn" }));
    let [echo, accepted, running, idle] = [(); 4].map(|()| said(stage));
    assert_eq!(echo["params"]["update"]["content"], json!([{ "type": "text", "text": text }]));
    assert_eq!((&accepted["id"], &accepted["result"]), (&id, &json!({ "messageId": "m" })));
    assert_eq!(running["params"]["update"]["state"], "running");
    assert_eq!(idle["params"]["update"]["stopReason"], "end_turn");
    blocks
}

/// The next message for the editor that is no answer to an order.
fn said(stage: &mut Stage) -> Value {
    stage.editor.wait_for("what the agent says", |message| {
        message["method"] == "session/update" || message["id"].is_number()
    })
}

fn a_conversation() {
    let skills = Skills::review();
    let mut stage = stage(skills.proxy(), "http");
    let (params, menu) = new_session(&mut stage);
    assert_eq!(entry(&params)["type"], "http");
    assert_eq!(menu, ["command skills", "command review", "command web"]);
    let connection = stage.connect(&entry(&params), MCP_2025);
    let blocks = turn(&mut stage, "hello");
    let [catalog, "hello"] = texts(&blocks)[..] else { panic!("{blocks:?}") };
    assert!(catalog.contains("<name>review</name>"), "{catalog}");
    let (body, failed) = stage.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(body.contains("# Review") && !failed, "{body}");
    // A command goes out as two blocks and comes back as one.
    let blocks = turn(&mut stage, "/review src/main.rs");
    let [ours, "src/main.rs"] = texts(&blocks)[..] else { panic!("{blocks:?}") };
    assert!(ours.contains("# Review"), "{ours}");
    // What the proxy answers by itself looks like a turn of the agent's.
    let params = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills" }] });
    let id = stage.editor.request("session/prompt", params);
    let [echo, accepted, running, message, idle] = [(); 5].map(|()| said(&mut stage));
    assert_eq!(echo["params"]["update"]["content"][0]["text"], "/skills");
    assert_eq!(
        (&accepted["id"], &accepted["result"]["messageId"]),
        (&id, &echo["params"]["update"]["messageId"])
    );
    assert_eq!(running["params"]["update"]["state"], "running");
    let text = message["params"]["update"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("`/review`") && text.contains("active, by you"), "{text}");
    assert_eq!(idle["params"]["update"]["state"], "idle");
    stage.finish();
}

fn over_the_bridge() {
    let skills = Skills::review();
    let mut stage = stage(skills.proxy(), "stdio");
    let (params, _) = new_session(&mut stage);
    let ours = entry(&params);
    assert_eq!(ours["type"], "stdio");
    let connection = stage.connect(&ours, MCP_2025);
    let (body, failed) = stage.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(body.contains("# Review") && !failed, "{body}");
    stage.order("disconnect", json!({ "connection": connection.number })).expect("it is connected");
    stage.finish();
}

fn a_prompt_that_waits_is_cancelled() {
    let skills = Skills::review();
    let mut stage = stage(skills.proxy().flag("--mcp-wait", "100000"), "http");
    new_session(&mut stage);
    let params = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "hello" }] });
    let id = stage.editor.request("session/prompt", params);
    stage
        .editor
        .send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } }));
    assert_eq!(stage.editor.answer(&id)["error"]["code"], -32800);
    assert_eq!(stage.received(), Vec::<Value>::new());
    stage.finish();
}
