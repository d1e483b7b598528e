//! Skills that need the user's approval.

mod listed;

use skills_core::set::Unapproved;

use super::*;

/// Returns a fixture with the approved skill `review` and these unapproved ones.
fn fixture(names: &[&str], form: &Value) -> Fixture {
    let mut all = SkillSet::builder();
    all.extend(&skills(&["review"]));
    for name in names {
        let skill = Skill::builder(*name, format!("Does {name}.")).body("x").build().unwrap();
        all.add_unapproved(Unapproved::new(skill.into(), format!("hash of {name}")));
    }
    let mut fixture = Fixture::with_skills(policy(), all.build());
    let capabilities = json!({ "elicitation": form, "session": { "notices": {} } });
    fixture.request(0, "initialize", &json!({ "protocolVersion": 1, "clientCapabilities": capabilities }));
    fixture.respond(
        0,
        &json!({ "protocolVersion": 1, "agentCapabilities": { "mcpCapabilities": { "http": true } } }),
    );
    fixture
}

/// Opens a session, and returns our requests to the client.
fn open(fixture: &mut Fixture, request: u64, id: &str) -> Vec<Value> {
    fixture.request(request, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    let out = fixture.respond(request, &json!({ "sessionId": id }));
    assert_eq!(out.to_client[0]["id"], request, "the response comes first");
    out.to_client.into_iter().filter(|line| line["method"] == "elicitation/create").collect()
}

fn says(out: &Out) -> String {
    let text = out.to_client.iter().find_map(|line| line["params"]["update"]["content"]["text"].as_str());
    text.unwrap_or_default().to_owned()
}

fn answer(fixture: &mut Fixture, question: &Value, result: &Value) -> Out {
    fixture.client(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }))
}

#[test]
fn a_command_approves_skills() {
    let mut fixture = fixture(&["deploy", "Release Notes"], &json!({}));
    assert!(open(&mut fixture, 1, "s").is_empty(), "no form, no question");
    let said = says(&fixture.prompt(2, "s", &["/skills"]));
    assert!(said.contains("**Waiting for your trust**\n\n- `deploy`: Does deploy."), "{said}");
    for (words, expected) in [
        (
            "nothing",
            "Skill `nothing` is not waiting for approval. Waiting for approval: `deploy`, `Release Notes`.",
        ),
        (
            "deploy review",
            "Skill `review` is not waiting for approval. Waiting for approval: `deploy`, `Release Notes`.",
        ),
    ] {
        assert_eq!(says(&fixture.prompt(3, "s", &[&format!("/skills trust {words}")])), expected);
    }
    // Until a skill is approved, it's not in the catalog or on the server, and you can't use it as a command.
    let out = fixture.prompt(4, "s", &["/deploy now"]);
    let catalog = out.agent()["params"]["prompt"].to_string();
    assert!(catalog.contains("/deploy now") && !catalog.contains("Does deploy"), "{catalog}");
    fixture.respond(4, &json!({ "stopReason": "end_turn" }));
    let out = fixture.prompt(5, "s", &["/skills trust Release notes"]);
    assert_eq!(says(&out), "`Release Notes` is trusted until the next change.");
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "Release Notes"]);
    let out = fixture.prompt(6, "s", &["go on"]);
    assert!(texts(out.agent())[0].contains("Release Notes"), "{out:?}");
    let out = fixture.prompt(7, "s", &["/skills trust"]);
    assert_eq!(says(&out), "`deploy` is trusted until the next change.");
    assert_eq!(
        says(&fixture.prompt(8, "s", &["/skills trust"])),
        "No skills from this project are waiting for approval."
    );
}

#[test]
fn a_path_is_not_a_name() {
    let mut fixture = fixture(&["home/p/review"], &json!({}));
    open(&mut fixture, 1, "s");
    fixture.prompt(2, "s", &["/skills"]);
    let said = says(&fixture.prompt(3, "s", &["/skills trust \"/home/p/review\""]));
    assert!(said.starts_with("Skill `/home/p/review` is not waiting"), "{said}");
    let said = says(&fixture.prompt(4, "s", &["/skills trust home/p/review"]));
    assert_eq!(said, "`home/p/review` is trusted until the next change.");
}

#[test]
fn a_form_approves_skills() {
    let mut fixture = fixture(&["deploy", "lint"], &json!({ "form": {} }));
    let questions = open(&mut fixture, 1, "s");
    let [question] = &questions[..] else { panic!("{questions:?}") };
    let params = &question["params"];
    assert_eq!((&params["sessionId"], &params["mode"]), (&json!("s"), &json!("form")));
    let request: agent_client_protocol::v1::schema::CreateElicitationRequest =
        serde_json::from_value(params.clone()).expect("as the schema has it");
    assert!(
        request.message.contains("- `deploy`: ") && request.message.contains("Does lint."),
        "{}",
        request.message
    );
    // The user is not asked a second time by another session in this project.
    assert!(open(&mut fixture, 2, "t").is_empty());
    let out = answer(&mut fixture, question, &json!({ "action": "accept", "content": { "trust": true } }));
    assert!(out.to_agent.is_empty(), "the agent has asked nothing: {out:?}");
    assert_eq!(fixture.host.decisions.len(), 1);
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "deploy", "lint"]);
    // A second response is simply forwarded to the agent.
    let out = answer(&mut fixture, question, &json!({ "action": "accept", "content": { "trust": true } }));
    assert_eq!(out.to_agent.len(), 1);
}

#[test]
fn declined_skills_are_only_trusted_by_name() {
    let mut fixture = fixture(&["deploy"], &json!({ "form": {} }));
    let question = open(&mut fixture, 1, "s").remove(0);
    answer(&mut fixture, &question, &json!({ "action": "decline" }));
    let said = says(&fixture.prompt(2, "s", &["/skills"]));
    assert!(said.contains("- `deploy` (declined): "), "{said}");
    let said = says(&fixture.prompt(3, "s", &["/skills trust"]));
    assert!(said.starts_with("Nothing was trusted, because you have declined"), "{said}");
    assert_eq!(fixture.host.decisions.len(), 1);
    let said = says(&fixture.prompt(4, "s", &["/skills trust deploy"]));
    assert_eq!(said, "`deploy` is trusted until the next change.");
}

#[test]
fn a_decision_that_is_not_saved_is_reported() {
    for (answers, expected) in [
        (
            json!({ "action": "decline" }),
            "Could not save that you declined skills, so you will be asked again: the disk is full.",
        ),
        (json!({ "action": "accept", "content": { "trust": true } }), "the disk is full"),
    ] {
        let mut fixture = fixture(&["deploy"], &json!({ "form": {} }));
        fixture.host.keeps_nothing = true;
        let question = open(&mut fixture, 1, "s").remove(0);
        let out = answer(&mut fixture, &question, &answers);
        let notices: Vec<_> =
            out.to_client.iter().filter_map(|line| line["params"]["update"]["title"].as_str()).collect();
        assert!(notices.iter().any(|title| title.contains(expected)), "{out:?}");
    }
}

#[test]
fn other_answers_do_not_approve() {
    for (result, decisions) in [
        (json!({ "action": "decline" }), &[false][..]),
        (json!({ "action": "accept", "content": { "trust": false } }), &[false]),
        (json!({ "action": "accept" }), &[false]),
        (json!({ "action": "accept", "content": { "trust": "true" } }), &[false]),
        (json!({ "action": "cancel" }), &[]),
        (json!({ "action": "later" }), &[]),
        (json!(null), &[]),
    ] {
        let mut fixture = fixture(&["deploy"], &json!({ "form": {} }));
        let question = open(&mut fixture, 1, "s").remove(0);
        let out = answer(&mut fixture, &question, &result);
        assert!(out.to_agent.is_empty(), "{out:?}");
        let decided: Vec<_> = fixture.host.decisions.iter().map(|line| line.1).collect();
        assert_eq!(decided, decisions, "{result}");
        assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review"], "{result}");
        // The user is not asked a second time, but the command still works. If the user has answered the form, they have seen
        // the skill. Otherwise, the command lists it first.
        assert!(open(&mut fixture, 2, "t").is_empty());
        let said = says(&fixture.prompt(3, "s", &["/skills trust deploy"]));
        assert_eq!(said.starts_with("`deploy` is trusted"), !decisions.is_empty(), "{result}: {said}");
        if decisions.is_empty() {
            assert!(
                says(&fixture.prompt(4, "s", &["/skills trust deploy"])).starts_with("`deploy` is trusted")
            );
        }
    }
    // An error should not approve the skill either.
    let mut fixture = fixture(&["deploy"], &json!({ "form": {} }));
    let question = open(&mut fixture, 1, "s").remove(0);
    let error =
        json!({ "jsonrpc": "2.0", "id": question["id"], "error": { "code": -32601, "message": "no" } });
    assert!(fixture.client(&error).to_agent.is_empty() && fixture.host.decisions.is_empty());
}

#[test]
fn a_new_skill_is_asked_about_in_an_open_session() {
    let mut fixture = fixture(&[], &json!({ "form": {} }));
    assert!(open(&mut fixture, 1, "s").is_empty());
    let mut now = SkillSet::builder();
    now.extend(&skills(&["review"]));
    let skill = Skill::builder("deploy", "Does it.").body("x").build().unwrap();
    now.add_unapproved(Unapproved::new(skill.into(), "1"));
    let out = fixture.notices(now.build());
    assert_eq!(
        out.to_client.iter().filter(|line| line["method"] == "elicitation/create").count(),
        1,
        "{out:?}"
    );
}

#[test]
fn a_session_can_have_only_unapproved_skills() {
    let mut fixture = Fixture::with_skills(policy(), {
        let mut all = SkillSet::builder();
        let skill = Skill::builder("deploy", "Does it.").body("x").build().unwrap();
        all.add_unapproved(Unapproved::new(skill.into(), "1"));
        all.build()
    })
    .initialized("x", &json!({ "mcpCapabilities": { "http": true } }));
    let request = fixture.new_session(1, "s");
    // The session gets a server, because the user might approve the skill later.
    assert_eq!(request["params"]["mcpServers"][0]["name"], "acp-skills");
    let said = says(&fixture.prompt(2, "s", &["/skills trust"]));
    assert!(said.contains("- `deploy`: Does it."), "{said}");
    let said = says(&fixture.prompt(2, "s", &["/skills trust"]));
    assert!(said.starts_with("`deploy` is trusted"), "{said}");
    let out = fixture.prompt(3, "s", &["hello"]);
    assert!(texts(out.agent())[0].contains("deploy"), "{out:?}");
}
