//! Tests the proxy in a chain: with a conductor that the test plays line by line, and with the published conductor if it is
//! installed.

use std::{env, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    agent,
    editor::{Editor, Proxy},
    fixture::{Fixture, MCP_2025, cwd, entry, texts},
    skills::Skills,
};

crate::trials!(
    a_conversation_with_a_conductor,
    a_conductor_with_the_old_method_names,
    odd_messages_of_a_conductor,
    no_conductor_and_no_agent,
    the_published_conductor,
    #[cfg(target_os = "linux")]
    no_process_is_left_when_the_proxy_is_killed,
);

/// Returns a proxy without an agent. The test is its conductor.
pub(crate) fn component(skills: &Skills) -> Proxy {
    Proxy::new().flag("--mcp-wait", "0").skill(&skills.dir("review"))
}

/// Returns the message in the next envelope for the successor.
pub(crate) fn to_successor(conductor: &mut Editor, envelope: &str) -> Value {
    let message = conductor.message();
    assert_eq!(message["method"], envelope, "{message}");
    let mut inner = message["params"].clone();
    inner["id"] = message["id"].clone();
    inner
}

fn a_conversation_with_a_conductor() {
    converse_in_a_chain("proxy");
}

fn a_conductor_with_the_old_method_names() {
    converse_in_a_chain("_proxy");
}

fn converse_in_a_chain(prefix: &str) {
    let skills = Skills::review();
    let mut conductor = component(&skills).start();
    let successor = format!("{prefix}/successor");

    // `initialize` should be sent to the successor first, so that the proxy can return the successor's answer.
    let params = json!({ "protocolVersion": 1, "_meta": { "x": 1 } });
    let id = conductor.request(&format!("{prefix}/initialize"), params.clone());
    let inner = to_successor(&mut conductor, &successor);
    assert_eq!((&inner["method"], &inner["params"]), (&json!("initialize"), &params));
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"agentCapabilities":{"mcpCapabilities":{"http":true}},"protocolVersion":1.0}}"#;
    conductor.write(format!("{answer}\n").as_bytes());
    assert_eq!(conductor.line().as_deref(), Some(format!("{answer}\n").as_bytes()));

    // Now open a session. It should have our server, and the first prompt should have the catalog.
    let id = match id.as_u64() {
        Some(1) => conductor.request("session/new", json!({ "cwd": cwd(), "mcpServers": [] })),
        other => panic!("the first request has the number 1 and not {other:?}"),
    };
    let inner = to_successor(&mut conductor, &successor);
    assert_eq!((&inner["method"], &inner["id"]), (&json!("session/new"), &id));
    assert!(entry(&inner["params"])["url"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")));
    conductor.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "sessionId": "s" } }));
    assert_eq!(conductor.message()["result"]["sessionId"], "s");
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "hello" }] });
    let id = conductor.request("session/prompt", prompt);
    let inner = to_successor(&mut conductor, &successor);
    let blocks = inner["params"]["prompt"].as_array().expect("blocks");
    assert!(texts(blocks)[0].contains("review") && texts(blocks)[1] == "hello", "{blocks:?}");

    // Messages from the successor should be unwrapped, and we should remove our text from them.
    let update = |text: &str| {
        json!({ "sessionId": "s", "update": {
            "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text },
        } })
    };
    for text in texts(blocks) {
        conductor.notify(&successor, json!({ "method": "session/update", "params": update(text) }));
    }
    let shown = conductor.message();
    assert_eq!((&shown["method"], &shown["params"]), (&json!("session/update"), &update("hello")));

    // If the successor sends a request, we should use the same id for the request, for the cancellation and for the answer.
    let asked =
        json!({ "method": "fs/read", "params": { "_meta": { "y": 2 }, "path": "/x" }, "_meta": { "z": 3 } });
    conductor.send(&json!({ "jsonrpc": "2.0", "id": "q", "method": successor, "params": asked }));
    let shown = conductor.message();
    assert_eq!(shown, json!({ "jsonrpc": "2.0", "id": "q", "method": "fs/read", "params": asked["params"] }));
    for params in [json!({ "requestId": "q" }), json!({ "requestId": id })] {
        conductor.notify("$/cancel_request", params.clone());
        let passed = conductor.message();
        assert_eq!((&passed["method"], &passed["params"]), (&json!("$/cancel_request"), &params));
    }
    for answer in [
        json!({ "jsonrpc": "2.0", "id": "q", "result": 1 }),
        json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
    ] {
        conductor.send(&answer);
        assert_eq!(conductor.message(), answer);
    }

    // Any other message is passed through, in either direction.
    conductor.notify("_vendor/thing", json!([1, 2]));
    assert_eq!(to_successor(&mut conductor, &successor)["params"], json!([1, 2]));
    let ended = conductor.finish();
    assert_eq!((ended.code(), ended.messages), (Some(0), Vec::new()));
}

/// Unusual messages still reach the right side, in order, and no later message is lost.
fn odd_messages_of_a_conductor() {
    let skills = Skills::review();
    let mut conductor = component(&skills).start();
    let id = conductor.request("proxy/initialize", json!({ "protocolVersion": 1 }));
    to_successor(&mut conductor, "proxy/successor");
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "protocolVersion": 1 } });
    conductor.send(&answer);
    assert_eq!(conductor.message(), answer);
    let huge = format!(r#"{{"method":"_x","params":["{}"]}}"#, "x".repeat(8 << 20));
    let mut lines: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut add = |line: &[u8], expected: &[u8]| lines.push((line.to_vec(), expected.to_vec()));
    // Here we send responses to requests that were never made: with an unknown id, with no id at all, and with a string that
    // looks like the id of a real request.
    for line in [r#"{"id":77,"result":{}}"#, r#"{"id":null,"error":{}}"#, r#"{"id":"1","result":[1.0]}"#] {
        add(line.as_bytes(), line.as_bytes());
    }
    add(b" \t", b"");
    add(b"{\"id\":3,\"result\":\"\xff\xfe\"}", b"{\"id\":3,\"result\":\"\xff\xfe\"}");
    add(b"{\"id\":4,\"result\":{}}\r", b"{\"id\":4,\"result\":{}}\r");
    add(
        br#"{"method":"proxy/successor","params":{"method":"session/update","params":{"a":"}\""}}}"#,
        br#"{"jsonrpc":"2.0","method":"session/update","params":{"a":"}\""}}"#,
    );
    add(
        b"{\"id\":9,\"method\":\"proxy/successor\",\"params\":{\"method\":\"_\xff\"}}",
        br#"{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"envelope for a successor has no `method`"}}"#,
    );
    let params = &huge[r#"{"method":"_x","params":"#.len()..];
    let wrapped = format!(
        r#"{{"jsonrpc":"2.0","method":"proxy/successor","params":{{"method":"_x","params":{params}}}"#
    );
    add(huge.as_bytes(), wrapped.as_bytes());
    for (line, expected) in lines {
        let shown = String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned();
        conductor.write(&[&line, b"\n".as_slice()].concat());
        if !expected.is_empty() {
            let got = conductor.line().unwrap_or_default();
            let expected = [&expected, b"\n".as_slice()].concat();
            assert!(got == expected, "{shown}: {}", String::from_utf8_lossy(&got[..got.len().min(400)]));
        }
    }
    let ended = conductor.finish();
    assert_eq!((ended.code(), ended.messages), (Some(0), Vec::new()));
}

fn no_conductor_and_no_agent() {
    let skills = Skills::review();
    let mut client = component(&skills).start();
    let id = client.request("initialize", json!({ "protocolVersion": 1 }));
    let answer = client.answer(&id);
    let why = answer["error"]["message"].as_str().expect("an error");
    assert!(why.contains("no agent") && why.contains("`--`"), "{why}");
    let ended = client.ended();
    assert_eq!(ended.code(), Some(2));
    assert!(ended.log.join("\n").contains("no agent to run"), "{:?}", ended.log);
}

/// Returns the published conductor: the program that `CONDUCTOR` names, or the one in the `PATH`.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn conductor() -> Option<PathBuf> {
    const NAME: &str = "agent-client-protocol-conductor";
    let found = env::var_os("CONDUCTOR").map(PathBuf::from).or_else(|| {
        let path = env::var_os("PATH")?;
        env::split_paths(&path).map(|dir| dir.join(NAME)).find(|program| program.is_file())
    });
    if found.is_none() {
        eprintln!("skipped: `{NAME}` is not installed; CONDUCTOR=PROGRAM names one");
    }
    found
}

/// Starts the published conductor over these components and the scripted agent.
fn start_conductor(conductor: PathBuf, components: &[String]) -> Editor {
    let this = env::current_exe().expect("this program has a path");
    let mut command = Proxy::of(conductor).env(agent::SCRIPT, "scripted").arg("agent");
    for component in components {
        command = command.arg(component);
    }
    command.arg(this).start()
}

fn command_line(skills: &Skills, name: &str) -> String {
    let program = env!("CARGO_BIN_EXE_acp-skills-proxy");
    format!("{program} --mcp-wait 0 --skill {}", skills.dir(name).display())
}

fn the_published_conductor() {
    let Some(conductor) = conductor() else { return };
    let skills = Skills::review();
    skills.add("release", "Makes releases.", "# Release");
    let components = ["review", "release"].map(|name| command_line(&skills, name));
    let mut fixture = Fixture::of(start_conductor(conductor, &components));
    let init = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let id = fixture.editor.request("initialize", init);
    let received = fixture.agent_receives();
    let capabilities = json!({ "mcpCapabilities": { "http": true } });
    fixture.agent_replies(
        &received,
        json!({ "result": { "protocolVersion": 1, "agentCapabilities": capabilities } }),
    );
    assert_eq!(fixture.editor.answer(&id)["result"]["agentCapabilities"], capabilities);

    let id = fixture.editor.request("session/new", json!({ "cwd": cwd(), "mcpServers": [] }));
    let received = fixture.agent_receives();
    fixture.agent_replies(&received, json!({ "result": { "sessionId": "s" } }));
    assert_eq!(fixture.editor.answer(&id)["result"]["sessionId"], "s");
    let servers = received["params"]["mcpServers"].as_array().expect("servers");
    let names: Vec<_> = servers.iter().map(|server| server["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["acp-skills", "acp-skills-2"]);
    for (server, skill) in servers.iter().zip(["review", "release"]) {
        let connection = fixture.connect(server, MCP_2025);
        let (text, failed) = fixture.call(&connection, "activate_skill", json!({ "name": skill }));
        assert!(!failed && text.contains(&format!("<skill_content name=\"{skill}\">")), "{text}");
    }
    let params = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "hello" }] });
    let id = fixture.editor.request("session/prompt", params);
    let received = fixture.agent_receives();
    let blocks = received["params"]["prompt"].as_array().expect("blocks").clone();
    let words = texts(&blocks);
    assert_eq!((words.len(), words[2]), (3, "hello"));
    assert!(words[0].contains("release") && words[1].contains("review"), "{words:?}");
    for text in words {
        let update =
            json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } });
        let params = json!({ "sessionId": "s", "update": update });
        fixture.agent_sends(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }
    fixture.agent_replies(&received, json!({ "result": { "stopReason": "end_turn" } }));
    assert_eq!(fixture.editor.message()["params"]["update"]["content"]["text"], "hello");
    assert_eq!(fixture.editor.answer(&id)["result"]["stopReason"], "end_turn");
    let ended = fixture.editor.finish();
    assert_eq!(ended.messages, Vec::<Value>::new());
}

/// No process is left when a proxy in a chain is killed: each process holds stderr, which is read to its end.
#[cfg(target_os = "linux")]
fn no_process_is_left_when_the_proxy_is_killed() {
    use rustix::process::{Pid, Signal, kill_process};
    let Some(conductor) = conductor() else { return };
    let skills = Skills::review();
    let mut fixture = Fixture::of(start_conductor(conductor, &[command_line(&skills, "review")]));
    let id = fixture.editor.request("initialize", json!({ "protocolVersion": 1, "clientCapabilities": {} }));
    let received = fixture.agent_receives();
    fixture.agent_replies(&received, json!({ "result": { "protocolVersion": 1, "agentCapabilities": {} } }));
    fixture.editor.answer(&id);
    let id = fixture.editor.request("session/new", json!({ "cwd": cwd(), "mcpServers": [] }));
    // Note that this agent uses the bridge, so our program is running twice. We want to kill the proxy, and not the bridge.
    let received = fixture.agent_receives();
    fixture.connect(&entry(&received["params"]), MCP_2025);
    kill_process(Pid::from_raw(child_of(fixture.editor.id())).expect("an id"), Signal::KILL)
        .expect("the program runs");
    let ended = fixture.editor.ended();
    let answered = ended.messages.iter().any(|message| message["id"] == id && message.get("error").is_some());
    assert!(answered || !ended.status.success(), "{:?} and {:?}", ended.status, ended.messages);
}

/// Returns the proxy among the children of a process.
#[cfg(target_os = "linux")]
fn child_of(parent: u32) -> i32 {
    let children = format!("/proc/{parent}/task");
    let tasks = std::fs::read_dir(children).expect("the conductor runs");
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let children: Vec<i32> = children
        .flat_map(|ids| ids.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect();
    let ours = std::fs::canonicalize(env!("CARGO_BIN_EXE_acp-skills-proxy")).expect("the program exists");
    let is_ours =
        |id: &i32| std::fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|program| program == ours);
    children.into_iter().find(is_ours).expect("the conductor has started the proxy")
}
