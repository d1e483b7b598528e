//! The drafts about skills: lists, and skills that a client brings.

use super::*;

fn world_of(names: &[&str], capabilities: &str) -> (World, String) {
    let policy = Policy { drafts: true, ..policy() };
    let mut world = World::with_skills(policy, skills(names));
    world.request(0, "initialize", &json!({ "protocolVersion": 1 }));
    let mut actions = Actions::default();
    let line =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{{\"protocolVersion\":1{capabilities}}}}}\n");
    let answer = match world.interceptor.from_agent(line.as_bytes(), &mut actions) {
        Pass::Edited(line) => String::from_utf8(line).unwrap(),
        _ => line,
    };
    (world, answer)
}

fn world(names: &[&str]) -> World {
    world_of(names, r#","agentCapabilities":{"mcpCapabilities":{"http":true}}"#).0
}

fn client_skill(name: &str) -> Value {
    json!({ "name": name, "description": format!("Brings {name}."), "content": format!("# {name}\nDo it.") })
}

fn new_session(world: &mut World, request: u64, more: &Value) -> Out {
    let mut params = json!({ "cwd": "/project", "mcpServers": [] });
    for (key, value) in more.as_object().unwrap() {
        params[key] = value.clone();
    }
    let out = world.request(request, "session/new", &params);
    if out.to_client.is_empty() {
        world.respond(request, &json!({ "sessionId": format!("s{request}") }));
    }
    out
}

fn list(world: &mut World, params: &Value) -> Value {
    let out = world.request(90, "skills/list", params);
    out.client().clone()
}

fn names(answer: &Value) -> Vec<&str> {
    let list = answer["result"]["skills"].as_array().unwrap_or_else(|| panic!("{answer}"));
    list.iter().map(|it| it["name"].as_str().unwrap()).collect()
}

#[test]
fn what_initialize_says() {
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
        // What the agent offers itself stays as it says it.
        (
            r#","agentCapabilities":{"sessionCapabilities":{"agentSkill":{"supported":true,"maxSkills":3},"skills":{}}}"#.to_owned(),
            r#","agentCapabilities":{"sessionCapabilities":{"agentSkill":{"supported":true,"maxSkills":3},"skills":{},"_meta":{"agentSkill":{"supported":true,"maxSkills":100}}}}"#.to_owned(),
        ),
        (
            r#","agentCapabilities":{"sessionCapabilities":{"agentSkill":{"supported":false},"_meta":{"x":1}}}"#.to_owned(),
            format!(r#","agentCapabilities":{{"sessionCapabilities":{{"agentSkill":{{"supported":true,"maxSkills":100}},"_meta":{{"x":1,{OURS}}},"skills":{{"list":{{}}}}}}}}"#),
        ),
    ] {
        let (_, answer) = world_of(&[], &before);
        let expected = format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{{\"protocolVersion\":1{after}}}}}\n");
        assert_eq!(answer, expected, "{before}");
    }
}

#[test]
fn skills_that_a_client_brings() {
    let mut world = world(&["review"]);
    let line = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/p", "agentSkills":[{"name":"deploy","content":"Do."}] ,"mcpServers":[],"x":1e3}}"#;
    let line = format!("{line}\n");
    let sent = world.as_the_agent_gets_it(&line);
    assert!(!sent.contains("agentSkills") && !sent.contains("deploy"), "{sent}");
    assert!(
        sent.starts_with(
            r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/p", "mcpServers":[{"#
        ) && sent.ends_with("],\"x\":1e3}}\n"),
        "{sent}"
    );
    world.respond(1, &json!({ "sessionId": "s1" }));
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "deploy"]);
    let out = world.prompt(2, "s1", &["hi"]);
    assert!(texts(out.agent())[0].contains("<name>deploy</name>"), "{out:?}");
    // Nobody else has it.
    new_session(&mut world, 3, &json!({}));
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review"]);
    // A reload keeps it, and so does a fork; `session/load` may say otherwise.
    world.notices(skills(&["review", "lint"]));
    world.request(4, "session/fork", &json!({ "sessionId": "s1", "cwd": "/p" }));
    world.respond(4, &json!({ "sessionId": "s4" }));
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "lint", "deploy"]);
    let load = |world: &mut World, request, more: Value| {
        let mut params = json!({ "sessionId": "s4", "cwd": "/p", "mcpServers": [] });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let out = world.request(request, "session/load", &params);
        assert!(!out.agent().to_string().contains("agentSkills"), "{out:?}");
        world.respond(request, &json!({}));
    };
    load(&mut world, 5, json!({ "_meta": { "agentSkills": [client_skill("other")], "y": 1 } }));
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "lint", "other"]);
    load(&mut world, 6, json!({}));
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "lint", "other"]);
    load(&mut world, 7, json!({ "agentSkills": [] }));
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "lint"]);
}

#[test]
fn a_session_with_nothing_else() {
    let mut world = world(&[]);
    let out = new_session(&mut world, 1, &json!({ "agentSkills": [client_skill("deploy")] }));
    assert_eq!(out.agent()["params"]["mcpServers"][0]["name"], "acp-skills");
    let out = world.request(2, "session/new", &json!({ "cwd": "/p", "mcpServers": [], "agentSkills": [] }));
    assert_eq!(out.agent()["params"], json!({ "cwd": "/p", "mcpServers": [] }));
}

#[test]
fn names_of_the_library_stay_the_librarys() {
    let mut world = world(&["review"]);
    new_session(&mut world, 1, &json!({ "agentSkills": [client_skill("Review"), client_skill("deploy")] }));
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "deploy"]);
    assert_eq!(
        list(&mut world, &json!({ "sessionId": "s1" }))["result"]["skills"][0]["description"],
        "Does review <well>."
    );
    // It is there when the library's goes.
    world.notices(skills(&[]));
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["Review", "deploy"]);
}

#[test]
fn what_is_wrong_with_them() {
    let with = |key: &str, value: Value| {
        let mut skill = client_skill("x");
        skill[key] = value;
        json!([skill])
    };
    let many: Vec<_> = (0..10_000).map(|number| client_skill(&format!("s{number}"))).collect();
    for (list, expected) in [
        (json!({}), "must be a list"),
        (json!("x"), "must be a list"),
        (json!([1]), "skill 1: must be an object"),
        (json!([{}]), "skill 1: `name` is missing"),
        (json!([{ "name": 1, "content": "x" }]), "skill 1: `name` must be a string"),
        (json!([{ "name": "\u{200b}", "content": "x" }]), "no visible character"),
        (json!([{ "name": "n".repeat(65), "content": "x" }]), "more than 64 characters"),
        (json!([client_skill("a"), { "name": "b" }]), "skill 2, `b`: `content` is missing"),
        (json!([client_skill("a"), client_skill("A")]), "skill 2, `A`: another skill has the same name"),
        (with("content", json!([])), "`content` must be a string"),
        (with("content", json!("---\nname: x\n---\n  \n")), "`content` is empty"),
        (with("content", json!("x".repeat(1024 * 1024 + 1))), "more than 1048576 bytes"),
        (with("mimeType", json!("text/html")), "`mimeType` must be `text/markdown`"),
        (with("priority", json!(101)), "must be a number from 0 to 100"),
        (with("priority", json!("50")), "must be a number from 0 to 100"),
        (with("version", json!(1)), "`version` must be a string"),
        (with("description", json!({})), "`description` must be a string"),
        (with("dependencies", json!([])), "`dependencies` must be an object"),
        (with("dependencies", json!({ "skills": "a" })), "`dependencies.skills` must be a list of names"),
        (
            with("dependencies", json!({ "mcpServers": [1] })),
            "`dependencies.mcpServers` must be a list of names",
        ),
        (json!(many), "more than 100 skills"),
    ] {
        for place in [json!({ "agentSkills": list }), json!({ "_meta": { "agentSkills": list } })] {
            let mut world = world(&["review"]);
            let out = new_session(&mut world, 1, &place);
            assert!(out.to_agent.is_empty(), "{expected}");
            let error = &out.client()["error"];
            assert_eq!(error["code"], -32602);
            assert!(error["message"].as_str().unwrap().contains(expected), "{expected}: {error}");
            // Nothing is left of it.
            new_session(&mut world, 2, &json!({}));
            assert_eq!((world.sessions(), world.outside.served.as_ref().unwrap().1.len()), (1, 1));
        }
    }
    let mut world = world(&[]);
    let twice =
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"agentSkills":[],"agentSkills":[]}}"#;
    let out = world.client_line(&format!("{twice}\n"));
    assert!(out.client()["error"]["message"].as_str().unwrap().contains("occurs twice"));
    let out = new_session(
        &mut world,
        2,
        &json!({ "agentSkills": [client_skill("a")], "_meta": { "agentSkills": [client_skill("a")] } }),
    );
    assert!(out.client()["error"]["message"].as_str().unwrap().contains("same name"), "{out:?}");
}

#[test]
fn what_the_text_of_one_comes_to() {
    let mut world = world(&[]);
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
        let out = new_session(&mut world, request, &skill(more));
        assert_eq!(out.to_agent.len(), 1, "{out:?}");
        let listed = list(&mut world, &json!({ "sessionId": format!("s{request}") }));
        assert_eq!(listed["result"]["skills"][0]["description"], description, "{listed}");
    }
}

#[test]
fn lists_of_skills() {
    let mut world = world(&["pdf", "review"]);
    // Without a session, what one without a directory would have.
    assert_eq!(names(&list(&mut world, &json!({}))), ["pdf", "review"]);
    new_session(&mut world, 1, &json!({ "agentSkills": [client_skill("deploy")] }));
    assert_eq!(names(&list(&mut world, &json!({ "sessionId": "s1" }))), ["pdf", "review", "deploy"]);
    world.prompt(2, "s1", &["/skills off pdf"]);
    let out = world.request(3, "_skills/list", &json!({ "sessionId": "s1" }));
    assert_eq!(names(out.client()), ["review", "deploy"]);
    assert!(out.to_agent.is_empty());
    let error = list(&mut world, &json!({ "sessionId": "nobody\u{1b}" }));
    assert_eq!(
        (&error["error"]["code"], &error["error"]["message"]),
        (&json!(-32602), &json!("there is no session `nobody\\u{1b}`"))
    );
    assert_eq!(list(&mut world, &json!({ "sessionId": 7 }))["error"]["code"], -32602);
}

#[test]
fn a_pending_list_can_be_cancelled() {
    let mut world = world(&["pdf"]);
    world.outside.is_slow = true;
    assert!(world.request(1, "skills/list", &json!({})).is_nothing());
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 1 } });
    let out = world.client(&cancel);
    assert_eq!(out.client()["error"]["code"], -32800);
    assert!(out.to_agent.is_empty(), "the agent has never got the request");
    assert!(world.answer().is_nothing());
    assert!(world.gone().is_empty());
}

#[test]
fn an_agent_that_lists_its_own() {
    let offer = r#","agentCapabilities":{"sessionCapabilities":{"skills":{}}}"#;
    let mut world = world_of(&["pdf", "review"], offer).0;
    new_session(&mut world, 1, &json!({}));
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
        let out = world.request(7, "skills/list", &params);
        assert_eq!(out.agent()["method"], "skills/list");
        let mut answer = answer;
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = 7.into();
        let out = world.agent(&answer);
        assert_eq!(names(out.client()), expected, "{params}");
        if expected[0] == "Review" {
            assert_eq!(out.client()["result"]["skills"][0], theirs[0]);
        }
    }
    // A list that is no object passes, with ours.
    world.request(8, "skills/list", &json!({ "sessionId": "s1" }));
    let out = world.respond(8, &theirs);
    assert_eq!(out.client()["result"].as_array().unwrap().len(), 2);
}

#[test]
fn an_agent_that_takes_them_itself() {
    let offer = r#","agentCapabilities":{"sessionCapabilities":{"agentSkill":{"supported":true}}}"#;
    let mut world = world_of(&["review"], offer).0;
    let out = new_session(
        &mut world,
        1,
        &json!({ "agentSkills": "whatever it is", "_meta": { "agentSkills": [client_skill("deploy")] } }),
    );
    assert_eq!(out.agent()["params"]["agentSkills"], "whatever it is");
    assert_eq!(out.agent()["params"]["_meta"], json!({}));
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "deploy"]);
}

#[test]
fn without_the_flag_nothing_is_seen() {
    let mut world = World::new(Policy { mcp: McpMode::Off, catalog_in: CatalogIn::Off, ..policy() });
    for line in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"skills/list","params":{ }}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"_skills/list","params":{"sessionId":"s"}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/p","mcpServers":[],"agentSkills":[{"name":7}],"agentSkills":1}}"#,
    ] {
        let line = format!("{line}\n");
        let mut actions = Actions::default();
        let sent = match world.interceptor.from_client(line.as_bytes(), &mut actions) {
            Pass::Untouched => line.clone(),
            Pass::Consumed => {
                let Some(Task::Ask(query)) = actions.tasks.pop() else { panic!() };
                let input = world.outside.answer(query).unwrap();
                world.interceptor.handle(input, &mut actions);
                String::from_utf8(actions.to_agent.remove(0)).unwrap()
            }
            Pass::Edited(line) => panic!("{line:?}"),
        };
        assert_eq!(sent, line);
    }
    let line = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":1}}\n";
    assert_eq!(world.interceptor.from_agent(line.as_bytes(), &mut Actions::default()), Pass::Untouched);
}
