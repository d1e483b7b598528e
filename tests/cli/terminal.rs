//! Output on a terminal: control characters of untrusted text are escaped, and a closed pipe is not an error.

use std::{
    fs, io,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

/// Clears the screen, sets the title, rings the bell, sets a color, reorders text, and contains invisible characters.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;title\u{7}x\u{9b}31m\u{202e}y\u{2066}z\u{200b}\u{feff}\u{e0041}";

fn program(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
    command
        .args(args)
        .current_dir(dir)
        .env_remove("ACP_SKILLS_LOG")
        .env("XDG_CONFIG_HOME", "/nowhere")
        .env_remove("COLUMNS")
        .stdin(Stdio::null());
    command
}

fn run(dir: &Path, args: &[&str]) -> Output {
    program(dir, args).output().unwrap()
}

fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Creates skills with hostile text in each field, and in their paths if the system allows it.
fn hostile() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    // YAML doesn't allow these characters as they are, but we can use the escapes from JSON, because they're valid in YAML as
    // well.
    let quoted = serde_json::to_string(HOSTILE).unwrap();
    let skill =
        format!("---\nname: {quoted}\ndescription: {quoted}\n{HOSTILE}: 1\n---\nBody {HOSTILE}\r over\n");
    write(dir.path(), "skills/a/SKILL.md", &skill);
    write(
        dir.path(),
        "skills/plain/SKILL.md",
        &format!("---\nname: plain\ndescription: {quoted}\n---\n{HOSTILE}\n"),
    );
    write(dir.path(), "skills/broken/SKILL.md", &format!("---\nname: broken\n{HOSTILE} {{ \n---\n"));
    if cfg!(unix) {
        let name = "skills/b\u{1b}[2J\u{202e}\nerror: forged";
        write(dir.path(), &format!("{name}/SKILL.md"), "---\nname: b\n---\n");
    }
    let events = format!(
        "{{\"v\":1,\"time\":\"2026-11-22T08:00:00Z\",\"event\":\"session_started\",\"how\":\"new\",\"agent\":{quoted},\
         \"proxy\":\"0\",\"skills\":[{quoted}]}}\n{HOSTILE}\n"
    );
    write(dir.path(), "events.jsonl", &events);
    dir
}

fn assert_safe(what: &str, bytes: &[u8]) {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let steers = |c: &char| {
        c.is_control() && *c != '\n' && *c != '\t'
            || matches!(c, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
            || matches!(c, '\u{e0000}'..='\u{e007f}')
    };
    let found: Vec<char> = text.chars().filter(steers).collect();
    assert!(found.is_empty(), "{what}: {found:?} in {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{what}: {text}");
}

#[test]
fn control_characters_are_escaped() {
    let dir = hostile();
    for args in [
        &["list", "--skills", "skills"][..],
        &["list", "--skills", "skills", "--json"],
        &["check", "skills"],
        &["check", "skills", "--json"],
        &["check", "skills", "--reference"],
        &["search", "--skills", "skills", "body", "plain"],
        &["search", "--skills", "skills", "plain", "--json"],
        &["try", "--skills", "skills", "--full", "--prompt", HOSTILE],
        &["try", "--skills", "skills", "--full", "--prompt", "Use plain", "--catalog-in", "prompt"],
        &["doctor", "--skills", "skills"],
        &["doctor", "--skills", "skills", "--json", "--prompt", HOSTILE],
        &["report", "events.jsonl"],
        &["--skill", HOSTILE, "--", "agent"],
        &["--skill", "skills/broken", "--", "agent"],
        &["--skills", HOSTILE, "--", "agent"],
        &["--skill", "skills/plain", "--", HOSTILE],
        &["--config", HOSTILE],
        &["check", HOSTILE],
        &["report", HOSTILE],
    ] {
        let output = run(dir.path(), args);
        assert!(!output.stdout.is_empty() || !output.stderr.is_empty(), "{args:?}");
        assert_safe(&format!("stdout of {args:?}"), &output.stdout);
        assert_safe(&format!("stderr of {args:?}"), &output.stderr);
    }
}

#[test]
fn json_keeps_all_characters() {
    let dir = hostile();
    let output = run(dir.path(), &["search", "--skills", "skills", "plain", "--json"]);
    let hits: Value = serde_json::from_slice(&output.stdout).unwrap();
    let plain = hits.as_array().unwrap().iter().find(|hit| hit["name"] == "plain").unwrap();
    // Some of these characters cannot be used in YAML, so they are dropped when we read the skill.
    let read: String = HOSTILE.chars().filter(|c| !c.is_control() && *c != '\u{feff}').collect();
    assert_eq!(plain["description"], read);
}

/// Code hosts display the texts of a SARIF file.
#[test]
fn sarif_is_safe_to_display() {
    fn texts(value: &Value, see: &mut dyn FnMut(&str)) {
        match value {
            Value::String(text) => see(text),
            Value::Array(items) => items.iter().for_each(|item| texts(item, see)),
            Value::Object(members) => members.values().for_each(|member| texts(member, see)),
            _ => {}
        }
    }
    let dir = hostile();
    run(dir.path(), &["check", "skills", "--security", "--sarif", "found.sarif"]);
    let found: Value = serde_json::from_slice(&fs::read(dir.path().join("found.sarif")).unwrap()).unwrap();
    let mut seen = 0;
    texts(&found, &mut |text| {
        seen += 1;
        assert_safe("a text", text.as_bytes());
    });
    assert!(seen > 20, "{found}");
}

/// Returns a pipe whose reader is closed, for stdout.
fn closed() -> Stdio {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "skills/good/SKILL.md", "---\nname: good\ndescription: Reads files.\n---\nBody\n");
    write(dir.path(), "bad/SKILL.md", "---\nname: bad\n---\nBody\n");
    write(dir.path(), "events.jsonl", "");
    for (args, code) in [
        (&["list", "--skills", "skills"][..], 0),
        (&["list", "--skills", "skills", "--json"], 0),
        (&["check", "skills"], 0),
        (&["check", "bad"], 1),
        (&["check", "bad", "--json"], 1),
        (&["search", "--skills", "skills", "reads"], 0),
        (&["search", "--skills", "skills", "zebra", "--json"], 1),
        (&["doctor", "--skills", "skills"], 0),
        (&["doctor", "--skills", "skills", "--json"], 0),
        (&["try", "--skills", "skills"], 0),
        (&["report", "events.jsonl"], 0),
        (&["--help"], 0),
    ] {
        let output = program(dir.path(), args).stdout(closed()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*stderr), (Some(code), ""), "{args:?}");
    }
}

/// If the reader closes the pipe, the turn is cancelled to save its cost.
#[cfg(unix)]
#[test]
fn closing_the_pipe_ends_the_turn() {
    use std::io::Read;

    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "skills/good/SKILL.md", "---\nname: good\ndescription: Reads files.\n---\nBody\n");
    // This agent completes the handshake, but then it just keeps writing and never ends the turn.
    write(
        dir.path(),
        "agent.sh",
        r#"say() { printf '%s\n' "$1"; }
        read -r line; say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
        read -r line; say '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
        chunk='{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"word "}}}}'
        while say "$chunk"; do :; done"#,
    );
    let args = ["try", "--skills", "skills", "--mcp", "off", "--", "sh", "agent.sh"];
    let (mut reader, writer) = io::pipe().unwrap();
    let mut child = program(dir.path(), &args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("word word") {
        let mut some = [0; 4096];
        let count = reader.read(&mut some).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&some[..count]);
    }
    drop(reader);
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!((child.wait().unwrap().code(), &*stderr), (Some(0), ""));
}

/// Texts with several lines are shown on one line or indented, so that they cannot forge a message.
#[test]
fn text_cannot_forge_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let description = "Reads files.\\rerror: forged\\nerror: forged\\u2028error: forged";
    let skill = format!(
        "---\nname: s\ndescription: \"{description}\"\n---\nBody\rerror: forged\n\u{85}error: forged\n"
    );
    write(dir.path(), "s/SKILL.md", &skill);
    for args in [
        &["list", "s"][..],
        &["check", "s"],
        &["search", "--skill", "s", "reads"],
        &["try", "--skill", "s", "--full", "--catalog-in", "prompt"],
        &["try", "--skill", "s", "--prompt", "a\rerror: forged"],
    ] {
        let output = run(dir.path(), args);
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(output.status.success() && !text.is_empty(), "{args:?}: {output:?}");
        // We only check the lines above this, since the agent can write anything in the answer.
        let ours = text.split("── the answer").next().unwrap();
        assert!(!ours.lines().any(|line| line.starts_with("error: forged")), "{args:?}: {text}");
    }
}
