//! Tests of the list of commands that the client shows.

use serde_json::{Value, json};

use super::*;

#[test]
fn commands_are_added_to_the_agents() {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    let line = r#"{"jsonrpc":"2.0", "method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_commands_update","availableCommands":[ {"name":"web","description":"Sear\u0063h","input":{"hint":"q"},"_meta":{"n":1.0}} ],"x":1}}}"#;
    let out = fixture.agent_line(&format!("{line}\n"));
    assert_eq!(sent(&out), ["skills", "review", "Plan-B", "secret", "web"]);
    let mut actions = Actions::default();
    let Pass::Edited(bytes) = fixture.interceptor.from_agent(line.as_bytes(), &mut actions) else { panic!() };
    let (before, after) = line.split_once('[').unwrap();
    let bytes = String::from_utf8(bytes).unwrap();
    assert!(bytes.starts_with(&format!("{before}[{{")) && bytes.ends_with(after), "{bytes}");
    assert_eq!(
        out.client()["params"]["update"]["availableCommands"][1],
        json!({ "name": "review", "description": "Does review.", "input": { "hint": "[file]" } })
    );
    assert!(out.client()["params"]["update"]["availableCommands"][2].get("input").is_none());
    // Our entries are added to any list.
    for (list, expected) in [
        (json!([]), vec!["skills", "review", "Plan-B", "secret"]),
        (Value::Null, vec!["skills", "review", "Plan-B", "secret"]),
        (
            json!([{ "name": "skills" }, { "name": "Review" }]),
            vec!["skill:review", "Plan-B", "secret", "skills", "Review"],
        ),
        (
            json!([{ "name": "plan-b list" }, { "name": "/secret" }]),
            vec!["skills", "review", "skill:Plan-B", "skill:secret", "plan-b list", "/secret"],
        ),
        // Remove entries that are derived from a prompt on our server.
        (
            json!([{ "name": "mcp__acp-skills__review" }, { "name": "mcp__other__review" }]),
            vec!["skills", "review", "Plan-B", "secret", "mcp__other__review"],
        ),
        // Qwen includes the name of the server for each prompt.
        (
            json!([{ "name": "review", "description": "x", "input": { "hint": "" },
                "_meta": { "source": "mcp-prompt", "sourceLabel": "MCP: acp-skills" } },
                { "name": "Plan-B", "description": "Does Plan-B.",
                "_meta": { "source": "mcp-prompt", "sourceLabel": "MCP: acp-skills-2" } },
                { "name": "secret", "description": "Does secret.", "_meta": { "source": "builtin" } }]),
            vec!["skills", "review", "skill:Plan-B", "skill:secret", "Plan-B", "secret"],
        ),
        // Some agents don't include the source of a prompt.
        (
            json!([{ "name": "/Review", "description": "[MCP] Does  review.", "_meta": { "n": 1 } },
                { "name": "secret", "description": "Keeps it." }, { "name": "web" }]),
            vec!["skills", "review", "Plan-B", "skill:secret", "secret", "web"],
        ),
    ] {
        let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": list });
        assert_eq!(sent(&fixture.update("s", &update)), expected, "{list}");
    }
    // Since we already got a list from the agent, we don't need to send one here.
    assert!(fixture.handle(Input::MenuTimerEnded(KEY)).is_nothing());
}

/// Users see our first commands as well as the agent's.
#[test]
fn many_skills_do_not_hide_the_agents_commands() {
    let names: Vec<_> = (1..=12).map(|number| format!("skill-{number}")).collect();
    let set = names.iter().map(|name| skill(name, |_| {})).collect();
    let mut fixture = Fixture::with_skills(policy(), set).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    for theirs in [vec!["web"], vec!["web", "mcp__acp-skills__skill-1"]] {
        let theirs: Vec<_> = theirs.iter().map(|name| json!({ "name": name, "description": "x" })).collect();
        let out = fixture.update("s", &commands(&theirs));
        let menu = sent(&out);
        assert_eq!((menu.len(), menu[0], menu[9], menu[10]), (14, "skills", "skill-9", "web"), "{menu:?}");
        assert_eq!(menu[11..], ["skill-10", "skill-11", "skill-12"]);
    }
}

#[test]
fn an_agent_without_commands_gets_ours() {
    let mut fixture = fixture();
    for (request, method, id, result) in [
        (1, "session/new", "a", json!({ "sessionId": "a" })),
        (2, "session/load", "b", json!({})),
        (3, "session/resume", "c", Value::Null),
        (4, "session/fork", "d", json!({ "sessionId": "d" })),
        // Load the session a second time.
        (5, "session/load", "b", json!({})),
    ] {
        let source = if method == "session/fork" { "a" } else { id };
        fixture.request(request, method, &json!({ "sessionId": source, "cwd": "/p", "mcpServers": [] }));
        let out = fixture.respond(request, &result);
        let [Task::MenuTimer { session: key, .. }] = out.tasks[..] else { panic!("{out:?}") };
        let out = fixture.handle(Input::MenuTimerEnded(key));
        assert_eq!(out.client()["params"]["sessionId"], id);
        assert_eq!(sent(&out), ["skills", "review", "Plan-B", "secret"]);
        assert!(fixture.handle(Input::MenuTimerEnded(key)).is_nothing());
    }
    fixture.request(6, "session/new", &json!({ "cwd": "/p", "mcpServers": [] }));
    assert!(fixture.refuse(6, -32000).tasks.is_empty());
}

/// Commands that the agent derives from our MCP prompts never count as its own commands.
#[test]
fn reflections_are_not_commands_of_the_agent() {
    let reflection = json!({ "name": "review", "description": "Does review.", "input": { "hint": "" },
        "_meta": { "source": "mcp-prompt", "sourceLabel": "MCP: acp-skills" } });
    let list = commands(&[json!({ "name": "web" }), reflection]);
    let invoked = |fixture: &mut Fixture| {
        let prompt = expanded(fixture, 20, &json!([text("/review x")]));
        assert_eq!(prompt.as_array().unwrap().last(), Some(&text("x")));
    };
    // The list arrives after our menu, and then it's sent a second time.
    let mut fixture = session(&["web"]);
    assert_eq!(sent(&fixture.update("s", &list)), ["skills", "review", "Plan-B", "secret", "web"]);
    invoked(&mut fixture);
    // The list arrives before the response with the id of the session.
    let mut fixture = self::fixture();
    fixture.request(1, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    fixture.update("s", &list);
    let out = fixture.respond(1, &json!({ "sessionId": "s" }));
    assert_eq!(menu(&out.to_client[1]), ["skills", "review", "Plan-B", "secret", "web"]);
    invoked(&mut fixture);
    // The session is being loaded, and the list arrives before and after the response.
    let mut fixture = self::fixture();
    fixture.request(1, "session/load", &json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] }));
    fixture.update("s", &list);
    fixture.respond(1, &json!({}));
    invoked(&mut fixture);
    assert_eq!(sent(&fixture.update("s", &list)), ["skills", "review", "Plan-B", "secret", "web"]);
}

#[test]
fn an_early_list_is_sent_again() {
    let mut fixture = fixture();
    fixture.request(1, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    let early = fixture.update("s", &commands(&[json!({ "name": "web", "x": 1 })]));
    assert_eq!(sent(&early), ["web"]);
    let out = fixture.respond(1, &json!({ "sessionId": "s" }));
    assert_eq!(out.to_client[0]["id"], 1);
    assert_eq!(menu(&out.to_client[1]), ["skills", "review", "Plan-B", "secret", "web"]);
    assert_eq!(out.to_client[1]["params"]["update"]["availableCommands"][4]["x"], 1);
    assert!(out.tasks.is_empty());
    // The client didn't open this session.
    assert_eq!(sent(&fixture.update("child", &commands(&[]))), Vec::<&str>::new());
}

#[test]
fn without_skills_there_is_no_menu() {
    let mut fixture = Fixture::with_skills(policy(), SkillSet::default()).initialized("x", &json!({}));
    fixture.request(1, "session/new", &json!({ "cwd": "/project" }));
    assert!(fixture.respond(1, &json!({ "sessionId": "s" })).tasks.is_empty());
    assert_eq!(sent(&fixture.update("s", &commands(&[]))), Vec::<&str>::new());
    assert_eq!(texts(fixture.prompt(2, "s", &["/skill:review"]).agent()), ["/skill:review"]);
    assert_eq!(texts(fixture.prompt(3, "s", &["$skills"]).agent()), ["$skills"]);
    // When the user asks for skills, we answer.
    let out = fixture.prompt(4, "s", &["/skills"]);
    assert!(out.to_agent.is_empty() && out.to_client[0].to_string().contains("No skills found"), "{out:?}");
    // But if the agent uses the same name for a command, leave it to the agent.
    fixture.update("s", &commands(&[json!({ "name": "skills", "description": "" })]));
    assert_eq!(texts(fixture.prompt(5, "s", &["/skills"]).agent()), ["/skills"]);
}
