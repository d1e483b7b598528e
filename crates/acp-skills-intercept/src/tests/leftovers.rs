//! State that ends with a turn, a request or a session.

use super::*;

const KEY: SessionKey = SessionKey(1);

fn fixture() -> Fixture {
    let mut fixture = Fixture::with_skills(policy(), skills(&["review"]))
        .initialized("x", &json!({ "loadSession": true, "sessionCapabilities": { "fork": {} } }));
    fixture.new_session(1, "s");
    fixture
}

fn cancel_request(fixture: &mut Fixture, request: u64) -> Out {
    let params = json!({ "requestId": request });
    fixture.client(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params }))
}

fn cancel_turn(fixture: &mut Fixture) -> Out {
    fixture.client(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } }))
}

/// A turn also ends if the agent never receives its prompt.
#[test]
fn each_turn_ends_for_the_host() {
    let mut fixture = fixture();
    fixture.prompt(2, "s", &["hello"]);
    assert_eq!(fixture.host.turns, [KEY]);
    fixture.respond(2, &json!({ "stopReason": "end_turn" }));
    assert!(fixture.host.turns.is_empty());
    fixture.prompt(3, "s", &["/review"]);
    assert_eq!(fixture.host.turns, [KEY]);
    cancel_turn(&mut fixture);
    assert!(fixture.host.turns.is_empty(), "cancelled");
    fixture.prompt(4, "s", &["/review"]);
    cancel_request(&mut fixture, 4);
    assert!(fixture.host.turns.is_empty(), "request cancelled");
    let ticket = fixture.prompt(5, "s", &["/review"]).ticket();
    let why = NotFetched { why: "no".to_owned(), failed: None };
    fixture.handle(Input::NotFetched { session: KEY, ticket, why });
    assert!(fixture.host.turns.is_empty(), "the skill cannot be read");
    // The turn of the first prompt goes on.
    fixture.prompt(6, "s", &["hello"]);
    fixture.prompt(7, "s", &["/review"]);
    cancel_request(&mut fixture, 7);
    assert!(!fixture.host.turns.is_empty());
    fixture.prompt(8, "s", &["/review"]);
    fixture.respond(6, &json!({ "stopReason": "end_turn" }));
    assert!(!fixture.host.turns.is_empty(), "a prompt is held");
}

#[test]
fn each_turn_of_version_2_ends_for_the_host() {
    let mut fixture = Fixture::new(policy()).initialized_v2("x", &json!({}));
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["hello"]);
    fixture.respond(2, &json!({}));
    assert_eq!(fixture.host.turns, [KEY]);
    let state = |state: &str| json!({ "sessionUpdate": "state_update", "state": state });
    fixture.update("s", &state("running"));
    assert_eq!(fixture.host.turns, [KEY]);
    fixture.update("s", &state("idle"));
    assert!(fixture.host.turns.is_empty());
}

/// The agent's list of commands came before the response, which was an error.
#[test]
fn commands_of_a_session_that_is_refused_are_forgotten() {
    let mut fixture = Fixture::new(Policy { mcp: McpMode::Off, ..policy() }).initialized("x", &json!({}));
    let params = json!({ "cwd": "/project", "mcpServers": [] });
    let list = json!([{ "name": "old", "description": "x" }]);
    let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": list });
    fixture.request(1, "session/new", &params);
    fixture.update("s", &update);
    fixture.refuse(1, -32603);
    fixture.request(2, "session/new", &params);
    let out = fixture.respond(2, &json!({ "sessionId": "s" }));
    let said = format!("{:?}", out.to_client);
    assert!(!said.contains("old"), "{said}");
}

/// The agent replays a forked session before the response with its id. The last message ends like the start of a mark.
#[test]
fn a_chunk_of_a_copy_is_sent_before_the_response() {
    let mut fixture = fixture();
    let params = json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] });
    fixture.request(2, "session/fork", &params);
    let content = json!({ "type": "text", "text": "is a <" });
    let chunk = json!({ "sessionUpdate": "user_message_chunk", "content": content });
    assert!(fixture.update("t", &chunk).is_nothing());
    let out = fixture.respond(2, &json!({ "sessionId": "t" }));
    assert_eq!(out.to_client[0]["params"]["update"]["content"]["text"], "is a <", "{out:?}");
    assert_eq!(out.to_client[1]["id"], 2);
}

/// The agent numbers the compactions of a session from the start when it opens the session again.
#[test]
fn the_id_of_a_compaction_counts_until_the_session_is_opened_again() {
    let mut fixture = fixture();
    let compacted = |fixture: &mut Fixture| {
        let update =
            json!({ "sessionUpdate": "compaction_update", "compactionId": "1", "status": "completed" });
        fixture.update("s", &update);
    };
    let is_told = |fixture: &mut Fixture, request: u64| {
        let is_told = texts(fixture.prompt(request, "s", &["hello"]).agent()).len() > 1;
        fixture.respond(request, &json!({ "stopReason": "end_turn" }));
        is_told
    };
    assert!(is_told(&mut fixture, 2));
    compacted(&mut fixture);
    assert!(is_told(&mut fixture, 3));
    compacted(&mut fixture);
    assert!(!is_told(&mut fixture, 4), "it is the same compaction");
    fixture.request(5, "session/load", &json!({ "sessionId": "s", "cwd": "/project", "mcpServers": [] }));
    fixture.respond(5, &json!({}));
    assert!(!is_told(&mut fixture, 6));
    compacted(&mut fixture);
    assert!(is_told(&mut fixture, 7));
}

/// Two prompts with texts for the model are sent before the turn of the first one is over.
#[test]
fn each_of_two_dropped_texts_is_sent_again() {
    for (dropped, expected) in [
        ([false, false], [false, false]),
        ([true, false], [true, true]),
        ([false, true], [false, true]),
        ([true, true], [true, true]),
    ] {
        let mut fixture = fixture();
        fixture.prompt(2, "s", &["hello"]);
        fixture.notices(skills(&["review", "pdf"]));
        assert!(texts(fixture.prompt(3, "s", &["more"]).agent())[0].contains("New: `pdf`"));
        for (request, dropped) in (2..).zip(dropped) {
            let stop = if dropped { "cancelled" } else { "end_turn" };
            fixture.respond(request, &json!({ "stopReason": stop }));
        }
        let out = fixture.prompt(4, "s", &["hello"]).agent().to_string();
        let told = [out.contains("available_skills"), out.contains("pdf")];
        assert_eq!(told, expected, "{dropped:?}: {out}");
    }
}
