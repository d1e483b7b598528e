//! Progress of scripts while they run, and their end when they are cancelled or the proxy is killed. The clients of these tests
//! write MCP messages themselves, over the bridge and over HTTP.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::{Ipv4Addr, TcpListener},
    sync::mpsc::{Receiver, channel},
    thread,
};

use serde_json::{Value, json};

use crate::{
    agent::{SCRIPT, scripts},
    editor::{DEADLINE, KILLED, Proxy},
    fixture::{Fixture, MCP_2025, entry},
    http_access::{Endpoint, initialize, with},
    scripts::{allowing, bridge, cancelled, kit, request, with_long_timeout},
};

crate::trials!(
    progress_over_the_bridge,
    progress_over_http,
    cancelled_over_the_bridge,
    cancelled_over_http,
    processes_end_with_a_killed_proxy,
    a_stateless_client_hangs_up,
    many_calls_at_once,
);

fn assert_is_progress(message: &Value, token: &str) {
    let params = &message["params"];
    assert_eq!(
        (&message["method"], &params["progressToken"]),
        (&json!("notifications/progress"), &json!(token))
    );
    assert!(params["progress"].as_f64().is_some_and(|seconds| seconds >= 1.0), "{message}");
    let words = params["message"].as_str().expect("text");
    assert!(words.starts_with("run_skill_script has been running for "), "{message}");
}

fn progress_over_the_bridge() {
    let skills = kit();
    let mut fixture = Fixture::over_http(allowing(&skills).flag("--mcp", "stdio"));
    let mut client = bridge(&mut fixture);
    let file = skills.path().join("go");
    let args = [file.to_str().expect("text")];
    client.send(&request(7, "until", &args, Some("t")));
    // Now make the same call without a progress token, for which we shouldn't get any notifications.
    client.send(&request(8, "until", &args, None));
    let mut last = 0.0;
    for _ in 0..2 {
        let message = client.wait_for("progress", |message| message.get("method").is_some());
        assert_is_progress(&message, "t");
        let progress = message["params"]["progress"].as_f64().expect("a number");
        assert!(progress > last, "progress must increase: {last}, {progress}");
        last = progress;
    }
    fs::write(&file, "").expect("a file");
    for id in [7, 8] {
        assert_eq!(client.answer(&json!(id))["result"]["structuredContent"]["stdout"], "over\n");
    }
    for message in client.finish().messages {
        assert_is_progress(&message, "t");
    }
    fixture.finish();
}

/// Returns an address, and a receiver that yields a line once both processes of a script hold a connection to the
/// address, and `gone` once both connections have ended.
pub(crate) fn listen_for_processes() -> (String, Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("an address");
    let address = listener.local_addr().expect("an address").to_string();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut connections = [(); 2].map(|()| BufReader::new(listener.accept().expect("a process").0));
        let lines = connections.each_mut().map(|connection| {
            let mut line = String::new();
            connection.read_line(&mut line).expect("a line");
            line
        });
        let _ = sender.send(lines.concat());
        for connection in &mut connections {
            // Ignore errors here, because on Windows the connection is reset when the process is killed.
            let _ = connection.read_to_end(&mut Vec::new());
        }
        let _ = sender.send("gone".to_owned());
    });
    (address, receiver)
}

pub(crate) const HELD: &str = "held\nheld\n";

pub(crate) fn expect(seen: &Receiver<String>, line: &str) {
    assert_eq!(seen.recv_timeout(DEADLINE).as_deref(), Ok(line));
}

fn cancelled_over_the_bridge() {
    let skills = kit();
    let mut fixture = Fixture::over_http(with_long_timeout(&skills).flag("--mcp", "stdio"));
    let mut client = bridge(&mut fixture);
    let (address, seen) = listen_for_processes();
    client.send(&request(7, "hold", &[&address], None));
    expect(&seen, HELD);
    client.send(&cancelled(7));
    expect(&seen, "gone");
    // The connection must not be affected by this.
    client.send(&request(8, "much", &[], None));
    assert_eq!(client.answer(&json!(8))["result"]["structuredContent"]["success"], true);
    client.finish();
    fixture.finish();
}

/// If the proxy is killed, its scripts and command tools are killed as well, although they ignore SIGTERM.
fn processes_end_with_a_killed_proxy() {
    let skills = kit();
    let this = std::env::current_exe().expect("this program has a path");
    for name in ["run_skill_script", "call_skill_tool"] {
        let (address, seen) = listen_for_processes();
        let mut environment = serde_json::Map::new();
        environment.insert(SCRIPT.to_owned(), format!("{}stubborn", scripts::PREFIX).into());
        let tool =
            json!({ "name": "hold", "command": [&this, &address], "env": environment, "timeout": 600 });
        let virtual_skill = json!({ "name": "held", "description": "Holds.", "body": "x", "tools": [tool] });
        let config = skills.write("skills.yaml", &json!({ "skills": ["kit", virtual_skill] }).to_string());
        let proxy = Proxy::new().flag("--config", config).arg("--allow-scripts");
        let mut fixture = Fixture::over_http(proxy.flag("--script-timeout", "600").flag("--mcp", "stdio"));
        let mut client = bridge(&mut fixture);
        if name == "run_skill_script" {
            client.send(&request(7, "stubborn", &[&address], None));
        } else {
            let params = json!({ "name": name, "arguments": { "skill": "held", "tool": "hold" } });
            client.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }));
        }
        expect(&seen, HELD);
        // When the script connects, we may not have registered it with the watchdog yet. To make sure that we have, wait for
        // the answer to another request.
        client.send(&json!({ "jsonrpc": "2.0", "id": 8, "method": "ping" }));
        client.answer(&json!(8));
        fixture.editor.kill();
        expect(&seen, "gone");
        assert_eq!(fixture.editor.ended().code(), KILLED, "the proxy was killed");
    }
}

/// Opens an MCP session over HTTP and returns the endpoint and the headers of its requests.
pub(crate) fn http_session(fixture: &mut Fixture) -> (Endpoint, Vec<(&'static str, String)>) {
    let endpoint = Endpoint::of(&entry(&fixture.new_session("s")));
    let plain: Vec<_> = ["Host", "Authorization", "Content-Type", "Accept"]
        .into_iter()
        .map(|name| {
            (name, endpoint.headers().into_iter().find(|header| header.0 == name).expect("a header").1)
        })
        .collect();
    let (status, answer) = endpoint.post(&plain, &initialize(MCP_2025));
    assert_eq!(status, 200, "{answer}");
    let session = answer
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
    let headers = with(&plain, "Mcp-Session-Id", Some(&session.expect("a session")));
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(endpoint.post(&headers, &ready).0, 202);
    (endpoint, headers)
}

fn progress_over_http() {
    let skills = kit();
    let mut fixture = Fixture::over_http(allowing(&skills));
    let (endpoint, headers) = http_session(&mut fixture);
    let file = skills.path().join("go");
    let call = request(7, "until", &[file.to_str().expect("text")], Some("t"));
    let mut events = BufReader::new(endpoint.post_without_reading(&headers, &call)).lines();
    let mut message = |method: bool| loop {
        let line = events.next().expect("more").expect("text");
        let Some(data) = line.strip_prefix("data: ").filter(|data| data.starts_with('{')) else { continue };
        let message: Value = serde_json::from_str(data).expect("JSON");
        if message.get("method").is_some() == method {
            return message;
        }
    };
    assert_is_progress(&message(true), "t");
    fs::write(&file, "").expect("a file");
    assert_eq!(message(false)["result"]["structuredContent"]["stdout"], "over\n");
    fixture.finish();
}

fn cancelled_over_http() {
    let skills = kit();
    let mut fixture = Fixture::over_http(with_long_timeout(&skills));
    let (endpoint, headers) = http_session(&mut fixture);
    let (address, seen) = listen_for_processes();
    let call = endpoint.post_without_reading(&headers, &request(7, "hold", &[&address], None));
    expect(&seen, HELD);
    assert_eq!(endpoint.post(&headers, &cancelled(7)).0, 202);
    expect(&seen, "gone");
    drop(call);
    fixture.finish();
}

/// In the stateless revision of MCP, closing the connection cancels the call.
fn a_stateless_client_hangs_up() {
    let skills = kit();
    let mut fixture = Fixture::over_http(with_long_timeout(&skills));
    let endpoint = Endpoint::of(&entry(&fixture.new_session("s")));
    let headers = with(&endpoint.headers(), "MCP-Protocol-Version", Some("2026-07-28"));
    let headers = with(&headers, "Mcp-Method", Some("tools/call"));
    let headers = with(&headers, "Mcp-Name", Some("run_skill_script"));
    let (address, seen) = listen_for_processes();
    let mut call = request(7, "hold", &[&address], None);
    call["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = endpoint.post_without_reading(&headers, &call);
    expect(&seen, HELD);
    drop(call);
    expect(&seen, "gone");
    fixture.finish();
}

fn many_calls_at_once() {
    // Use fewer calls on Windows, because starting a program is slow there.
    const CALLS: u64 = if cfg!(windows) { 100 } else { 1_000 };
    let skills = kit();
    let mut fixture = Fixture::over_http(allowing(&skills).flag("--mcp", "stdio"));
    let mut client = bridge(&mut fixture);
    let dir = tempfile::tempdir().expect("a directory");
    let args = [dir.path().to_str().expect("text")];
    for id in 0..CALLS {
        client.send(&request(id + 2, "count", &args, None));
    }
    let counts = (0..CALLS).map(|id| {
        let answer = client.answer(&json!(id + 2));
        let result = &answer["result"]["structuredContent"];
        assert_eq!(result["success"], true, "{answer}");
        result["stdout"].as_str().expect("text").trim().parse::<usize>().expect("a number")
    });
    let most = counts.max().expect("numbers");
    assert!((2..=4).contains(&most), "{most} at once");
    client.finish();
    fixture.finish();
}
