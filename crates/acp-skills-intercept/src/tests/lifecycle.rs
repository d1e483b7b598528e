//! Sessions from start to end, ids of requests, our text in the agent's messages, and the end of the agent.

use serde_json::{Value, json};

use super::*;

fn fixture() -> Fixture {
    Fixture::new(policy()).initialized("x", &json!({}))
}

fn ours() -> String {
    Mark::new(1).wrap("<available_skills>…</available_skills>")
}

#[test]
fn several_sessions_can_be_open() {
    let mut fixture = fixture();
    let a = fixture.new_session(1, "a");
    let b = fixture.new_session(2, "b");
    assert_eq!(a["params"]["mcpServers"].as_array().unwrap().len(), 1);
    assert_eq!(b["params"]["mcpServers"].as_array().unwrap().len(), 1);
    assert_eq!(texts(fixture.prompt(3, "b", &["x"]).agent()).len(), 2);
    assert_eq!(texts(fixture.prompt(4, "a", &["x"]).agent()).len(), 2);
    assert_eq!(texts(fixture.prompt(5, "b", &["x"]).agent()).len(), 1);
}

#[test]
fn answers_can_come_in_any_order() {
    let mut fixture = fixture();
    let params = json!({ "cwd": "/p", "mcpServers": [] });
    fixture.request(1, "session/new", &params);
    fixture.request(2, "session/new", &params);
    fixture.respond(2, &json!({ "sessionId": "b" }));
    fixture.respond(1, &json!({ "sessionId": "a" }));
    assert_eq!(texts(fixture.prompt(3, "a", &["x"]).agent()).len(), 2);
}

#[test]
fn a_copied_session_has_the_catalog() {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["x"]);
    fixture.request(3, "session/fork", &json!({ "sessionId": "s", "cwd": "/p" }));
    fixture.respond(3, &json!({ "sessionId": "f" }));
    assert_eq!(texts(fixture.prompt(4, "f", &["x"]).agent()), ["x"]);
    assert_eq!(fixture.sessions(), 2);
}

#[test]
fn a_loaded_session_keeps_its_state() {
    let mut fixture = fixture();
    let load = json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] });
    // We haven't seen this session before.
    let first = fixture.request(1, "session/load", &load).agent()["params"]["mcpServers"].clone();
    fixture.respond(1, &Value::Null);
    assert_eq!(texts(fixture.prompt(2, "s", &["x"]).agent()).len(), 2);
    // Load it twice at the same time.
    let second = fixture.request(3, "session/load", &load).agent()["params"]["mcpServers"].clone();
    let third = fixture.request(4, "session/resume", &load).agent()["params"]["mcpServers"].clone();
    fixture.respond(4, &json!({}));
    fixture.respond(3, &json!({}));
    assert_eq!((&second, &third), (&first, &first));
    assert_eq!(texts(fixture.prompt(5, "s", &["x"]).agent()), ["x"]);
    assert_eq!(fixture.sessions(), 1);
    // A session should not be closed when it fails to load.
    fixture.request(6, "session/load", &load);
    fixture.refuse(6, -32000);
    assert_eq!(fixture.sessions(), 1);
}

#[test]
fn closed_sessions_can_be_opened_again() {
    for method in ["session/close", "session/delete"] {
        let mut fixture = fixture();
        fixture.new_session(1, "s");
        fixture.prompt(2, "s", &["x"]);
        fixture.request(3, method, &json!({ "sessionId": "s" }));
        fixture.refuse(3, -32603);
        assert_eq!(fixture.sessions(), 1, "{method}: refused");
        fixture.request(4, method, &json!({ "sessionId": "s" }));
        fixture.respond(4, &json!({}));
        assert_eq!((fixture.sessions(), fixture.host.closed.len()), (0, 1), "{method}");
        fixture.new_session(5, "s");
        assert_eq!(texts(fixture.prompt(6, "s", &["x"]).agent()).len(), 2, "{method}");
    }
}

#[test]
fn a_reused_id_belongs_to_the_new_session() {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    fixture.new_session(2, "s");
    assert_eq!(fixture.sessions(), 1);
    assert_eq!(texts(fixture.prompt(3, "s", &["x"]).agent()).len(), 2);
}

#[test]
fn request_ids_of_all_types_work() {
    for id in [r#""a\u0062\"c""#, "-7", "123456789012345678901234567890", "1.50", r#""""#] {
        let mut fixture = fixture();
        let new =
            format!(r#"{{"id":{id},"method":"session/new","params":{{"cwd":"/p","mcpServers":[]}}}}"#) + "\n";
        fixture.client_line(&new);
        // The agent could use the same id for a request.
        let ask =
            format!(r#"{{"id":{id},"method":"fs/read_text_file","params":{{"sessionId":"s"}}}}"#) + "\n";
        assert_eq!(fixture.agent_line(&ask).to_client.len(), 1, "{id}");
        fixture.client_line(&(format!(r#"{{"id":{id},"result":{{}}}}"#) + "\n"));
        fixture.agent_line(&(format!(r#"{{"id":{id},"result":{{"sessionId":"s"}}}}"#) + "\n"));
        assert_eq!(texts(fixture.prompt(9, "s", &["x"]).agent()).len(), 2, "{id}");
        assert_eq!(fixture.gone().len(), 1, "{id}: the prompt is open");
    }
}

#[test]
fn errors_without_an_id_are_forwarded() {
    let mut fixture = fixture();
    let line = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"?\"}}\n";
    assert_eq!(fixture.client_line(line).to_agent.len(), 1);
    assert_eq!(fixture.agent_line(line).to_client.len(), 1);
}

#[test]
fn open_requests_are_answered_when_the_agent_is_gone() {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["x"]);
    fixture.client_line("{\"id\":\"q\",\"method\":\"_custom\"}\n");
    let answers = fixture.gone();
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(2), json!("q")]);
    assert_eq!(
        answers[0]["error"]["message"],
        "the agent exited with code 3 before answering `session/prompt`"
    );
    assert!(fixture.gone().is_empty());
}

#[test]
fn servers_get_names_of_their_own_if_the_agent_needs_that() {
    let mut fixture = fixture();
    let name = |out: &Out| out.agent()["params"]["mcpServers"][0]["name"].clone();
    let params = json!({ "cwd": "/p", "mcpServers": [] });
    assert_eq!(fixture.new_session(1, "a")["params"]["mcpServers"][0]["name"], "acp-skills");
    fixture.request(2, "session/new", &params);
    let refusal = json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32603, "message": "Internal error",
        "data": { "details": "Runtime MCP server 'acp-skills' is already registered with different settings" } } });
    let out = fixture.agent(&refusal);
    assert!(out.to_client.is_empty());
    assert_eq!(name(&out), "acp-skills-2");
    fixture.respond(2, &json!({ "sessionId": "b" }));
    assert!(fixture.host.closed.is_empty());
    assert_eq!(texts(fixture.prompt(3, "b", &["x"]).agent()).len(), 2);
    // From here on, new sessions use a name with a number right away, and keep this name.
    assert_eq!(name(&fixture.request(4, "session/new", &params)), "acp-skills-3");
    let load = |session: &str| json!({ "cwd": "/p", "mcpServers": [], "sessionId": session });
    assert_eq!(name(&fixture.request(5, "session/load", &load("a"))), "acp-skills");
    assert_eq!(name(&fixture.request(6, "session/load", &load("b"))), "acp-skills-2");
    // When this name is refused as well, the session gets no server.
    let out = fixture.agent(
        &json!({ "jsonrpc": "2.0", "id": 4, "error": { "code": -32603, "message": "acp-skills-3 is dead" } }),
    );
    assert_eq!(out.agent()["params"]["mcpServers"], json!([]));
    assert_eq!(fixture.refuse(4, -32603).to_client.len(), 1);
}

#[test]
fn text_of_a_dropped_turn_is_sent_again() {
    let stop = |reason: &str| json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": reason } });
    for (answer, again) in [
        (stop("end_turn"), false),
        (stop("max_tokens"), false),
        (stop("refusal"), true),
        (stop("cancelled"), true),
        (json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32603, "message": "overloaded" } }), true),
    ] {
        let mut fixture = fixture();
        fixture.new_session(1, "s");
        assert_eq!(texts(fixture.prompt(2, "s", &["x"]).agent()).len(), 2);
        fixture.agent(&answer);
        let blocks = if again { 2 } else { 1 };
        assert_eq!(texts(fixture.prompt(3, "s", &["y"]).agent()).len(), blocks, "{answer}");
        // When a second turn fails, there is no text to send.
        fixture.respond(3, &json!({ "stopReason": "end_turn" }));
        fixture.prompt(4, "s", &["z"]);
        fixture.respond(4, &json!({ "stopReason": "cancelled" }));
        assert_eq!(texts(fixture.prompt(5, "s", &["y"]).agent()).len(), 1, "{answer}");
    }
}

#[test]
fn text_of_an_earlier_run_is_not_sent_again() {
    let chunk = |text: &str| json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } });
    let mut before = fixture();
    before.new_session(1, "s");
    let first = before.prompt(2, "s", &["fix the bug"]);
    let told = texts(first.agent())[0].to_owned();
    let merged = format!("{told}fix the bug");
    let other = told.replace("review", "other");
    let flat = format!("{} fix the bug", told.split_whitespace().collect::<Vec<_>>().join(" "));
    for (chunks, blocks) in [
        (vec![told.as_str(), "fix the bug"], 1),
        (vec![merged.as_str()], 1),
        // This catalog lists different skills, so the model has to get the new one.
        (vec![other.as_str(), "fix the bug"], 2),
        // This is the whole catalog, but on a single line or in parts. Below, it's truncated or missing.
        (vec![flat.as_str()], 1),
        (vec![&merged[..100], &merged[100..200], &merged[200..]], 1),
        (vec![&told[..100]], 2),
        (vec!["fix the bug"], 2),
    ] {
        let mut fixture = fixture();
        fixture.request(1, "session/load", &json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] }));
        for text in &chunks {
            fixture.update("s", &chunk(text));
        }
        fixture.respond(1, &Value::Null);
        assert_eq!(texts(fixture.prompt(2, "s", &["and now"]).agent()).len(), blocks, "{chunks:?}");
    }
}

#[test]
fn a_title_is_made_of_the_message_with_our_text() {
    let chunk = |text: &str| json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } });
    let cut =
        json!({ "sessionUpdate": "session_info_update", "title": format!("{} <avail", Mark::new(1).open()) });
    // The session starts with a command, and we don't add any text to it.
    let mut new = fixture();
    new.new_session(1, "s");
    new.prompt(2, "s", &["/compact"]);
    new.prompt(3, "s", &["fix the bug"]);
    new.prompt(4, "s", &["and the other"]);
    // When the history is replayed in a different run, the message should be found no matter where it is.
    for replayed in
        [vec!["/compact", &ours(), "fix the  bug", "and the other"], vec![&format!("{}fix the bug", ours())]]
    {
        let mut loaded = fixture();
        loaded.request(1, "session/load", &json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] }));
        for text in &replayed {
            loaded.update("s", &chunk(text));
        }
        loaded.respond(1, &json!({}));
        loaded.prompt(2, "s", &["third"]);
        let title = loaded.update("s", &cut).client()["params"]["update"]["title"].clone();
        assert_eq!(title, "fix the bug", "{replayed:?}");
    }
    assert_eq!(new.update("s", &cut).client()["params"]["update"]["title"], "fix the bug");
}

#[test]
fn initialize_can_be_sent_twice() {
    let mut fixture = fixture().initialized("x", &json!({ "mcpCapabilities": { "http": true } }));
    assert_eq!(fixture.new_session(1, "s")["params"]["mcpServers"][0]["type"], "http");
}

#[test]
fn history_does_not_contain_our_text() {
    let chunk = |text: &str| json!({ "sessionUpdate": "user_message_chunk", "messageId": "m", "content": { "type": "text", "text": text } });
    let merged = format!("{}hello", ours());
    let mut fixture = fixture();
    // We don't know this session, but it contains text from an earlier run.
    assert!(fixture.update("old", &chunk(&ours())).is_nothing());
    assert_eq!(fixture.update("old", &chunk("hello")).client()["params"]["update"], chunk("hello"));
    assert_eq!(fixture.update("old", &chunk(&merged)).client()["params"]["update"], chunk("hello"));
    let image = json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "image", "data": "" } });
    assert_eq!(fixture.update("old", &image).to_client.len(), 1);
}

#[test]
fn held_chunks_come_before_later_messages() {
    let chunk = |text: &str| json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } });
    let said = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "a" } });
    let mut fixture = fixture();
    let open = format!("{} not closed", Mark::new(1).open());
    assert!(fixture.update("s", &chunk(&open)).is_nothing());
    assert!(fixture.update("s", &chunk("the user's own")).is_nothing());
    // This should not delay messages from a different session.
    assert_eq!(fixture.update("other", &said).to_client.len(), 1);
    let out = fixture.update("s", &said);
    let updates: Vec<_> = out.to_client.iter().map(|line| line["params"]["update"].clone()).collect();
    assert_eq!(updates, [chunk(&open), chunk("the user's own"), said.clone()]);
    // A replay ends with the response to its request, and not with the response to some other request.
    fixture.request(76, "session/list", &json!({}));
    fixture.request(77, "session/load", &json!({ "sessionId": "s", "cwd": "/", "mcpServers": [] }));
    fixture.update("s", &chunk(&open));
    fixture.update("s", &chunk("mine"));
    assert_eq!(fixture.respond(76, &json!({ "sessions": [] })).to_client.len(), 1);
    assert_eq!(fixture.respond(77, &json!({})).to_client.len(), 3);
}

#[test]
fn a_title_is_not_made_of_another_proxys_text() {
    for (theirs, expected) in [
        ("<available_skills/>", "fix the bug"),
        ("<typed>/review <rest>fix the bug</rest></typed>\nDo it.", "/review fix the bug"),
    ] {
        let theirs = &Mark::new(0xffff_ffff).wrap(theirs);
        let mut fixture = fixture();
        fixture.new_session(1, "s");
        fixture.prompt(2, "s", &[theirs, "fix the bug"]);
        let cut = json!({ "sessionUpdate": "session_info_update", "title": format!("{} <avail", Mark::new(1).open()) });
        assert_eq!(fixture.update("s", &cut).client()["params"]["update"]["title"], expected);
    }
}

#[test]
fn titles_contain_only_the_users_words() {
    let info =
        |title: &str| json!({ "sessionUpdate": "session_info_update", "title": title, "updatedAt": "now" });
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["  fix   the\nbug "]);
    let seen = |out: &Out| out.to_client[0]["params"]["update"].clone();
    assert_eq!(seen(&fixture.update("s", &info("Fix it"))), info("Fix it"));
    assert_eq!(seen(&fixture.update("s", &info(&format!("{}fix the bug", ours())))), info("fix the bug"));
    assert_eq!(
        seen(&fixture.update("s", &info(&format!("{} <available_sk…", Mark::new(1).open())))),
        info("fix the bug")
    );
    let untitled = json!({ "sessionUpdate": "session_info_update", "updatedAt": "now" });
    assert_eq!(seen(&fixture.update("unknown", &info(&format!("{} <av", Mark::new(1).open())))), untitled);
    // There is nothing else in this update, so drop it.
    let only =
        json!({ "sessionUpdate": "session_info_update", "title": format!("{} <av", Mark::new(1).open()) });
    assert!(fixture.update("unknown", &only).is_nothing());
}

#[test]
fn listed_titles_contain_only_the_users_words() {
    let mut fixture = fixture();
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["fix the bug"]);
    fixture.request(3, "session/list", &json!({}));
    let title = ours().replace('\n', " ");
    let out = fixture.respond(
        3,
        &json!({ "sessions": [
        { "sessionId": "s", "title": format!("{} <avail…", Mark::new(1).open()), "n": 1 },
        { "sessionId": "t", "title": format!("{title}other"), "n": 2 },
        { "sessionId": "u", "title": Mark::new(1).open(), "n": 3 },
        { "sessionId": "v", "title": "clean" },
    ], "nextCursor": null }),
    );
    assert_eq!(
        out.client()["result"],
        json!({ "sessions": [
        { "sessionId": "s", "title": "fix the bug", "n": 1 },
        { "sessionId": "t", "title": "other", "n": 2 },
        { "sessionId": "u", "n": 3 },
        { "sessionId": "v", "title": "clean" },
    ], "nextCursor": null })
    );
}

#[test]
fn lines_that_are_not_messages_are_dropped() {
    let mut fixture = fixture();
    for line in ["Listening…\n", "\n", "{oops}\n"] {
        assert!(fixture.agent_line(line).is_nothing(), "{line}");
    }
    for line in ["[1,2]\n", "{\"method\":\"x\", broken\n"] {
        assert_eq!(fixture.agent_line(line).to_client.len(), 1, "{line}");
    }
    // Invalid lines from the client are forwarded, and the agent has to handle them.
    assert_eq!(fixture.client_line("oops\n").to_agent.len(), 1);
}

#[test]
fn held_prompts_are_cancelled_when_their_session_is_closed() {
    let policy = Policy { mcp_wait: Duration::from_secs(2), ..Policy::default() };
    let mut fixture = Fixture::new(policy).initialized("x", &json!({}));
    fixture.new_session(1, "s");
    fixture.prompt(2, "s", &["hello"]);
    fixture.request(3, "session/close", &json!({ "sessionId": "s" }));
    let out = fixture.respond(3, &json!({}));
    let ids: Vec<_> = out.to_client.iter().map(|line| line["id"].clone()).collect();
    assert_eq!(
        (ids, &out.to_client[0]["result"]["stopReason"]),
        (vec![json!(2), json!(3)], &json!("cancelled"))
    );
    assert!(fixture.gone().is_empty());
}
