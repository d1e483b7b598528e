//! The drafts of the protocol about skills: lists, and skills that a client provides.

use super::*;

fn fixture_of(names: &[&str], capabilities: &str) -> (Fixture, String) {
    let policy = Policy { drafts: true, ..policy() };
    let mut fixture = Fixture::with_skills(policy, skills(names));
    fixture.request(0, "initialize", &json!({ "protocolVersion": 1 }));
    let mut actions = Actions::default();
    let line =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{{\"protocolVersion\":1{capabilities}}}}}\n");
    let answer = match fixture.interceptor.from_agent(line.as_bytes(), &mut actions) {
        Pass::Edited(line) => String::from_utf8(line).unwrap(),
        _ => line,
    };
    (fixture, answer)
}

fn fixture(names: &[&str]) -> Fixture {
    fixture_of(names, r#","agentCapabilities":{"mcpCapabilities":{"http":true}}"#).0
}

fn client_skill(name: &str) -> Value {
    json!({ "name": name, "description": format!("Brings {name}."), "content": format!("# {name}\nDo it.") })
}

fn new_session(fixture: &mut Fixture, request: u64, more: &Value) -> Out {
    let mut params = json!({ "cwd": "/project", "mcpServers": [] });
    for (key, value) in more.as_object().unwrap() {
        params[key] = value.clone();
    }
    let out = fixture.request(request, "session/new", &params);
    if out.to_client.is_empty() {
        fixture.respond(request, &json!({ "sessionId": format!("s{request}") }));
    }
    out
}

fn list(fixture: &mut Fixture, params: &Value) -> Value {
    let out = fixture.request(90, "skills/list", params);
    out.client().clone()
}

fn names(answer: &Value) -> Vec<&str> {
    let list = answer["result"]["skills"].as_array().unwrap_or_else(|| panic!("{answer}"));
    list.iter().map(|line| line["name"].as_str().unwrap()).collect()
}

#[test]
fn initialize_announces_the_drafts() {
    const OURS: &str = r#""skills":{"list":{}},"agentSkill":{"supported":true,"maxSkills":100}"#;
    let all = format!(r#"{OURS},"_meta":{{{OURS}}}"#);
    for (before, after) in [
        (String::new(), format!(r#","agentCapabilities":{{"sessionCapabilities":{{{all}}}}}"#)),
        (r#","agentCapabilities":null"#.to_owned(), format!(r#","agentCapabilities":{{"sessionCapabilities":{{{all}}}}}"#)),
        (r#","agentCapabilities":{ "x":1.10 }"#.to_owned(), format!(r#","agentCapabilities":{{ "x":1.10 ,"sessionCapabilities":{{{all}}}}}"#)),
        (
            r#","agentCapabilities":{"sessionCapabilities":{"list":{} }}"#.to_owned(),
            format!(r#","agentCapabilities":{{"sessionCapabilities":{{"list":{{}} ,{all}}}}}"#),
        ),
        // The agent supports this itself, so we must not change its capabilities.
        (
            r#","agentCapabilities":{"sessionCapabilities":{"agentSkill":{"supported":true,"maxSkills":3},"skills":{}}}"#.to_owned(),
            r#","agentCapabilities":{"sessionCapabilities":{"agentSkill":{"supported":true,"maxSkills":3},"skills":{},"_meta":{"agentSkill":{"supported":true,"maxSkills":100}}}}"#.to_owned(),
        ),
        (
            r#","agentCapabilities":{"sessionCapabilities":{"agentSkill":{"supported":false},"_meta":{"x":1}}}"#.to_owned(),
            format!(r#","agentCapabilities":{{"sessionCapabilities":{{"agentSkill":{{"supported":true,"maxSkills":100}},"_meta":{{"x":1,{OURS}}},"skills":{{"list":{{}}}}}}}}"#),
        ),
    ] {
        let (_, answer) = fixture_of(&[], &before);
        let expected = format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{{\"protocolVersion\":1{after}}}}}\n");
        assert_eq!(answer, expected, "{before}");
    }
}

#[test]
fn client_skills_belong_to_their_session() {
    let mut fixture = fixture(&["review"]);
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/p", "agentSkills":[{"name":"deploy","content":"Do."}] ,"mcpServers":[],"x":1e3}}"#;
    let line = format!("{line}\n");
    let sent = fixture.as_the_agent_gets_it(&line);
    assert!(!sent.contains("agentSkills") && !sent.contains("deploy"), "{sent}");
    assert!(
        sent.starts_with(
            r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/p", "mcpServers":[{"#
        ) && sent.ends_with("],\"x\":1e3}}\n"),
        "{sent}"
    );
    fixture.respond(1, &json!({ "sessionId": "s1" }));
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "deploy"]);
    let out = fixture.prompt(2, "s1", &["hi"]);
    assert!(texts(out.agent())[0].contains("<name>deploy</name>"), "{out:?}");
    // The skill is not available in other sessions.
    new_session(&mut fixture, 3, &json!({}));
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review"]);
    // The skill is kept on a reload and in a copy, but `session/load` can replace it.
    fixture.notices(skills(&["review", "lint"]));
    fixture.request(4, "session/fork", &json!({ "sessionId": "s1", "cwd": "/p" }));
    fixture.respond(4, &json!({ "sessionId": "s4" }));
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "lint", "deploy"]);
    let load = |fixture: &mut Fixture, request, more: Value| {
        let mut params = json!({ "sessionId": "s4", "cwd": "/p", "mcpServers": [] });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let out = fixture.request(request, "session/load", &params);
        assert!(!out.agent().to_string().contains("agentSkills"), "{out:?}");
        fixture.respond(request, &json!({}));
    };
    load(&mut fixture, 5, json!({ "_meta": { "agentSkills": [client_skill("other")], "y": 1 } }));
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "lint", "other"]);
    load(&mut fixture, 6, json!({}));
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "lint", "other"]);
    load(&mut fixture, 7, json!({ "agentSkills": [] }));
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "lint"]);
}

#[test]
fn a_session_can_have_only_client_skills() {
    let mut fixture = fixture(&[]);
    let out = new_session(&mut fixture, 1, &json!({ "agentSkills": [client_skill("deploy")] }));
    assert_eq!(out.agent()["params"]["mcpServers"][0]["name"], "acp-skills");
    let out = fixture.request(2, "session/new", &json!({ "cwd": "/p", "mcpServers": [], "agentSkills": [] }));
    assert_eq!(out.agent()["params"], json!({ "cwd": "/p", "mcpServers": [] }));
}

#[test]
fn skills_of_the_library_take_precedence() {
    let mut fixture = fixture(&["review"]);
    new_session(&mut fixture, 1, &json!({ "agentSkills": [client_skill("Review"), client_skill("deploy")] }));
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "deploy"]);
    assert_eq!(
        list(&mut fixture, &json!({ "sessionId": "s1" }))["result"]["skills"][0]["description"],
        "Does review <well>."
    );
    // After the skill is removed from the library, we use the one from the client.
    fixture.notices(skills(&[]));
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["Review", "deploy"]);
}

#[test]
fn invalid_skills_fail_the_request() {
    let with = |key: &str, value: Value| {
        let mut skill = client_skill("x");
        skill[key] = value;
        json!([skill])
    };
    let many: Vec<_> = (0..10_000).map(|number| client_skill(&format!("s{number}"))).collect();
    for (list, expected) in [
        (json!({}), "should be a list"),
        (json!("x"), "should be a list"),
        (json!([1]), "skill 1: should be an object"),
        (json!([{}]), "skill 1: `name` is missing"),
        (json!([{ "name": 1, "content": "x" }]), "skill 1: `name` should be a string"),
        (json!([{ "name": "\u{200b}", "content": "x" }]), "at least one visible character"),
        (json!([{ "name": "n".repeat(65), "content": "x" }]), "at most 64 characters"),
        (json!([client_skill("a"), { "name": "b" }]), "skill 2, `b`: `content` is missing"),
        (
            json!([client_skill("a"), client_skill("A")]),
            "skill 2, `A`: `name` is already used by another skill",
        ),
        (with("content", json!([])), "`content` should be a string"),
        (with("content", json!("---\nname: x\n---\n  \n")), "`content` is empty"),
        (with("content", json!("x".repeat(1024 * 1024 + 1))), "at most 1048576 bytes"),
        (with("mimeType", json!("text/html")), "`mimeType` should be `text/markdown`"),
        (with("priority", json!(101)), "should be a number from 0 to 100"),
        (with("priority", json!("50")), "should be a number from 0 to 100"),
        (with("version", json!(1)), "`version` should be a string"),
        (with("description", json!({})), "`description` should be a string"),
        (with("dependencies", json!([])), "`dependencies` should be an object"),
        (with("dependencies", json!({ "skills": "a" })), "`dependencies.skills` should be a list of names"),
        (
            with("dependencies", json!({ "mcpServers": [1] })),
            "`dependencies.mcpServers` should be a list of names",
        ),
        (json!(many), "at most 100 skills"),
    ] {
        for place in [json!({ "agentSkills": list }), json!({ "_meta": { "agentSkills": list } })] {
            let mut fixture = fixture(&["review"]);
            let out = new_session(&mut fixture, 1, &place);
            assert!(out.to_agent.is_empty(), "{expected}");
            let error = &out.client()["error"];
            assert_eq!(error["code"], -32602);
            assert!(error["message"].as_str().unwrap().contains(expected), "{expected}: {error}");
            // This should not affect the next session.
            new_session(&mut fixture, 2, &json!({}));
            assert_eq!((fixture.sessions(), fixture.host.served.as_ref().unwrap().1.len()), (1, 1));
        }
    }
    let mut fixture = fixture(&[]);
    let twice =
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"agentSkills":[],"agentSkills":[]}}"#;
    let out = fixture.client_line(&format!("{twice}\n"));
    assert!(out.client()["error"]["message"].as_str().unwrap().contains("duplicate field"));
    let out = new_session(
        &mut fixture,
        2,
        &json!({ "agentSkills": [client_skill("a")], "_meta": { "agentSkills": [client_skill("a")] } }),
    );
    assert!(
        out.client()["error"]["message"].as_str().unwrap().contains("already used by another skill"),
        "{out:?}"
    );
}

#[test]
fn descriptions_have_fallbacks() {
    let mut fixture = fixture(&[]);
    let skill = |more: Value| {
        let mut skill = json!({ "name": "x", "content": "\n# A title\nText.\n" });
        skill.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "agentSkills": [skill] })
    };
    let content = "---\nname: y\ndescription: From the front.\nallowed-tools: Read\n---\nBody.\n";
    let needs = json!({ "skills": ["x", "other"], "mcpServers": ["db"] });
    for (request, more, description) in [
        (1, json!({}), "A title"),
        (2, json!({ "description": "Said." }), "Said."),
        (3, json!({ "content": content, "files": { "../../etc/passwd": "x" } }), "From the front."),
        (
            4,
            json!({ "dependencies": needs, "priority": 100, "mimeType": "text/markdown; charset=utf-8" }),
            "A title",
        ),
    ] {
        let out = new_session(&mut fixture, request, &skill(more));
        assert_eq!(out.to_agent.len(), 1, "{out:?}");
        let listed = list(&mut fixture, &json!({ "sessionId": format!("s{request}") }));
        assert_eq!(listed["result"]["skills"][0]["description"], description, "{listed}");
    }
}

#[test]
fn skills_are_listed_by_session() {
    let mut fixture = fixture(&["pdf", "review"]);
    // Without a session, return the list for a session that doesn't have a working directory.
    assert_eq!(names(&list(&mut fixture, &json!({}))), ["pdf", "review"]);
    new_session(&mut fixture, 1, &json!({ "agentSkills": [client_skill("deploy")] }));
    assert_eq!(names(&list(&mut fixture, &json!({ "sessionId": "s1" }))), ["pdf", "review", "deploy"]);
    fixture.prompt(2, "s1", &["/skills off pdf"]);
    let out = fixture.request(3, "_skills/list", &json!({ "sessionId": "s1" }));
    assert_eq!(names(out.client()), ["review", "deploy"]);
    assert!(out.to_agent.is_empty());
    let error = list(&mut fixture, &json!({ "sessionId": "nobody\u{1b}" }));
    assert_eq!(
        (&error["error"]["code"], &error["error"]["message"]),
        (&json!(-32602), &json!("no session `nobody\\u{1b}` found"))
    );
    assert_eq!(list(&mut fixture, &json!({ "sessionId": 7 }))["error"]["code"], -32602);
}

#[test]
fn a_pending_list_can_be_cancelled() {
    let mut fixture = fixture(&["pdf"]);
    fixture.host.is_slow = true;
    assert!(fixture.request(1, "skills/list", &json!({})).is_nothing());
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 1 } });
    let out = fixture.client(&cancel);
    assert_eq!(out.client()["error"]["code"], -32800);
    assert!(out.to_agent.is_empty(), "the agent has never got the request");
    assert!(fixture.answer().is_nothing());
    assert!(fixture.gone().is_empty());
}

#[test]
fn our_skills_are_added_to_the_agents_list() {
    let offer = r#","agentCapabilities":{"sessionCapabilities":{"skills":{}}}"#;
    let mut fixture = fixture_of(&["pdf", "review"], offer).0;
    new_session(&mut fixture, 1, &json!({}));
    let theirs = json!([{ "name": "Review", "description": "Its own.", "x": 1.5 }]);
    for (params, answer, expected) in [
        (
            json!({ "sessionId": "s1" }),
            json!({ "result": { "skills": theirs, "y": 1 } }),
            vec!["Review", "pdf"],
        ),
        (json!({}), json!({ "result": { "skills": theirs } }), vec!["Review", "pdf"]),
        (
            json!({ "sessionId": "s1" }),
            json!({ "error": { "code": -32601, "message": "no" } }),
            vec!["pdf", "review"],
        ),
        (json!({}), json!({ "error": { "code": -32601, "message": "no" } }), vec!["pdf", "review"]),
        (json!({ "sessionId": "its own" }), json!({ "result": { "skills": theirs } }), vec!["Review"]),
    ] {
        let out = fixture.request(7, "skills/list", &params);
        assert_eq!(out.agent()["method"], "skills/list");
        let mut answer = answer;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = 7.into();
        let out = fixture.agent(&answer);
        assert_eq!(names(out.client()), expected, "{params}");
        if expected[0] == "Review" {
            assert_eq!(out.client()["result"]["skills"][0], theirs[0]);
        }
    }
    // Some agents return the list itself instead of an object.
    fixture.request(8, "skills/list", &json!({ "sessionId": "s1" }));
    let out = fixture.respond(8, &theirs);
    assert_eq!(out.client()["result"].as_array().unwrap().len(), 2);
}

#[test]
fn an_agent_with_support_gets_the_client_skills() {
    let offer = r#","agentCapabilities":{"sessionCapabilities":{"agentSkill":{"supported":true}}}"#;
    let mut fixture = fixture_of(&["review"], offer).0;
    let out = new_session(
        &mut fixture,
        1,
        &json!({ "agentSkills": "whatever it is", "_meta": { "agentSkills": [client_skill("deploy")] } }),
    );
    assert_eq!(out.agent()["params"]["agentSkills"], "whatever it is");
    assert_eq!(out.agent()["params"]["_meta"], json!({}));
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "deploy"]);
}

#[test]
fn drafts_are_off_by_default() {
    let mut fixture = Fixture::new(Policy { mcp: McpMode::Off, catalog_in: CatalogIn::Off, ..policy() });
    for line in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"skills/list","params":{ }}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"_skills/list","params":{"sessionId":"s"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/p","mcpServers":[],"agentSkills":[{"name":7}],"agentSkills":1}}"#,
    ] {
        let line = format!("{line}\n");
        let mut actions = Actions::default();
        let sent = match fixture.interceptor.from_client(line.as_bytes(), &mut actions) {
            Pass::Untouched => line.clone(),
            Pass::Consumed => {
                let Some(Task::Ask(query)) = actions.tasks.pop() else { panic!() };
                let input = fixture.host.answer(query).unwrap();
                fixture.interceptor.handle(input, &mut actions);
                String::from_utf8(actions.to_agent.remove(0)).unwrap()
            }
            Pass::Edited(line) => panic!("{line:?}"),
        };
        assert_eq!(sent, line);
    }
    let line = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":1}}\n";
    assert_eq!(fixture.interceptor.from_agent(line.as_bytes(), &mut Actions::default()), Pass::Untouched);
}
