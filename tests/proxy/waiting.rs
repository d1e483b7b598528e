//! The first prompt waits until the agent has connected to the tools. Also agents that connect late or never.

use serde_json::{Value, json};

use crate::{
    fixture::{Fixture, MCP_2025, entry, texts},
    skills::Skills,
};

crate::trials!(
    the_first_prompt_waits_for_the_tools,
    only_prompts_of_the_session_wait,
    cancelling_a_waiting_prompt,
    cancelling_a_waiting_request,
    cancelling_a_prompt_that_the_agent_has,
    an_agent_that_never_connects,
    a_second_session_does_not_wait_again,
    another_run_does_not_wait_again,
    an_agent_that_connects_late,
    prompts_do_not_wait_over_acp,
);

/// Longer than any test takes.
const FOREVER: &str = "100000";

/// Opens a session `s` whose agent has not connected. Prompts wait for at most `seconds`. Also returns our server's
/// entry.
fn unconnected(skills: &Skills, seconds: &str) -> (Fixture, Value) {
    let mut fixture = Fixture::over_http(skills.proxy().flag("--mcp-wait", seconds));
    let params = fixture.new_session("s");
    (fixture, entry(&params))
}

/// Sends a prompt and returns the id.
fn ask(fixture: &mut Fixture, session: &str, text: &str) -> Value {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    fixture.editor.request("session/prompt", params)
}

/// Ends the turn of the next prompt that the agent receives, and returns the blocks.
fn turn(fixture: &mut Fixture, id: &Value) -> Vec<Value> {
    let received = fixture.agent_receives();
    assert_eq!((&received["method"], &received["id"]), (&json!("session/prompt"), id));
    fixture.agent_replies(&received, json!({ "result": { "stopReason": "end_turn" } }));
    fixture.editor.answer(id);
    received["params"]["prompt"].as_array().expect("blocks").clone()
}

fn the_first_prompt_waits_for_the_tools() {
    let skills = Skills::review();
    let (mut fixture, entry) = unconnected(&skills, FOREVER);
    let first = ask(&mut fixture, "s", "one");
    let second = ask(&mut fixture, "s", "two");
    // Orders are sent to the agent in the same way as prompts, so if one of the prompts had been let through, we would see it
    // here.
    assert_eq!(fixture.received(), Vec::<Value>::new());
    fixture.connect(&entry, MCP_2025);
    let blocks = turn(&mut fixture, &first);
    assert!(blocks.len() == 2 && texts(&blocks)[0].contains("`activate_skill`"), "{blocks:?}");
    assert_eq!(texts(&turn(&mut fixture, &second)), ["two"], "in order, and the catalog once");
    fixture.finish();
}

fn only_prompts_of_the_session_wait() {
    let skills = Skills::review();
    let (mut fixture, _) = unconnected(&skills, FOREVER);
    let waiting = ask(&mut fixture, "s", "one");
    let other = entry(&fixture.new_session("other"));
    fixture.connect(&other, MCP_2025);
    assert_eq!(fixture.prompt("other", "hello").len(), 2);
    fixture.exchange("session/set_mode", json!({ "sessionId": "s", "modeId": "m" }), json!({ "result": {} }));
    fixture.editor.notify("session/cancel", json!({ "sessionId": "s" }));
    fixture.editor.answer(&waiting);
    fixture.finish();
}

fn cancelling_a_waiting_prompt() {
    let skills = Skills::review();
    let (mut fixture, entry) = unconnected(&skills, FOREVER);
    let first = ask(&mut fixture, "s", "one");
    let second = ask(&mut fixture, "s", "two");
    fixture.editor.notify("session/cancel", json!({ "sessionId": "s" }));
    for id in [&first, &second] {
        assert_eq!(fixture.editor.answer(id)["result"], json!({ "stopReason": "cancelled" }));
    }
    assert_eq!(fixture.received(), Vec::<Value>::new(), "the agent did not receive them");
    fixture.connect(&entry, MCP_2025);
    assert_eq!(fixture.prompt("s", "three").len(), 2, "the next prompt contains the catalog");
    fixture.finish();
}

fn cancelling_a_waiting_request() {
    let skills = Skills::review();
    let (mut fixture, entry) = unconnected(&skills, FOREVER);
    let first = ask(&mut fixture, "s", "one");
    let second = ask(&mut fixture, "s", "two");
    fixture.editor.notify("$/cancel_request", json!({ "requestId": first }));
    assert_eq!(fixture.editor.answer(&first)["error"]["code"], -32800);
    fixture.connect(&entry, MCP_2025);
    assert_eq!(texts(&turn(&mut fixture, &second))[1], "two");
    fixture.finish();
}

fn cancelling_a_prompt_that_the_agent_has() {
    let skills = Skills::review();
    let (mut fixture, entry) = unconnected(&skills, FOREVER);
    fixture.connect(&entry, MCP_2025);
    let id = ask(&mut fixture, "s", "one");
    let prompt = fixture.agent_receives();
    for (method, params) in
        [("session/cancel", json!({ "sessionId": "s" })), ("$/cancel_request", json!({ "requestId": id }))]
    {
        fixture.editor.notify(method, params.clone());
        let received = fixture.agent_receives();
        assert_eq!((&received["method"], &received["params"]), (&json!(method), &params));
    }
    fixture.agent_replies(&prompt, json!({ "result": { "stopReason": "cancelled" } }));
    assert_eq!(fixture.editor.answer(&id)["result"]["stopReason"], "cancelled");
    fixture.finish();
}

/// By default, a prompt waits briefly in the first session and not at all in the next.
fn a_second_session_does_not_wait_again() {
    let skills = Skills::review();
    let file = skills.path().join("events.jsonl");
    let mut fixture = Fixture::over_http(skills.proxy().flag("--events", &file));
    for session in ["a", "b"] {
        fixture.new_session(session);
        assert!(texts(&fixture.prompt(session, "hello"))[0].contains("own file tools"));
    }
    fixture.finish();
    assert_eq!(waited(&file), [300.0, 0.0]);
}

/// Returns the waiting times, in milliseconds, that ended without a connection, according to the event file.
fn waited(file: &std::path::Path) -> Vec<f64> {
    let events = std::fs::read_to_string(file).expect("a record");
    events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an event"))
        .filter(|event| event["event"] == "fallback")
        .map(|event| event["ms"].as_f64().expect("a number"))
        .collect()
}

/// With `--state`, the next run remembers the result for this version of the agent, until the agent does connect.
fn another_run_does_not_wait_again() {
    let skills = Skills::review();
    let file = skills.path().join("events.jsonl");
    let state = skills.path().join("state");
    let run = |version: &str, connects: bool| {
        let proxy = skills.proxy().flag("--events", &file).flag("--state", &state);
        let info = json!({ "name": "agent", "version": version });
        let mut fixture =
            Fixture::with_agent_info(proxy, &json!({ "mcpCapabilities": { "http": true } }), &info);
        let entry = entry(&fixture.new_session("s"));
        if connects {
            fixture.connect(&entry, MCP_2025);
        }
        fixture.prompt("s", "hello");
        fixture.finish();
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
    let mut fixture = Fixture::over_http(proxy);
    fixture.new_session("s");
    let blocks = fixture.prompt("s", "hello");
    let text = texts(&blocks)[0];
    let file = skills.dir("review").join("SKILL.md");
    assert!(file.is_absolute() && text.contains(file.to_str().expect("text")), "{text}");
    assert!(text.contains("own file tools") && text.contains("after all"), "{text}");
    assert!(!text.contains("counter"), "a virtual skill has nothing to read: {text}");
    assert_eq!(texts(&fixture.prompt("s", "again")), ["again"]);
    let log = fixture.finish().log;
    let warnings = log.iter().filter(|line| line.contains("did not connect")).count();
    assert_eq!(warnings, 1, "{log:?}");
}

fn an_agent_that_connects_late() {
    let skills = Skills::review();
    let (mut fixture, entry) = unconnected(&skills, "0.05");
    assert_eq!(fixture.prompt("s", "hello").len(), 2);
    let connection = fixture.connect(&entry, MCP_2025);
    let blocks = fixture.prompt("s", "again");
    let text = texts(&blocks)[0];
    assert!(text.contains("`activate_skill`") && !text.contains("<available_skills>"), "{text}");
    assert_eq!(texts(&fixture.prompt("s", "and again")), ["and again"], "warnings once");
    let (_, failed) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(!failed);
    fixture.finish();
}

fn prompts_do_not_wait_over_acp() {
    let skills = Skills::review();
    let proxy = skills.proxy().flag("--mcp-wait", FOREVER);
    let mut fixture = Fixture::initialized(proxy, &json!({ "mcpCapabilities": { "acp": true } }));
    fixture.new_session("s");
    let blocks = fixture.prompt("s", "hello");
    assert!(blocks.len() == 2 && texts(&blocks)[0].contains("`activate_skill`"), "{blocks:?}");
    fixture.finish();
}
