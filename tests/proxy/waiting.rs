//! The first prompt waits for the tools; what happens when they never come, and when they come late.

use serde_json::{Value, json};

use crate::{
    fixtures::Skills,
    stage::{MCP_2025, Stage, entry, texts},
};

crate::trials!(
    the_first_prompt_waits_for_the_tools,
    nobody_else_waits,
    cancelling_a_prompt_that_waits,
    cancelling_a_request_that_waits,
    cancelling_what_the_agent_has,
    an_agent_that_never_connects,
    who_never_connects_is_not_waited_for_again,
    nor_in_another_run,
    an_agent_that_connects_late,
    over_acp_nothing_waits,
);

/// Longer than any test takes.
const FOREVER: &str = "100000";

/// A session `s` whose agent has not connected; prompts wait for `seconds`. Returns the server's entry too.
fn unconnected(skills: &Skills, seconds: &str) -> (Stage, Value) {
    let mut stage = Stage::over_http(skills.proxy().flag("--mcp-wait", seconds));
    let params = stage.new_session("s");
    (stage, entry(&params))
}

/// Sends a prompt. Returns its id.
fn ask(stage: &mut Stage, session: &str, text: &str) -> Value {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    stage.editor.request("session/prompt", params)
}

/// Ends the turn of the next prompt that the agent receives; returns its blocks.
fn turn(stage: &mut Stage, id: &Value) -> Vec<Value> {
    let received = stage.takes();
    assert_eq!((&received["method"], &received["id"]), (&json!("session/prompt"), id));
    stage.replies(&received, json!({ "result": { "stopReason": "end_turn" } }));
    stage.editor.answer(id);
    received["params"]["prompt"].as_array().expect("blocks").clone()
}

fn the_first_prompt_waits_for_the_tools() {
    let skills = Skills::review();
    let (mut stage, entry) = unconnected(&skills, FOREVER);
    let (first, second) = (ask(&mut stage, "s", "one"), ask(&mut stage, "s", "two"));
    // The agent's orders take the same way: had the prompts passed, they would be there.
    assert_eq!(stage.received(), Vec::<Value>::new());
    stage.connect(&entry, MCP_2025);
    let blocks = turn(&mut stage, &first);
    assert!(blocks.len() == 2 && texts(&blocks)[0].contains("`activate_skill`"), "{blocks:?}");
    assert_eq!(texts(&turn(&mut stage, &second)), ["two"], "in order, and the catalog once");
    stage.finish();
}

fn nobody_else_waits() {
    let skills = Skills::review();
    let (mut stage, _) = unconnected(&skills, FOREVER);
    let waiting = ask(&mut stage, "s", "one");
    let other = entry(&stage.new_session("other"));
    stage.connect(&other, MCP_2025);
    assert_eq!(stage.prompt("other", "hello").len(), 2);
    stage.exchange("session/set_mode", json!({ "sessionId": "s", "modeId": "m" }), json!({ "result": {} }));
    stage.editor.notify("session/cancel", json!({ "sessionId": "s" }));
    stage.editor.answer(&waiting);
    stage.finish();
}

fn cancelling_a_prompt_that_waits() {
    let skills = Skills::review();
    let (mut stage, entry) = unconnected(&skills, FOREVER);
    let (first, second) = (ask(&mut stage, "s", "one"), ask(&mut stage, "s", "two"));
    stage.editor.notify("session/cancel", json!({ "sessionId": "s" }));
    for id in [&first, &second] {
        assert_eq!(stage.editor.answer(id)["result"], json!({ "stopReason": "cancelled" }));
    }
    assert_eq!(stage.received(), Vec::<Value>::new(), "the agent has never heard of them");
    stage.connect(&entry, MCP_2025);
    assert_eq!(stage.prompt("s", "three").len(), 2, "the catalog comes with the next one");
    stage.finish();
}

fn cancelling_a_request_that_waits() {
    let skills = Skills::review();
    let (mut stage, entry) = unconnected(&skills, FOREVER);
    let (first, second) = (ask(&mut stage, "s", "one"), ask(&mut stage, "s", "two"));
    stage.editor.notify("$/cancel_request", json!({ "requestId": first }));
    assert_eq!(stage.editor.answer(&first)["error"]["code"], -32800);
    stage.connect(&entry, MCP_2025);
    assert_eq!(texts(&turn(&mut stage, &second))[1], "two");
    stage.finish();
}

fn cancelling_what_the_agent_has() {
    let skills = Skills::review();
    let (mut stage, entry) = unconnected(&skills, FOREVER);
    stage.connect(&entry, MCP_2025);
    let id = ask(&mut stage, "s", "one");
    let prompt = stage.takes();
    for (method, params) in
        [("session/cancel", json!({ "sessionId": "s" })), ("$/cancel_request", json!({ "requestId": id }))]
    {
        stage.editor.notify(method, params.clone());
        let received = stage.takes();
        assert_eq!((&received["method"], &received["params"]), (&json!(method), &params));
    }
    stage.replies(&prompt, json!({ "result": { "stopReason": "cancelled" } }));
    assert_eq!(stage.editor.answer(&id)["result"]["stopReason"], "cancelled");
    stage.finish();
}

/// Without a flag: a moment in the first session, nothing in the next.
fn who_never_connects_is_not_waited_for_again() {
    let skills = Skills::review();
    let file = skills.path().join("events.jsonl");
    let mut stage = Stage::over_http(skills.proxy().flag("--events", &file));
    for session in ["a", "b"] {
        stage.new_session(session);
        assert!(texts(&stage.prompt(session, "hello"))[0].contains("own file tools"));
    }
    stage.finish();
    assert_eq!(waited(&file), [300.0, 0.0]);
}

/// How long prompts waited for nothing, by the record.
fn waited(file: &std::path::Path) -> Vec<f64> {
    let events = std::fs::read_to_string(file).expect("a record");
    events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an event"))
        .filter(|event| event["event"] == "fallback")
        .map(|event| event["ms"].as_f64().expect("a number"))
        .collect()
}

/// With `--state` the next run knows it of the same version, until the agent connects after all.
fn nor_in_another_run() {
    let skills = Skills::review();
    let (file, state) = (skills.path().join("events.jsonl"), skills.path().join("state"));
    let run = |version: &str, connects: bool| {
        let proxy = skills.proxy().flag("--events", &file).flag("--state", &state);
        let info = json!({ "name": "agent", "version": version });
        let mut stage = Stage::introduced(proxy, &json!({ "mcpCapabilities": { "http": true } }), &info);
        let entry = entry(&stage.new_session("s"));
        if connects {
            stage.connect(&entry, MCP_2025);
        }
        stage.prompt("s", "hello");
        stage.finish();
    };
    run("1.0", false);
    assert_eq!(waited(&file), [300.0]);
    run("1.0", false);
    run("1.1", false);
    assert_eq!(waited(&file), [300.0, 0.0, 300.0]);
    let kept = std::fs::read_dir(state.join("agents")).expect("a directory").count();
    assert_eq!(kept, 2);
    run("1.0", true);
    run("1.0", false);
    assert_eq!(waited(&file)[3..], [0.0, 300.0]);
}

fn an_agent_that_never_connects() {
    let skills = Skills::review();
    let config = skills.config();
    let proxy =
        crate::editor::Proxy::new().flag("--config", config).flag("--mcp-wait", "0.05").flag("--log", "info");
    let mut stage = Stage::over_http(proxy);
    stage.new_session("s");
    let blocks = stage.prompt("s", "hello");
    let text = texts(&blocks)[0];
    let file = skills.dir("review").join("SKILL.md");
    assert!(file.is_absolute() && text.contains(file.to_str().expect("text")), "{text}");
    assert!(text.contains("own file tools") && text.contains("after all"), "{text}");
    assert!(!text.contains("counter"), "a virtual skill has nothing to read: {text}");
    assert_eq!(texts(&stage.prompt("s", "again")), ["again"]);
    let log = stage.finish().log;
    let told = log.iter().filter(|line| line.contains("did not connect")).count();
    assert_eq!(told, 1, "{log:?}");
}

fn an_agent_that_connects_late() {
    let skills = Skills::review();
    let (mut stage, entry) = unconnected(&skills, "0.05");
    assert_eq!(stage.prompt("s", "hello").len(), 2);
    let connection = stage.connect(&entry, MCP_2025);
    let blocks = stage.prompt("s", "again");
    let text = texts(&blocks)[0];
    assert!(text.contains("`activate_skill`") && !text.contains("<available_skills>"), "{text}");
    assert_eq!(texts(&stage.prompt("s", "and again")), ["and again"], "told once");
    let (_, failed) = stage.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(!failed);
    stage.finish();
}

fn over_acp_nothing_waits() {
    let skills = Skills::review();
    let proxy = skills.proxy().flag("--mcp-wait", FOREVER);
    let mut stage = Stage::initialized(proxy, &json!({ "mcpCapabilities": { "acp": true } }));
    stage.new_session("s");
    let blocks = stage.prompt("s", "hello");
    assert!(blocks.len() == 2 && texts(&blocks)[0].contains("`activate_skill`"), "{blocks:?}");
    stage.finish();
}
