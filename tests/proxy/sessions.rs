//! The life cycle of sessions: new, load, resume, fork and close; and how our text is removed from what the agent sends
//! back.

use serde_json::{Value, json};

use crate::{
    editor::Proxy,
    fixture::{Fixture, MCP_2025, cwd, entry, texts},
    skills::Skills,
};

crate::trials!(
    load_and_resume_keep_the_address,
    a_fork_has_its_own_address,
    a_session_that_an_earlier_run_opened,
    an_agent_that_refuses_our_entry,
    an_agent_that_refuses_every_session,
    an_agent_that_needs_a_login,
    the_client_initializes_again,
    updates_before_the_session_id_is_known,
    history_without_our_text,
    history_in_every_shape,
    history_that_breaks_off,
    titles_without_our_text,
    listed_titles_without_our_text,
    titles_that_a_model_writes,
    the_users_own_text_is_kept,
    repeated_prompts_without_our_text,
);

/// Opens the session again with `method` and returns the params that the agent received.
fn open_again(fixture: &mut Fixture, method: &str, session: &str, result: Value) -> Value {
    let params = json!({ "sessionId": session, "cwd": cwd(), "mcpServers": [] });
    let (mut received, _) = fixture.exchange(method, params, json!({ "result": result }));
    received["params"].take()
}

/// Starts with a session `s` in which the first prompt got the catalog, and returns the text of the catalog.
fn with_catalog(proxy: Proxy) -> (Fixture, String) {
    let mut fixture = Fixture::over_http(proxy.flag("--mcp", "off"));
    fixture.new_session("s");
    let blocks = fixture.prompt("s", "Fix the bug");
    assert_eq!(blocks.len(), 2, "{blocks:?}");
    let text = texts(&blocks)[0].to_owned();
    (fixture, text)
}

fn load_and_resume_keep_the_address() {
    let skills = Skills::review();
    for transport in ["http", "stdio"] {
        let mut fixture = Fixture::over_http(skills.proxy().flag("--mcp", transport));
        let first = entry(&fixture.new_session("s"));
        let connection = fixture.connect(&first, MCP_2025);
        assert_eq!(fixture.prompt("s", "hello").len(), 2);
        for method in ["session/load", "session/resume", "session/load"] {
            let again = open_again(&mut fixture, method, "s", json!({}));
            assert_eq!(entry(&again), first, "{method} over {transport}");
            assert_eq!(fixture.prompt("s", "hello").len(), 1, "the catalog was sent again after {method}");
        }
        let (_, failed) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
        assert!(!failed, "the existing connection still works");
        fixture.finish();
    }
}

fn a_fork_has_its_own_address() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy());
    let first = entry(&fixture.new_session("s"));
    fixture.connect(&first, MCP_2025);
    assert_eq!(fixture.prompt("s", "hello").len(), 2);
    let fork = open_again(&mut fixture, "session/fork", "s", json!({ "sessionId": "f" }));
    let fork = entry(&fork);
    assert_ne!(fork, first);
    fixture.connect(&fork, MCP_2025);
    assert_eq!(fixture.prompt("f", "hello").len(), 1, "a fork already has its parent's catalog");
    assert_eq!(fixture.prompt("s", "hello").len(), 1);
    fixture.finish();
}

fn a_session_that_an_earlier_run_opened() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy());
    let params = open_again(&mut fixture, "session/load", "old", json!({}));
    fixture.connect(&entry(&params), MCP_2025);
    let blocks = fixture.prompt("old", "hello");
    assert!(blocks.len() == 2 && texts(&blocks)[0].contains("<available_skills>"), "{blocks:?}");
    // `mcpServers` is optional in `session/resume`, so we have to add it if it's missing.
    let id = fixture.editor.request("session/resume", json!({ "sessionId": "older", "cwd": cwd() }));
    let received = fixture.agent_receives();
    entry(&received["params"]);
    fixture.agent_replies(&received, json!({ "result": {} }));
    fixture.editor.answer(&id);
    fixture.finish();
}

fn an_agent_that_refuses_our_entry() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy());
    let mine = json!({ "name": "mine", "command": "/bin/true", "args": [], "env": [] });
    let id = fixture.editor.request("session/new", json!({ "cwd": cwd(), "mcpServers": [mine] }));
    let received = fixture.agent_receives();
    entry(&received["params"]);
    fixture.agent_replies(&received, json!({ "error": { "code": -32602, "message": "unknown server" } }));
    let again = fixture.agent_receives();
    assert_eq!((&again["id"], &again["params"]["mcpServers"]), (&id, &json!([mine])));
    fixture.agent_replies(&again, json!({ "result": { "sessionId": "s" } }));
    assert_eq!(fixture.editor.answer(&id)["result"]["sessionId"], "s");
    let blocks = fixture.prompt("s", "hello");
    let file = skills.dir("review").join("SKILL.md");
    assert!(texts(&blocks)[0].contains(file.to_str().expect("text")), "{blocks:?}");
    assert!(!texts(&blocks)[0].contains("activate_skill"), "{blocks:?}");
    fixture.finish();
}

fn an_agent_that_refuses_every_session() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy());
    let id = fixture.editor.request("session/new", json!({ "cwd": cwd(), "mcpServers": [] }));
    for _ in 0..2 {
        let received = fixture.agent_receives();
        fixture
            .agent_replies(&received, json!({ "error": { "code": -32603, "message": "no", "data": [1] } }));
    }
    assert_eq!(fixture.editor.answer(&id)["error"], json!({ "code": -32603, "message": "no", "data": [1] }));
    assert_eq!(fixture.received(), Vec::<Value>::new(), "the agent got a third request");
    // If the client sends a new request, we should start from scratch.
    let params = fixture.new_session("s");
    fixture.connect(&entry(&params), MCP_2025);
    fixture.finish();
}

fn an_agent_that_needs_a_login() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy());
    let refusal = json!({ "error": { "code": -32000, "message": "Authentication required" } });
    let params = json!({ "cwd": cwd(), "mcpServers": [] });
    let (received, answer) = fixture.exchange("session/new", params, refusal.clone());
    let first = entry(&received["params"]);
    assert_eq!(answer["error"], refusal["error"]);
    fixture.exchange("authenticate", json!({ "methodId": "x" }), json!({ "result": {} }));
    let second = entry(&fixture.new_session("s"));
    assert_ne!(first["url"], second["url"]);
    fixture.connect(&second, MCP_2025);
    assert!(
        fixture.order("connect", json!({ "entry": first, "revision": MCP_2025 })).is_err(),
        "its endpoint is closed"
    );
    fixture.finish();
}

fn the_client_initializes_again() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy());
    assert_eq!(entry(&fixture.new_session("a"))["type"], "http");
    let result =
        json!({ "protocolVersion": 1, "agentCapabilities": { "mcpCapabilities": { "http": false } } });
    let (received, _) =
        fixture.exchange("initialize", json!({ "protocolVersion": 1 }), json!({ "result": result }));
    assert_eq!(received["params"], json!({ "protocolVersion": 1 }));
    assert!(entry(&fixture.new_session("b")).get("type").is_none(), "the new entry uses stdio");
    fixture.finish();
}

fn updates_before_the_session_id_is_known() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy());
    let id = fixture.editor.request("session/new", json!({ "cwd": cwd(), "mcpServers": [] }));
    let request = fixture.agent_receives();
    let early = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s",
        "update": { "sessionUpdate": "plan", "entries": [] } } });
    let notice = json!({ "jsonrpc": "2.0", "method": "_notice", "params": {} });
    fixture.agent_sends(&early);
    fixture.agent_sends(&notice);
    fixture.agent_replies(&request, json!({ "result": { "sessionId": "s" } }));
    let seen: Vec<_> = (0..3).map(|_| fixture.editor.message()).collect();
    assert_eq!((&seen[0], &seen[1], &seen[2]["id"]), (&early, &notice, &id));
    fixture.finish();
}

fn chunk(text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s",
        "update": { "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } } } })
}

/// Makes the agent replay these chunks while it loads the session, and returns the texts that the editor receives.
fn replayed(fixture: &mut Fixture, chunks: &[&str]) -> Vec<String> {
    let id =
        fixture.editor.request("session/load", json!({ "sessionId": "s", "cwd": cwd(), "mcpServers": [] }));
    let request = fixture.agent_receives();
    for text in chunks {
        fixture.agent_sends(&chunk(text));
    }
    fixture.agent_replies(&request, json!({ "result": {} }));
    let mut seen = Vec::new();
    fixture.editor.answer(&id);
    for message in fixture.editor.unread() {
        assert_eq!(message["method"], "session/update", "{message}");
        seen.push(message["params"]["update"]["content"]["text"].as_str().expect("text").to_owned());
    }
    seen
}

fn history_without_our_text() {
    let skills = Skills::review();
    let (mut fixture, text) = with_catalog(skills.proxy());
    // The agent will echo the prompt first, and then replay the session.
    fixture.agent_sends(&chunk(&text));
    fixture.agent_sends(&chunk("Fix the bug"));
    assert_eq!(fixture.editor.message(), chunk("Fix the bug"));
    assert_eq!(replayed(&mut fixture, &[&text, "Fix the bug", "now"]), ["Fix the bug", "now"]);
    fixture.finish();
}

fn history_in_every_shape() {
    let skills = Skills::review();
    let (mut fixture, text) = with_catalog(skills.proxy());
    fixture.finish();
    // We use different skills in the second run, but we should still be able to find the text of the first one.
    skills.add("other", "Another skill.", "Other.");
    fixture = with_catalog(Proxy::new().skill(&skills.dir("other"))).0;
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (front, back) = text.split_at(text.len() / 2);
    for (chunks, seen) in [
        (vec![format!("{text}Fix the bug")], vec!["Fix the bug"]),
        (vec![format!("{text}\nFix the bug")], vec!["Fix the bug"]),
        (vec![format!("{flat} Fix the bug")], vec!["Fix the bug"]),
        (vec![format!("Before {text}after")], vec!["Before after"]),
        (vec![front.to_owned(), format!("{back}Fix the bug")], vec!["Fix the bug"]),
        (vec![text.clone()], vec![]),
        (
            vec!["<acp-skills-proxy> is a tag".to_owned(), "of mine".to_owned()],
            vec!["<acp-skills-proxy> is a tag", "of mine"],
        ),
        (vec![front.to_owned(), "Fix the bug".to_owned()], vec![front, "Fix the bug"]),
        (vec!["a < b".to_owned()], vec!["a < b"]),
    ] {
        let chunks: Vec<_> = chunks.iter().map(String::as_str).collect();
        assert_eq!(replayed(&mut fixture, &chunks), seen, "{chunks:?}");
    }
    let bytes: Vec<_> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
    let pieces: Vec<String> = bytes.chunks(7).map(<[&str]>::concat).collect();
    let pieces: Vec<_> = pieces.iter().map(String::as_str).chain(["Fix"]).collect();
    // We can't always know if the last line break is ours, so it's fine if it's shown to the user.
    assert_eq!(
        replayed(&mut fixture, &pieces).concat().trim_start(),
        "Fix",
        "the chunks have seven characters each"
    );
    fixture.finish();
}

/// Text that could be the beginning of ours turns out to be the user's.
fn history_that_breaks_off() {
    let skills = Skills::review();
    let (mut fixture, _) = with_catalog(skills.proxy());
    let doubtful = chunk("what does <acp-skills-p");
    // A message for another session should be sent right away, but if it's for the same session, we need to send the text that
    // was held back first.
    fixture.agent_sends(&doubtful);
    let other = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "other",
        "update": { "sessionUpdate": "plan", "entries": [] } } });
    fixture.agent_sends(&other);
    assert_eq!(fixture.editor.message(), other);
    let mut plan = other.clone();
    plan["params"]["sessionId"] = "s".into();
    fixture.agent_sends(&plan);
    assert_eq!([fixture.editor.message(), fixture.editor.message()], [doubtful.clone(), plan]);
    fixture.agent_sends(&doubtful);
    fixture.editor.notify("_agent/exit", json!({ "code": 0 }));
    assert_eq!(fixture.editor.ended().messages, [doubtful]);
}

fn titles_without_our_text() {
    let skills = Skills::review();
    let (mut fixture, text) = with_catalog(skills.proxy());
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (title, seen) in [
        (format!("{flat} Fix it all"), json!("Fix it all")),
        (flat.clone(), json!("Fix the bug")),
        (format!("{}…", &flat[..40]), json!("Fix the bug")),
        ("A title".to_owned(), json!("A title")),
    ] {
        let update = json!({ "sessionUpdate": "session_info_update", "title": title, "updatedAt": "now" });
        let params = json!({ "sessionId": "s", "update": update });
        fixture.agent_sends(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
        let update = fixture.editor.message()["params"]["update"].take();
        assert_eq!((&update["title"], &update["updatedAt"]), (&seen, &json!("now")), "{title}");
    }
    fixture.finish();
}

/// Hermes lets a model write a title from the first 500 characters of the prompt.
fn titles_that_a_model_writes() {
    let skills = Skills::review();
    let info = json!({ "name": "hermes-agent", "version": "0.19.0" });
    let capabilities = json!({ "mcpCapabilities": { "http": true }, "loadSession": true });
    let mut fixture = Fixture::with_agent_info(skills.proxy(), &capabilities, &info);
    fixture.new_session("s");
    let blocks = fixture.prompt("s", "Fix the bug");
    let whole = texts(&blocks).join("\n\n");
    assert!(whole.contains("<name>review</name>") && whole.len() > 500, "{whole}");
    let beginning: String = whole.chars().take(500).collect();
    assert!(beginning.starts_with("Fix the bug\n"), "the title would be written from {beginning}");
    // When the session is replayed, we should only show what the user has typed.
    assert_eq!(replayed(&mut fixture, &[&whole]), ["Fix the bug"]);
    assert_eq!(texts(&fixture.prompt("s", "now")), ["now"]);
    fixture.finish();
}

/// If the user writes about our marks, no text is lost.
fn the_users_own_text_is_kept() {
    let skills = Skills::review();
    let (mut fixture, text) = with_catalog(skills.proxy());
    let words = "What is <acp-skills-proxy> in </acp-skills-proxy:0123456789abcdef>, and <acp-skills-proxy:?";
    assert_eq!(texts(&fixture.prompt("s", words)), [words]);
    assert_eq!(replayed(&mut fixture, &[&text, words, &format!("{text}{words}")]), [words, words]);
    let update = json!({ "sessionUpdate": "session_info_update", "title": words });
    let title = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } });
    fixture.agent_sends(&title);
    assert_eq!(fixture.editor.message(), title);
    fixture.finish();
}

/// Some agents repeat each prompt, in a message to the user or in their own notifications.
fn repeated_prompts_without_our_text() {
    let skills = Skills::review();
    let (mut fixture, text) = with_catalog(skills.proxy());
    let said = |text: &str| {
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s",
        "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } } } })
    };
    fixture.agent_sends(&said(&format!("{text}Fix the bug")));
    assert_eq!(fixture.editor.message(), said("Fix the bug"));
    let (front, back) = text.split_at(7);
    for piece in [front, back] {
        fixture.agent_sends(&said(piece));
    }
    let vendor = |text: &str| {
        json!({ "jsonrpc": "2.0", "method": "_x.ai/queue/changed",
        "params": { "entries": [{ "text": text }], "runningText": text } })
    };
    fixture.agent_sends(&vendor(&format!("{text}Fix the bug")));
    assert_eq!(fixture.editor.message(), vendor("Fix the bug"));
    // We should always show the whole title of a tool call, since this is how the user knows what the agent is about to do.
    let hidden = format!("ls {text}; rm -rf /");
    let call = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s",
        "update": { "sessionUpdate": "tool_call", "toolCallId": "1", "title": hidden } } });
    fixture.agent_sends(&call);
    assert_eq!(fixture.editor.message(), call);
    fixture.finish();
}

fn listed_titles_without_our_text() {
    let skills = Skills::review();
    let (mut fixture, text) = with_catalog(skills.proxy());
    let list = json!({ "sessions": [
        { "sessionId": "s", "title": text, "cwd": "/" },
        { "sessionId": "x", "title": format!("{text}Hello"), "_meta": { "a": 1 } },
        { "sessionId": "y", "title": text, "cwd": "/" },
        { "sessionId": "z", "title": "Clean" },
    ], "nextCursor": "c" });
    let (_, answer) = fixture.exchange("session/list", json!({}), json!({ "result": list }));
    let expected = json!({ "sessions": [
        { "sessionId": "s", "title": "Fix the bug", "cwd": "/" },
        { "sessionId": "x", "title": "Hello", "_meta": { "a": 1 } },
        { "sessionId": "y", "cwd": "/" },
        { "sessionId": "z", "title": "Clean" },
    ], "nextCursor": "c" });
    assert_eq!(answer["result"], expected);
    fixture.finish();
}
