//! Messages that exceed `--max-message`: they are not forwarded, the side that waits for an answer gets an error, and
//! the conversation continues.

use serde_json::{Value, json};

use crate::{
    agent::{LONG, long_text},
    editor::{Editor, Proxy},
    fixture::Fixture,
    skills::Skills,
    wire::relay,
};

crate::trials!(
    requests_and_responses_that_are_too_long,
    a_line_as_long_as_the_maximum,
    messages_around_a_long_one,
    an_endless_line_costs_no_memory,
    long_messages_of_a_conductor,
);

const MEBIBYTE: usize = 1 << 20;
const ERROR: &str = "the message is longer than 1 MiB, the limit of acp-skills-proxy (`--max-message`)";

/// Returns a proxy whose messages may have 1 MiB.
fn limited() -> Proxy {
    Proxy::new().flag("--max-message", "1")
}

/// Returns a text of more than 1 MiB.
fn quoted() -> Value {
    serde_json::from_str(&format!("\"{}\"", long_text())).expect("a string")
}

fn warnings(log: &[String], words: &str) -> usize {
    log.iter().filter(|line| line.contains("is longer than 1 MiB") && line.contains(words)).count()
}

fn requests_and_responses_that_are_too_long() {
    let mut fixture = Fixture::over_http(limited());
    fixture.new_session("s");
    // The editor's request is answered, and the agent never sees it.
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": quoted() }] });
    let id = fixture.editor.request("session/prompt", prompt);
    let error = fixture.editor.answer(&id);
    assert_eq!((&error["error"]["code"], &error["error"]["message"]), (&json!(-32600), &json!(ERROR)));
    fixture.editor.notify("_long", json!({ "text": quoted() }));
    assert_eq!(fixture.received(), Vec::<Value>::new());
    // The agent's response is replaced, so that the editor doesn't wait forever.
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "hello" }] });
    let id = fixture.editor.request("session/prompt", prompt);
    let request = fixture.agent_receives();
    fixture.agent_replies(&request, json!({ "result": { "stopReason": "end_turn", "_meta": LONG } }));
    let answer = fixture.editor.answer(&id);
    assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(-32603), &json!(ERROR)));
    // A request from the agent gets an error as well, even if the id is at the end of the line.
    fixture.agent_writes(&[&format!(r#"{{"params":"{LONG}","method":"fs/read_text_file","id":"a"}}"#)]);
    let error = fixture.agent_receives();
    assert_eq!((&error["id"], &error["error"]["message"]), (&json!("a"), &json!(ERROR)));
    fixture.agent_sends(&json!({ "jsonrpc": "2.0", "id": "b", "method": "fs/read_text_file", "params": {} }));
    let read = fixture.editor.wait_for("a request", |message| message["id"] == "b");
    fixture.editor.send(&json!({ "jsonrpc": "2.0", "id": read["id"], "result": { "content": quoted() } }));
    let error = fixture.agent_receives();
    assert_eq!((&error["id"], &error["error"]["message"]), (&json!("b"), &json!(ERROR)));
    // The conversation continues.
    assert_eq!(fixture.prompt("s", "hello").last().expect("a block")["text"], "hello");
    let log = fixture.finish().log;
    assert!(warnings(&log, "the client") >= 1 && warnings(&log, "the agent") >= 1, "{log:?}");
}

/// The line break does not count.
fn a_line_as_long_as_the_maximum() {
    for (length, passes) in [(MEBIBYTE, true), (MEBIBYTE + 1, false)] {
        let start = r#"{"jsonrpc":"2.0","method":"_x","params":""#;
        let line = format!("{start}{}\"}}\n", "x".repeat(length - start.len() - 2));
        assert_eq!(line.len(), length + 1);
        let line = line.as_bytes();
        let transcript = relay(limited(), line, line, usize::from(passes));
        let expected = if passes { line } else { b"" };
        assert!(transcript.agent_received == expected && transcript.editor_received == expected, "{length}");
    }
}

/// Complete messages before and after a long one are forwarded at once, even if they arrive together.
fn messages_around_a_long_one() {
    let mut fixture = Fixture::over_http(limited());
    let long = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"_long","params":{}}}"#, quoted());
    let small = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"_small","params":{{}}}}"#);
    let lines = format!("{}\n{long}\n{}\n{long}\n{}\n", small(1001), small(1002), small(1003));
    fixture.editor.write(lines.as_bytes());
    for id in [1001, 1002, 1003] {
        assert_eq!(fixture.agent_receives()["id"], id);
        fixture.agent_sends(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
        fixture.editor.answer(&json!(id));
    }
    for _ in 0..2 {
        assert_eq!(fixture.editor.answer(&json!(7))["error"]["message"], ERROR);
    }
    fixture.finish();
}

/// Returns the largest resident size of a process so far, in KiB.
#[cfg(target_os = "linux")]
fn peak_kibibytes(editor: &Editor) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", editor.id())).expect("the proxy runs");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|size| size.parse().ok()).expect("a number")
}

#[cfg(not(target_os = "linux"))]
fn peak_kibibytes(_editor: &Editor) -> u64 {
    0
}

fn an_endless_line_costs_no_memory() {
    let mut fixture = Fixture::over_http(limited());
    let before = peak_kibibytes(&fixture.editor);
    fixture.editor.write(br#"{"jsonrpc":"2.0","id":7,"method":"_long","params":""#);
    let piece = vec![b'x'; MEBIBYTE];
    for _ in 0..200 {
        fixture.editor.write(&piece);
    }
    fixture.editor.write(b"\"}\n");
    assert_eq!(fixture.editor.answer(&json!(7))["error"]["message"], ERROR);
    let grown = peak_kibibytes(&fixture.editor) - before;
    assert!(grown < 16 * 1024, "the proxy has grown by {grown} KiB");
    // The last line never ends, because the editor disconnects.
    fixture.editor.write(&piece);
    fixture.editor.write(&piece);
    fixture.finish();
}

fn long_messages_of_a_conductor() {
    let skills = Skills::review();
    let proxy = limited().flag("--mcp-wait", "0").skill(&skills.dir("review"));
    let mut conductor = proxy.start();
    conductor.request("proxy/initialize", json!({ "protocolVersion": 1 }));
    let initialize = conductor.message();
    assert_eq!(initialize["params"]["method"], "initialize");
    // The response of the successor is too long, so the client gets an error.
    conductor.send(&json!({ "jsonrpc": "2.0", "id": initialize["id"], "result": { "_meta": quoted() } }));
    let answer = conductor.message();
    assert_eq!((&answer["id"], &answer["error"]["message"]), (&initialize["id"], &json!(ERROR)));
    // Requests of both sides are answered.
    for method in ["proxy/successor", "_long"] {
        let params = json!({ "method": "fs/read_text_file", "params": { "text": quoted() } });
        let id = conductor.request(method, params);
        assert_eq!(conductor.answer(&id)["error"]["message"], ERROR, "{method}");
    }
    conductor.notify("_long", quoted());
    let id = conductor.request("_small", json!({}));
    let small = conductor.message();
    assert_eq!((&small["id"], &small["params"]["method"]), (&id, &json!("_small")));
    let ended = conductor.finish();
    assert_eq!(ended.code(), Some(0), "{:?}", ended.log);
    assert!(warnings(&ended.log, "the conductor") >= 1, "{:?}", ended.log);
}
