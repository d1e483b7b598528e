//! A slow host: the messages that wait for it, those that do not, and their order.

use serde_json::json;

use super::*;

/// Returns a fixture with an open session `s` and a host that is slow from now on.
fn fixture() -> Fixture {
    let capabilities = json!({ "loadSession": true });
    let mut fixture = Fixture::new(policy()).initialized("x", &capabilities);
    fixture.new_session(1, "s");
    fixture.host.is_slow = true;
    fixture
}

fn cancel(session: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } })
}

fn cancel_request(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } })
}

/// Sends a request that sets up a session.
fn set_up(fixture: &mut Fixture, request: u64, method: &str, session: Option<&str>) -> Out {
    let mut params = json!({ "cwd": "/slow", "mcpServers": [] });
    if let Some(session) = session {
        params["sessionId"] = session.into();
    }
    fixture.request(request, method, &params)
}

fn ids(lines: &[Value]) -> Vec<&Value> {
    lines.iter().map(|line| &line["id"]).collect()
}

#[test]
fn other_sessions_do_not_wait() {
    for (method, session) in [
        ("session/new", None),
        ("session/load", Some("t")),
        ("session/resume", Some("t")),
        ("session/fork", Some("u")),
    ] {
        let mut fixture = fixture();
        assert!(set_up(&mut fixture, 2, method, session).is_nothing(), "{method}");
        // Make sure that we forward messages from the client …
        assert_eq!(fixture.prompt(3, "s", &["hello"]).to_agent.len(), 1, "{method}");
        assert_eq!(fixture.client(&cancel("s")).to_agent.len(), 1, "{method}");
        assert_eq!(fixture.request(4, "session/list", &json!({})).to_agent.len(), 1, "{method}");
        let answer = json!({ "jsonrpc": "2.0", "id": "from the agent", "result": {} });
        assert_eq!(fixture.client(&answer).to_agent.len(), 1, "{method}");
        // … as well as from the agent.
        let said =
            json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "a" } });
        assert_eq!(fixture.update("s", &said).to_client.len(), 1, "{method}");
        assert_eq!(fixture.respond(3, &json!({ "stopReason": "end_turn" })).to_client.len(), 1, "{method}");
        let out = fixture.answer();
        assert_eq!(ids(&out.to_agent), [&json!(2)], "{method}");
        assert_eq!(out.agent()["params"]["mcpServers"].as_array().unwrap().len(), 1, "{method}");
    }
}

#[test]
fn messages_of_the_same_session_wait_in_order() {
    let mut fixture = fixture();
    set_up(&mut fixture, 2, "session/load", Some("t"));
    assert!(fixture.request(3, "session/set_mode", &json!({ "sessionId": "t", "modeId": "x" })).is_nothing());
    assert!(fixture.prompt(4, "t", &["hello"]).is_nothing());
    let notification = json!({ "jsonrpc": "2.0", "method": "_note", "params": { "sessionId": "t" } });
    assert!(fixture.client(&notification).is_nothing());
    // A second `session/load` has to wait as well.
    assert!(set_up(&mut fixture, 5, "session/load", Some("t")).is_nothing());
    let out = fixture.answer();
    assert_eq!(ids(&out.to_agent), [&json!(2), &json!(3), &json!(4), &Value::Null, &json!(5)]);
    // The prompt includes the catalog.
    assert_eq!(texts(&out.to_agent[2]).len(), 2);
}

#[test]
fn a_prompt_waits_until_its_session_is_copied() {
    let mut fixture = fixture();
    set_up(&mut fixture, 2, "session/fork", Some("s"));
    assert!(fixture.prompt(3, "s", &["not in the copy"]).is_nothing());
    // A cancellation is handled right away. The agent is idle, so it doesn't need to know.
    let out = fixture.client(&cancel("s"));
    assert_eq!((ids(&out.to_client), out.to_agent.len()), (vec![&json!(3)], 0));
    assert_eq!(ids(&fixture.answer().to_agent), [&json!(2)]);
}

#[test]
fn requests_go_on_in_the_order_of_their_answers() {
    let mut fixture = fixture();
    set_up(&mut fixture, 2, "session/new", None);
    set_up(&mut fixture, 3, "session/load", Some("t"));
    fixture.host.questions.rotate_left(1);
    assert_eq!(ids(&fixture.answer().to_agent), [&json!(3)]);
    assert_eq!(ids(&fixture.answer().to_agent), [&json!(2)]);
    fixture.respond(2, &json!({ "sessionId": "n" }));
    fixture.respond(3, &json!({}));
    assert_eq!(fixture.sessions(), 3);
}

#[test]
fn pending_requests_can_be_cancelled() {
    let mut fixture = fixture();
    set_up(&mut fixture, 2, "session/load", Some("t"));
    fixture.prompt(3, "t", &["hello"]);
    fixture.request(4, "session/set_mode", &json!({ "sessionId": "t" }));
    let out = fixture.client(&cancel_request(3));
    assert_eq!((&out.client()["id"], &out.client()["error"]["code"]), (&json!(3), &json!(-32800)));
    // Messages in the queue are forwarded after this request is cancelled.
    let out = fixture.client(&cancel_request(2));
    assert_eq!((ids(&out.to_client), ids(&out.to_agent)), (vec![&json!(2)], vec![&json!(4)]));
    // The host answers too late, so we only close the server and do not send any messages.
    let out = fixture.answer();
    assert!(out.is_silence(), "{out:?}");
    assert_eq!(fixture.host.closed, [SessionKey(2)]);
    assert_eq!(
        ids(&fixture.gone().iter().collect::<Vec<_>>().into_iter().cloned().collect::<Vec<_>>()),
        [&json!(4)]
    );
}

#[test]
fn pending_requests_are_answered_when_the_agent_is_gone() {
    let mut fixture = fixture();
    set_up(&mut fixture, 2, "session/load", Some("t"));
    fixture.prompt(3, "t", &["hello"]);
    set_up(&mut fixture, 4, "session/new", None);
    assert_eq!(ids(&fixture.gone()), [&json!(2), &json!(3), &json!(4)]);
    // After that, nothing should happen when the host answers.
    assert!(fixture.answer().is_silence());
    assert!(fixture.answer().is_silence());
}

#[test]
fn pending_requests_are_sent_when_the_client_is_gone() {
    let mut fixture = fixture();
    set_up(&mut fixture, 2, "session/load", Some("t"));
    fixture.prompt(3, "t", &["hello"]);
    let out = fixture.handle(Input::ClientGone);
    assert_eq!(ids(&out.to_agent), [&json!(2), &json!(3)]);
    assert!(fixture.answer().is_nothing());
}

#[test]
fn a_reload_delays_only_its_own_session() {
    let mut fixture = fixture();
    fixture.host.is_slow = false;
    fixture.new_session(2, "t");
    fixture.host.is_slow = true;
    fixture.host.after_reload = Some(skills(&["review", "greet"]));
    assert!(fixture.prompt(3, "s", &["/skills reload"]).is_nothing());
    // A later prompt waits for the new skills, but prompts in a different session do not.
    assert!(fixture.prompt(4, "s", &["then"]).is_nothing());
    assert_eq!(fixture.prompt(5, "t", &["meanwhile"]).to_agent.len(), 1);
    let out = fixture.answer();
    let reply = out.to_client.iter().find(|line| {
        line["method"] == "session/update"
            && line["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
    });
    let text = reply.unwrap()["params"]["update"]["content"]["text"].as_str().unwrap();
    assert!(text.contains("New: `greet`"), "{text}");
    assert!(ids(&out.to_client).contains(&&json!(3)), "{out:?}");
    assert!(texts(out.agent())[0].contains("greet"), "{out:?}");
}

#[test]
fn a_reload_can_be_cancelled() {
    let mut fixture = fixture();
    fixture.prompt(2, "s", &["/skills reload"]);
    let out = fixture.client(&cancel("s"));
    assert_eq!(out.client(), &json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": "cancelled" } }));
    assert!(out.to_agent.is_empty());
    assert!(fixture.answer().is_nothing());
    // This command is not sent to the agent, even if the client is gone.
    fixture.prompt(3, "s", &["/skills reload"]);
    assert!(fixture.handle(Input::ClientGone).is_nothing());
}

#[test]
fn a_late_answer_does_not_bring_back_old_skills() {
    // Change the skills while a session is being set up, so that the host's answer is out of date.
    let mut fixture = fixture();
    set_up(&mut fixture, 2, "session/new", None);
    fixture.host.skills = skills(&["review", "greet"]);
    fixture.handle(Input::SkillsChanged(Duration::ZERO));
    let old = match fixture.host.questions.pop_front() {
        Some(Query::SetUp { session, ticket, needs }) => {
            let endpoint = needs.transport.map(|transport| Ok(fixture.host.open(session, transport)));
            let provisions = Provisions { skills: skills(&["review"]), endpoint, ..Provisions::default() };
            Input::SetUp { session, ticket, provisions }
        }
        other => panic!("{other:?}"),
    };
    // Report the change first, and then let the old answer arrive.
    fixture.answer();
    fixture.handle(old);
    fixture.respond(2, &json!({ "sessionId": "n" }));
    // Because of the old answer, we asked the host for the skills a second time.
    fixture.answer();
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "greet"]);
    assert!(fixture.host.questions.is_empty());
}

#[test]
fn a_session_that_opens_during_a_reload_is_refreshed() {
    let mut fixture = fixture();
    fixture.host.after_reload = Some(skills(&["review", "greet"]));
    fixture.prompt(2, "s", &["/skills reload"]);
    set_up(&mut fixture, 3, "session/new", None);
    // Finish setting up the session before the reload is done, so that it starts with the old skills.
    fixture.host.questions.rotate_left(1);
    fixture.answer();
    fixture.respond(3, &json!({ "sessionId": "n" }));
    fixture.answer();
    // The reload didn't include this session, so there is a separate query for it.
    fixture.answer();
    assert_eq!(fixture.host.served.as_ref().unwrap().1, ["review", "greet"]);
    assert!(fixture.host.questions.is_empty());
}

#[test]
fn the_directory_of_a_cancelled_setup_is_released() {
    let mut fixture = fixture();
    set_up(&mut fixture, 2, "session/new", None);
    fixture.client(&cancel_request(2));
    fixture.answer();
    assert_eq!(fixture.host.left, [Workspace::of("/slow")]);
    // Session `s` still uses its directory.
    fixture.request(3, "session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
    fixture.client(&cancel_request(3));
    fixture.answer();
    assert_eq!(fixture.host.left.len(), 1);
}
