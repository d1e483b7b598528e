//! Sessions that come and go, ids of all kinds, what comes back from the agent, and how it ends.

use serde_json::{Value, json};

use super::*;

fn world() -> World {
    World::new(policy()).initialized("x", &json!({}))
}

fn ours() -> String {
    Mark::new(1).wrap("<available_skills>…</available_skills>")
}

#[test]
fn several_sessions_at_once() {
    let mut world = world();
    let (a, b) = (world.new_session(1, "a"), world.new_session(2, "b"));
    assert_eq!(a["params"]["mcpServers"].as_array().unwrap().len(), 1);
    assert_eq!(b["params"]["mcpServers"].as_array().unwrap().len(), 1);
    assert_eq!(texts(world.prompt(3, "b", &["x"]).agent()).len(), 2);
    assert_eq!(texts(world.prompt(4, "a", &["x"]).agent()).len(), 2);
    assert_eq!(texts(world.prompt(5, "b", &["x"]).agent()).len(), 1);
}

#[test]
fn answers_may_come_in_any_order() {
    let mut world = world();
    let params = json!({ "cwd": "/p", "mcpServers": [] });
    world.request(1, "session/new", &params);
    world.request(2, "session/new", &params);
    world.respond(2, &json!({ "sessionId": "b" }));
    world.respond(1, &json!({ "sessionId": "a" }));
    assert_eq!(texts(world.prompt(3, "a", &["x"]).agent()).len(), 2);
}

#[test]
fn a_forked_session_was_told() {
    let mut world = world();
    world.new_session(1, "s");
    world.prompt(2, "s", &["x"]);
    world.request(3, "session/fork", &json!({ "sessionId": "s", "cwd": "/p" }));
    world.respond(3, &json!({ "sessionId": "f" }));
    assert_eq!(texts(world.prompt(4, "f", &["x"]).agent()), ["x"]);
    assert_eq!(world.sessions(), 2);
}

#[test]
fn a_loaded_session_keeps_what_it_has() {
    let mut world = world();
    let load = json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] });
    // This process never saw it.
    let first = world.request(1, "session/load", &load).agent()["params"]["mcpServers"].clone();
    world.respond(1, &Value::Null);
    assert_eq!(texts(world.prompt(2, "s", &["x"]).agent()).len(), 2);
    // Twice, and at once.
    let second = world.request(3, "session/load", &load).agent()["params"]["mcpServers"].clone();
    let third = world.request(4, "session/resume", &load).agent()["params"]["mcpServers"].clone();
    world.respond(4, &json!({}));
    world.respond(3, &json!({}));
    assert_eq!((&second, &third), (&first, &first));
    assert_eq!(texts(world.prompt(5, "s", &["x"]).agent()), ["x"]);
    assert_eq!(world.sessions(), 1);
    // A load that fails does not take away what is there.
    world.request(6, "session/load", &load);
    world.refuse(6, -32000);
    assert_eq!(world.sessions(), 1);
}

#[test]
fn closed_sessions_are_forgotten_and_may_come_back() {
    for method in ["session/close", "session/delete"] {
        let mut world = world();
        world.new_session(1, "s");
        world.prompt(2, "s", &["x"]);
        world.request(3, method, &json!({ "sessionId": "s" }));
        world.refuse(3, -32603);
        assert_eq!(world.sessions(), 1, "{method}: refused");
        world.request(4, method, &json!({ "sessionId": "s" }));
        world.respond(4, &json!({}));
        assert_eq!((world.sessions(), world.outside.closed.len()), (0, 1), "{method}");
        world.new_session(5, "s");
        assert_eq!(texts(world.prompt(6, "s", &["x"]).agent()).len(), 2, "{method}");
    }
}

#[test]
fn an_id_that_is_given_again_belongs_to_the_new_session() {
    let mut world = world();
    world.new_session(1, "s");
    world.new_session(2, "s");
    assert_eq!(world.sessions(), 1);
    assert_eq!(texts(world.prompt(3, "s", &["x"]).agent()).len(), 2);
}

#[test]
fn ids_of_all_kinds() {
    for id in [r#""a\u0062\"c""#, "-7", "123456789012345678901234567890", "1.50", r#""""#] {
        let mut world = world();
        let new =
            format!(r#"{{"id":{id},"method":"session/new","params":{{"cwd":"/p","mcpServers":[]}}}}"#) + "\n";
        world.client_line(&new);
        // The same id, from the agent: another request.
        let ask =
            format!(r#"{{"id":{id},"method":"fs/read_text_file","params":{{"sessionId":"s"}}}}"#) + "\n";
        assert_eq!(world.agent_line(&ask).to_client.len(), 1, "{id}");
        world.client_line(&(format!(r#"{{"id":{id},"result":{{}}}}"#) + "\n"));
        world.agent_line(&(format!(r#"{{"id":{id},"result":{{"sessionId":"s"}}}}"#) + "\n"));
        assert_eq!(texts(world.prompt(9, "s", &["x"]).agent()).len(), 2, "{id}");
        assert_eq!(world.gone().len(), 1, "{id}: the prompt is open");
    }
}

#[test]
fn errors_without_an_id_pass() {
    let mut world = world();
    let line = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"?\"}}\n";
    assert_eq!(world.client_line(line).to_agent.len(), 1);
    assert_eq!(world.agent_line(line).to_client.len(), 1);
}

#[test]
fn open_requests_are_answered_when_the_agent_is_gone() {
    let mut world = world();
    world.new_session(1, "s");
    world.prompt(2, "s", &["x"]);
    world.client_line("{\"id\":\"q\",\"method\":\"_custom\"}\n");
    let answers = world.gone();
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(ids, [json!(2), json!("q")]);
    assert_eq!(
        answers[0]["error"]["message"],
        "the agent exited with code 3 before it answered `session/prompt`"
    );
    assert!(world.gone().is_empty());
}

#[test]
fn a_server_of_each_session_has_its_own_name_where_the_agent_wants_that() {
    let mut world = world();
    let name = |out: &Out| out.agent()["params"]["mcpServers"][0]["name"].clone();
    let params = json!({ "cwd": "/p", "mcpServers": [] });
    assert_eq!(world.new_session(1, "a")["params"]["mcpServers"][0]["name"], "acp-skills");
    world.request(2, "session/new", &params);
    let refusal = json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32603, "message": "Internal error",
        "data": { "details": "Runtime MCP server 'acp-skills' is already registered with different settings" } } });
    let out = world.agent(&refusal);
    assert!(out.to_client.is_empty());
    assert_eq!(name(&out), "acp-skills-2");
    world.respond(2, &json!({ "sessionId": "b" }));
    assert!(world.outside.closed.is_empty());
    assert_eq!(texts(world.prompt(3, "b", &["x"]).agent()).len(), 2);
    // From now on at once; and a name stays.
    assert_eq!(name(&world.request(4, "session/new", &params)), "acp-skills-3");
    let load = |session: &str| json!({ "cwd": "/p", "mcpServers": [], "sessionId": session });
    assert_eq!(name(&world.request(5, "session/load", &load("a"))), "acp-skills");
    assert_eq!(name(&world.request(6, "session/load", &load("b"))), "acp-skills-2");
    // When that is not it, the session goes without.
    let out = world.agent(
        &json!({ "jsonrpc": "2.0", "id": 4, "error": { "code": -32603, "message": "acp-skills-3 is dead" } }),
    );
    assert_eq!(out.agent()["params"]["mcpServers"], json!([]));
    assert_eq!(world.refuse(4, -32603).to_client.len(), 1);
}

#[test]
fn what_a_forgotten_turn_told_is_told_again() {
    let stop = |reason: &str| json!({ "jsonrpc": "2.0", "id": 2, "result": { "stopReason": reason } });
    for (answer, again) in [
        (stop("end_turn"), false),
        (stop("max_tokens"), false),
        (stop("refusal"), true),
        (stop("cancelled"), true),
        (json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32603, "message": "overloaded" } }), true),
    ] {
        let mut world = world();
        world.new_session(1, "s");
        assert_eq!(texts(world.prompt(2, "s", &["x"]).agent()).len(), 2);
        world.agent(&answer);
        let blocks = if again { 2 } else { 1 };
        assert_eq!(texts(world.prompt(3, "s", &["y"]).agent()).len(), blocks, "{answer}");
        // Another turn that fails told nothing.
        world.respond(3, &json!({ "stopReason": "end_turn" }));
        world.prompt(4, "s", &["z"]);
        world.respond(4, &json!({ "stopReason": "cancelled" }));
        assert_eq!(texts(world.prompt(5, "s", &["y"]).agent()).len(), 1, "{answer}");
    }
}

#[test]
fn what_an_earlier_run_told_is_not_told_again() {
    let chunk = |text: &str| json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } });
    let mut before = world();
    before.new_session(1, "s");
    let first = before.prompt(2, "s", &["fix the bug"]);
    let told = texts(first.agent())[0].to_owned();
    let merged = format!("{told}fix the bug");
    let other = told.replace("review", "other");
    let flat = format!("{} fix the bug", told.split_whitespace().collect::<Vec<_>>().join(" "));
    for (chunks, blocks) in [
        (vec![told.as_str(), "fix the bug"], 1),
        (vec![merged.as_str()], 1),
        // With other skills, cut off, or not ours at all.
        (vec![other.as_str(), "fix the bug"], 2),
        // Flattened, merged, split.
        (vec![flat.as_str()], 1),
        (vec![&merged[..100], &merged[100..200], &merged[200..]], 1),
        (vec![&told[..100]], 2),
        (vec!["fix the bug"], 2),
    ] {
        let mut world = world();
        world.request(1, "session/load", &json!({ "sessionId": "s", "cwd": "/p", "mcpServers": [] }));
        for text in &chunks {
            world.update("s", &chunk(text));
        }
        world.respond(1, &Value::Null);
        assert_eq!(texts(world.prompt(2, "s", &["and now"]).agent()).len(), blocks, "{chunks:?}");
    }
}

#[test]
fn a_title_is_of_the_message_that_our_text_was_in() {
    let chunk = |text: &str| json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } });
    let cut =
        json!({ "sessionUpdate": "session_info_update", "title": format!("{} <avail", Mark::new(1).open()) });
    // A command comes first, and nothing of ours goes with it.
    let mut new = world();
    new.new_session(1, "s");
    new.prompt(2, "s", &["/compact"]);
    new.prompt(3, "s", &["fix the bug"]);
    new.prompt(4, "s", &["and the other"]);
    // Another run finds it in the history, before or behind later ones.
    for replayed in
        [vec!["/compact", &ours(), "fix the  bug", "and the other"], vec![&format!("{}fix the bug", ours())]]
    {
        let mut loaded = world();
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
fn initialize_may_come_again() {
    let mut world = world().initialized("x", &json!({ "mcpCapabilities": { "http": true } }));
    assert_eq!(world.new_session(1, "s")["params"]["mcpServers"][0]["type"], "http");
}

#[test]
fn our_text_does_not_come_back_in_history() {
    let chunk = |text: &str| json!({ "sessionUpdate": "user_message_chunk", "messageId": "m", "content": { "type": "text", "text": text } });
    let merged = format!("{}hello", ours());
    let mut world = world();
    // Of a session that nobody here knows: an earlier run put it in.
    assert!(world.update("old", &chunk(&ours())).is_nothing());
    assert_eq!(world.update("old", &chunk("hello")).client()["params"]["update"], chunk("hello"));
    assert_eq!(world.update("old", &chunk(&merged)).client()["params"]["update"], chunk("hello"));
    let image = json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "image", "data": "" } });
    assert_eq!(world.update("old", &image).to_client.len(), 1);
}

#[test]
fn what_was_kept_back_comes_before_what_follows() {
    let chunk = |text: &str| json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } });
    let said = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "a" } });
    let mut world = world();
    let open = format!("{} not closed", Mark::new(1).open());
    assert!(world.update("s", &chunk(&open)).is_nothing());
    assert!(world.update("s", &chunk("the user's own")).is_nothing());
    // Another session goes on.
    assert_eq!(world.update("other", &said).to_client.len(), 1);
    let out = world.update("s", &said);
    let updates: Vec<_> = out.to_client.iter().map(|line| line["params"]["update"].clone()).collect();
    assert_eq!(updates, [chunk(&open), chunk("the user's own"), said.clone()]);
    // The end of a replay is the answer to its request; what is answered meanwhile is not.
    world.request(76, "session/list", &json!({}));
    world.request(77, "session/load", &json!({ "sessionId": "s", "cwd": "/", "mcpServers": [] }));
    world.update("s", &chunk(&open));
    world.update("s", &chunk("mine"));
    assert_eq!(world.respond(76, &json!({ "sessions": [] })).to_client.len(), 1);
    assert_eq!(world.respond(77, &json!({})).to_client.len(), 3);
}

#[test]
fn a_title_is_not_of_another_proxys_text() {
    for (theirs, expected) in [
        ("<available_skills/>", "fix the bug"),
        ("<typed>/review <rest>fix the bug</rest></typed>\nDo it.", "/review fix the bug"),
    ] {
        let theirs = &Mark::new(0xffff_ffff).wrap(theirs);
        let mut world = world();
        world.new_session(1, "s");
        world.prompt(2, "s", &[theirs, "fix the bug"]);
        let cut = json!({ "sessionUpdate": "session_info_update", "title": format!("{} <avail", Mark::new(1).open()) });
        assert_eq!(world.update("s", &cut).client()["params"]["update"]["title"], expected);
    }
}

#[test]
fn titles_are_the_users() {
    let info =
        |title: &str| json!({ "sessionUpdate": "session_info_update", "title": title, "updatedAt": "now" });
    let mut world = world();
    world.new_session(1, "s");
    world.prompt(2, "s", &["  fix   the\nbug "]);
    let seen = |out: &Out| out.to_client[0]["params"]["update"].clone();
    assert_eq!(seen(&world.update("s", &info("Fix it"))), info("Fix it"));
    assert_eq!(seen(&world.update("s", &info(&format!("{}fix the bug", ours())))), info("fix the bug"));
    assert_eq!(
        seen(&world.update("s", &info(&format!("{} <available_sk…", Mark::new(1).open())))),
        info("fix the bug")
    );
    let untitled = json!({ "sessionUpdate": "session_info_update", "updatedAt": "now" });
    assert_eq!(seen(&world.update("unknown", &info(&format!("{} <av", Mark::new(1).open())))), untitled);
    // With nothing left to say, it is not said.
    let only =
        json!({ "sessionUpdate": "session_info_update", "title": format!("{} <av", Mark::new(1).open()) });
    assert!(world.update("unknown", &only).is_nothing());
}

#[test]
fn listed_titles_are_the_users() {
    let mut world = world();
    world.new_session(1, "s");
    world.prompt(2, "s", &["fix the bug"]);
    world.request(3, "session/list", &json!({}));
    let title = ours().replace('\n', " ");
    let out = world.respond(
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
fn mcp_over_acp_is_answered_only_for_our_server() {
    let mut world = World::new(policy()).initialized("x", &json!({ "mcpCapabilities": { "acp": true } }));
    world.new_session(1, "s");
    let ask = |id: &str| json!({ "jsonrpc": "2.0", "id": 5, "method": "mcp/message", "params": { "serverId": id, "requestId": "r", "method": "tools/list" } });
    assert_eq!(world.agent(&ask("theirs")).to_client.len(), 1);
    let out = world.agent(&ask("id-1"));
    assert!(out.is_nothing());
    assert!(matches!(&out.tasks[..], [Task::Mcp { session: SessionKey(1), .. }]), "{out:?}");
}

#[test]
fn lines_that_are_no_messages_do_not_reach_the_client() {
    let mut world = world();
    for line in ["Listening…\n", "\n", "{oops}\n"] {
        assert!(world.agent_line(line).is_nothing(), "{line}");
    }
    for line in ["[1,2]\n", "{\"method\":\"x\", broken\n"] {
        assert_eq!(world.agent_line(line).to_client.len(), 1, "{line}");
    }
    // What the client says is the agent's to judge.
    assert_eq!(world.client_line("oops\n").to_agent.len(), 1);
}
