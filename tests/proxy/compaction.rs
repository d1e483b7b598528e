//! Compaction of a conversation: what the next prompt restores, the reminders in the results of tools, and `/skills active`.

use std::fs;

use serde_json::{Value, json};

use crate::{
    editor::Proxy,
    fixture::{Connection, Fixture, MCP_2025, entry, texts},
    skills::Skills,
};

crate::trials!(
    the_next_prompt_restores_current_instructions,
    results_remind_until_the_next_prompt,
    the_budget_is_a_flag,
    active_skills_can_be_dropped,
    a_later_process_knows_the_active_skills,
);

fn two_skills() -> Skills {
    let skills = Skills::review();
    skills.add("greet", "Greets.", "Say hello.");
    skills
}

/// Opens the session `s`, in which the model has activated both skills.
fn session(proxy: Proxy) -> (Fixture, Connection) {
    let mut fixture = Fixture::over_http(proxy);
    let request = fixture.new_session("s");
    let connection = fixture.connect(&entry(&request), MCP_2025);
    fixture.editor.menu();
    fixture.prompt("s", "hello");
    for name in ["review", "greet"] {
        let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": name }));
        assert!(!is_error, "{text}");
    }
    (fixture, connection)
}

/// Lets the agent report a compaction. The editor receives the update as it is.
fn compact(fixture: &mut Fixture, id: &str) {
    let update = json!({ "sessionUpdate": "compaction_update", "compactionId": id, "status": "completed" });
    let params = json!({ "sessionId": "s", "update": update });
    let line = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
    fixture.agent_sends(&line);
    let received = fixture.editor.wait_for("the update", |message| {
        message["params"]["update"]["sessionUpdate"] == "compaction_update"
    });
    assert_eq!(received, line);
}

fn the_next_prompt_restores_current_instructions() {
    let skills = two_skills();
    let file = skills.path().join("events.jsonl");
    // The instructions are read when they are restored. With watching, a later prompt could also announce the change.
    let proxy = Proxy::new().flag("--skills", skills.path()).flag("--events", &file).arg("--no-watch");
    let (mut fixture, _connection) = session(proxy);
    compact(&mut fixture, "c");
    skills.add("greet", "Greets.", "Say good morning.");
    let blocks = fixture.prompt("s", "go on");
    let [catalog, again, "go on"] = texts(&blocks)[..] else { panic!("{blocks:?}") };
    assert!(catalog.contains("<name>greet</name>") && catalog.contains("<name>review</name>"), "{catalog}");
    let place = |text: &str| again.find(text).unwrap_or_else(|| panic!("{text} is missing: {again}"));
    assert!(place("Say good morning.") < place("# Review"), "the last used one comes first: {again}");
    assert!(!again.contains("Say hello."), "{again}");
    assert_eq!(texts(&fixture.prompt("s", "go on")), ["go on"]);
    let said = fixture.ask("/skills");
    assert!(said.contains("`/greet` (active, by the model, restored after compaction)"), "{said}");
    fixture.finish();
    let events = fs::read_to_string(&file).expect("a file");
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let restored: Vec<_> = events.iter().filter(|event| event["event"] == "restored").collect();
    let [event] = restored[..] else { panic!("{restored:?}") };
    assert_eq!(event["skills"], json!(["greet", "review"]));
    assert_eq!(event["signal"], "compaction_update");
    assert!(event["tokens"].as_u64() > Some(50), "{event}");
}

fn results_remind_until_the_next_prompt() {
    let skills = two_skills();
    let (mut fixture, connection) = session(Proxy::new().flag("--skills", skills.path()));
    let read = |fixture: &mut Fixture| {
        let arguments = json!({ "skill": "review", "path": "references/guide.md" });
        fixture.call(&connection, "read_skill_file", arguments).0
    };
    skills.write("review/references/guide.md", "GUIDE");
    assert!(!read(&mut fixture).contains("compacted"));
    compact(&mut fixture, "c");
    let text = read(&mut fixture);
    assert!(
        text.contains("GUIDE") && text.contains("these skills may be gone: `review`, `greet`."),
        "{text}"
    );
    // The skill that is activated now is not mentioned.
    let (text, _) = fixture.call(&connection, "activate_skill", json!({ "name": "greet" }));
    assert!(text.contains("these skills may be gone: `review`."), "{text}");
    fixture.prompt("s", "go on");
    assert!(!read(&mut fixture).contains("compacted"));
    fixture.editor.finish();
}

fn the_budget_is_a_flag() {
    let skills = two_skills();
    let proxy = Proxy::new().flag("--skills", skills.path()).flag("--restore-budget", "0");
    let (mut fixture, _connection) = session(proxy);
    compact(&mut fixture, "c");
    let blocks = fixture.prompt("s", "go on");
    let [_, again, "go on"] = texts(&blocks)[..] else { panic!("{blocks:?}") };
    assert!(
        again.contains("`greet`, `review`. If you still need a skill, activate it again.")
            && !again.contains("Say hello."),
        "{again}"
    );
    fixture.finish();
}

fn active_skills_can_be_dropped() {
    let skills = two_skills();
    let (mut fixture, _connection) = session(Proxy::new().flag("--skills", skills.path()));
    let said = fixture.ask("/skills active");
    assert!(
        said.contains("**2 active skills in this session**\n\n- `greet` (by the model, about "),
        "{said}"
    );
    let said = fixture.ask("/skills drop greet");
    assert_eq!(said, "`greet` is no longer active, and will not be restored after a compaction.");
    compact(&mut fixture, "c");
    let blocks = fixture.prompt("s", "go on");
    assert!(texts(&blocks)[1].contains("# Review") && !texts(&blocks)[1].contains("greet"), "{blocks:?}");
    fixture.finish();
}

/// The session is loaded by another process, and compacted there.
fn a_later_process_knows_the_active_skills() {
    let skills = two_skills();
    let state = tempfile::tempdir().expect("a directory");
    let proxy = || Proxy::new().flag("--skills", skills.path()).flag("--state", state.path());
    let (mut fixture, _connection) = session(proxy());
    fixture.ask("/skills drop review");
    fixture.finish();
    let mut fixture = Fixture::over_http(proxy().flag("--mcp-wait", "0"));
    let params = json!({ "sessionId": "s", "cwd": crate::fixture::cwd(), "mcpServers": [] });
    fixture.exchange("session/load", params, json!({ "result": {} }));
    fixture.editor.menu();
    fixture.prompt("s", "hello");
    compact(&mut fixture, "c");
    let blocks = fixture.prompt("s", "go on");
    let [_, again, "go on"] = texts(&blocks)[..] else { panic!("{blocks:?}") };
    assert!(again.contains("Say hello.") && !again.contains("# Review"), "{again}");
    fixture.finish();
}
