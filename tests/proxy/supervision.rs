//! The exit of the proxy. No process may be left afterwards.
//!
//! Each test reads stderr to its end, and every process that the agent starts holds it, so an orphan fails the test.

#[cfg(unix)]
use std::time::{Duration, Instant};

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

#[cfg(unix)]
use crate::editor::Editor;
use crate::{
    editor::{KILLED, Proxy},
    fixture::{Fixture, MCP_2025, entry},
    skills::Skills,
};

crate::trials!(
    the_proxy_exits_with_the_agents_code,
    open_requests_are_answered,
    #[cfg(unix)]
    an_agent_that_is_killed_by_a_signal,
    the_last_messages_of_an_agent_arrive,
    the_editor_closes_its_end,
    #[cfg(unix)]
    an_agent_that_ignores_the_end_of_its_stdin,
    an_agent_that_is_slow_to_exit,
    waiting_prompts_when_the_editor_closes_its_end,
    #[cfg(unix)]
    signals_are_forwarded,
    #[cfg(unix)]
    an_interrupt_does_not_end_the_agent,
    #[cfg(unix)]
    a_child_that_holds_stdout,
    #[cfg(unix)]
    an_agent_that_closes_its_stdout_and_keeps_running,
    #[cfg(unix)]
    children_of_the_agent_end_with_it,
    a_proxy_that_is_killed,
    #[cfg(target_os = "linux")]
    an_agent_that_leaves_its_group,
    #[cfg(unix)]
    a_fifo_as_event_or_log_file,
    #[cfg(unix)]
    written_files_are_private,
    #[cfg(unix)]
    files_that_others_can_read_become_private,
    the_bridges_end_with_the_proxy,
    an_editor_that_closes_its_stdout,
    an_agent_that_does_not_read_when_the_editor_closes_its_end,
    an_incomplete_last_line,
);

#[cfg(unix)]
fn kill(editor: &Editor, signal: Signal) {
    let id = Pid::from_raw(editor.id().cast_signed()).expect("an id");
    kill_process(id, signal).expect("the proxy runs");
}

fn the_proxy_exits_with_the_agents_code() {
    for code in [0, 1, 3, 77, 255] {
        let mut fixture = Fixture::new(Proxy::new());
        fixture.editor.notify("_agent/exit", json!({ "code": code }));
        let ended = fixture.editor.ended();
        assert_eq!((ended.code(), ended.messages.len()), (Some(code), 0), "{:#?}", ended.log);
    }
}

fn open_requests_are_answered() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy());
    fixture.new_session("s");
    // When the agent exits, one request has been answered, four with different kinds of ids are still in flight, and a prompt
    // is waiting for the tools.
    let answered = fixture.editor.request("_done", json!({}));
    let request = fixture.agent_receives();
    fixture.agent_replies(&request, json!({ "result": 1 }));
    assert_eq!(fixture.editor.answer(&answered)["result"], 1);
    let ids = [json!("text \u{e9} \"x\""), json!(-7), json!(u64::MAX), json!("")];
    for id in &ids {
        fixture.editor.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "_open", "params": {} }));
    }
    let prompt = fixture.editor.request(
        "session/prompt",
        json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "hello" }] }),
    );
    fixture.editor.notify("_agent/exit", json!({ "code": 3 }));
    let ended = fixture.editor.ended();
    assert_eq!(ended.code(), Some(3));
    assert_eq!(ended.messages.len(), ids.len() + 1, "{:?}", ended.messages);
    for (id, method) in ids.iter().map(|id| (id, "_open")).chain([(&prompt, "session/prompt")]) {
        let error = &ended.answer(id)["error"];
        assert_eq!(error["code"], -32603, "{error}");
        let text = error["message"].as_str().expect("text");
        assert!(text.contains("exited with code 3") && text.contains(method), "{text}");
    }
}

#[cfg(unix)]
fn an_agent_that_is_killed_by_a_signal() {
    let mut fixture = Fixture::new(Proxy::new());
    let open = fixture.editor.request("_open", json!({}));
    fixture.editor.notify("_agent/abort", json!({}));
    let ended = fixture.editor.ended();
    assert_eq!(ended.code(), Some(128 + 6), "{:#?}", ended.log);
    let text = &ended.answer(&open)["error"]["message"];
    assert!(text.as_str().is_some_and(|text| text.contains("killed by signal 6 (SIGABRT)")), "{text}");
}

/// A crash does not lose the messages before it, and the errors for open requests come after them.
fn the_last_messages_of_an_agent_arrive() {
    let mut fixture = Fixture::new(Proxy::new());
    let open = fixture.editor.request("_open", json!({}));
    let update = json!({ "jsonrpc": "2.0", "method": "_last", "params": "x".repeat(1000) }).to_string();
    let lines = vec![update.as_str(); 5000];
    let id = fixture.editor.request("_agent/say", json!({ "lines": lines }));
    fixture.editor.notify("_agent/exit", json!({ "code": 9 }));
    let ended = fixture.editor.ended();
    assert_eq!(ended.code(), Some(9));
    let is_update = |message: &Value| message["method"] == "_last";
    assert_eq!(ended.messages.iter().filter(|message| is_update(message)).count(), lines.len());
    assert_eq!(ended.answer(&id)["result"], json!(null), "the agent answered that one itself");
    assert_eq!(ended.messages.last().map(|message| &message["id"]), Some(&open), "errors come last");
}

fn the_editor_closes_its_end() {
    let mut fixture = Fixture::new(Proxy::new());
    let open = fixture.editor.request("_open", json!({}));
    // When stdin is closed, the agent will exit, as it should.
    let ended = fixture.editor.finish();
    assert_eq!(ended.code(), Some(0));
    let text = &ended.answer(&open)["error"]["message"];
    assert!(text.as_str().is_some_and(|text| text.contains("exited with code 0")), "{text}");
}

#[cfg(unix)]
fn an_agent_that_ignores_the_end_of_its_stdin() {
    let mut editor = Proxy::new().agent("stubborn");
    editor.wait_for_log("agent: ready");
    let start = Instant::now();
    editor.close();
    editor.wait_for_log("agent: SIGTERM");
    assert!(start.elapsed() >= Duration::from_secs(3), "the agent had 3 seconds to exit by itself");
    let ended = editor.ended();
    assert_eq!(ended.code(), Some(128 + 9), "{:#?}", ended.log);
    assert!(start.elapsed() >= Duration::from_secs(5), "the agent had 2 more seconds after SIGTERM");
}

/// Some agents need a second or two to exit cleanly.
fn an_agent_that_is_slow_to_exit() {
    // Without a grace period, we send SIGTERM to the agent, or just terminate it on Windows.
    let asked = if cfg!(windows) { 1 } else { 128 + 15 };
    for (wait, code) in [(None, 0), (Some("100000"), 0), (Some("0"), asked)] {
        let mut proxy = Proxy::new();
        if let Some(wait) = wait {
            proxy = proxy.flag("--exit-wait", wait);
        }
        let editor = proxy.agent("slow-to-leave");
        let ended = editor.finish();
        assert_eq!(ended.code(), Some(code), "{wait:?}: {:#?}", ended.log);
    }
}

/// The user's text reaches the agent even if the editor does not wait for the answer.
fn waiting_prompts_when_the_editor_closes_its_end() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy().flag("--mcp-wait", "100000"));
    fixture.new_session("s");
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "last words" }] });
    let id = fixture.editor.request("session/prompt", prompt);
    assert_eq!(fixture.received(), Vec::<Value>::new(), "the prompt was not held back");
    let ended = fixture.editor.finish();
    let left: Vec<_> = ended.log.iter().filter(|line| line.starts_with("agent: not taken: ")).collect();
    assert!(left.len() == 1 && left[0].contains("last words") && left[0].contains("SKILL.md"), "{left:?}");
    assert!(ended.answer(&id).get("error").is_some());
    assert_eq!(ended.code(), Some(0));
}

#[cfg(unix)]
fn signals_are_forwarded() {
    for (signal, code) in [(Signal::TERM, 41), (Signal::HUP, 42)] {
        let mut editor = Proxy::new().agent("signals");
        editor.wait_for_log("agent: ready");
        kill(&editor, signal);
        let ended = editor.ended();
        assert_eq!(ended.code(), Some(code), "{:#?}", ended.log);
    }
    let mut editor = Proxy::new().agent("stubborn");
    editor.wait_for_log("agent: ready");
    kill(&editor, Signal::TERM);
    editor.wait_for_log("agent: SIGTERM");
    assert_eq!(editor.ended().code(), Some(128 + 9), "an agent that ignores SIGTERM is killed");
}

#[cfg(unix)]
fn an_interrupt_does_not_end_the_agent() {
    let mut editor = Proxy::new().agent("signals");
    editor.wait_for_log("agent: ready");
    kill(&editor, Signal::INT);
    editor.wait_for_log("agent: SIGINT");
    kill(&editor, Signal::TERM);
    assert_eq!(editor.ended().code(), Some(41));
}

#[cfg(unix)]
/// The agent crashes and leaves a child that holds its stdout and ignores SIGTERM.
fn a_child_that_holds_stdout() {
    let mut fixture = Fixture::new(Proxy::new());
    fixture.order("spawn", json!({ "script": "stubborn" })).expect("a child");
    fixture.editor.wait_for_log("agent: ready");
    let open = fixture.editor.request("_open", json!({}));
    fixture.editor.notify("_agent/exit", json!({ "code": 5 }));
    fixture.editor.wait_for_log("agent: SIGTERM");
    let ended = fixture.editor.ended();
    assert_eq!(ended.code(), Some(5), "{:#?}", ended.log);
    assert!(ended.answer(&open).get("error").is_some());
}

/// Such an agent cannot answer open requests any more. If it exits when its stdin ends, its exit code counts; otherwise
/// it is terminated.
#[cfg(unix)]
fn an_agent_that_closes_its_stdout_and_keeps_running() {
    for (then, code, why) in [
        ("cat > /dev/null; exit 7", 7, "exited with code 7"),
        ("exec sleep 600", 128 + 15, "closed its stdout"),
    ] {
        let script = format!("read line; exec >&-; {then}");
        let mut editor =
            Proxy::new().flag("--exit-wait", "0.2").arg("--").arg("sh").arg("-c").arg(&script).start();
        let open = editor.request("initialize", json!({ "protocolVersion": 1 }));
        let ended = editor.ended();
        assert_eq!(ended.code(), Some(code), "{:#?}", ended.log);
        let text = &ended.answer(&open)["error"]["message"];
        assert!(text.as_str().is_some_and(|text| text.contains(why)), "{text}");
    }
}

#[cfg(unix)]
fn children_of_the_agent_end_with_it() {
    let mut fixture = Fixture::new(Proxy::new());
    fixture.order("spawn", json!({ "script": "signals" })).expect("a child");
    fixture.order("spawn", json!({ "script": "stubborn" })).expect("another");
    for _ in 0..2 {
        fixture.editor.wait_for_log("agent: ready");
    }
    fixture.finish();
}

/// The bridges end even if the proxy is killed, and an agent is killed with it.
fn the_bridges_end_with_the_proxy() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy().flag("--mcp", "stdio"));
    let params = fixture.new_session("s");
    fixture.connect(&entry(&params), MCP_2025);
    fixture.editor.kill();
    let ended = fixture.editor.ended();
    assert_eq!(ended.code(), KILLED, "the proxy was killed");
}

/// The editor has closed its end of stdout, so the proxy exits although its stdin is still open.
fn an_editor_that_closes_its_stdout() {
    let mut editor = Proxy::new().agent("flood");
    editor.wait_for_log("agent: flooding");
    editor.stop_reading();
    let ended = editor.ended();
    assert!(ended.code().is_some(), "{:#?}", ended.log);
}

/// The data exceeds the pipe's capacity. The proxy cannot deliver it, and still has to notice that the editor has
/// exited.
fn an_agent_that_does_not_read_when_the_editor_closes_its_end() {
    let mut editor = Proxy::new().agent("stubborn");
    editor.wait_for_log("agent: ready");
    let mut stdin = editor.take_stdin();
    std::thread::spawn(move || {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"_x\",\"params\":\"{}\"}}\n", "x".repeat(1000));
        // Don't write more than this, so that it all fits into the two pipes and the buffer between them. Otherwise, the editor
        // would block here.
        for _ in 0..90 {
            let _ = std::io::Write::write_all(&mut stdin, line.as_bytes());
        }
    });
    let ended = editor.ended();
    assert_eq!(ended.code(), Some(if cfg!(windows) { 1 } else { 137 }), "{:#?}", ended.log);
    assert!(cfg!(windows) || ended.log.iter().any(|line| line.contains("SIGTERM")), "{:#?}", ended.log);
}

/// An incomplete last line of the agent must not swallow the answers that follow.
fn an_incomplete_last_line() {
    let skills = Skills::new();
    let says = skills.write(
        "says",
        "{\"jsonrpc\":\"2.0\",\"method\":\"_whole\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"_last\"}",
    );
    let hears = skills.path().join("hears");
    let proxy = Proxy::new().env(crate::agent::OUTPUT_FILE, &says).env(crate::agent::INPUT_FILE, &hears);
    let mut editor = proxy.agent("tape");
    let open = editor.request("_open", json!({}));
    editor.wait_for("the first line", |message| message["method"] == "_whole");
    editor.close();
    let ended = editor.ended();
    let methods: Vec<_> = ended.messages.iter().map(|message| message["method"].clone()).collect();
    assert_eq!(methods, [json!("_last"), Value::Null], "{:?}", ended.messages);
    assert!(ended.answer(&open)["error"]["message"].as_str().unwrap().contains("exited with code 0"));
}

/// The proxy is killed while the agent's child ignores SIGTERM.
fn a_proxy_that_is_killed() {
    let mut fixture = Fixture::new(Proxy::new());
    fixture.order("spawn", json!({ "script": "stubborn" })).expect("a child");
    fixture.editor.wait_for_log("agent: ready");
    fixture.editor.kill();
    if cfg!(unix) {
        fixture.editor.wait_for_log("agent: SIGTERM");
    }
    assert_eq!(fixture.editor.ended().code(), KILLED, "the proxy was killed");
}

/// An agent may move to its own process group or session, so it can be found only by its process id. This test needs the
/// program `setsid`, which only Linux has.
#[cfg(target_os = "linux")]
fn an_agent_that_leaves_its_group() {
    let agent = || {
        Proxy::new()
            .arg("--")
            .arg("setsid")
            .arg("sh")
            .arg("-c")
            .arg("trap '' TERM; read -r line; echo here >&2; sleep 600 & wait")
    };
    // The agent gets a message only after the watchdog knows its process id.
    let start = || {
        let mut editor = agent().start();
        editor.send(&json!({ "jsonrpc": "2.0", "method": "x" }));
        editor.wait_for_log("here");
        editor
    };
    let mut editor = start();
    editor.close();
    assert_eq!(editor.ended().code(), Some(128 + 9), "the agent was killed");
    let editor = start();
    kill(&editor, Signal::KILL);
    assert_eq!(editor.ended().code(), None, "the proxy was killed");
}

#[cfg(unix)]
/// Opening a FIFO without a reader would block the start.
fn a_fifo_as_event_or_log_file() {
    let skills = Skills::review();
    let fifo = skills.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    for flag in ["--events", "--log-file"] {
        let ended = skills.proxy().flag(flag, &fifo).agent("scripted").ended();
        assert_eq!(ended.code(), Some(2), "{:#?}", ended.log);
        assert!(ended.log[0].contains("file is a FIFO without a reader"), "{:#?}", ended.log);
    }
}

#[cfg(unix)]
fn files_that_others_can_read_become_private() {
    use std::os::unix::fs::PermissionsExt;
    let skills = Skills::review();
    let path = |name: &str| skills.path().join(name);
    for name in ["events", "log"] {
        skills.write(name, "");
        std::fs::set_permissions(path(name), PermissionsExt::from_mode(0o664)).expect("the file exists");
    }
    let proxy = skills.proxy().flag("--events", path("events")).flag("--log-file", path("log"));
    Fixture::over_http(proxy).finish();
    let log = std::fs::read_to_string(path("log")).expect("the file exists");
    for name in ["events", "log"] {
        let mode = std::fs::metadata(path(name)).expect("the file exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}: {mode:o}");
        let warning =
            format!("WARN {} was readable by other users; changed its mode to 0600", path(name).display());
        assert!(log.contains(&warning), "{log}");
    }
}

#[cfg(unix)]
fn written_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let skills = Skills::review();
    let path = |name: &str| skills.path().join(name);
    let proxy = skills.proxy().flag("--events", path("events")).flag("--log-file", path("log"));
    let mut fixture = Fixture::over_http(proxy.flag("--state", path("state")).flag("--log", "debug"));
    fixture.new_session("s");
    fixture.finish();
    for (name, expected) in [("events", 0o600), ("log", 0o600), ("state", 0o700)] {
        let mode = std::fs::metadata(path(name)).expect("the file exists").permissions().mode();
        assert_eq!(mode & 0o777, expected, "{name}: {mode:o}");
    }
}
