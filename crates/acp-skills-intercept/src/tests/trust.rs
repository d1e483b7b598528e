//! Skills that wait until the user has approved them.

use skills_core::set::Unapproved;

use super::*;

/// A world in which `review` is served, and these wait.
fn world(names: &[&str], form: &Value) -> World {
    let mut all = SkillSet::builder();
    all.extend(&skills(&["review"]));
    for name in names {
        let skill = Skill::builder(*name, format!("Does {name}.")).body("x").build().unwrap();
        all.add_unapproved(Unapproved::new(skill.into(), format!("hash of {name}")));
    }
    let mut world = World::with_skills(policy(), all.build());
    let capabilities = json!({ "elicitation": form });
    world.request(0, "initialize", &json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
    world.respond(
        0,
        &json!({ "protocolVersion": 1, "agentCapabilities": { "mcpCapabilities": { "http": true } } }),
    );
    world
}

/// Opens a session; returns what the client is asked.
fn open(world: &mut World, request: u64, id: &str) -> Vec<Value> {
    world.request(request, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    let out = world.respond(request, &json!({ "sessionId": id }));
    assert_eq!(out.to_client[0]["id"], request, "the response comes first");
    out.to_client.into_iter().filter(|it| it["method"] == "elicitation/create").collect()
}

fn says(out: &Out) -> String {
    let text = out.to_client.iter().find_map(|it| it["params"]["update"]["content"]["text"].as_str());
    text.unwrap_or_default().to_owned()
}

fn answer(world: &mut World, question: &Value, result: &Value) -> Out {
    world.client(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }))
}

#[test]
fn by_command() {
    let mut world = world(&["deploy", "Release Notes"], &json!({}));
    assert!(open(&mut world, 1, "s").is_empty(), "no form, no question");
    let said = says(&world.prompt(2, "s", &["/skills"]));
    assert!(said.contains("**Waiting for your trust**\n\n- `deploy`: Does deploy."), "{said}");
    for (words, expected) in [
        ("nothing", "No skill `nothing` waits for your approval. These do: `deploy`, `Release Notes`."),
        ("deploy review", "No skill `review` waits for your approval. These do: `deploy`, `Release Notes`."),
    ] {
        assert_eq!(says(&world.prompt(3, "s", &[&format!("/skills trust {words}")])), expected);
    }
    // It is no command, not in the catalog, and not served.
    let out = world.prompt(4, "s", &["/deploy now"]);
    let catalog = out.agent()["params"]["prompt"].to_string();
    assert!(catalog.contains("/deploy now") && !catalog.contains("Does deploy"), "{catalog}");
    world.respond(4, &json!({ "stopReason": "end_turn" }));
    let out = world.prompt(5, "s", &["/skills trust Release notes"]);
    assert_eq!(says(&out), "`Release Notes` is trusted, as it is now; what changes waits again.");
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "Release Notes"]);
    let out = world.prompt(6, "s", &["go on"]);
    assert!(texts(out.agent())[0].contains("Release Notes"), "{out:?}");
    let out = world.prompt(7, "s", &["/skills trust"]);
    assert_eq!(says(&out), "`deploy` is trusted, as it is now; what changes waits again.");
    assert_eq!(
        says(&world.prompt(8, "s", &["/skills trust"])),
        "No skill of this project waits for your approval."
    );
}

#[test]
fn the_client_asks_its_user() {
    let mut world = world(&["deploy", "lint"], &json!({ "form": {} }));
    let questions = open(&mut world, 1, "s");
    let [question] = &questions[..] else { panic!("{questions:?}") };
    let params = &question["params"];
    assert_eq!((&params["sessionId"], &params["mode"]), (&json!("s"), &json!("form")));
    let request: agent_client_protocol::v1::schema::CreateElicitationRequest =
        serde_json::from_value(params.clone()).expect("as the schema has it");
    assert!(
        request.message.contains("- deploy (") && request.message.contains("Does lint."),
        "{}",
        request.message
    );
    // Another session of the project need not ask the same.
    assert!(open(&mut world, 2, "t").is_empty());
    let out = answer(&mut world, question, &json!({ "action": "accept", "content": { "trust": true } }));
    assert!(out.to_agent.is_empty(), "the agent has asked nothing: {out:?}");
    assert_eq!(world.outside.decisions.len(), 1);
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "deploy", "lint"]);
    // A second answer is the agent's affair, as any other response.
    let out = answer(&mut world, question, &json!({ "action": "accept", "content": { "trust": true } }));
    assert_eq!(out.to_agent.len(), 1);
}

#[test]
fn what_is_no_yes() {
    for (result, decisions) in [
        (json!({ "action": "decline" }), vec![false]),
        (json!({ "action": "accept", "content": { "trust": false } }), vec![false]),
        (json!({ "action": "accept" }), vec![false]),
        (json!({ "action": "accept", "content": { "trust": "true" } }), vec![false]),
        (json!({ "action": "cancel" }), vec![]),
        (json!({ "action": "later" }), vec![]),
        (json!(null), vec![]),
    ] {
        let mut world = world(&["deploy"], &json!({ "form": {} }));
        let question = open(&mut world, 1, "s").remove(0);
        let out = answer(&mut world, &question, &result);
        assert!(out.to_agent.is_empty(), "{out:?}");
        let decided: Vec<_> = world.outside.decisions.iter().map(|it| it.1).collect();
        assert_eq!(decided, decisions, "{result}");
        assert_eq!(world.outside.served.as_ref().unwrap().1, ["review"], "{result}");
        // Nobody is asked again; the user may still say it.
        assert!(open(&mut world, 2, "t").is_empty());
        assert!(says(&world.prompt(3, "s", &["/skills trust deploy"])).contains("is trusted"));
    }
    // An error is no answer either.
    let mut world = world(&["deploy"], &json!({ "form": {} }));
    let question = open(&mut world, 1, "s").remove(0);
    let error =
        json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -32601, "message": "no" } });
    assert!(world.client(&error).to_agent.is_empty() && world.outside.decisions.is_empty());
}

#[test]
fn what_comes_while_the_session_is_open() {
    let mut world = world(&[], &json!({ "form": {} }));
    assert!(open(&mut world, 1, "s").is_empty());
    let mut now = SkillSet::builder();
    now.extend(&skills(&["review"]));
    let skill = Skill::builder("deploy", "Does it.").body("x").build().unwrap();
    now.add_unapproved(Unapproved::new(skill.into(), "1"));
    let out = world.notices(now.build());
    assert_eq!(out.to_client.iter().filter(|it| it["method"] == "elicitation/create").count(), 1, "{out:?}");
}

#[test]
fn a_session_that_has_nothing_else() {
    let mut world = World::with_skills(policy(), {
        let mut all = SkillSet::builder();
        let skill = Skill::builder("deploy", "Does it.").body("x").build().unwrap();
        all.add_unapproved(Unapproved::new(skill.into(), "1"));
        all.build()
    })
    .initialized("x", &json!({ "mcpCapabilities": { "http": true } }));
    let request = world.new_session(1, "s");
    // The server is there, for when it is trusted.
    assert_eq!(request["params"]["mcpServers"][0]["name"], "acp-skills");
    let said = says(&world.prompt(2, "s", &["/skills trust"]));
    assert!(said.starts_with("`deploy` is trusted"), "{said}");
    let out = world.prompt(3, "s", &["hello"]);
    assert!(texts(out.agent())[0].contains("deploy"), "{out:?}");
}
