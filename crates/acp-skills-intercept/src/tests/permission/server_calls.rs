//! Tests of calls of tools of MCP servers behind skills, from the agent's request for permission to the call.

use serde_json::{Map, Value, json};

use super::*;

/// Sends the agent's request for permission to call `look`.
fn asks(fixture: &mut Fixture) {
    let call = call("mcp__acp-skills__call_skill_tool", &json!({ "skill": "git", "tool": "look" }));
    assert_eq!(outcome(&ask(fixture, &call, None)), "asked");
}

/// Sends the user's answer to this request.
fn selects(fixture: &mut Fixture, option: &str) {
    let result = json!({ "outcome": { "outcome": "selected", "optionId": option } });
    let out = fixture.client(&json!({ "jsonrpc": "2.0", "id": 7, "result": result }));
    assert_eq!(out.to_agent.len(), 1, "{out:?}");
}

/// The call of `look` arrives. Returns true if it was allowed, and false if the user is asked about it.
fn is_allowed(fixture: &mut Fixture) -> bool {
    let (skill, tool) = ("git".to_owned(), "look".to_owned());
    let question = UserQuestion::Call { skill, tool, input: Map::new(), needs_user: true };
    let before = fixture.host.answered;
    let out = fixture.handle(Input::UserAsked { session: SessionKey(1), number: 1, question });
    match (fixture.host.answered - before, &out.to_client[..]) {
        (1, []) => true,
        (0, [request]) => {
            assert_eq!(request["method"], "session/request_permission");
            false
        }
        _ => panic!("{out:?}"),
    }
}

/// The ways in which a turn ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Response,
    Error,
    /// The agent reports that it is idle, as in version 2 of the protocol.
    Idle,
    Cancel,
}

fn ends(fixture: &mut Fixture, end: End) {
    match end {
        End::Response => fixture.respond(2, &json!({ "stopReason": "end_turn" })),
        End::Error => fixture.refuse(2, -32603),
        End::Idle => fixture.update("s", &json!({ "sessionUpdate": "state_update", "state": "idle" })),
        End::Cancel => {
            let params = json!({ "sessionId": "s" });
            fixture.client(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }))
        }
    };
}

#[test]
fn an_answer_counts_in_its_turn_only() {
    let prompted = || {
        let mut fixture = fixture(CLAUDE, policy());
        fixture.prompt(2, "s", &["hello"]);
        asks(&mut fixture);
        fixture
    };
    let mut fixture = prompted();
    selects(&mut fixture, "proceed_once");
    assert!(is_allowed(&mut fixture) && !is_allowed(&mut fixture), "the answer counts once");
    for end in [End::Response, End::Error, End::Idle, End::Cancel] {
        // The turn ends before the user answers.
        let mut fixture = prompted();
        ends(&mut fixture, end);
        selects(&mut fixture, "proceed_once");
        fixture.prompt(3, "s", &["hello again"]);
        assert!(!is_allowed(&mut fixture), "{end:?}: the late answer counts in the next turn");
        // The turn ends after the answer, but the call has not arrived.
        let mut fixture = prompted();
        selects(&mut fixture, "proceed_once");
        ends(&mut fixture, end);
        fixture.prompt(3, "s", &["hello again"]);
        assert!(!is_allowed(&mut fixture), "{end:?}: the answer counts in the next turn");
        // A permission for all calls lasts as long as the session.
        let mut fixture = prompted();
        selects(&mut fixture, "always");
        ends(&mut fixture, end);
        assert!(is_allowed(&mut fixture), "{end:?}: a permission for all calls has ended");
    }
}

/// Gemini asks without `rawInput`.
#[test]
fn an_answer_counts_if_the_input_is_a_text() {
    for (input, expected) in [
        (json!({ "skill": "git", "tool": "look" }).to_string(), true),
        (json!({ "skill": "git", "tool": "look", "input": { "a": 1 } }).to_string(), false),
        ("no JSON".to_owned(), false),
    ] {
        let mut fixture = fixture("gemini-cli", policy());
        let request = json!({
            "toolCallId": "mcp_acp-skills_call_skill_tool__mcp_acp-skills_call_skill_tool_1795307132527_0",
            "status": "pending", "title": "call_skill_tool (acp-skills MCP Server)", "locations": [], "kind": "other",
            "content": [{ "type": "content", "content": { "type": "text", "text": input } }],
        });
        assert_eq!(outcome(&ask(&mut fixture, &request, None)), "asked");
        selects(&mut fixture, "proceed_once");
        assert_eq!(is_allowed(&mut fixture), expected, "{input}");
    }
}

/// In its request, Copilot names neither the server nor the tool, but it has announced the call before.
#[test]
fn an_answer_counts_if_only_the_announcement_names_the_tool() {
    let input = json!({ "skill": "git", "tool": "look" });
    let tool = "acp-skills-call_skill_tool";
    let sql = json!({ "description": tool, "query": "SELECT 1" });
    for (announced, kind, input, shown, expected) in [
        (tool, "other", &input, "git: look", true),
        // A server with another name, and a command whose description is the name of the tool.
        ("other-call_skill_tool", "other", &input, "Call a tool of a skill", false),
        (tool, "execute", &input, "Call a tool of a skill", false),
        // Copilot's own tools can have this title, but not this input.
        (tool, "other", &sql, "Skill tool", false),
    ] {
        for titles in [Titles::People, Titles::Agent] {
            let mut fixture = fixture("Copilot", Policy { titles, ..policy() });
            let mut call = json!({ "toolCallId": "1", "title": announced, "kind": kind, "status": "pending", "rawInput": input });
            call["sessionUpdate"] = "tool_call".into();
            fixture.update("s", &call);
            call.as_object_mut().unwrap().remove("sessionUpdate");
            call["title"] = "Call a tool of a skill".into();
            let out = ask(&mut fixture, &call, None);
            assert_eq!(outcome(&out), "asked");
            let shown = if titles == Titles::People { shown } else { "Call a tool of a skill" };
            assert_eq!(out.client()["params"]["toolCall"]["title"], shown);
            selects(&mut fixture, "proceed_once");
            // With the agent's title, the user has not seen what is called.
            let expected = expected && titles == Titles::People;
            assert_eq!(is_allowed(&mut fixture), expected, "{titles:?}: {call}");
        }
    }
}

/// An answer counts only if the client shows the title of the proxy, which names the skill and the tool.
#[test]
fn an_answer_to_another_title_does_not_count() {
    let tool = "mcp__acp-skills__call_skill_tool";
    let input = json!({ "skill": "git", "tool": "look" });
    for id in [json!(null), json!(7), json!("x".repeat(2000))] {
        let mut fixture = fixture(CLAUDE, policy());
        fixture.prompt(2, "s", &["hello"]);
        let mut request = call(tool, &input);
        request["title"] = "Read README.md".into();
        let is_shown = id.is_string();
        if id.is_null() {
            request.as_object_mut().unwrap().remove("toolCallId");
        } else {
            request["toolCallId"] = id;
        }
        let out = ask(&mut fixture, &request, None);
        assert_eq!(out.client()["params"]["toolCall"]["title"] == "git: look", is_shown, "{request}");
        selects(&mut fixture, "proceed_once");
        assert_eq!(is_allowed(&mut fixture), is_shown, "{request}");
    }
    // After a claim that was broken, titles are those of the agent.
    let mut fixture = fixture(CLAUDE, Policy { approve: Approve::Own, ..policy() });
    fixture.prompt(2, "s", &["hello"]);
    let claimed = call("mcp__acp-skills__activate_skill", &json!({ "name": "git" }));
    assert_eq!(outcome(&ask(&mut fixture, &claimed, None)), "proceed_once");
    // The call did not arrive.
    ends(&mut fixture, End::Response);
    fixture.prompt(2, "s", &["hello"]);
    assert_eq!(outcome(&ask(&mut fixture, &claimed, None)), "asked");
    selects(&mut fixture, "no");
    let out = ask(&mut fixture, &call(tool, &input), None);
    assert_eq!(out.client()["params"]["toolCall"]["title"], "x");
    selects(&mut fixture, "proceed_once");
    assert!(!is_allowed(&mut fixture));
}

/// If two requests have the same id, the user may have answered the other one.
#[test]
fn an_answer_to_an_ambiguous_id_does_not_count() {
    let read = json!({ "toolCallId": "2", "title": "Read README.md", "kind": "read" });
    for is_first in [true, false] {
        for is_cancelled in [true, false] {
            let mut fixture = fixture(CLAUDE, policy());
            fixture.prompt(2, "s", &["hello"]);
            if is_first {
                ask(&mut fixture, &read, None);
            } else {
                asks(&mut fixture);
            }
            if is_cancelled {
                let params = json!({ "requestId": 7 });
                fixture.agent(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params }));
            }
            if is_first {
                asks(&mut fixture);
            } else {
                ask(&mut fixture, &read, None);
            }
            selects(&mut fixture, "proceed_once");
            assert!(!is_allowed(&mut fixture), "{is_first} {is_cancelled}");
            selects(&mut fixture, "proceed_once");
            assert!(!is_allowed(&mut fixture), "{is_first} {is_cancelled}");
            // All requests with this id are answered.
            asks(&mut fixture);
            selects(&mut fixture, "proceed_once");
            assert!(is_allowed(&mut fixture), "{is_first} {is_cancelled}");
        }
    }
}

/// While the user is asked about a call, the agent can't change its title and its input.
#[test]
fn a_question_keeps_its_title() {
    let tool = "mcp__acp-skills__call_skill_tool";
    let input = json!({ "skill": "git", "tool": "look" });
    for is_of_proxy in [false, true] {
        let mut fixture = fixture(CLAUDE, policy());
        fixture.prompt(2, "s", &["hello"]);
        let mut announced = call(tool, &input);
        announced["sessionUpdate"] = "tool_call".into();
        fixture.update("s", &announced);
        let id = if is_of_proxy {
            let (skill, tool) = ("git".to_owned(), "look".to_owned());
            let question = UserQuestion::Call { skill, tool, input: Map::new(), needs_user: true };
            let out = fixture.handle(Input::UserAsked { session: SessionKey(1), number: 1, question });
            assert_eq!(out.client()["params"]["toolCall"]["toolCallId"], "1");
            out.client()["id"].clone()
        } else {
            asks(&mut fixture);
            json!(7)
        };
        let harmless = json!({ "file": "README.md" });
        for (kind, name, input, expected) in [
            ("tool_call_update", "Read", &harmless, None),
            ("tool_call", "Read", &harmless, None),
            ("tool_call_update", tool, &json!({ "skill": "git", "tool": "list" }), None),
            ("tool_call_update", tool, &input, Some(&input)),
        ] {
            let mut update = call(name, input);
            update["sessionUpdate"] = kind.into();
            update["title"] = "Read README.md".into();
            update["kind"] = "read".into();
            let out = fixture.update("s", &update);
            let shown = &out.client()["params"]["update"];
            assert_eq!(
                (&shown["title"], &shown["kind"]),
                (&json!("git: look"), &json!("execute")),
                "{update}"
            );
            assert_eq!(shown.get("rawInput"), expected, "{update}");
        }
        // After the answer, the title belongs to the agent again, if the call is another one.
        let result = json!({ "outcome": { "outcome": "selected", "optionId": "no" } });
        fixture.client(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        let mut update = call("Read", &harmless);
        update["sessionUpdate"] = "tool_call".into();
        let out = fixture.update("s", &update);
        assert_eq!(out.client()["params"]["update"]["title"], "x");
    }
}

/// The client can pass another server of the same name.
#[test]
fn permissions_end_when_the_session_is_opened_again() {
    let opened = |fixture: &mut Fixture| {
        fixture.request(3, "session/load", &json!({ "sessionId": "s", "cwd": "/other", "mcpServers": [] }));
        fixture.respond(3, &json!({}));
    };
    let mut fixture = fixture(CLAUDE, policy());
    fixture.prompt(2, "s", &["hello"]);
    asks(&mut fixture);
    selects(&mut fixture, "always");
    assert!(is_allowed(&mut fixture));
    opened(&mut fixture);
    // Now the proxy asks, and the answer arrives after the session was opened once more.
    let (skill, tool) = ("git".to_owned(), "look".to_owned());
    let question = UserQuestion::Call { skill, tool, input: Map::new(), needs_user: true };
    let out = fixture.handle(Input::UserAsked { session: SessionKey(1), number: 1, question });
    let id = out.client()["id"].clone();
    opened(&mut fixture);
    let result = json!({ "outcome": { "outcome": "selected", "optionId": "always" } });
    fixture.client(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    assert!(!is_allowed(&mut fixture), "the answer was about the servers before");
}

/// The user may answer the question of the proxy after the turn was cancelled.
#[test]
fn a_late_answer_allows_no_later_calls() {
    for is_cancelled in [false, true] {
        let mut fixture = fixture(CLAUDE, policy());
        fixture.prompt(2, "s", &["hello"]);
        let (skill, tool) = ("git".to_owned(), "look".to_owned());
        let question = UserQuestion::Call { skill, tool, input: Map::new(), needs_user: true };
        let out = fixture.handle(Input::UserAsked { session: SessionKey(1), number: 1, question });
        let id = out.client()["id"].clone();
        if is_cancelled {
            ends(&mut fixture, End::Cancel);
        }
        let result = json!({ "outcome": { "outcome": "selected", "optionId": "always" } });
        fixture.client(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        assert_eq!(is_allowed(&mut fixture), !is_cancelled);
    }
}

/// Another skill can have the name, with another server.
#[test]
fn permissions_end_with_their_skill() {
    let git = |description: &str, scope| {
        let mut git = Skill::builder("git", description).body("x").build().unwrap();
        git.scope = scope;
        git
    };
    let other = || Skill::builder("other", "Is another one.").body("x").build().unwrap();
    for (now, stays) in [
        (vec![git("Reads.", Scope::User), other()], true),
        // The user edits the skill.
        (vec![git("Reads it.", Scope::User)], true),
        (vec![git("Reads it.", Scope::Project)], false),
        (vec![other()], false),
    ] {
        let mut fixture = fixture(CLAUDE, policy());
        fixture.notices([git("Reads.", Scope::User)].into_iter().collect());
        fixture.prompt(2, "s", &["hello"]);
        asks(&mut fixture);
        selects(&mut fixture, "always");
        assert!(is_allowed(&mut fixture));
        fixture.notices(now.into_iter().collect());
        fixture.notices([git("Reads.", Scope::User)].into_iter().collect());
        assert_eq!(is_allowed(&mut fixture), stays);
    }
}

/// Returns the answer to a form for which the client sends `result`.
fn form(result: &Value) -> UserAnswer {
    let capabilities =
        json!({ "protocolVersion": 1, "clientCapabilities": { "elicitation": { "form": {} } } });
    let mut fixture = Fixture::new(policy());
    fixture.request(0, "initialize", &capabilities);
    fixture.respond(0, &json!({ "protocolVersion": 1, "agentCapabilities": {} }));
    fixture.new_session(1, "s");
    let question = UserQuestion::Form {
        skill: "git".to_owned(),
        message: "Which?".to_owned(),
        schema: json!({ "type": "object" }),
    };
    let out = fixture.handle(Input::UserAsked { session: SessionKey(1), number: 1, question });
    let id = out.client()["id"].clone();
    fixture.client(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    fixture.host.user_answer.take().expect("an answer")
}

#[test]
fn answers_to_forms_have_content_only_if_the_client_sent_some() {
    for (result, expected) in [
        (
            json!({ "action": "accept", "content": { "a": null }, "_meta": {} }),
            Some(json!({ "action": "accept", "content": { "a": null } })),
        ),
        (json!({ "action": "decline" }), Some(json!({ "action": "decline" }))),
        (json!({ "action": "cancel", "content": null }), Some(json!({ "action": "cancel" }))),
        (json!({ "content": {} }), None),
    ] {
        let expected = expected.map_or(UserAnswer::Unavailable, UserAnswer::Form);
        assert_eq!(form(&result), expected, "{result}");
    }
}
