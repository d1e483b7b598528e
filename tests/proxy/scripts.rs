//! Scripts of skills: disabled by default, limited by flags, with progress while they run, and ended when they are
//! cancelled. The clients of these tests write MCP messages themselves, over the bridge and over HTTP.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    net::{Ipv4Addr, TcpListener},
    path::PathBuf,
    sync::mpsc::{Receiver, channel},
    thread,
};

use serde_json::{Value, json};

use crate::{
    agent::{SCRIPT, scripts},
    editor::{DEADLINE, Editor, KILLED, Proxy},
    fixture::{Fixture, MCP_2025, cwd, entry},
    http_access::{Endpoint, initialize, with},
    skills::Skills,
};

crate::trials!(
    scripts_are_off_by_default,
    scripts_run_if_allowed,
    failures_are_typed,
    the_directory_and_environment_of_a_script,
    scripts_have_limits,
    a_missing_sandbox,
    #[cfg(target_os = "linux")]
    a_sandbox_that_is_too_old,
    #[cfg(target_os = "linux")]
    a_working_directory_that_the_sandbox_refuses,
    progress_over_the_bridge,
    progress_over_http,
    cancelled_over_the_bridge,
    cancelled_over_http,
    processes_end_with_a_killed_proxy,
    a_stateless_client_hangs_up,
    many_calls_at_once,
);

/// The scripts of the skill `kit`.
const SCRIPTS: &[&str] = &["say", "where", "slow", "kill", "much", "until", "hold", "stubborn", "count"];

/// Creates a skill `kit` with scripts.
pub(crate) fn kit() -> Skills {
    let skills = Skills::new();
    skills.add("kit", "Does things.", "# Kit");
    for name in SCRIPTS {
        skills.write(&format!("kit/{}", path(name)), &scripts::file(name).1);
    }
    skills
}

/// Returns the path of a script in its skill.
fn path(name: &str) -> String {
    format!("scripts/{name}.{}", scripts::file(name).0)
}

fn proxy(skills: &Skills) -> Proxy {
    Proxy::new().skill(&skills.dir("kit")).env("PROXY_TEST_OURS", "inherited")
}

fn allowing(skills: &Skills) -> Proxy {
    proxy(skills).arg("--allow-scripts")
}

/// Allows scripts with a timeout above our deadline, so a script that ends earlier was not ended by the timeout.
pub(crate) fn with_long_timeout(skills: &Skills) -> Proxy {
    allowing(skills).flag("--script-timeout", "600")
}

/// Runs a script in a new session and returns the structured result.
fn run(fixture: &mut Fixture, script: &str, more: Value) -> Value {
    let connection = {
        let params = fixture.new_session("s");
        fixture.connect(&entry(&params), MCP_2025)
    };
    let mut arguments = json!({ "skill": "kit", "script": path(script) });
    arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let call = json!({ "connection": connection.number, "tool": "run_skill_script", "arguments": arguments });
    let mut result = fixture.order("call", call).expect("a result");
    let structured = result["structuredContent"].take();
    let text = result["content"][0]["text"].as_str().expect("text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), structured, "the same as text");
    assert_eq!(structured["success"], json!(!result["isError"].as_bool().unwrap_or(false)));
    structured
}

fn scripts_are_off_by_default() {
    let skills = kit();
    let mut fixture = Fixture::over_http(proxy(&skills));
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    assert!(connection.tools.iter().all(|tool| tool["name"] != "run_skill_script"), "{:?}", connection.tools);
    let arguments = json!({ "skill": "kit", "script": path("say") });
    let (text, failed) = fixture.call(&connection, "run_skill_script", arguments);
    assert!(failed && text.starts_with("UnknownTool: "), "{text}");
    let (text, _) = fixture.call(&connection, "activate_skill", json!({ "name": "kit" }));
    assert!(text.contains(&path("say")) && !text.contains("run_skill_script"), "{text}");
    fixture.finish();
}

fn scripts_run_if_allowed() {
    let skills = kit();
    let config = skills.write("skills.yaml", "skills: [kit]\nallow_scripts: true\n");
    for proxy in [allowing(&skills), Proxy::new().flag("--config", config)] {
        let mut fixture = Fixture::over_http(proxy);
        let params = fixture.new_session("s");
        let connection = fixture.connect(&entry(&params), MCP_2025);
        let tool = connection.tools.iter().find(|tool| tool["name"] == "run_skill_script").expect("listed");
        assert_eq!(tool["annotations"]["readOnlyHint"], false);
        let (text, _) = fixture.call(&connection, "activate_skill", json!({ "name": "kit" }));
        assert!(text.contains("`run_skill_script`"), "{text}");
        let mut result = run(&mut fixture, "say", json!({ "args": ["a", "$HOME; b"], "stdin": "in " }));
        assert!(result["durationMs"].take().is_u64());
        assert_eq!(
            result,
            json!({ "success": true, "exitCode": 0, "stdout": "in a $HOME; b\n", "stderr": "no\n", "durationMs": null })
        );
        fixture.finish();
    }
}

fn failures_are_typed() {
    let skills = kit();
    skills.write(&format!("secret.{}", scripts::file("").0), "echo secret");
    let mut fixture = Fixture::over_http(allowing(&skills));
    for (script, error, words) in [
        ("say", "ExecutionFailed", "failed with exit code"),
        ("sya", "ScriptNotFound", &*format!("did you mean `{}`", path("say"))),
        ("../../secret", "ScriptNotAllowed", "outside"),
    ] {
        let result = run(&mut fixture, script, json!({}));
        assert_eq!((&result["error"], &result["success"]), (&json!(error), &json!(false)), "{result}");
        assert!(result["message"].as_str().expect("text").contains(words), "{result}");
    }
    let result = run(&mut fixture, "say", json!({ "skill": "kti" }));
    assert_eq!(result["error"], "SkillNotFound", "{result}");
    fixture.finish();
}

fn the_directory_and_environment_of_a_script() {
    let skills = kit();
    let real = |path: PathBuf| dunce::canonicalize(path).expect("a directory").display().to_string();
    let session = real(cwd().into());
    let skill = real(skills.dir("kit"));
    for (flags, dir, ours) in [
        (&[] as &[_], &session, "inherited"),
        (&["--script-cwd", "skill"], &skill, "inherited"),
        (&["--script-env", "clean"], &session, "nothing"),
        (&["--script-env", "inherit", "--script-cwd", "session"], &session, "inherited"),
    ] {
        let proxy = flags.iter().fold(allowing(&skills), Proxy::arg);
        let mut fixture = Fixture::over_http(proxy);
        let result = run(&mut fixture, "where", json!({}));
        assert_eq!(result["stdout"], format!("{dir}\nkit\n{ours}\n"), "{flags:?}: {result}");
        fixture.finish();
    }
}

fn scripts_have_limits() {
    let skills = kit();
    // Use a longer timeout on Windows, since starting a program is slow there.
    let limit = if cfg!(windows) { "10" } else { "0.5" };
    let limits = allowing(&skills).flag("--script-timeout", limit).flag("--max-output", "10");
    let mut fixture = Fixture::over_http(limits);
    let result = run(&mut fixture, "slow", json!({}));
    assert_eq!((&result["error"], &result["stdout"]), (&json!("ExecutionTimeout"), &json!("begun\n")));
    assert!(
        result["message"].as_str().expect("text").contains(&format!("timed out after {limit} s")),
        "{result}"
    );
    let result = run(&mut fixture, "much", json!({}));
    assert_eq!(result["stdout"], "日本語\n[output truncated]", "nine bytes of ten, between two characters");
    fixture.finish();
}

fn a_missing_sandbox() {
    let skills = kit();
    let empty = tempfile::tempdir().expect("a directory");
    let editor = allowing(&skills).flag("--sandbox", "bwrap").env("PATH", empty.path()).agent("no-part");
    let ended = editor.ended();
    assert_eq!(ended.code(), Some(2), "{:?}", ended.log);
    let log = ended.log.join("\n");
    for words in ["error: --sandbox bwrap: bubblewrap (`bwrap`) is not installed", "hint: install bubblewrap"]
    {
        assert!(log.contains(words), "{words:?} is not in {log}");
    }
    assert!(!log.contains("no-part"), "the agent was started: {log}");
}

/// Debian 11 and RHEL 9 have such an old version.
#[cfg(target_os = "linux")]
fn a_sandbox_that_is_too_old() {
    use std::os::unix::fs::PermissionsExt;
    let skills = kit();
    let bwrap = skills.write(
        "bin/bwrap",
        "#!/bin/sh\n[ \"$1\" = --version ] && echo bubblewrap 0.4.1 && exit\necho 'bwrap: Unknown option' >&2\nexit 1\n",
    );
    fs::set_permissions(&bwrap, fs::Permissions::from_mode(0o755)).expect("a program");
    let path = bwrap.parent().expect("a directory");
    let ended = allowing(&skills).flag("--sandbox", "bwrap").env("PATH", path).agent("no-part").ended();
    assert_eq!(ended.code(), Some(2), "{:?}", ended.log);
    let expected =
        "--sandbox bwrap: bubblewrap (`bwrap`) 0.4.1 is too old; at least version 0.6.0 is required";
    assert!(ended.log[0].ends_with(expected), "{:?}", ended.log);
}

/// The user is warned when the session starts. Otherwise only the model would learn of it, when a script fails.
#[cfg(target_os = "linux")]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn a_working_directory_that_the_sandbox_refuses() {
    let skills = kit();
    if let Err(error) = skills_core::exec::Sandbox::bwrap(false) {
        eprintln!("skipped: {error}");
        return;
    }
    let home = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let home = home.path().canonicalize().expect("a path");
    for (cwd, flags, expected) in [
        (&*home, &[] as &[_], Some("change all files in your home directory")),
        ("/".as_ref(), &[], Some("working directory / is not allowed for sandboxed scripts: ")),
        (&*skills.dir("kit"), &[], None),
        // We don't need a warning here, because scripts won't be run in this directory.
        ("/".as_ref(), &["--script-cwd", "skill"], None),
    ] {
        let proxy =
            flags.iter().fold(allowing(&skills).flag("--sandbox", "bwrap").env("HOME", &home), Proxy::arg);
        let mut fixture = Fixture::over_http(proxy);
        let params = json!({ "cwd": cwd, "mcpServers": [] });
        // We should only see the warning once, and not for the second session.
        for id in ["s", "t"] {
            fixture.exchange("session/new", params.clone(), json!({ "result": { "sessionId": id } }));
        }
        let log = fixture.finish().log;
        let warnings = log.iter().filter(|line| line.contains(expected.unwrap_or("sandbox"))).count();
        assert_eq!(warnings, usize::from(expected.is_some()), "{}: {log:#?}", cwd.display());
    }
}

/// Starts a client of the bridge that writes its own MCP messages.
pub(crate) fn bridge(fixture: &mut Fixture) -> Editor {
    let ours = entry(&fixture.new_session("s"));
    let args = ours["args"].as_array().expect("a list").iter();
    let mut bridge = args.fold(Proxy::new(), |bridge, arg| bridge.arg(arg.as_str().expect("text")));
    for pair in ours["env"].as_array().expect("a list") {
        let text = |key: &str| pair[key].as_str().expect("text").to_owned();
        bridge = bridge.env(&text("name"), text("value"));
    }
    let mut bridge = bridge.start();
    bridge.send(&initialize(MCP_2025));
    bridge.answer(&json!(1));
    bridge.notify("notifications/initialized", json!({}));
    bridge
}

/// Returns the request to run a script. `token` is its progress token.
pub(crate) fn request(id: u64, script: &str, args: &[&str], token: Option<&str>) -> Value {
    let arguments = json!({ "skill": "kit", "script": path(script), "args": args });
    let mut params = json!({ "name": "run_skill_script", "arguments": arguments });
    if let Some(token) = token {
        params["_meta"] = json!({ "progressToken": token });
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

pub(crate) fn cancelled(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

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
fn listen_for_processes() -> (String, Receiver<String>) {
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

const HELD: &str = "held\nheld\n";

fn expect(seen: &Receiver<String>, line: &str) {
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
fn http_session(fixture: &mut Fixture) -> (Endpoint, Vec<(&'static str, String)>) {
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
