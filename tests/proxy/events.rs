//! The record: what is in it, against its documentation; that it holds no contents; that nothing about it holds up the
//! proxy; and what is remembered of a session.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    editor::Proxy,
    fixtures::Skills,
    stage::{Connection, MCP_2025, Stage, cwd, entry, texts},
};

crate::trials!(
    the_schema_is_what_is_written,
    every_activation_has_its_author,
    written_when_the_agent_ends,
    #[cfg(unix)]
    written_at_a_signal,
    several_proxies_share_a_file,
    #[cfg(target_os = "linux")]
    a_full_disk,
    #[cfg(unix)]
    a_reader_that_does_not_read,
    a_file_that_cannot_be_opened,
    what_was_active_is_known_again,
    nothing_is_remembered_unless_asked,
);

const SCHEMA: &str = include_str!("../../crates/acp-skills-runtime/src/events/schema.md");

/// A script that says something and fails.
const FAILING: (&str, &str) = if cfg!(windows) {
    ("scripts/fail.cmd", "@echo SECRET\r\n@exit 3\r\n")
} else {
    ("scripts/fail.sh", "#!/bin/sh\necho SECRET; exit 3\n")
};

/// What must never be recorded.
const SECRET: &str = "SECRET";

/// A skills directory with everything that can be recorded.
fn all_kinds() -> Skills {
    let skills = Skills::review();
    skills.write("review/references/secret.md", SECRET);
    skills.write(&format!("review/{}", FAILING.0), FAILING.1);
    skills
}

fn recording(skills: &Skills, file: &Path) -> Proxy {
    Proxy::new().flag("--config", skills.config()).flag("--events", file)
}

/// A session `s` of an agent that calls itself Claude's, and its connection.
fn connected(proxy: Proxy) -> (Stage, Connection) {
    let mut stage = Stage::new(proxy);
    let capabilities = json!({ "mcpCapabilities": { "http": true }, "loadSession": true });
    let info = json!({ "name": "claude-agent-acp", "version": "1" });
    let result =
        json!({ "result": { "protocolVersion": 1, "agentInfo": info, "agentCapabilities": capabilities } });
    stage.exchange("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }), result);
    let params = stage.new_session("s");
    let connection = stage.connect(&entry(&params), MCP_2025);
    (stage, connection)
}

/// The events of a file.
fn events(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a file");
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is cut");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect()
}

fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

/// What a `/skills` command says.
fn skills_command(stage: &mut Stage, session: &str, text: &str) -> String {
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    let id = stage.editor.request("session/prompt", prompt);
    stage.editor.answer(&id);
    let said = stage.editor.unread();
    let text = |it: &Value| it["params"]["update"]["content"]["text"].as_str().map(str::to_owned);
    said.iter().find_map(text).expect("an answer")
}

/// Has the agent ask for permission; ours are answered by the proxy, and the others by nobody.
fn ask(stage: &mut Stage, tool: &str) {
    let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }, { "optionId": "no", "name": "No", "kind": "reject_once" }]);
    let input = match tool {
        "Bash" => json!({ "command": SECRET }),
        _ => json!({ "skill": SECRET, "path": SECRET }),
    };
    let call = json!({ "toolCallId": "1", "name": tool, "title": SECRET, "rawInput": input });
    let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
    stage.says(
        &json!({ "jsonrpc": "2.0", "id": "p", "method": "session/request_permission", "params": params }),
    );
}

/// Does everything that is recorded.
fn everything(skills: &Skills, file: &Path) {
    let proxy = recording(skills, file)
        .flag("--skills", skills.path().join("more"))
        .flag("--search", "on")
        .arg("--allow-scripts")
        .flag("--tool-policy", "strict");
    skills.add("more/other", "Other.", "Other.");
    skills.add("more/old", "Old.", "Old.");
    let (mut stage, connection) = connected(proxy);
    let mut call = |tool: &str, arguments: Value| stage.call(&connection, tool, arguments);
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
    let blocks = stage.prompt("s", "/review SECRET");
    assert!(texts(&blocks).concat().contains("# Review"), "{blocks:?}");
    ask(&mut stage, "mcp__acp-skills__read_skill_file");
    // Nobody declares any tools, so this one is the user's, who is asked.
    ask(&mut stage, "Bash");
    stage
        .editor
        .wait_for("a request for permission", |message| message["method"] == "session/request_permission");
    assert_eq!(stage.received().len(), 1, "the answer of the proxy");
    skills.add("more/new", "New.", "New.");
    skills.add("more/other", "Another.", "Other.");
    fs::remove_dir_all(skills.dir("more/old")).expect("it is there");
    skills.write("more/broken/SKILL.md", "nothing");
    skills_command(&mut stage, "s", "/skills reload");
    let load = json!({ "sessionId": "t", "cwd": cwd(), "mcpServers": [] });
    stage.exchange("session/load", load, json!({ "result": {} }));
    stage.finish();
    // An agent that never connects.
    let mut stage = Stage::over_http(recording(skills, file).flag("--mcp-wait", "0.01"));
    stage.new_session("u");
    stage.prompt("u", SECRET);
    stage.finish();
}

/// A table of the documentation: fields with their types and what is said of them.
type Fields = BTreeMap<String, (String, String)>;

fn documented() -> (Fields, BTreeMap<String, Fields>) {
    let (mut common, mut kinds) = (Fields::new(), BTreeMap::new());
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
            let fields = kind.as_ref().map_or(&mut common, |kind| kinds.get_mut(kind).expect("it is there"));
            fields.insert(field.to_owned(), (of.to_owned(), text.to_owned()));
        }
    }
    (common, kinds)
}

/// Documentation and reality agree, in both directions.
fn the_schema_is_what_is_written() {
    let skills = all_kinds();
    let file = skills.path().join("events.jsonl");
    everything(&skills, &file);
    let (common, kinds) = documented();
    assert!(common.len() == 4 && kinds.len() == 10, "the documentation is read: {kinds:?}");
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
                other => panic!("what is {other}?"),
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
    for (kind, fields) in kinds.iter().filter(|(kind, _)| *kind != "events_dropped") {
        for field in fields.keys() {
            assert!(seen.contains(&(kind.clone(), field.clone())), "`{kind}` never has `{field}`");
        }
        // A session of its own for everything that has one.
        assert!(seen.contains(&(kind.clone(), "session".to_owned())), "`{kind}` never has a session");
    }
    let text = fs::read_to_string(&file).expect("a file");
    assert!(!text.contains(SECRET), "contents are in the record: {text}");
}

fn every_activation_has_its_author() {
    let skills = Skills::review();
    let file = skills.path().join("events.jsonl");
    let (mut stage, connection) = connected(recording(&skills, &file));
    stage.call(&connection, "activate_skill", json!({ "name": "review" }));
    stage.prompt("s", "/review");
    stage.finish();
    let mut stage =
        Stage::over_http(recording(&skills, &file).flag("--activation", "prompt").flag("--mcp", "off"));
    stage.new_session("t");
    stage.prompt("t", "please review these patches");
    assert!(skills_command(&mut stage, "t", "/skills").contains("active, because it matches a prompt"));
    stage.finish();
    let written = events(&file);
    let activations: Vec<_> = of_kind(&written, "skill_activated")
        .iter()
        .map(|it| {
            (it["session"].as_str().unwrap(), it["by"].as_str().unwrap(), it["skill"].as_str().unwrap())
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

/// Whatever had happened when the agent went is there.
fn written_when_the_agent_ends() {
    let skills = Skills::review();
    let file = skills.path().join("events.jsonl");
    let (mut stage, connection) = connected(recording(&skills, &file));
    for _ in 0..20 {
        stage.call(&connection, "activate_skill", json!({ "name": "review" }));
    }
    stage.editor.notify("_agent/exit", json!({ "code": 3 }));
    assert_eq!(stage.editor.ended().code(), Some(3));
    assert_eq!(of_kind(&events(&file), "skill_activated").len(), 20);
}

#[cfg(unix)]
fn written_at_a_signal() {
    use rustix::process::{Pid, Signal, kill_process};
    let skills = Skills::review();
    let file = skills.path().join("events.jsonl");
    let (mut stage, connection) = connected(recording(&skills, &file));
    for _ in 0..20 {
        stage.call(&connection, "activate_skill", json!({ "name": "review" }));
    }
    let id = Pid::from_raw(stage.editor.id().cast_signed()).expect("an id");
    kill_process(id, Signal::TERM).expect("the proxy runs");
    stage.editor.ended();
    assert_eq!(of_kind(&events(&file), "skill_activated").len(), 20);
}

fn several_proxies_share_a_file() {
    let skills = Skills::review();
    let file = skills.path().join("events.jsonl");
    let mut all: Vec<_> = (0..3).map(|_| connected(recording(&skills, &file))).collect();
    for _ in 0..30 {
        for (stage, connection) in &mut all {
            stage.call(connection, "activate_skill", json!({ "name": "review" }));
        }
    }
    for (stage, _) in all {
        stage.finish();
    }
    let written = events(&file);
    assert_eq!(
        (of_kind(&written, "skill_activated").len(), of_kind(&written, "session_started").len()),
        (90, 3)
    );
}

/// One warning, and everything else works.
#[cfg(target_os = "linux")]
fn a_full_disk() {
    let skills = Skills::review();
    let (mut stage, connection) = connected(recording(&skills, Path::new("/dev/full")));
    for _ in 0..20 {
        let (text, failed) = stage.call(&connection, "activate_skill", json!({ "name": "review" }));
        assert!(!failed && text.contains("# Review"));
    }
    let ended = stage.finish();
    let warnings: Vec<_> = ended.log.iter().filter(|line| line.contains("events")).collect();
    assert!(warnings.len() == 1 && warnings[0].contains("/dev/full"), "{:#?}", ended.log);
}

/// A pipe that nobody empties: the relay goes on, what does not fit is counted, and the end does not wait for ever.
#[cfg(unix)]
fn a_reader_that_does_not_read() {
    use std::io::Read;
    let skills = Skills::review();
    let file = skills.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo");
    assert!(made.success());
    // Open for both, so that nobody waits for anybody.
    let mut pipe = fs::OpenOptions::new().read(true).write(true).open(&file).expect("a pipe");
    let (mut stage, _) = connected(recording(&skills, &file));
    let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }]);
    let call = json!({ "toolCallId": "1", "name": "mcp__acp-skills__read_skill_file" });
    let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
    let request =
        json!({ "jsonrpc": "2.0", "id": "p", "method": "session/request_permission", "params": params });
    let request = request.to_string();
    let lines = vec![request.as_str(); 1000];
    let asked = 20;
    let mut announced = 0;
    for _ in 0..asked {
        stage.says_lines(&lines);
        // Each is answered, and the order behind them is obeyed.
        assert!(stage.received().len() <= lines.len());
        // Each call is announced, once.
        announced += stage.editor.unread().len();
    }
    // Now somebody reads: all that was written, and the number of those that were not.
    let reader = std::thread::spawn(move || {
        let (mut text, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
        while !text.ends_with(b"}\n") || !String::from_utf8_lossy(&text).contains("\"events_dropped\"") {
            let count = pipe.read(&mut buffer).expect("the pipe is open");
            text.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8(text).expect("text")
    });
    let text = reader.join().expect("the reader is done");
    stage.received();
    announced += stage.editor.unread().len();
    assert_eq!(announced, 1, "the call is the same in all requests");
    stage.finish();
    let written: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let dropped: u64 =
        of_kind(&written, "events_dropped").iter().map(|it| it["count"].as_u64().expect("a number")).sum();
    let permissions = of_kind(&written, "permission").len() as u64;
    assert_eq!(permissions + dropped, asked * lines.len() as u64);
    assert!(dropped > 0, "{permissions} were written");
    let (_, kinds) = documented();
    let fields: Vec<_> = kinds["events_dropped"].keys().collect();
    assert_eq!(fields, ["count"]);
}

fn a_file_that_cannot_be_opened() {
    let skills = Skills::review();
    for (flag, path) in [("--events", skills.path().to_owned()), ("--state", skills.config())] {
        let ended = skills.proxy().flag(flag, &path).agent("scripted").finish();
        assert_eq!(ended.code(), Some(2));
        let said = ended.log.join("\n");
        assert!(said.contains("error: cannot") && said.contains(&*path.to_string_lossy()), "{said}");
    }
}

fn what_was_active_is_known_again() {
    let skills = Skills::review();
    let hidden = "---\nname: hidden\ndescription: Hidden.\ndisable-model-invocation: true\n---\nDo it.\n";
    skills.write("hidden/SKILL.md", hidden);
    let state = skills.path().join("state/of/proxy");
    let proxy =
        || recording(&skills, &skills.path().join("e")).skill(&skills.dir("hidden")).flag("--state", &state);
    let (mut stage, connection) = connected(proxy());
    stage.call(&connection, "activate_skill", json!({ "name": "review" }));
    let refused = stage.call(&connection, "activate_skill", json!({ "name": "hidden" }));
    assert!(refused.1, "{refused:?}");
    stage.prompt("s", "/hidden");
    stage.finish();
    // Another run of the proxy, the same session.
    let mut stage = Stage::over_http(proxy());
    let load = json!({ "sessionId": "s", "cwd": cwd(), "mcpServers": [] });
    let (received, _) = stage.exchange("session/load", load.clone(), json!({ "result": {} }));
    let overview = skills_command(&mut stage, "s", "/skills");
    assert!(overview.contains("`/review` (active, by the model)"), "{overview}");
    assert!(overview.contains("`/hidden` (active, by you"), "{overview}");
    let connection = stage.connect(&entry(&received["params"]), MCP_2025);
    let (text, failed) = stage.call(&connection, "activate_skill", json!({ "name": "hidden" }));
    assert!(!failed && text.contains("Do it."), "{text}");
    // What is deleted is forgotten.
    stage.exchange("session/delete", json!({ "sessionId": "s" }), json!({ "result": {} }));
    stage.finish();
    let left = fs::read_dir(&state).expect("a directory").map(|entry| entry.expect("an entry"));
    let files: Vec<_> = left.filter(|entry| entry.path().is_file()).collect();
    assert!(files.is_empty(), "{files:?}");
}

fn nothing_is_remembered_unless_asked() {
    let skills = Skills::review();
    let files = |path: &Path| fs::read_dir(path).expect("a directory").count();
    let before = files(skills.path());
    let mut stage = Stage::over_http(skills.proxy());
    let params = stage.new_session("s");
    let connection = stage.connect(&entry(&params), MCP_2025);
    stage.call(&connection, "activate_skill", json!({ "name": "review" }));
    stage.finish();
    assert_eq!(files(skills.path()), before);
}
