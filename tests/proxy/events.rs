//! The event file: its contents against the documented schema, the absence of private contents, and when
//! events are written.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    editor::Proxy,
    fixture::{Connection, Fixture, MCP_2025, cwd, entry, texts},
    skills::Skills,
};

crate::trials!(
    events_match_the_documented_schema,
    every_activation_names_its_cause,
    events_are_written_when_the_agent_exits,
    #[cfg(unix)]
    events_are_written_at_a_signal,
    several_proxies_share_a_file,
);

const SCHEMA: &str = include_str!("../../crates/acp-skills-runtime/src/events/schema.md");

/// A script that writes a line and fails.
const FAILING: (&str, &str) = if cfg!(windows) {
    ("scripts/fail.cmd", "@echo SECRET\r\n@exit 3\r\n")
} else {
    ("scripts/fail.sh", "#!/bin/sh\necho SECRET; exit 3\n")
};

/// This word must never be recorded.
pub(crate) const SECRET: &str = "SECRET";

/// Creates a skills directory that can cause events of every kind.
pub(crate) fn all_kinds() -> Skills {
    let skills = Skills::review();
    skills.write("review/references/secret.md", SECRET);
    skills.write(&format!("review/{}", FAILING.0), FAILING.1);
    skills
}

pub(crate) fn recording(skills: &Skills, file: &Path) -> Proxy {
    Proxy::new().flag("--config", skills.config()).flag("--events", file)
}

/// Opens a session `s` for an agent that calls itself `claude-agent-acp`, and connects it.
pub(crate) fn connected(proxy: Proxy) -> (Fixture, Connection) {
    let mut fixture = Fixture::new(proxy);
    let capabilities = json!({ "mcpCapabilities": { "http": true }, "loadSession": true });
    let info = json!({ "name": "claude-agent-acp", "version": "1" });
    let result =
        json!({ "result": { "protocolVersion": 1, "agentInfo": info, "agentCapabilities": capabilities } });
    fixture.exchange("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }), result);
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    (fixture, connection)
}

/// Parses the events of a file.
fn events(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a file");
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is incomplete");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect()
}

pub(crate) fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

/// Sends a `/skills` command and returns the text that the user sees.
pub(crate) fn skills_command(fixture: &mut Fixture, session: &str, text: &str) -> String {
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    let id = fixture.editor.request("session/prompt", prompt);
    fixture.editor.answer(&id);
    let said = fixture.editor.unread();
    let text = |message: &Value| message["params"]["update"]["content"]["text"].as_str().map(str::to_owned);
    said.iter().find_map(text).expect("an answer")
}

/// Makes the agent ask for permission to call a tool. The proxy answers for our own tools; other requests stay
/// unanswered.
fn ask(fixture: &mut Fixture, tool: &str) {
    let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }, { "optionId": "no", "name": "No", "kind": "reject_once" }]);
    let input = match tool {
        "Bash" => json!({ "command": SECRET }),
        _ => json!({ "skill": SECRET, "path": SECRET }),
    };
    let call = json!({ "toolCallId": "1", "name": tool, "title": SECRET, "rawInput": input });
    let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
    fixture.agent_sends(
        &json!({ "jsonrpc": "2.0", "id": "p", "method": "session/request_permission", "params": params }),
    );
}

/// Returns an update of the agent: the conversation was compacted.
fn compacted() -> Value {
    let update = json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed" });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } })
}

/// Causes events of every kind, in several runs of a proxy.
pub(crate) fn record_every_kind(skills: &Skills, proxy: impl Fn() -> Proxy) {
    let first = proxy()
        .flag("--skills", skills.path().join("more"))
        .flag("--search", "on")
        .arg("--allow-scripts")
        .flag("--tool-policy", "strict")
        .flag("--discover", "project")
        .flag("--trust", "project");
    let waits = "---\nname: waits\ndescription: Waits.\nmetadata:\n  paths: \"*.tf\"\n---\nBody.\n";
    skills.write("more/waits/SKILL.md", waits);
    let local = "---\nname: local\ndescription: Of the project.\n---\nBody.\n";
    skills.write("project/.skills/local/SKILL.md", local);
    skills.add("more/other", "Other.", "Other.");
    skills.add("more/old", "Old.", "Old.");
    let (mut fixture, connection) = connected(first);
    let mut call = |tool: &str, arguments: Value| fixture.call(&connection, tool, arguments);
    call("activate_skill", json!({ "name": "review" }));
    call("activate_skill", json!({ "name": SECRET }));
    call("read_skill_file", json!({ "skill": "review", "path": "references/secret.md" }));
    call("read_skill_file", json!({ "skill": "review", "path": SECRET }));
    call("call_skill_tool", json!({ "skill": "counter", "tool": "echo", "input": SECRET }));
    call("call_skill_tool", json!({ "skill": "counter", "tool": SECRET }));
    call("run_skill_script", json!({ "skill": "review", "script": FAILING.0, "args": [SECRET] }));
    call("run_skill_script", json!({ "skill": "review", "script": SECRET }));
    call("search_skills", json!({ "query": "reviews SECRET" }));
    call("search_skills", json!({ "query": 1 }));
    let blocks = fixture.prompt("s", "/review SECRET");
    assert!(texts(&blocks).concat().contains("# Review"), "{blocks:?}");
    ask(&mut fixture, "mcp__acp-skills__read_skill_file");
    // No skill declares `Bash`, so the proxy must pass this request on to the editor.
    ask(&mut fixture, "Bash");
    fixture
        .editor
        .wait_for("a request for permission", |message| message["method"] == "session/request_permission");
    assert_eq!(fixture.received().len(), 1, "expected only the answer of the proxy");
    skills.add("more/new", "New.", "New.");
    skills.add("more/other", "Another.", "Other.");
    fs::remove_dir_all(skills.dir("more/old")).expect("the entry exists");
    skills.write("more/broken/SKILL.md", "nothing");
    skills_command(&mut fixture, "s", "/skills reload");
    fixture.agent_sends(&compacted());
    fixture.editor.wait_for("the compaction", |message| message["params"]["update"]["compactionId"] == "c");
    fixture.prompt("s", "go on with main.tf");
    let project = json!({ "cwd": skills.dir("project"), "mcpServers": [] });
    fixture.exchange("session/new", project, json!({ "result": { "sessionId": "p" } }));
    fixture.prompt("p", "/local");
    let load = json!({ "sessionId": "t", "cwd": cwd(), "mcpServers": [] });
    fixture.exchange("session/load", load, json!({ "result": {} }));
    fixture.finish();
    // Now use an agent that never connects, to get the events for this.
    let mut fixture = Fixture::over_http(proxy().flag("--mcp-wait", "0.01"));
    fixture.new_session("u");
    fixture.prompt("u", SECRET);
    fixture.finish();
}

/// A table of the documentation: the type and the description of each field.
type Fields = BTreeMap<String, (String, String)>;

pub(crate) fn documented() -> (Fields, BTreeMap<String, Fields>) {
    let mut common = Fields::new();
    let mut kinds = BTreeMap::new();
    let mut kind = None;
    for line in SCHEMA.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            let name = title.trim_matches('`').to_owned();
            kind = (title.starts_with('`')).then(|| name.clone());
            if kind.is_some() {
                kinds.insert(name, Fields::new());
            }
        }
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let ["", field, of, text, ""] = cells[..]
            && let Some(field) = field.strip_prefix('`').and_then(|field| field.strip_suffix('`'))
        {
            let fields =
                kind.as_ref().map_or(&mut common, |kind| kinds.get_mut(kind).expect("the entry exists"));
            fields.insert(field.to_owned(), (of.to_owned(), text.to_owned()));
        }
    }
    (common, kinds)
}

/// Documentation and event file agree, in both directions.
fn events_match_the_documented_schema() {
    let skills = all_kinds();
    let file = skills.path().join("events.jsonl");
    record_every_kind(&skills, || recording(&skills, &file));
    let (common, kinds) = documented();
    assert!(common.len() == 4 && kinds.len() == 13, "the documentation was not parsed: {kinds:?}");
    let written = events(&file);
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    for event in &written {
        let kind = event["event"].as_str().expect("a name");
        let own = kinds.get(kind).unwrap_or_else(|| panic!("not documented: {event}"));
        let mut fields = common.clone();
        fields.extend(own.clone());
        for (field, value) in event.as_object().expect("an object") {
            let (of, text) =
                fields.get(field).unwrap_or_else(|| panic!("`{field}` is not documented: {event}"));
            let fits = match of.trim_end_matches(", optional") {
                "number" => value.is_number(),
                "string" => value.is_string(),
                "list" => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
                other => panic!("unknown type {other}"),
            };
            assert!(fits, "`{field}` should be {of}: {event}");
            if ["how", "by", "outcome", "decision", "rule", "reason"].contains(&field.as_str()) {
                let value = value.as_str().expect("text");
                assert!(text.contains(&format!("`{value}`")), "`{field}` may not be {value}: {event}");
            }
            seen.insert((kind.to_owned(), field.clone()));
        }
        for (field, (of, _)) in &fields {
            assert!(of.ends_with("optional") || event.get(field).is_some(), "`{field}` is missing: {event}");
        }
        assert_eq!(event["v"], 1);
        let time = event["time"].as_str().expect("text");
        assert!(time.starts_with("20") && time.ends_with('Z') && time.contains('T'), "{time}");
    }
    let by_sessions = kinds.iter().filter(|(kind, _)| *kind != "events_dropped" && *kind != "refused");
    for (kind, fields) in by_sessions {
        // The tests of `--mcp-on-demand` see this field, because it needs a server.
        for field in fields.keys().filter(|field| *field != "saved_tokens") {
            assert!(seen.contains(&(kind.clone(), field.clone())), "`{kind}` never has `{field}`");
        }
        // If events of this kind can have a session, make sure that we've seen at least one that does.
        assert!(seen.contains(&(kind.clone(), "session".to_owned())), "`{kind}` never has a session");
    }
    let text = fs::read_to_string(&file).expect("a file");
    assert!(!text.contains(SECRET), "private contents were recorded: {text}");
}

fn every_activation_names_its_cause() {
    let skills = Skills::review();
    let file = skills.path().join("events.jsonl");
    let (mut fixture, connection) = connected(recording(&skills, &file));
    fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    fixture.prompt("s", "/review");
    fixture.finish();
    let mut fixture =
        Fixture::over_http(recording(&skills, &file).flag("--activation", "prompt").flag("--mcp", "off"));
    fixture.new_session("t");
    fixture.prompt("t", "please review these patches");
    assert!(skills_command(&mut fixture, "t", "/skills").contains("active, because of a prompt"));
    fixture.finish();
    let written = events(&file);
    let activations: Vec<_> = of_kind(&written, "skill_activated")
        .iter()
        .map(|event| {
            (
                event["session"].as_str().unwrap(),
                event["by"].as_str().unwrap(),
                event["skill"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(activations, [("s", "model", "review"), ("s", "user", "review"), ("t", "prompt", "review")]);
    for activation in of_kind(&written, "skill_activated") {
        let path = PathBuf::from(activation["path"].as_str().expect("a path"));
        assert!(path.ends_with("review/SKILL.md") && path.is_absolute(), "{activation}");
        assert!(
            activation["bytes"].as_u64() > Some(100) && activation["tokens"].as_u64() > Some(20),
            "{activation}"
        );
    }
    assert_eq!(of_kind(&written, "session_started")[0]["skills"], json!(["review", "counter"]));
    assert_eq!(of_kind(&written, "session_started")[0]["agent"], "claude-agent-acp");
}

/// Everything that happened before the agent exited is in the file.
fn events_are_written_when_the_agent_exits() {
    let skills = Skills::review();
    let file = skills.path().join("events.jsonl");
    let (mut fixture, connection) = connected(recording(&skills, &file));
    for _ in 0..20 {
        fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    }
    fixture.editor.notify("_agent/exit", json!({ "code": 3 }));
    assert_eq!(fixture.editor.ended().code(), Some(3));
    assert_eq!(of_kind(&events(&file), "skill_activated").len(), 20);
}

#[cfg(unix)]
fn events_are_written_at_a_signal() {
    use rustix::process::{Pid, Signal, kill_process};
    let skills = Skills::review();
    let file = skills.path().join("events.jsonl");
    let (mut fixture, connection) = connected(recording(&skills, &file));
    for _ in 0..20 {
        fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
    }
    let id = Pid::from_raw(fixture.editor.id().cast_signed()).expect("an id");
    kill_process(id, Signal::TERM).expect("the proxy runs");
    fixture.editor.ended();
    assert_eq!(of_kind(&events(&file), "skill_activated").len(), 20);
}

fn several_proxies_share_a_file() {
    let skills = Skills::review();
    let file = skills.path().join("events.jsonl");
    let mut all: Vec<_> = (0..3).map(|_| connected(recording(&skills, &file))).collect();
    for _ in 0..30 {
        for (fixture, connection) in &mut all {
            fixture.call(connection, "activate_skill", json!({ "name": "review" }));
        }
    }
    for (fixture, _) in all {
        fixture.finish();
    }
    let written = events(&file);
    assert_eq!(
        (of_kind(&written, "skill_activated").len(), of_kind(&written, "session_started").len()),
        (90, 3)
    );
}
