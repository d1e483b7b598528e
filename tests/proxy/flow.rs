//! The two directions never block each other.

use std::{fs, io::Write, thread};
#[cfg(unix)]
use std::{sync::mpsc::channel, time::Duration};

use serde_json::{Value, json};

#[cfg(unix)]
use crate::fixture::cwd;
use crate::{
    agent::{FLOOD_BYTES, INPUT_FILE},
    editor::Proxy,
    fixture::Fixture,
    skills::Skills,
};

crate::trials!(
    a_cancellation_passes_while_the_editor_does_not_read,
    an_update_passes_while_the_agent_does_not_read,
    #[cfg(unix)]
    held_messages_wait_for_an_agent_that_does_not_read,
    a_cancellation_passes_while_a_long_prompt_is_held,
    #[cfg(unix)]
    an_answer_for_the_agent_passes_long_messages_of_the_editor,
    menus_do_not_pile_up_for_an_editor_that_does_not_read,
);

/// 100 MB are pending in the agent while the editor has not read anything.
fn a_cancellation_passes_while_the_editor_does_not_read() {
    let skills = Skills::review();
    let mut editor = skills.proxy().agent("flood");
    editor.wait_for_log("agent: flooding");
    for id in 0..1000 {
        editor.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "_request", "params": { "text": "x".repeat(500) } }));
    }
    editor.notify("session/cancel", json!({ "sessionId": "s" }));
    editor.wait_for_log("agent: heard \"session/cancel\"");
    // Now start to read, and make sure that we get all of the lines.
    let mut bytes = 0;
    let mut lines = 0;
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
    // When the agent exits, we should get an error for all requests that it didn't answer.
    assert_eq!(ended.messages.len(), 1000);
    assert!(ended.messages.iter().all(|message| message.get("error").is_some()));
}

/// The agent is busy and reads nothing while the editor sends it 100 MB, and an update still arrives.
fn an_update_passes_while_the_agent_does_not_read() {
    let skills = Skills::new();
    let wake = skills.path().join("wake");
    let mut editor = Proxy::new().env(INPUT_FILE, &wake).agent("deaf");
    editor.wait_for_log("agent: ready");
    let line = format!("{}\n", json!({ "jsonrpc": "2.0", "method": "_much", "params": "x".repeat(100_000) }));
    let count = FLOOD_BYTES / line.len();
    let mut stdin = editor.take_stdin();
    let total = count * line.len();
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
    editor.wait_for_log(&format!("agent: heard {total} bytes"));
    assert_eq!(editor.ended().code(), Some(0));
}

/// The proxy holds each `session/new` until the skills were loaded. The editor must not be able to fill its memory with them.
#[cfg(unix)]
fn held_messages_wait_for_an_agent_that_does_not_read() {
    const MIB: usize = 1024 * 1024;
    let skills = Skills::review();
    let wake = skills.path().join("wake");
    let script = r#"read line
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
        while [ ! -e "$0" ]; do sleep 0.05; done
        cat > /dev/null"#;
    let mut editor = skills.proxy().arg("--").arg("sh").arg("-c").arg(script).arg(&wake).start();
    let start = editor.request("initialize", json!({ "protocolVersion": 1 }));
    editor.answer(&start);
    let (progress, written) = channel();
    let mut stdin = editor.take_stdin();
    let writer = thread::spawn(move || {
        let params = json!({ "cwd": cwd(), "mcpServers": [], "_meta": { "x": "x".repeat(MIB) } });
        for id in 0..80 {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": "session/new", "params": params });
            stdin.write_all(format!("{request}\n").as_bytes()).expect("the proxy reads");
            let _ = progress.send(id);
        }
    });
    // The time only has to be long enough for a proxy without back-pressure to read the next message.
    while let Ok(count) = written.recv_timeout(Duration::from_secs(3)) {
        assert!(count < 50, "the proxy read {count} MiB that the agent did not take");
    }
    fs::write(wake, "").expect("a file");
    writer.join().expect("everything is written");
    let ended = editor.ended();
    assert_eq!(ended.code(), Some(0), "{:#?}", ended.log);
    assert_eq!(ended.messages.len(), 80);
}

/// The prompt is longer than what may be held, and it is held until the agent connects, which never happens.
fn a_cancellation_passes_while_a_long_prompt_is_held() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy().flag("--mcp-wait", "100000"));
    fixture.new_session("s");
    let prompt = [json!({ "type": "text", "text": "x".repeat(6 * 1024 * 1024) })];
    let prompt = fixture.editor.request("session/prompt", json!({ "sessionId": "s", "prompt": prompt }));
    assert_eq!(fixture.received(), Vec::<Value>::new(), "the prompt was not held back");
    fixture.editor.notify("session/cancel", json!({ "sessionId": "s" }));
    assert_eq!(fixture.editor.answer(&prompt)["result"]["stopReason"], "cancelled");
    assert_eq!(fixture.received(), Vec::<Value>::new(), "the agent never saw this prompt");
    fixture.finish();
}

/// The editor has sent more than the agent reads, and one of its prompts was held. This must not delay updates of the agent when the
/// proxy answers one of its requests.
#[cfg(unix)]
fn an_answer_for_the_agent_passes_long_messages_of_the_editor() {
    let skills = Skills::review();
    let wake = skills.path().join("wake");
    let name = "mcp__acp-skills__activate_skill";
    let permission = json!({ "jsonrpc": "2.0", "id": "p", "method": "session/request_permission", "params": {
        "sessionId": "s",
        "toolCall": {
            "toolCallId": "c", "title": name, "kind": "read", "rawInput": { "name": "review" },
            "_meta": { "toolName": name },
        },
        "options": [{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }],
    } });
    let script = format!(
        r#"read line
        echo '{{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":1,"agentInfo":{{"name":"qwen-code","version":"1"}},"agentCapabilities":{{"mcpCapabilities":{{"http":true}}}}}}}}'
        read line
        echo '{{"jsonrpc":"2.0","id":2,"result":{{"sessionId":"s"}}}}'
        while [ ! -e "$0" ]; do sleep 0.05; done
        echo '{permission}'
        echo '{{"jsonrpc":"2.0","method":"_end"}}'
        cat > /dev/null"#
    );
    let proxy = skills.proxy().flag("--mcp-wait", "1").flag("--log", "info");
    let mut editor = proxy.arg("--").arg("sh").arg("-c").arg(script).arg(&wake).start();
    let id = editor.request("initialize", json!({ "protocolVersion": 1 }));
    editor.answer(&id);
    let id = editor.request("session/new", json!({ "cwd": cwd(), "mcpServers": [] }));
    editor.answer(&id);
    let long = "x".repeat(6 * 1024 * 1024);
    // The data is not text, so that the proxy needs no time to search it for names of skills.
    let blocks =
        json!([{ "type": "text", "text": "hi" }, { "type": "image", "mimeType": "image/png", "data": long }]);
    let prompt = json!({ "sessionId": "s", "prompt": blocks });
    let lines = [(3, "session/prompt", prompt), (4, "_long", json!(long))].map(|(id, method, params)| {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        format!("{request}\n")
    });
    let lines = lines.concat();
    let mut stdin = editor.take_stdin();
    let writer = thread::spawn(move || {
        stdin.write_all(lines.as_bytes()).expect("the proxy reads");
        stdin
    });
    // From now on, the prompt is no longer held.
    editor.wait_for_log("did not connect");
    fs::write(wake, "").expect("a file");
    editor.wait_for("the end", |message| message["method"] == "_end");
    drop(writer.join().expect("everything is written"));
    let ended = editor.ended();
    assert_eq!(ended.code(), Some(0), "{:#?}", ended.log);
}

/// All menus together have several megabytes.
fn menus_do_not_pile_up_for_an_editor_that_does_not_read() {
    const COUNT: usize = 16;
    let skills = Skills::new();
    let long = "x".repeat(1000);
    for number in 0..400 {
        skills.add(&format!("s-{number}"), &long, "Do it.");
    }
    let proxy = Proxy::new().flag("--skills", skills.path()).flag("--log", "info");
    let mut fixture = Fixture::initialized(proxy, &json!({}));
    for session in 0..COUNT {
        fixture.new_session(&format!("{session}"));
        fixture.editor.menu();
    }
    for change in 1..=COUNT {
        skills.add("s-0", &format!("Change {change}."), "Do it.");
        fixture.editor.wait_for_log("skills have changed");
    }
    let last = format!("Change {COUNT}.");
    let (mut menus, mut latest) = (0, 0);
    while latest < COUNT {
        menus += 1;
        latest += usize::from(fixture.editor.menu().to_string().contains(&last));
    }
    // Without a limit, each session gets a menu for each change. How many are left out depends on how fast changes are handled.
    assert!(menus < COUNT * COUNT, "{menus} menus for {COUNT} changes in {COUNT} sessions");
    fixture.finish();
}
