//! The bytes that the model receives before the user's words: they are the same in each session and in each process, so that the
//! provider of the model can reuse what it has cached.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    editor::Proxy,
    fixture::{Connection, Fixture, MCP_2025, entry, texts},
    skills::Skills,
};

crate::trials!(
    sessions_and_processes_begin_alike,
    processes_that_start_together_begin_alike,
    no_secret_can_be_kept,
    tools_stay_as_they_are_within_a_session,
    a_tool_that_is_needed_is_added,
    agents_that_check_names_get_none,
);

/// The kinds of agents: those with a system prompt, and those without one.
fn capabilities(has_system_prompt: bool) -> Value {
    let session = if has_system_prompt { json!({ "systemPrompt": {} }) } else { json!({}) };
    json!({ "mcpCapabilities": { "http": true }, "loadSession": true, "sessionCapabilities": session })
}

/// Returns everything of ours that the model receives in a new session: texts and tools.
fn of_ours(fixture: &mut Fixture, session: &str) -> String {
    let params = fixture.new_session(session);
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let first = fixture.prompt(session, "hello");
    let texts: Vec<_> = texts(&first).into_iter().filter(|text| *text != "hello").collect();
    json!([connection.tools, connection.server, params.get("systemPrompt"), texts]).to_string()
}

fn proxy(skills: &Skills, state: &Path) -> Proxy {
    Proxy::new().flag("--skills", skills.path()).env("XDG_STATE_HOME", state)
}

fn sessions_and_processes_begin_alike() {
    let skills = Skills::review();
    skills.add("greet", "Greets.", "Hello.");
    for has_system_prompt in [false, true] {
        let state = tempfile::tempdir().expect("a directory");
        let info = json!({ "name": "OpenCode", "version": "1" });
        let capabilities = capabilities(has_system_prompt);
        let start = |state: &Path| Fixture::with_agent_info(proxy(&skills, state), &capabilities, &info);
        let mut fixture = start(state.path());
        let first = of_ours(&mut fixture, "s");
        assert!(first.contains("<acp-skills-proxy:") && first.contains("<name>greet</name>"), "{first}");
        assert_eq!(of_ours(&mut fixture, "t"), first);
        fixture.finish();
        let mut fixture = start(state.path());
        assert_eq!(of_ours(&mut fixture, "u"), first);
        fixture.finish();
        // No text for the model contains the address or the token of the server.
        for part in ["http:", "127.0.0.1", "Bearer", &*std::env::temp_dir().to_string_lossy()] {
            assert!(!first.contains(part), "{part} in {first}");
        }
        // Another installation has other marks.
        let elsewhere = tempfile::tempdir().expect("a directory");
        let mut fixture = start(elsewhere.path());
        assert_ne!(of_ours(&mut fixture, "s"), first);
        fixture.finish();
        let text = fs::read_to_string(secret_in(state.path())).expect("the secret");
        assert!(text.len() == 65 && !first.contains(text.trim()), "{text}");
    }
}

fn secret_in(state: &Path) -> PathBuf {
    state.join("acp-skills-proxy/marks.key")
}

fn processes_that_start_together_begin_alike() {
    let skills = Skills::review();
    let state = tempfile::tempdir().expect("a directory");
    let running: Vec<_> = (0..4).map(|_| Fixture::new(proxy(&skills, state.path()))).collect();
    let mut seen = Vec::new();
    for mut fixture in running {
        let result = json!({ "protocolVersion": 1, "agentCapabilities": capabilities(true) });
        let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        fixture.exchange("initialize", params, json!({ "result": result }));
        seen.push(of_ours(&mut fixture, "s"));
        fixture.finish();
    }
    assert!(seen.iter().all(|text| *text == seen[0]), "{seen:?}");
}

/// A directory for the secret that can't be used: a file, or one whose secret can't be read.
fn no_secret_can_be_kept() {
    let skills = Skills::review();
    let state = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(secret_in(&state.path().join("blocked"))).expect("a directory");
    fs::write(state.path().join("file"), "").expect("a file");
    for name in ["blocked", "file"] {
        let proxy = proxy(&skills, &state.path().join(name));
        let mut fixture = Fixture::initialized(proxy, &capabilities(true));
        let first = of_ours(&mut fixture, "s");
        assert!(first.contains("<acp-skills-proxy:"), "{first}");
        assert_eq!(of_ours(&mut fixture, "t"), first, "{name}");
        fixture.finish();
    }
}

/// Returns the tools that the agent gets if it asks again.
fn tools(fixture: &mut Fixture, connection: &Connection) -> Value {
    let seen = fixture.order("look", json!({ "connection": connection.number }));
    seen.expect("the server is running")["tools"].clone()
}

fn tools_stay_as_they_are_within_a_session() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(Proxy::new().flag("--skills", skills.path()));
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    fixture.prompt("s", "hello");
    let before = tools(&mut fixture, &connection);
    skills.add("greet", "Greets.", "Hello.");
    fixture.wait_for_command("greet");
    assert_eq!(tools(&mut fixture, &connection), before);
    // A skill that the schema doesn't list can be used, and a skill that is gone is explained.
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "greet" }));
    assert!(!is_error && text.contains("Hello."), "{text}");
    let next = fixture.prompt("s", "go on");
    let [line, "go on"] = texts(&next)[..] else { panic!("{next:?}") };
    assert_eq!(line.lines().count(), 3, "{line}");
    assert!(line.contains("The skills have changed. New: `greet` (\"Greets.\")."), "{line}");
    skills.remove("review");
    while fixture.skill_names(&connection) != json!(["greet"]) {}
    assert_eq!(tools(&mut fixture, &connection), before);
    let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    assert!(is_error && text.contains("no skill \"review\" found"), "{text}");
    // After the session is set up again, the agent gets the current tools.
    let load = json!({ "sessionId": "s", "cwd": crate::fixture::cwd(), "mcpServers": [] });
    let (received, _) = fixture.exchange("session/load", load, json!({ "result": {} }));
    let again = fixture.connect(&entry(&received["params"]), MCP_2025);
    assert_eq!(fixture.listed_names(&again), json!(["greet"]));
    fixture.editor.finish();
}

fn a_tool_that_is_needed_is_added() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(Proxy::new().flag("--skills", skills.path()));
    let params = fixture.new_session("s");
    fixture.ask("/skills off review");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    assert_eq!(connection.tools, Vec::<Value>::new());
    fixture.ask("/skills on review");
    assert_eq!(fixture.list_changed(&connection), "tools");
    assert_eq!(fixture.listed_names(&connection), json!(["review"]));
    fixture.finish();
}

fn agents_that_check_names_get_none() {
    let skills = Skills::review();
    for (name, expected) in
        [("opencode", json!(["review"])), ("gemini-cli", Value::Null), ("qwen-code", Value::Null)]
    {
        let proxy = Proxy::new().flag("--skills", skills.path());
        let info = json!({ "name": name, "version": "1" });
        let mut fixture = Fixture::with_agent_info(proxy, &capabilities(false), &info);
        let params = fixture.new_session("s");
        let connection = fixture.connect(&entry(&params), MCP_2025);
        assert_eq!(fixture.listed_names(&connection), expected, "{name}");
        fixture.editor.finish();
    }
}
