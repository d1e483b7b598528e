//! Tests of calls of tools of MCP servers behind skills, from the agent's request for permission to the call.

use serde_json::{Map, Value, json};

use super::*;

/// The agent asks for permission to call `look`. Returns the id of the proxy's question to the user.
fn asks(fixture: &mut Fixture) -> Value {
    let call = call("mcp__acp-skills__call_skill_tool", &json!({ "skill": "git", "tool": "look" }));
    question(&ask(fixture, &call, None))
}

/// Returns the id of a question of the proxy in place of the agent.
fn question(out: &Out) -> Value {
    assert_eq!(outcome(out), "asked");
    let request = out.client();
    assert_eq!(request["method"], "session/request_permission");
    assert_eq!(request["params"]["toolCall"]["title"], "git: look");
    assert_ne!(request["id"], 7, "{request}");
    request["id"].clone()
}

/// The user selects an option. Returns the answer to the agent's request.
fn selects(fixture: &mut Fixture, question: &Value, option: &str) -> Value {
    let result = json!({ "outcome": { "outcome": "selected", "optionId": option } });
    let mut out = fixture.client(&json!({ "jsonrpc": "2.0", "id": question, "result": result }));
    assert!(out.to_client.is_empty() && out.to_agent.len() == 1, "{out:?}");
    let answer = out.to_agent.remove(0);
    assert_eq!(answer["id"], 7);
    answer["result"]["outcome"].clone()
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
        let question = asks(&mut fixture);
        (fixture, question)
    };
    let (mut fixture, question) = prompted();
    selects(&mut fixture, &question, "allow");
    assert!(is_allowed(&mut fixture) && !is_allowed(&mut fixture), "the answer counts once");
    for end in [End::Response, End::Error, End::Idle, End::Cancel] {
        // The turn ends before the user answers.
        let (mut fixture, question) = prompted();
        ends(&mut fixture, end);
        selects(&mut fixture, &question, "allow");
        fixture.prompt(3, "s", &["hello again"]);
        assert!(!is_allowed(&mut fixture), "{end:?}: the late answer counts in the next turn");
        // The turn ends after the answer, but the call has not arrived.
        let (mut fixture, question) = prompted();
        selects(&mut fixture, &question, "allow");
        ends(&mut fixture, end);
        fixture.prompt(3, "s", &["hello again"]);
        assert!(!is_allowed(&mut fixture), "{end:?}: the answer counts in the next turn");
        // A permission for all calls lasts as long as the session.
        let (mut fixture, question) = prompted();
        selects(&mut fixture, &question, "always");
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
        let out = ask(&mut fixture, &request, None);
        assert_eq!(outcome(&out), "asked");
        // If the skill and the tool are unknown, the client gets the agent's request.
        let id = out.client()["id"].clone();
        assert_eq!(id == 7, input == "no JSON");
        let result = json!({ "outcome": { "outcome": "selected", "optionId": "allow" } });
        fixture.client(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
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
            let id = out.client()["id"].clone();
            let is_ours = shown == "git: look";
            assert_eq!(id != 7, is_ours, "{titles:?}: {call}");
            let shown = if is_ours || titles == Titles::People { shown } else { "Call a tool of a skill" };
            assert_eq!(out.client()["params"]["toolCall"]["title"], shown);
            let result = json!({ "outcome": { "outcome": "selected", "optionId": "allow" } });
            fixture.client(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
            assert_eq!(is_allowed(&mut fixture), expected, "{titles:?}: {call}");
        }
    }
}

/// The proxy's question takes the place of the agent's, whatever the agent has written.
#[test]
fn the_user_is_asked_by_the_proxy() {
    let tool = "mcp__acp-skills__call_skill_tool";
    let input = json!({ "skill": "git", "tool": "look" });
    for id in [json!(null), json!(7), json!("x".repeat(2000)), json!("c")] {
        let mut fixture = fixture(CLAUDE, policy());
        fixture.prompt(2, "s", &["hello"]);
        let mut request = call(tool, &input);
        request["title"] = "Read README.md".into();
        if id.is_null() {
            request.as_object_mut().unwrap().remove("toolCallId");
        } else {
            request["toolCallId"] = id.clone();
        }
        let out = ask(&mut fixture, &request, None);
        let question = question(&out);
        let params = &out.client()["params"];
        let shown = if id == "c" { &id } else { &question };
        assert_eq!(&params["toolCall"]["toolCallId"], shown, "{request}");
        assert_eq!(params["toolCall"]["rawInput"], json!({ "skill": "git", "tool": "look", "input": {} }));
        let names: Vec<_> =
            params["options"].as_array().unwrap().iter().map(|option| &option["name"]).collect();
        assert_eq!(names, ["Allow", "Allow in this session", "Reject"]);
        selects(&mut fixture, &question, "allow");
        assert!(is_allowed(&mut fixture), "{request}");
    }
}

#[test]
fn the_agent_gets_its_own_option() {
    let selected = |option: &str| json!({ "outcome": "selected", "optionId": option });
    for (option, expected, is_allowed_later) in [
        ("allow", selected("proceed_once"), true),
        // The proxy remembers this. The agent's own option could allow all tools of our server, or change a mode of the agent.
        ("always", selected("proceed_once"), true),
        ("reject", selected("no"), false),
        ("?", selected("no"), false),
    ] {
        let mut fixture = fixture(CLAUDE, policy());
        fixture.prompt(2, "s", &["hello"]);
        let question = asks(&mut fixture);
        assert_eq!(selects(&mut fixture, &question, option), expected);
        assert_eq!(is_allowed(&mut fixture), is_allowed_later, "{option}");
        // The next request for the same tool is only answered if all calls are allowed.
        let input = json!({ "skill": "git", "tool": "look", "input": { "at": 1 } });
        let out = ask(&mut fixture, &call("mcp__acp-skills__call_skill_tool", &input), None);
        let expected = if option == "always" { "proceed_once" } else { "asked" };
        assert_eq!(outcome(&out), expected, "{option}");
    }
    let cancelled = json!({ "outcome": "cancelled" });
    for answer in [
        json!({ "result": { "outcome": cancelled } }),
        json!({ "error": { "code": -32800, "message": "cancelled" } }),
    ] {
        let mut fixture = fixture(CLAUDE, policy());
        fixture.prompt(2, "s", &["hello"]);
        let question = asks(&mut fixture);
        let mut answer = answer;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = question;
        let out = fixture.client(&answer);
        assert_eq!(out.to_agent.len(), 1, "{out:?}");
        let outcome = &out.to_agent[0]["result"]["outcome"];
        assert!(*outcome == cancelled || *outcome == selected("no"), "{out:?}");
        assert!(!is_allowed(&mut fixture));
    }
}

/// If the user has allowed all calls of a tool, an agent could ask about another tool in the words of this one. So each call that was
/// granted has to arrive at our server before the next one is granted.
#[test]
fn calls_that_are_allowed_for_the_session_are_granted_one_by_one() {
    let name = "mcp__acp-skills__call_skill_tool";
    let look = |at: u64| json!({ "skill": "git", "tool": "look", "input": { "at": at } });
    let mut fixture = fixture(CLAUDE, policy());
    fixture.prompt(2, "s", &["hello"]);
    let question = asks(&mut fixture);
    selects(&mut fixture, &question, "always");
    for at in 0..3 {
        assert_eq!(outcome(&ask(&mut fixture, &call(name, &look(at)), None)), "proceed_once");
        arrives(&mut fixture, "call_skill_tool", &look(at));
    }
    // Members that the tool doesn't have belong to another tool.
    let mut other = look(3);
    other["command"] = "x".into();
    assert_eq!(outcome(&ask(&mut fixture, &call(name, &other), None)), "asked");
    // The call of this request doesn't arrive, so the user is asked about all calls from then on.
    assert_eq!(outcome(&ask(&mut fixture, &call(name, &look(4)), None)), "proceed_once");
    ends(&mut fixture, End::Response);
    for at in 5..7 {
        assert_eq!(outcome(&ask(&mut fixture, &call(name, &look(at)), None)), "asked");
    }
}

/// An agent that uses an id twice, or cancels its request, gets no permission by an answer to another request.
#[test]
fn ids_of_the_agent_play_no_role() {
    let read = json!({ "toolCallId": "2", "title": "Read README.md", "kind": "read" });
    for is_cancelled in [true, false] {
        let mut fixture = fixture(CLAUDE, policy());
        fixture.prompt(2, "s", &["hello"]);
        let question = asks(&mut fixture);
        if is_cancelled {
            let params = json!({ "requestId": 7 });
            let out =
                fixture.agent(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params }));
            assert_eq!(out.client()["params"]["requestId"], question);
        }
        ask(&mut fixture, &read, None);
        let result = json!({ "outcome": { "outcome": "selected", "optionId": "proceed_once" } });
        fixture.client(&json!({ "jsonrpc": "2.0", "id": 7, "result": result }));
        assert!(!is_allowed(&mut fixture), "{is_cancelled}");
    }
}

/// A message that the client may read in another way could change what it shows.
#[test]
fn an_answer_after_an_unclear_message_does_not_count() {
    let update = r#""params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"Read README.md"}}"#;
    for (line, is_clear) in [
        (format!(r#"{{"jsonrpc":"2.0","method":"session/update",{update}}}"#), true),
        (format!(r#"{{"jsonrpc":"2.0","m\u0065thod":"session/update",{update}}}"#), false),
        (format!(r#"[{{"jsonrpc":"2.0","method":"session/update",{update}}}]"#), false),
        (format!(r#"{{"jsonrpc":"2.0","method":"x","method":"session/update",{update}}}"#), false),
    ] {
        for is_of_agent in [true, false] {
            let mut fixture = fixture(CLAUDE, policy());
            fixture.prompt(2, "s", &["hello"]);
            let question = if is_of_agent {
                asks(&mut fixture)
            } else {
                let (skill, tool) = ("git".to_owned(), "look".to_owned());
                let question = UserQuestion::Call { skill, tool, input: Map::new(), needs_user: true };
                let out = fixture.handle(Input::UserAsked { session: SessionKey(1), number: 1, question });
                out.client()["id"].clone()
            };
            let mut actions = Actions::default();
            fixture.interceptor.from_agent(line.as_bytes(), &mut actions);
            let result = json!({ "outcome": { "outcome": "selected", "optionId": "allow" } });
            fixture.client(&json!({ "jsonrpc": "2.0", "id": question, "result": result }));
            let is_counted = if is_of_agent {
                is_allowed(&mut fixture)
            } else {
                fixture.host.user_answer.take() == Some(UserAnswer::Allowed)
            };
            assert_eq!(is_counted, is_clear, "{line}");
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
            asks(&mut fixture)
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
        let result = json!({ "outcome": { "outcome": "selected", "optionId": "reject" } });
        fixture.client(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        let mut update = call("Read", &harmless);
        update["sessionUpdate"] = "tool_call".into();
        let out = fixture.update("s", &update);
        assert_eq!(out.client()["params"]["update"]["title"], "x");
    }
}

/// While the user is asked about a call, other questions about a call with the same id don't look like that question.
#[test]
fn a_second_question_keeps_the_title_of_the_first() {
    let tool = "mcp__acp-skills__call_skill_tool";
    let mut fixture = fixture(CLAUDE, policy());
    fixture.prompt(2, "s", &["hello"]);
    let id = asks(&mut fixture);
    let mut harmless = call("Read", &json!({ "file": "README.md" }));
    harmless["_meta"] = json!({ "claudeCode": { "toolName": "Read" } });
    harmless["kind"] = "read".into();
    let out = ask(&mut fixture, &harmless, None);
    let shown = &out.client()["params"]["toolCall"];
    assert_eq!((&shown["title"], &shown["kind"]), (&json!("git: look"), &json!("execute")), "{shown}");
    assert_eq!(shown.get("rawInput"), None);
    let out = ask(&mut fixture, &call(tool, &json!({ "skill": "git", "tool": "list" })), None);
    let shown = &out.client()["params"]["toolCall"];
    assert_eq!(shown["title"], "git: list");
    assert_ne!(shown["toolCallId"], "1");
    // After the answer, a question has the agent's title again.
    let result = json!({ "outcome": { "outcome": "selected", "optionId": "reject" } });
    fixture.client(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    let out = ask(&mut fixture, &harmless, None);
    assert_eq!(out.client()["params"]["toolCall"]["title"], "x");
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
    let question = asks(&mut fixture);
    selects(&mut fixture, &question, "always");
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
        let question = asks(&mut fixture);
        selects(&mut fixture, &question, "always");
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
