//! The course of a turn in version 2 of the protocol: when it ends, what cancels it, and the turns of the proxy's own answers.

use super::*;

#[test]
fn a_state_update_ends_the_turn() {
    for (reason, is_told_again) in
        [("end_turn", false), ("max_tokens", false), ("cancelled", true), ("refusal", true), ("error", true)]
    {
        let mut fixture = session(fixture());
        assert_eq!(texts(fixture.prompt(2, "s", &["hello"]).agent()).len(), 2);
        // This state belongs to work from before the prompt, so it doesn't end the turn.
        fixture.update("s", &state("idle", Some("cancelled")));
        assert_eq!(
            fixture.respond(2, &json!({ "messageId": "m" })).client()["result"],
            json!({ "messageId": "m" })
        );
        fixture.update("s", &state("running", None));
        fixture.update("s", &state("requires_action", None));
        fixture.update("s", &state("idle", Some(reason)));
        let blocks = texts(fixture.prompt(3, "s", &["again"]).agent()).len();
        assert_eq!(blocks == 2, is_told_again, "{reason}");
    }
    // When a prompt is refused, the model hasn't seen it, so the next one includes the catalog.
    let mut fixture = session(fixture());
    fixture.prompt(2, "s", &["hello"]);
    fixture.refuse(2, -32602);
    assert_eq!(texts(fixture.prompt(3, "s", &["again"]).agent()).len(), 2);
}

fn cancel() -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } })
}

#[test]
fn held_prompts_are_cancelled() {
    let wait = Duration::from_secs(2);
    let fixture = Fixture::new(Policy { mcp_wait: wait, ..policy() });
    let mut fixture = session(fixture.initialized_v2("x", &json!({ "mcp": { "http": {} } })));
    assert!(fixture.prompt(2, "s", &["hello"]).is_nothing());
    let out = fixture.client(&cancel());
    // The client gets an error, and the prompt never becomes part of the conversation.
    assert_eq!((&out.client()["id"], &out.client()["error"]["code"]), (&json!(2), &json!(REQUEST_CANCELLED)));
    assert!(out.to_agent.is_empty());
    // The same happens when the session is closed.
    fixture.prompt(3, "s", &["hello"]);
    fixture.request(4, "session/close", &json!({ "sessionId": "s" }));
    let out = fixture.respond(4, &json!({}));
    assert_eq!(
        (&out.to_client[0]["id"], &out.to_client[0]["error"]["code"]),
        (&json!(3), &json!(REQUEST_CANCELLED))
    );
}

#[test]
fn a_cancellation_reaches_an_agent_without_an_open_prompt() {
    let mut fixture = session(fixture());
    fixture.prompt(2, "s", &["hello"]);
    fixture.respond(2, &json!({ "messageId": "m" }));
    // This prompt has to wait for the text of its skill.
    assert!(fixture.prompt(3, "s", &["/review"]).is_nothing());
    let out = fixture.client(&cancel());
    assert_eq!((&out.client()["id"], &out.agent()["method"]), (&json!(3), &json!("session/cancel")));
    fixture.update("s", &state("idle", Some("cancelled")));
    assert!(fixture.prompt(4, "s", &["/review"]).is_nothing());
    assert!(fixture.client(&cancel()).to_agent.is_empty());
}

#[test]
fn a_command_is_restored_in_echoes() {
    let mut fixture = session(fixture());
    let out = fixture.prompt(2, "s", &["/review src/main.rs"]);
    let [Task::Ask(Query::Fetch { session, ticket, .. })] = &out.tasks[..] else { panic!("{out:?}") };
    let out = fixture.handle(Input::Fetched {
        session: *session,
        ticket: *ticket,
        fetched: Fetched { text: Some("Do it.".into()), ..Fetched::default() },
    });
    let sent = &out.agent()["params"]["prompt"];
    assert!(!sent.to_string().contains("/review src"), "{sent}");
    let echo = json!({ "sessionUpdate": "user_message", "messageId": "m", "content": sent });
    let out = fixture.update("s", &echo);
    assert_eq!(updates(&out)[0]["content"], json!([text("/review src/main.rs")]));
}

/// Summarizes the messages with which the proxy answers a prompt itself.
fn said(out: &Out) -> Vec<String> {
    let kind = |line: &Value| match &line["params"]["update"] {
        Value::Null => {
            is::<PromptResponse>(&line["result"]);
            "response".to_owned()
        }
        update => {
            is::<UpdateSessionNotification>(&line["params"]);
            let words =
                ["sessionUpdate", "state", "stopReason"].map(|key| update[key].as_str().unwrap_or_default());
            words.join(" ").trim_end().to_owned()
        }
    };
    out.to_client.iter().map(kind).collect()
}

#[test]
fn our_own_answers_look_like_a_turn() {
    let mut fixture = session(fixture());
    let image = json!({ "type": "image", "data": "", "mimeType": "image/png" });
    let prompt = json!([text("/skills"), image]);
    let skills = |fixture: &mut Fixture, id| {
        let out = fixture.request(id, "session/prompt", &json!({ "sessionId": "s", "prompt": prompt }));
        assert!(out.to_agent.is_empty());
        out
    };
    let out = skills(&mut fixture, 2);
    assert_eq!(
        said(&out),
        ["user_message", "response", "state_update running", "agent_message", "state_update idle end_turn"]
    );
    let id = &out.to_client[1]["result"]["messageId"];
    let [echo, _, message, _] = updates(&out)[..] else { panic!("{out:?}") };
    assert_eq!((&echo["messageId"], &echo["content"]), (id, &prompt));
    assert!(message["content"][0]["text"].as_str().unwrap().starts_with("**1 skill in this session**"));
    // Message ids should be unique, including those from a different run of the proxy.
    assert_ne!(&skills(&mut fixture, 3).to_client[1]["result"]["messageId"], id);
    let mut other = session(self::fixture());
    assert_ne!(&skills(&mut other, 2).to_client[1]["result"]["messageId"], id);
    // While the agent is running, it reports the state itself. After that, we report the state, and repeat the agent's
    // background work.
    fixture.update("s", &state("running", None));
    assert_eq!(said(&skills(&mut fixture, 4)), ["user_message", "response", "agent_message"]);
    let mut idle = state("idle", None);
    idle["background"] = json!([{ "type": "terminal", "terminalId": "t" }]);
    fixture.update("s", &idle);
    let out = skills(&mut fixture, 5);
    let states = updates(&out).into_iter().filter(|update| update["sessionUpdate"] == "state_update");
    assert_eq!(
        states.map(|state| &state["background"]).collect::<Vec<_>>(),
        [&idle["background"], &idle["background"]]
    );
}

#[test]
fn a_command_that_fails_looks_like_a_turn() {
    let mut fixture = session(fixture());
    let out = fixture.prompt(2, "s", &["/review"]);
    let [Task::Ask(Query::Fetch { ticket, .. })] = out.tasks[..] else { panic!("{out:?}") };
    let out = fixture.handle(Input::NotFetched {
        session: KEY,
        ticket,
        why: NotFetched { why: "No such file.".to_owned(), failed: None },
    });
    assert_eq!(said(&out).len(), 5);
    assert_eq!(updates(&out)[0]["content"], json!([text("/review")]));
}
