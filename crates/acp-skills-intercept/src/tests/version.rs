//! Tests of version 2 of the protocol: paths of members. All messages of the proxy are also parsed with the types of the published
//! schema.

mod turns;

use agent_client_protocol::v2::schema::{
    NewSessionRequest, NewSessionResponse, PromptResponse, RequestPermissionResponse, ResumeSessionResponse,
    UpdateSessionNotification,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;
use acp_skills_wire::REQUEST_CANCELLED;

const KEY: SessionKey = SessionKey(1);

fn fixture() -> Fixture {
    Fixture::new(policy()).initialized_v2("x", &json!({ "mcp": { "http": {}, "stdio": {} } }))
}

/// Opens the session `s`.
fn session(mut fixture: Fixture) -> Fixture {
    let out = fixture.request(1, "session/new", &json!({ "cwd": "/project" }));
    assert_eq!(out.to_agent.len(), 1);
    fixture.respond(1, &json!({ "sessionId": "s" }));
    fixture
}

/// Panics if `value` does not match the schema.
fn is<T: DeserializeOwned>(value: &Value) {
    serde_json::from_value::<T>(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"));
}

/// Returns the updates for the client.
fn updates(out: &Out) -> Vec<&Value> {
    let updates = out.to_client.iter().filter(|line| line["method"] == "session/update");
    updates
        .inspect(|line| is::<UpdateSessionNotification>(&line["params"]))
        .map(|line| &line["params"]["update"])
        .collect()
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn state(state: &str, reason: Option<&str>) -> Value {
    let mut update = json!({ "sessionUpdate": "state_update", "state": state });
    if let Some(reason) = reason {
        update["stopReason"] = reason.into();
    }
    update
}

#[test]
fn the_transport_is_one_that_the_agent_supports() {
    for (mcp, mode, expected) in [
        (json!({ "http": {}, "stdio": {} }), McpMode::Auto, Some("http")),
        (json!({ "acp": {}, "http": {} }), McpMode::Auto, Some("acp")),
        (json!({ "stdio": {} }), McpMode::Auto, Some("stdio")),
        // By default, no transport is supported.
        (json!({}), McpMode::Auto, None),
        (json!({ "http": null }), McpMode::Auto, None),
        (Value::Null, McpMode::Auto, None),
        (json!({ "http": {} }), McpMode::Stdio, Some("stdio")),
    ] {
        let fixture = Fixture::new(Policy { mcp: mode, ..policy() });
        let mut fixture = fixture.initialized_v2("x", &json!({ "mcp": mcp }));
        let out = fixture.request(1, "session/new", &json!({ "cwd": "/project" }));
        let params = &out.agent()["params"];
        is::<NewSessionRequest>(params);
        let servers = params.get("mcpServers").map(|servers| servers.as_array().unwrap().as_slice());
        match (servers, expected) {
            (Some([ours]), Some(kind)) => {
                assert_eq!((&ours["type"], &ours["name"]), (&json!(kind), &json!("acp-skills")), "{mcp}");
            }
            (None, None) => {}
            _ => panic!("{mcp}: {params}"),
        }
    }
}

#[test]
fn the_system_prompt_is_at_its_new_place() {
    let fixture = Fixture::new(policy());
    let mut fixture = fixture.initialized_v2("x", &json!({ "mcp": { "http": {} }, "systemPrompt": {} }));
    let out = fixture.request(1, "session/new", &json!({ "cwd": "/project" }));
    is::<NewSessionRequest>(&out.agent()["params"]);
    assert_eq!(out.agent()["params"]["systemPrompt"]["mode"], "append");
    fixture.respond(1, &json!({ "sessionId": "s" }));
    assert_eq!(texts(fixture.prompt(2, "s", &["hello"]).agent()), ["hello"]);
}

#[test]
fn the_agent_is_recognized_by_its_info() {
    let name = "@agentclientprotocol/claude-agent-acp";
    let mut fixture = Fixture::new(policy()).initialized_v2(name, &json!({ "mcp": { "http": {} } }));
    let out = fixture.request(1, "session/new", &json!({ "cwd": "/project" }));
    assert!(out.agent()["params"]["_meta"]["claudeCode"]["options"]["allowedTools"].is_array());
}

#[test]
fn a_later_initialize_negotiates_again() {
    let mut fixture = fixture().initialized("x", &json!({}));
    let entry = &fixture.new_session(1, "s")["params"]["mcpServers"][0];
    assert!(entry.get("type").is_none() && entry["command"].is_string(), "{entry}");
}

/// Returns the names of a list of commands. Panics if an entry has another type.
fn names(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap().iter();
    list.inspect(|entry| assert_eq!(entry["type"], "command"))
        .map(|entry| entry["name"].as_str().unwrap())
        .collect()
}

#[test]
fn commands_are_in_the_responses() {
    let theirs = json!([{ "type": "command", "name": "web", "description": "d" }]);
    for (method, result, expected) in [
        (
            "session/new",
            json!({ "sessionId": "s", "availableCommands": theirs }),
            vec!["skills", "review", "web"],
        ),
        ("session/fork", json!({ "sessionId": "s", "availableCommands": [] }), vec!["skills", "review"]),
        ("session/new", json!({ "sessionId": "s", "availableCommands": null }), vec!["skills", "review"]),
        ("session/new", json!({ "sessionId": "s" }), vec!["skills", "review"]),
        ("session/resume", json!({ "availableCommands": theirs }), vec!["skills", "review", "web"]),
        ("session/resume", json!({}), vec!["skills", "review"]),
        ("session/resume", Value::Null, vec!["skills", "review"]),
    ] {
        let mut fixture = fixture();
        fixture.request(1, method, &json!({ "sessionId": "s", "cwd": "/project" }));
        let out = fixture.respond(1, &result);
        let seen = &out.client()["result"];
        if method == "session/resume" {
            is::<ResumeSessionResponse>(seen);
        } else {
            is::<NewSessionResponse>(seen);
        }
        assert_eq!(names(&seen["availableCommands"]), expected, "{method} {result}");
        assert_eq!(seen["availableCommands"].as_array().unwrap().len(), expected.len());
        // This should not start a timer.
        assert!(out.tasks.is_empty(), "{:?}", out.tasks);
    }
}

/// A response of the wrong type is forwarded unchanged, even if our commands and options should be in it.
#[test]
fn responses_of_the_wrong_type_are_unchanged() {
    let policy = Policy { toggles: true, ..policy() };
    for result in [
        json!("done"),
        json!(-1),
        json!([{ "availableCommands": [] }]),
        json!({ "availableCommands": { "a": 1 }, "configOptions": 7 }),
    ] {
        let mut fixture = Fixture::new(policy.clone());
        fixture.request(0, "initialize", &json!({ "protocolVersion": 2 }));
        fixture.respond(0, &json!({ "protocolVersion": 2 }));
        fixture.request(1, "session/resume", &json!({ "sessionId": "s", "cwd": "/project" }));
        assert_eq!(fixture.respond(1, &result).client()["result"], result);
    }
}

#[test]
fn commands_are_in_the_updates() {
    let mut fixture = fixture();
    fixture.request(1, "session/new", &json!({ "cwd": "/project" }));
    let list =
        json!([{ "type": "command", "name": "web", "description": "d" }, { "type": "_x", "name": "y" }]);
    let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": list });
    // This update arrives before the response with the id of the session.
    assert_eq!(updates(&fixture.update("s", &update))[0]["availableCommands"], list);
    let out = fixture.respond(1, &json!({ "sessionId": "s" }));
    let seen = out.client()["result"]["availableCommands"].as_array().unwrap();
    let seen: Vec<_> = seen.iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(seen, ["skills", "review", "web", "y"]);
    let out = fixture.update("s", &update);
    let [update] = updates(&out)[..] else { panic!("{out:?}") };
    assert_eq!(update["availableCommands"].as_array().unwrap().len(), 4);
    assert_eq!(update["availableCommands"][0]["input"]["type"], "text");
}

#[test]
fn commands_are_not_added_twice_during_a_resume() {
    let mut fixture = session(fixture());
    fixture.request(
        2,
        "session/resume",
        &json!({ "sessionId": "s", "cwd": "/p", "replayFrom": { "type": "start" } }),
    );
    fixture.update("s", &json!({ "sessionUpdate": "available_commands_update", "availableCommands": [] }));
    assert_eq!(fixture.respond(2, &json!({})).client()["result"], json!({}));
}

#[test]
fn our_text_is_removed_from_echoes() {
    let mut fixture = session(fixture());
    let out = fixture.prompt(2, "s", &["hello", "you"]);
    let sent = out.agent()["params"]["prompt"].clone();
    assert_eq!(sent.as_array().unwrap().len(), 3);
    let whole =
        |content: &Value| json!({ "sessionUpdate": "user_message", "messageId": "m", "content": content });
    let out = fixture.update("s", &whole(&sent));
    assert_eq!(updates(&out), [&whole(&json!([text("hello"), text("you")]))]);
    // Send it in chunks, with the response in between.
    let chunk = |text: &str| json!({ "sessionUpdate": "user_message_chunk", "messageId": "m", "content": { "type": "text", "text": text } });
    let ours = sent[0]["text"].as_str().unwrap();
    assert!(fixture.update("s", &chunk(&ours[..40])).is_nothing());
    assert_eq!(fixture.respond(2, &json!({ "messageId": "m" })).to_client.len(), 1);
    assert!(fixture.update("s", &chunk(&ours[40..])).is_nothing());
    assert_eq!(updates(&fixture.update("s", &chunk("hello"))), [&chunk("hello")]);
    // A restored command should not keep the annotations from our block.
    let mut block = chunk(&Mark::new(1).wrap("<typed>/review <rest>src</rest></typed>"));
    block["content"]["annotations"] = json!({ "audience": ["assistant"] });
    assert_eq!(updates(&fixture.update("s", &block)), [&chunk("/review ")]);
    // Without any injected text, the message should not change.
    let line = r#"{"method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"user_message","messageId":"m", "content":[ {"text":"x"} ,{}]}}}"#;
    let mut actions = Actions::default();
    assert_eq!(fixture.interceptor.from_agent(line.as_bytes(), &mut actions), Pass::Untouched);
    // Each block would need many times its size in memory.
    for (blocks, is_restored) in [(1, true), (65_535, true), (65_536, false)] {
        let ours = text(&Mark::new(1).wrap("skills"));
        let content: Vec<_> = std::iter::once(ours).chain(std::iter::repeat_n(json!(1), blocks)).collect();
        let out = fixture.update("s", &whole(&content.into()));
        assert_eq!(updates(&out)[0]["content"].as_array().unwrap().len() == blocks, is_restored, "{blocks}");
    }
}

/// Each comparison renders the catalog. A text of the user can contain marks of other runs.
#[test]
fn few_replayed_messages_are_compared_with_the_catalog() {
    for (messages, is_known) in [(1, true), (31, true), (32, false)] {
        let mut fixture = fixture();
        let resume = json!({ "sessionId": "s", "cwd": "/project", "replayFrom": { "type": "start" } });
        fixture.request(1, "session/resume", &resume);
        let mut other = session(self::fixture());
        let told = other.prompt(2, "s", &["hello"]).agent()["params"]["prompt"].clone();
        let theirs = json!([text(&Mark::new(7).wrap("x").repeat(1000))]);
        for content in std::iter::repeat_n(&theirs, messages).chain([&told]) {
            fixture.update(
                "s",
                &json!({ "sessionUpdate": "user_message", "messageId": "m", "content": content }),
            );
        }
        fixture.update("s", &state("idle", None));
        fixture.respond(1, &json!({}));
        let sent = fixture.prompt(2, "s", &["again"]);
        assert_eq!(texts(sent.agent()) == ["again"], is_known, "{messages}");
    }
}

#[test]
fn a_replay_shows_the_known_catalog() {
    let mut fixture = fixture();
    let resume = json!({ "sessionId": "s", "cwd": "/project", "replayFrom": { "type": "start" } });
    fixture.request(1, "session/resume", &resume);
    // This prompt was sent by a different run of the proxy.
    let mut other = session(self::fixture());
    let told = other.prompt(2, "s", &["hello"]).agent()["params"]["prompt"].clone();
    let echo = json!({ "sessionUpdate": "user_message", "messageId": "m", "content": told });
    assert_eq!(updates(&fixture.update("s", &echo))[0]["content"], json!([text("hello")]));
    fixture.update("s", &state("idle", None));
    fixture.respond(1, &json!({}));
    assert_eq!(texts(fixture.prompt(2, "s", &["again"]).agent()), ["again"]);
    // We know the user's words from the replay, so we can restore a title that was cut off within our text.
    let title =
        json!({ "sessionUpdate": "session_info_update", "title": told[0]["text"].as_str().unwrap()[..30] });
    assert_eq!(updates(&fixture.update("s", &title))[0]["title"], "hello");
}

#[test]
fn permission_is_asked_for_a_subject() {
    let name = "mcp__acp-skills__activate_skill";
    let call = json!({ "toolCallId": "1", "title": name, "name": name, "_meta": { "claudeCode": { "toolName": name } } });
    for (subject, is_granted) in [
        (json!({ "type": "tool_call", "toolCall": call }), true),
        (json!({ "type": "command", "command": name, "cwd": "/p", "toolCall": call }), false),
        (json!({ "type": "tool_call", "toolCall": { "toolCallId": "1", "title": name } }), false),
        (Value::Null, false),
    ] {
        let agent = "@agentclientprotocol/claude-agent-acp";
        let mut fixture =
            session(Fixture::new(policy()).initialized_v2(agent, &json!({ "mcp": { "http": {} } })));
        let options = json!([{ "optionId": "yes", "name": "Allow", "kind": "allow_once" }]);
        // This is where version 1 would put the call, so ignore it.
        let params = json!({ "sessionId": "s", "title": "May I?", "subject": subject, "toolCall": call, "options": options });
        let request =
            json!({ "jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params });
        let out = fixture.agent(&request);
        let is_asked = out.to_client.iter().any(|line| line["method"] == "session/request_permission");
        assert_eq!(is_asked, !is_granted, "{subject}");
        if is_granted {
            assert_eq!(updates(&out)[0]["sessionUpdate"], "tool_call_update");
            is::<RequestPermissionResponse>(&out.agent()["result"]);
            assert_eq!(out.agent()["result"]["outcome"]["optionId"], "yes");
        }
    }
}

#[test]
fn our_text_is_removed_from_titles() {
    let mut fixture = session(fixture());
    let title = format!("{}Fix the bug", Mark::new(1).wrap("skills"));
    fixture.request(2, "session/list", &json!({}));
    let out = fixture.respond(2, &json!({ "sessions": [{ "sessionId": "s", "cwd": "/p", "title": title }] }));
    assert_eq!(out.client()["result"]["sessions"][0]["title"], "Fix the bug");
}
