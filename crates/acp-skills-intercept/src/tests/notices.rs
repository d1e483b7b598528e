//! Warnings for the user, which clients with support get as notices.

use super::*;

/// Opens a session whose server can't be opened, for a client with these capabilities. Returns what the client gets with the response.
fn after_response(capabilities: &Value) -> Vec<Value> {
    let mut fixture = Fixture::new(policy());
    let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
    fixture.request(0, "initialize", &params);
    let agent = json!({ "protocolVersion": 1, "agentCapabilities": { "mcpCapabilities": { "http": true } } });
    fixture.respond(0, &agent);
    fixture.host.is_slow = true;
    fixture.request(1, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    let Some(Query::SetUp { session, ticket, .. }) = fixture.host.questions.pop_front() else { panic!() };
    let endpoint = Some(Err(HostError("no \u{1b}loopback".to_owned())));
    let provisions = Provisions { skills: skills(&["review"]), endpoint, ..Provisions::default() };
    let out = fixture.handle(Input::SetUp { session, ticket, provisions });
    assert!(out.to_client.is_empty(), "the client doesn't know the session: {out:?}");
    let out = fixture.respond(1, &json!({ "sessionId": "s" }));
    assert_eq!(out.to_client[0]["id"], 1);
    out.to_client[1..].to_vec()
}

#[test]
fn a_client_with_support_gets_notices() {
    let with = json!({ "session": { "notices": {} } });
    let [notice] = &after_response(&with)[..] else { panic!() };
    let title = "Agent Skills: no MCP server for this session: no \\u{1b}loopback";
    let update = json!({ "sessionUpdate": "notice", "severity": "warning", "title": title });
    assert_eq!(notice["params"], json!({ "sessionId": "s", "update": update }));
    serde_json::from_value::<agent_client_protocol::v1::schema::SessionNotification>(
        notice["params"].clone(),
    )
    .unwrap();
    for without in [
        json!({}),
        json!({ "session": null }),
        json!({ "session": { "notices": null } }),
        json!({ "session": { "notices": true } }),
        json!({ "session": { "notices": "yes" } }),
    ] {
        assert_eq!(after_response(&without), Vec::<Value>::new(), "{without}");
    }
}

/// Our text is taken out of the notices of the agent.
#[test]
fn notices_of_the_agent_contain_nothing_of_ours() {
    let mut fixture = Fixture::new(policy()).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    let ours = Mark::new(7).wrap("<available_skills>");
    let update = json!({ "sessionUpdate": "notice", "severity": "info", "title": format!("{ours}Done"), "description": format!("It {ours}") });
    let out = fixture.update("s", &update);
    let update = &out.client()["params"]["update"];
    assert_eq!((&update["title"], &update["description"]), (&json!("Done"), &json!("It ")));
}
