//! A world outside that takes its time: what waits for it, what does not, and in which order it goes on.

use serde_json::json;

use super::*;

/// A session `s` that is set up, and from now on a slow world.
fn world() -> World {
    let capabilities = json!({ "loadSession": true });
    let mut world = World::new(policy()).initialized("x", &capabilities);
    world.new_session(1, "s");
    world.outside.is_slow = true;
    world
}

fn cancel(session: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } })
}

fn cancel_request(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } })
}

/// A request that sets up a session, with its id when it has one.
fn set_up(world: &mut World, request: u64, method: &str, session: Option<&str>) -> Out {
    let mut params = json!({ "cwd": "/slow", "mcpServers": [] });
    if let Some(session) = session {
        params["sessionId"] = session.into();
    }
    world.request(request, method, &params)
}

fn ids(lines: &[Value]) -> Vec<&Value> {
    lines.iter().map(|line| &line["id"]).collect()
}

#[test]
fn others_do_not_wait() {
    for (method, session) in [
        ("session/new", None),
        ("session/load", Some("t")),
        ("session/resume", Some("t")),
        ("session/fork", Some("u")),
    ] {
        let mut world = world();
        assert!(set_up(&mut world, 2, method, session).is_nothing(), "{method}");
        // From the client …
        assert_eq!(world.prompt(3, "s", &["hello"]).to_agent.len(), 1, "{method}");
        assert_eq!(world.client(&cancel("s")).to_agent.len(), 1, "{method}");
        assert_eq!(world.request(4, "session/list", &json!({})).to_agent.len(), 1, "{method}");
        let answer = json!({ "jsonrpc": "2.0", "id": "from the agent", "result": {} });
        assert_eq!(world.client(&answer).to_agent.len(), 1, "{method}");
        // … and from the agent.
        let said =
            json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "a" } });
        assert_eq!(world.update("s", &said).to_client.len(), 1, "{method}");
        assert_eq!(world.respond(3, &json!({ "stopReason": "end_turn" })).to_client.len(), 1, "{method}");
        let out = world.answer();
        assert_eq!(ids(&out.to_agent), [&json!(2)], "{method}");
        assert_eq!(out.agent()["params"]["mcpServers"].as_array().unwrap().len(), 1, "{method}");
    }
}

#[test]
fn what_is_about_the_same_session_waits_in_order() {
    let mut world = world();
    set_up(&mut world, 2, "session/load", Some("t"));
    assert!(world.request(3, "session/set_mode", &json!({ "sessionId": "t", "modeId": "x" })).is_nothing());
    assert!(world.prompt(4, "t", &["hello"]).is_nothing());
    let notification = json!({ "jsonrpc": "2.0", "method": "_note", "params": { "sessionId": "t" } });
    assert!(world.client(&notification).is_nothing());
    // Loading it again waits too.
    assert!(set_up(&mut world, 5, "session/load", Some("t")).is_nothing());
    let out = world.answer();
    assert_eq!(ids(&out.to_agent), [&json!(2), &json!(3), &json!(4), &Value::Null, &json!(5)]);
    // The prompt was not sent bare.
    assert_eq!(texts(&out.to_agent[2]).len(), 2);
}

#[test]
fn a_copy_holds_back_what_would_be_copied() {
    let mut world = world();
    set_up(&mut world, 2, "session/fork", Some("s"));
    assert!(world.prompt(3, "s", &["not in the copy"]).is_nothing());
    // Whoever cancels does not wait, and nothing runs that the agent would have to end.
    let out = world.client(&cancel("s"));
    assert_eq!((ids(&out.to_client), out.to_agent.len()), (vec![&json!(3)], 0));
    assert_eq!(ids(&world.answer().to_agent), [&json!(2)]);
}

#[test]
fn several_at_once_go_on_as_their_answers_come() {
    let mut world = world();
    set_up(&mut world, 2, "session/new", None);
    set_up(&mut world, 3, "session/load", Some("t"));
    world.outside.questions.rotate_left(1);
    assert_eq!(ids(&world.answer().to_agent), [&json!(3)]);
    assert_eq!(ids(&world.answer().to_agent), [&json!(2)]);
    world.respond(2, &json!({ "sessionId": "n" }));
    world.respond(3, &json!({}));
    assert_eq!(world.sessions(), 3);
}

#[test]
fn what_waits_can_be_cancelled() {
    let mut world = world();
    set_up(&mut world, 2, "session/load", Some("t"));
    world.prompt(3, "t", &["hello"]);
    world.request(4, "session/set_mode", &json!({ "sessionId": "t" }));
    let out = world.client(&cancel_request(3));
    assert_eq!((&out.client()["id"], &out.client()["error"]["code"]), (&json!(3), &json!(-32800)));
    // What waited behind the request goes on without it.
    let out = world.client(&cancel_request(2));
    assert_eq!((ids(&out.to_client), ids(&out.to_agent)), (vec![&json!(2)], vec![&json!(4)]));
    // The answer comes too late: what was opened is closed, and nobody hears of it.
    let out = world.answer();
    assert!(out.is_silence(), "{out:?}");
    assert_eq!(world.outside.closed, [SessionKey(2)]);
    assert_eq!(
        ids(&world.gone().iter().collect::<Vec<_>>().into_iter().cloned().collect::<Vec<_>>()),
        [&json!(4)]
    );
}

#[test]
fn everything_that_waits_is_answered_when_the_agent_is_gone() {
    let mut world = world();
    set_up(&mut world, 2, "session/load", Some("t"));
    world.prompt(3, "t", &["hello"]);
    set_up(&mut world, 4, "session/new", None);
    assert_eq!(ids(&world.gone()), [&json!(2), &json!(3), &json!(4)]);
    // What comes too late is said to nobody.
    assert!(world.answer().is_silence());
    assert!(world.answer().is_silence());
}

#[test]
fn a_client_that_leaves_is_not_kept_waiting() {
    let mut world = world();
    set_up(&mut world, 2, "session/load", Some("t"));
    world.prompt(3, "t", &["hello"]);
    let out = world.handle(Input::ClientGone);
    assert_eq!(ids(&out.to_agent), [&json!(2), &json!(3)]);
    assert!(world.answer().is_nothing());
}

#[test]
fn a_reload_holds_up_its_own_session_alone() {
    let mut world = world();
    world.outside.is_slow = false;
    world.new_session(2, "t");
    world.outside.is_slow = true;
    world.outside.after_reload = Some(skills(&["review", "greet"]));
    assert!(world.prompt(3, "s", &["/skills reload"]).is_nothing());
    // A prompt that follows sees what was found; one of another session does not wait.
    assert!(world.prompt(4, "s", &["then"]).is_nothing());
    assert_eq!(world.prompt(5, "t", &["meanwhile"]).to_agent.len(), 1);
    let out = world.answer();
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
    let mut world = world();
    world.prompt(2, "s", &["/skills reload"]);
    let out = world.client(&cancel("s"));
    assert_eq!(out.client(), &json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": "cancelled" } }));
    assert!(out.to_agent.is_empty());
    assert!(world.answer().is_nothing());
    // Its user is gone: the agent never sees the command.
    world.prompt(3, "s", &["/skills reload"]);
    assert!(world.handle(Input::ClientGone).is_nothing());
}

#[test]
fn nobody_keeps_old_skills() {
    // A session asks, others change, and the answer is older than the change.
    let mut world = world();
    set_up(&mut world, 2, "session/new", None);
    world.outside.skills = skills(&["review", "greet"]);
    world.handle(Input::SkillsChanged(Duration::ZERO));
    let old = match world.outside.questions.pop_front() {
        Some(Query::SetUp { session, ticket, needs }) => {
            let endpoint = needs.transport.map(|transport| Ok(world.outside.open(session, transport)));
            let provisions = Provisions { skills: skills(&["review"]), endpoint, ..Provisions::default() };
            Input::SetUp { session, ticket, provisions }
        }
        other => panic!("{other:?}"),
    };
    // The change is told first, then the old answer comes.
    world.answer();
    world.handle(old);
    world.respond(2, &json!({ "sessionId": "n" }));
    // It has asked again by itself.
    world.answer();
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "greet"]);
    assert!(world.outside.questions.is_empty());
}

#[test]
fn a_session_that_comes_during_a_reload_is_not_forgotten() {
    let mut world = world();
    world.outside.after_reload = Some(skills(&["review", "greet"]));
    world.prompt(2, "s", &["/skills reload"]);
    set_up(&mut world, 3, "session/new", None);
    // Set up before the reload is over, with what there was.
    world.outside.questions.rotate_left(1);
    world.answer();
    world.respond(3, &json!({ "sessionId": "n" }));
    world.answer();
    // It is asked for by itself, because the reload did not know of it.
    world.answer();
    assert_eq!(world.outside.served.as_ref().unwrap().1, ["review", "greet"]);
    assert!(world.outside.questions.is_empty());
}
