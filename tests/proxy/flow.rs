//! The two directions never wait for each other.

use std::{fs, io::Write, thread};

use serde_json::{Value, json};

use crate::{
    agent::{FLOOD_BYTES, HEARS},
    editor::Proxy,
    fixtures::Skills,
};

crate::trials!(an_editor_that_does_not_read_can_still_cancel, an_agent_that_does_not_read_can_still_speak,);

/// 100 MB wait in the agent, and the editor has read nothing.
fn an_editor_that_does_not_read_can_still_cancel() {
    let skills = Skills::review();
    let mut editor = skills.proxy().agent("flood");
    editor.logged("agent: flooding");
    for id in 0..1000 {
        editor.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "_request", "params": { "text": "x".repeat(500) } }));
    }
    editor.notify("session/cancel", json!({ "sessionId": "s" }));
    editor.logged("agent: heard \"session/cancel\"");
    // Now it reads, and nothing is missing.
    let (mut bytes, mut lines) = (0, 0);
    loop {
        let line = editor.line().expect("the flood goes on");
        if line.starts_with(br#"{"jsonrpc":"2.0","method":"_flood/end""#) {
            break;
        }
        assert!(line.starts_with(br#"{"jsonrpc":"2.0","method":"session/update""#) && line.ends_with(b"\n"));
        bytes += line.len();
        lines += 1;
    }
    assert!(bytes >= FLOOD_BYTES && bytes % lines == 0, "{bytes} bytes in {lines} equal lines");
    let ended = editor.finish();
    assert_eq!(ended.code(), Some(0), "{:#?}", ended.log);
    // Requests that nobody answered are answered at the end.
    assert_eq!(ended.messages.len(), 1000);
    assert!(ended.messages.iter().all(|message| message.get("error").is_some()));
}

/// The agent is busy and reads nothing, the editor has 100 MB for it, and an update still arrives.
fn an_agent_that_does_not_read_can_still_speak() {
    let skills = Skills::new();
    let wake = skills.path().join("wake");
    let mut editor = Proxy::new().env(HEARS, &wake).agent("deaf");
    editor.logged("agent: ready");
    let line = format!("{}\n", json!({ "jsonrpc": "2.0", "method": "_much", "params": "x".repeat(100_000) }));
    let count = FLOOD_BYTES / line.len();
    let (mut stdin, total) = (editor.take_stdin(), count * line.len());
    let writer = thread::spawn(move || {
        for _ in 0..count {
            stdin.write_all(line.as_bytes()).expect("the proxy reads");
        }
        stdin
    });
    fs::write(wake, "").expect("a file");
    let awake = editor.wait_for("an update", |message| message["method"] == "_deaf/awake");
    assert_eq!(awake["params"], Value::Null);
    drop(writer.join().expect("everything is written"));
    editor.logged(&format!("agent: heard {total} bytes"));
    assert_eq!(editor.ended().code(), Some(0));
}
