//! The draft `available_skills_update`: the client's list of the skills of a session.

use super::*;

fn fixture(drafts: bool, names: &[&str]) -> Fixture {
    let policy = Policy { drafts, ..policy() };
    Fixture::with_skills(policy, skills(names))
        .initialized("x", &json!({ "mcpCapabilities": { "http": true } }))
}

/// Returns the names in the lists that the client gets.
fn lists(out: &Out) -> Vec<String> {
    let updates = out.to_client.iter().map(|line| &line["params"]["update"]);
    let lists = updates.filter(|update| update["sessionUpdate"] == "available_skills_update");
    lists
        .map(|update| {
            let skills = update["availableSkills"].as_array().unwrap();
            let names: Vec<_> = skills.iter().map(|skill| skill["name"].as_str().unwrap()).collect();
            names.join(" ")
        })
        .collect()
}

fn open(fixture: &mut Fixture, request: u64, id: &str) -> Out {
    fixture.request(request, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    fixture.respond(request, &json!({ "sessionId": id }))
}

#[test]
fn the_list_follows_the_response_and_each_change() {
    let mut fixture = fixture(true, &["pdf", "review"]);
    let out = open(&mut fixture, 1, "s");
    assert_eq!(out.to_client[0]["id"], 1, "first comes the response");
    assert_eq!(lists(&out), ["pdf review"]);
    let update = &out.to_client[1]["params"];
    assert_eq!(update["sessionId"], "s");
    let entry = json!({ "name": "pdf", "description": "Does pdf <well>." });
    assert_eq!(update["update"]["availableSkills"][0], entry);
    assert_eq!(lists(&fixture.notices(skills(&["pdf", "review", "lint"]))), ["pdf review lint"]);
    assert_eq!(lists(&fixture.prompt(2, "s", &["/skills off pdf"])), ["review lint"]);
    assert_eq!(lists(&fixture.notices(skills(&["pdf", "review", "lint"]))), [""; 0]);
    // An empty list replaces the previous list.
    assert_eq!(lists(&fixture.notices(skills(&[]))), [""]);
    assert_eq!(lists(&fixture.notices(skills(&["lint"]))), ["lint"]);
}

#[test]
fn nothing_is_sent_without_skills_or_without_the_flag() {
    let out = open(&mut fixture(true, &[]), 1, "s");
    assert_eq!(lists(&out), [""; 0]);
    let mut fixture = fixture(false, &["pdf"]);
    assert_eq!(lists(&open(&mut fixture, 1, "s")), [""; 0]);
    assert_eq!(lists(&fixture.notices(skills(&["lint"]))), [""; 0]);
    let line = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"available_skills_update","availableSkills":[ ]}}}"#;
    let line = format!("{line}\n");
    let pass = fixture.interceptor.from_agent(line.as_bytes(), &mut Actions::default());
    assert_eq!(pass, Pass::Untouched);
}

#[test]
fn the_agents_own_list_is_kept() {
    let theirs = |names: &[&str]| {
        let skills: Vec<_> = names.iter().map(|name| json!({ "name": name, "x": 1e3 })).collect();
        json!({ "sessionUpdate": "available_skills_update", "availableSkills": skills, "y": 1 })
    };
    let mut fixture = fixture(true, &["pdf", "review"]);
    // The agent may be faster than its response.
    fixture.request(1, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    assert_eq!(lists(&fixture.update("s", &theirs(&["its"]))), ["its"]);
    assert_eq!(lists(&fixture.respond(1, &json!({ "sessionId": "s" }))), ["its pdf review"]);
    let out = fixture.update("s", &theirs(&["Review", "own"]));
    assert_eq!(lists(&out), ["Review own pdf"]);
    assert_eq!(out.client()["params"]["update"]["y"], 1);
    assert_eq!(lists(&fixture.notices(skills(&["lint", "review"]))), ["Review own lint"]);
    // Lists of other sessions and invalid lists are forwarded.
    assert_eq!(lists(&fixture.update("unknown", &theirs(&["x"]))), ["x"]);
    let invalid = json!({ "sessionUpdate": "available_skills_update", "availableSkills": "none" });
    assert_eq!(fixture.update("s", &invalid).client()["params"]["update"], invalid);
}
