//! The life of sessions: how they are opened, opened again, copied and closed, and what comes back of our text.

use serde_json::{Value, json};

use crate::{
    editor::Proxy,
    fixtures::Skills,
    stage::{MCP_2025, Stage, cwd, entry, texts},
};

crate::trials!(
    load_and_resume_keep_the_address,
    a_fork_has_its_own_address,
    a_session_that_an_earlier_run_opened,
    an_agent_that_refuses_our_entry,
    an_agent_that_refuses_anyway,
    logging_in_comes_first,
    initialize_again,
    updates_before_the_session_has_a_name,
    history_without_our_text,
    history_in_every_shape,
    history_that_breaks_off,
    titles_without_our_text,
    listed_titles_without_our_text,
    titles_that_a_model_makes_of_the_beginning,
    what_the_user_writes_comes_back,
    nothing_that_an_agent_repeats_shows_our_text,
);

/// Opens the session again with `method`. Returns the params that the agent received.
fn open_again(stage: &mut Stage, method: &str, session: &str, result: Value) -> Value {
    let params = json!({ "sessionId": session, "cwd": cwd(), "mcpServers": [] });
    let (mut received, _) = stage.exchange(method, params, json!({ "result": result }));
    received["params"].take()
}

/// Starts with a session `s` that was told the catalog. Returns what it was told.
fn told(proxy: Proxy) -> (Stage, String) {
    let mut stage = Stage::over_http(proxy.flag("--mcp", "off"));
    stage.new_session("s");
    let blocks = stage.prompt("s", "Fix the bug");
    assert_eq!(blocks.len(), 2, "{blocks:?}");
    let text = texts(&blocks)[0].to_owned();
    (stage, text)
}

fn load_and_resume_keep_the_address() {
    let skills = Skills::review();
    for transport in ["http", "stdio"] {
        let mut stage = Stage::over_http(skills.proxy().flag("--mcp", transport));
        let first = entry(&stage.new_session("s"));
        let connection = stage.connect(&first, MCP_2025);
        assert_eq!(stage.prompt("s", "hello").len(), 2);
        for method in ["session/load", "session/resume", "session/load"] {
            let again = open_again(&mut stage, method, "s", json!({}));
            assert_eq!(entry(&again), first, "{method} over {transport}");
            assert_eq!(stage.prompt("s", "hello").len(), 1, "the catalog again after {method}");
        }
        let (_, failed) = stage.call(&connection, "activate_skill", json!({ "name": "review" }));
        assert!(!failed, "the connection of before");
        stage.finish();
    }
}

fn a_fork_has_its_own_address() {
    let skills = Skills::review();
    let mut stage = Stage::over_http(skills.proxy());
    let first = entry(&stage.new_session("s"));
    stage.connect(&first, MCP_2025);
    assert_eq!(stage.prompt("s", "hello").len(), 2);
    let fork = open_again(&mut stage, "session/fork", "s", json!({ "sessionId": "f" }));
    let fork = entry(&fork);
    assert_ne!(fork, first);
    stage.connect(&fork, MCP_2025);
    assert_eq!(stage.prompt("f", "hello").len(), 1, "a fork has heard what its parent has");
    assert_eq!(stage.prompt("s", "hello").len(), 1);
    stage.finish();
}

fn a_session_that_an_earlier_run_opened() {
    let skills = Skills::review();
    let mut stage = Stage::over_http(skills.proxy());
    let params = open_again(&mut stage, "session/load", "old", json!({}));
    stage.connect(&entry(&params), MCP_2025);
    let blocks = stage.prompt("old", "hello");
    assert!(blocks.len() == 2 && texts(&blocks)[0].contains("<available_skills>"), "{blocks:?}");
    // `mcpServers` may be left out when a session is resumed.
    let id = stage.editor.request("session/resume", json!({ "sessionId": "older", "cwd": cwd() }));
    let received = stage.takes();
    entry(&received["params"]);
    stage.replies(&received, json!({ "result": {} }));
    stage.editor.answer(&id);
    stage.finish();
}

fn an_agent_that_refuses_our_entry() {
    let skills = Skills::review();
    let mut stage = Stage::over_http(skills.proxy());
    let mine = json!({ "name": "mine", "command": "/bin/true", "args": [], "env": [] });
    let id = stage.editor.request("session/new", json!({ "cwd": cwd(), "mcpServers": [mine] }));
    let received = stage.takes();
    entry(&received["params"]);
    stage.replies(&received, json!({ "error": { "code": -32602, "message": "unknown server" } }));
    let again = stage.takes();
    assert_eq!((&again["id"], &again["params"]["mcpServers"]), (&id, &json!([mine])));
    stage.replies(&again, json!({ "result": { "sessionId": "s" } }));
    assert_eq!(stage.editor.answer(&id)["result"]["sessionId"], "s");
    let blocks = stage.prompt("s", "hello");
    let file = skills.dir("review").join("SKILL.md");
    assert!(texts(&blocks)[0].contains(file.to_str().expect("text")), "{blocks:?}");
    assert!(!texts(&blocks)[0].contains("activate_skill"), "{blocks:?}");
    stage.finish();
}

fn an_agent_that_refuses_anyway() {
    let skills = Skills::review();
    let mut stage = Stage::over_http(skills.proxy());
    let id = stage.editor.request("session/new", json!({ "cwd": cwd(), "mcpServers": [] }));
    for _ in 0..2 {
        let received = stage.takes();
        stage.replies(&received, json!({ "error": { "code": -32603, "message": "no", "data": [1] } }));
    }
    assert_eq!(stage.editor.answer(&id)["error"], json!({ "code": -32603, "message": "no", "data": [1] }));
    assert_eq!(stage.received(), Vec::<Value>::new(), "a third try");
    // The next one is a new one.
    let params = stage.new_session("s");
    stage.connect(&entry(&params), MCP_2025);
    stage.finish();
}

fn logging_in_comes_first() {
    let skills = Skills::review();
    let mut stage = Stage::over_http(skills.proxy());
    let refusal = json!({ "error": { "code": -32000, "message": "Authentication required" } });
    let params = json!({ "cwd": cwd(), "mcpServers": [] });
    let (received, answer) = stage.exchange("session/new", params, refusal.clone());
    let first = entry(&received["params"]);
    assert_eq!(answer["error"], refusal["error"]);
    stage.exchange("authenticate", json!({ "methodId": "x" }), json!({ "result": {} }));
    let second = entry(&stage.new_session("s"));
    assert_ne!(first["url"], second["url"]);
    stage.connect(&second, MCP_2025);
    assert!(
        stage.order("connect", json!({ "entry": first, "revision": MCP_2025 })).is_err(),
        "its endpoint is closed"
    );
    stage.finish();
}

fn initialize_again() {
    let skills = Skills::review();
    let mut stage = Stage::over_http(skills.proxy());
    assert_eq!(entry(&stage.new_session("a"))["type"], "http");
    let result =
        json!({ "protocolVersion": 1, "agentCapabilities": { "mcpCapabilities": { "http": false } } });
    let (received, _) =
        stage.exchange("initialize", json!({ "protocolVersion": 1 }), json!({ "result": result }));
    assert_eq!(received["params"], json!({ "protocolVersion": 1 }));
    assert!(entry(&stage.new_session("b")).get("type").is_none(), "stdio now");
    stage.finish();
}

fn updates_before_the_session_has_a_name() {
    let skills = Skills::review();
    let mut stage = Stage::over_http(skills.proxy());
    let id = stage.editor.request("session/new", json!({ "cwd": cwd(), "mcpServers": [] }));
    let request = stage.takes();
    let early = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s",
        "update": { "sessionUpdate": "plan", "entries": [] } } });
    let nobodys = json!({ "jsonrpc": "2.0", "method": "_notice", "params": {} });
    stage.says(&early);
    stage.says(&nobodys);
    stage.replies(&request, json!({ "result": { "sessionId": "s" } }));
    let seen: Vec<_> = (0..3).map(|_| stage.editor.message()).collect();
    assert_eq!((&seen[0], &seen[1], &seen[2]["id"]), (&early, &nobodys, &id));
    stage.finish();
}

fn chunk(text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s",
        "update": { "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } } } })
}

/// Has the agent replay these chunks while it loads the session; returns what the editor sees of them.
fn replayed(stage: &mut Stage, chunks: &[&str]) -> Vec<String> {
    let id =
        stage.editor.request("session/load", json!({ "sessionId": "s", "cwd": cwd(), "mcpServers": [] }));
    let request = stage.takes();
    for text in chunks {
        stage.says(&chunk(text));
    }
    stage.replies(&request, json!({ "result": {} }));
    let mut seen = Vec::new();
    stage.editor.answer(&id);
    for message in stage.editor.unread() {
        assert_eq!(message["method"], "session/update", "{message}");
        seen.push(message["params"]["update"]["content"]["text"].as_str().expect("text").to_owned());
    }
    seen
}

fn history_without_our_text() {
    let skills = Skills::review();
    let (mut stage, text) = told(skills.proxy());
    // A live echo, and then a replay.
    stage.says(&chunk(&text));
    stage.says(&chunk("Fix the bug"));
    assert_eq!(stage.editor.message(), chunk("Fix the bug"));
    assert_eq!(replayed(&mut stage, &[&text, "Fix the bug", "now"]), ["Fix the bug", "now"]);
    stage.finish();
}

fn history_in_every_shape() {
    let skills = Skills::review();
    let (mut stage, text) = told(skills.proxy());
    stage.finish();
    // Another run, with other skills: what the first one wrote is found all the same.
    skills.add("other", "Another skill.", "Other.");
    stage = told(Proxy::new().skill(&skills.dir("other"))).0;
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
        assert_eq!(replayed(&mut stage, &chunks), seen, "{chunks:?}");
    }
    let bytes: Vec<_> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
    let pieces: Vec<String> = bytes.chunks(7).map(<[&str]>::concat).collect();
    let pieces: Vec<_> = pieces.iter().map(String::as_str).chain(["Fix"]).collect();
    // Of all that is ours, only the line break at its end may be taken for the user's.
    assert_eq!(replayed(&mut stage, &pieces).concat().trim_start(), "Fix", "in pieces of seven characters");
    stage.finish();
}

/// What could have been the beginning of our text is the user's after all.
fn history_that_breaks_off() {
    let skills = Skills::review();
    let (mut stage, _) = told(skills.proxy());
    let doubtful = chunk("what does <acp-skills-p");
    // Of another session, of none, and an answer to somebody else come in between; then something of the session.
    stage.says(&doubtful);
    let other = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "other",
        "update": { "sessionUpdate": "plan", "entries": [] } } });
    stage.says(&other);
    assert_eq!(stage.editor.message(), other);
    let mut plan = other.clone();
    plan["params"]["sessionId"] = "s".into();
    stage.says(&plan);
    assert_eq!([stage.editor.message(), stage.editor.message()], [doubtful.clone(), plan]);
    stage.says(&doubtful);
    stage.editor.notify("_agent/exit", json!({ "code": 0 }));
    assert_eq!(stage.editor.ended().messages, [doubtful]);
}

fn titles_without_our_text() {
    let skills = Skills::review();
    let (mut stage, text) = told(skills.proxy());
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (title, seen) in [
        (format!("{flat} Fix it all"), json!("Fix it all")),
        (flat.clone(), json!("Fix the bug")),
        (format!("{}…", &flat[..40]), json!("Fix the bug")),
        ("A title".to_owned(), json!("A title")),
    ] {
        let update = json!({ "sessionUpdate": "session_info_update", "title": title, "updatedAt": "now" });
        let params = json!({ "sessionId": "s", "update": update });
        stage.says(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
        let update = stage.editor.message()["params"]["update"].take();
        assert_eq!((&update["title"], &update["updatedAt"]), (&seen, &json!("now")), "{title}");
    }
    stage.finish();
}

/// Hermes has a model make a title of the first 500 characters of the prompt.
fn titles_that_a_model_makes_of_the_beginning() {
    let skills = Skills::review();
    let info = json!({ "name": "hermes-agent", "version": "0.19.0" });
    let capabilities = json!({ "mcpCapabilities": { "http": true }, "loadSession": true });
    let mut stage = Stage::introduced(skills.proxy(), &capabilities, &info);
    stage.new_session("s");
    let blocks = stage.prompt("s", "Fix the bug");
    let whole = texts(&blocks).join("\n\n");
    assert!(whole.contains("<name>review</name>") && whole.len() > 500, "{whole}");
    let beginning: String = whole.chars().take(500).collect();
    assert!(beginning.starts_with("Fix the bug\n"), "a model makes a title of {beginning}");
    // And what it remembers of the session is the user's again.
    assert_eq!(replayed(&mut stage, &[&whole]), ["Fix the bug"]);
    assert_eq!(texts(&stage.prompt("s", "now")), ["now"]);
    stage.finish();
}

/// Whoever writes about our marks is not cut off.
fn what_the_user_writes_comes_back() {
    let skills = Skills::review();
    let (mut stage, text) = told(skills.proxy());
    let words = "What is <acp-skills-proxy> in </acp-skills-proxy:0123456789abcdef>, and <acp-skills-proxy:?";
    assert_eq!(texts(&stage.prompt("s", words)), [words]);
    assert_eq!(replayed(&mut stage, &[&text, words, &format!("{text}{words}")]), [words, words]);
    let update = json!({ "sessionUpdate": "session_info_update", "title": words });
    let title = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } });
    stage.says(&title);
    assert_eq!(stage.editor.message(), title);
    stage.finish();
}

/// Some agents say each prompt again, in their own words or in notifications of their own.
fn nothing_that_an_agent_repeats_shows_our_text() {
    let skills = Skills::review();
    let (mut stage, text) = told(skills.proxy());
    let said = |text: &str| {
        json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s",
        "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } } } })
    };
    stage.says(&said(&format!("{text}Fix the bug")));
    assert_eq!(stage.editor.message(), said("Fix the bug"));
    let (front, back) = text.split_at(7);
    for piece in [front, back] {
        stage.says(&said(piece));
    }
    let vendor = |text: &str| {
        json!({ "jsonrpc": "2.0", "method": "_x.ai/queue/changed",
        "params": { "entries": [{ "text": text }], "runningText": text } })
    };
    stage.says(&vendor(&format!("{text}Fix the bug")));
    assert_eq!(stage.editor.message(), vendor("Fix the bug"));
    // What it wants to do is shown whole.
    let hidden = format!("ls {text}; rm -rf /");
    let call = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s",
        "update": { "sessionUpdate": "tool_call", "toolCallId": "1", "title": hidden } } });
    stage.says(&call);
    assert_eq!(stage.editor.message(), call);
    stage.finish();
}

fn listed_titles_without_our_text() {
    let skills = Skills::review();
    let (mut stage, text) = told(skills.proxy());
    let list = json!({ "sessions": [
        { "sessionId": "s", "title": text, "cwd": "/" },
        { "sessionId": "x", "title": format!("{text}Hello"), "_meta": { "a": 1 } },
        { "sessionId": "y", "title": text, "cwd": "/" },
        { "sessionId": "z", "title": "Clean" },
    ], "nextCursor": "c" });
    let (_, answer) = stage.exchange("session/list", json!({}), json!({ "result": list }));
    let expected = json!({ "sessions": [
        { "sessionId": "s", "title": "Fix the bug", "cwd": "/" },
        { "sessionId": "x", "title": "Hello", "_meta": { "a": 1 } },
        { "sessionId": "y", "cwd": "/" },
        { "sessionId": "z", "title": "Clean" },
    ], "nextCursor": "c" });
    assert_eq!(answer["result"], expected);
    stage.finish();
}
