//! How the proxy ends, and that nobody is left when it has ended.
//!
//! Each test reads stderr to its end, and every process that the agent starts holds it: an orphan fails the test.

#[cfg(unix)]
use std::time::{Duration, Instant};

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

#[cfg(unix)]
use crate::editor::Editor;
use crate::{
    editor::{KILLED, Proxy},
    fixtures::Skills,
    stage::{MCP_2025, Stage, entry},
};

crate::trials!(
    the_agents_code_is_ours,
    open_requests_are_answered,
    #[cfg(unix)]
    a_signal_ends_the_agent,
    what_the_agent_said_last_arrives,
    the_editor_leaves,
    #[cfg(unix)]
    an_agent_that_does_not_end,
    an_agent_that_is_slow_to_leave,
    prompts_that_wait_when_the_editor_leaves,
    #[cfg(unix)]
    signals_are_forwarded,
    #[cfg(unix)]
    an_interrupt_does_not_end_the_agent,
    #[cfg(unix)]
    a_child_that_holds_stdout,
    #[cfg(unix)]
    an_agent_that_closes_its_stdout_and_lives_on,
    #[cfg(unix)]
    a_child_of_an_agent_whose_editor_left,
    a_proxy_that_is_killed,
    #[cfg(target_os = "linux")]
    an_agent_that_leaves_its_group,
    #[cfg(unix)]
    a_fifo_for_what_is_written,
    #[cfg(unix)]
    only_the_owner_may_read_what_is_written,
    the_bridges_end_with_the_proxy,
    an_editor_that_reads_nothing_more,
    an_agent_that_reads_nothing_of_an_editor_that_left,
    a_line_that_is_cut_off,
);

#[cfg(unix)]
fn kill(editor: &Editor, signal: Signal) {
    let id = Pid::from_raw(editor.id().cast_signed()).expect("an id");
    kill_process(id, signal).expect("the proxy runs");
}

fn the_agents_code_is_ours() {
    for code in [0, 1, 3, 77, 255] {
        let mut stage = Stage::new(Proxy::new());
        stage.editor.notify("_agent/exit", json!({ "code": code }));
        let ended = stage.editor.ended();
        assert_eq!((ended.code(), ended.messages.len()), (Some(code), 0), "{:#?}", ended.log);
    }
}

fn open_requests_are_answered() {
    let skills = Skills::review();
    let mut stage = Stage::over_http(skills.proxy());
    stage.new_session("s");
    // One that the agent has, one that waits for its tools, ids of all kinds, one that is answered.
    let answered = stage.editor.request("_done", json!({}));
    let request = stage.takes();
    stage.replies(&request, json!({ "result": 1 }));
    assert_eq!(stage.editor.answer(&answered)["result"], 1);
    let ids = [json!("text \u{e9} \"x\""), json!(-7), json!(u64::MAX), json!("")];
    for id in &ids {
        stage.editor.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "_open", "params": {} }));
    }
    let prompt = stage.editor.request(
        "session/prompt",
        json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "hello" }] }),
    );
    stage.editor.notify("_agent/exit", json!({ "code": 3 }));
    let ended = stage.editor.ended();
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
fn a_signal_ends_the_agent() {
    let mut stage = Stage::new(Proxy::new());
    let open = stage.editor.request("_open", json!({}));
    stage.editor.notify("_agent/abort", json!({}));
    let ended = stage.editor.ended();
    assert_eq!(ended.code(), Some(128 + 6), "{:#?}", ended.log);
    let text = &ended.answer(&open)["error"]["message"];
    assert!(text.as_str().is_some_and(|text| text.contains("killed by signal 6 (SIGABRT)")), "{text}");
}

/// A crash does not swallow what was said before it, and the errors come behind.
fn what_the_agent_said_last_arrives() {
    let mut stage = Stage::new(Proxy::new());
    let open = stage.editor.request("_open", json!({}));
    let update = json!({ "jsonrpc": "2.0", "method": "_last", "params": "x".repeat(1000) }).to_string();
    let lines = vec![update.as_str(); 5000];
    let id = stage.editor.request("_agent/say", json!({ "lines": lines }));
    stage.editor.notify("_agent/exit", json!({ "code": 9 }));
    let ended = stage.editor.ended();
    assert_eq!(ended.code(), Some(9));
    let is_update = |message: &Value| message["method"] == "_last";
    assert_eq!(ended.messages.iter().filter(|message| is_update(message)).count(), lines.len());
    assert_eq!(ended.answer(&id)["result"], json!(null), "the agent answered that one itself");
    assert_eq!(ended.messages.last().map(|message| &message["id"]), Some(&open), "errors come last");
}

fn the_editor_leaves() {
    let mut stage = Stage::new(Proxy::new());
    let open = stage.editor.request("_open", json!({}));
    // The agent ends with its stdin, as agents should.
    let ended = stage.editor.finish();
    assert_eq!(ended.code(), Some(0));
    let text = &ended.answer(&open)["error"]["message"];
    assert!(text.as_str().is_some_and(|text| text.contains("exited with code 0")), "{text}");
}

#[cfg(unix)]
fn an_agent_that_does_not_end() {
    let mut editor = Proxy::new().agent("stubborn");
    editor.logged("agent: ready");
    let start = Instant::now();
    editor.close();
    editor.logged("agent: SIGTERM");
    assert!(
        start.elapsed() >= Duration::from_secs(3),
        "it had the time that others need to end by themselves"
    );
    let ended = editor.ended();
    assert_eq!(ended.code(), Some(128 + 9), "{:#?}", ended.log);
    assert!(start.elapsed() >= Duration::from_secs(5), "and two seconds more");
}

/// Some agents need a second or two, and end well.
fn an_agent_that_is_slow_to_leave() {
    // Who is not let go is asked, or on Windows ended.
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

/// What the user wrote reaches the agent, also when the editor does not wait.
fn prompts_that_wait_when_the_editor_leaves() {
    let skills = Skills::review();
    let mut stage = Stage::over_http(skills.proxy().flag("--mcp-wait", "100000"));
    stage.new_session("s");
    let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "last words" }] });
    let id = stage.editor.request("session/prompt", prompt);
    assert_eq!(stage.received(), Vec::<Value>::new(), "it waits");
    let ended = stage.editor.finish();
    let left: Vec<_> = ended.log.iter().filter(|line| line.starts_with("agent: not taken: ")).collect();
    assert!(left.len() == 1 && left[0].contains("last words") && left[0].contains("SKILL.md"), "{left:?}");
    assert!(ended.answer(&id).get("error").is_some());
    assert_eq!(ended.code(), Some(0));
}

#[cfg(unix)]
fn signals_are_forwarded() {
    for (signal, code) in [(Signal::TERM, 41), (Signal::HUP, 42)] {
        let mut editor = Proxy::new().agent("signals");
        editor.logged("agent: ready");
        kill(&editor, signal);
        let ended = editor.ended();
        assert_eq!(ended.code(), Some(code), "{:#?}", ended.log);
    }
    let mut editor = Proxy::new().agent("stubborn");
    editor.logged("agent: ready");
    kill(&editor, Signal::TERM);
    editor.logged("agent: SIGTERM");
    assert_eq!(editor.ended().code(), Some(128 + 9), "an agent that does not end is ended");
}

#[cfg(unix)]
fn an_interrupt_does_not_end_the_agent() {
    let mut editor = Proxy::new().agent("signals");
    editor.logged("agent: ready");
    kill(&editor, Signal::INT);
    editor.logged("agent: SIGINT");
    kill(&editor, Signal::TERM);
    assert_eq!(editor.ended().code(), Some(41));
}

#[cfg(unix)]
/// The agent crashes and leaves a child that holds its stdout and ignores being asked to end.
fn a_child_that_holds_stdout() {
    let mut stage = Stage::new(Proxy::new());
    stage.order("spawn", json!({ "script": "stubborn" })).expect("a child");
    stage.editor.logged("agent: ready");
    let open = stage.editor.request("_open", json!({}));
    stage.editor.notify("_agent/exit", json!({ "code": 5 }));
    stage.editor.logged("agent: SIGTERM");
    let ended = stage.editor.ended();
    assert_eq!(ended.code(), Some(5), "{:#?}", ended.log);
    assert!(ended.answer(&open).get("error").is_some());
}

/// Nobody will answer what it was asked. One that ends with its stdin has its own end; another is told to.
#[cfg(unix)]
fn an_agent_that_closes_its_stdout_and_lives_on() {
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
fn a_child_of_an_agent_whose_editor_left() {
    let mut stage = Stage::new(Proxy::new());
    stage.order("spawn", json!({ "script": "signals" })).expect("a child");
    stage.order("spawn", json!({ "script": "stubborn" })).expect("another");
    for _ in 0..2 {
        stage.editor.logged("agent: ready");
    }
    stage.finish();
}

/// Also when the proxy has no time to say goodbye, and an agent that is killed cannot.
fn the_bridges_end_with_the_proxy() {
    let skills = Skills::review();
    let mut stage = Stage::over_http(skills.proxy().flag("--mcp", "stdio"));
    let params = stage.new_session("s");
    stage.connect(&entry(&params), MCP_2025);
    stage.editor.kill();
    let ended = stage.editor.ended();
    assert_eq!(ended.code(), KILLED, "it was killed");
}

/// The editor's stdout pipe is gone: the proxy does not stay for its stdin alone.
fn an_editor_that_reads_nothing_more() {
    let mut editor = Proxy::new().agent("flood");
    editor.logged("agent: flooding");
    editor.stop_reading();
    let ended = editor.ended();
    assert!(ended.code().is_some(), "{:#?}", ended.log);
}

/// More than a pipe holds: the proxy cannot get rid of it, and still has to notice that the editor is gone.
fn an_agent_that_reads_nothing_of_an_editor_that_left() {
    let mut editor = Proxy::new().agent("stubborn");
    editor.logged("agent: ready");
    let mut stdin = editor.take_stdin();
    std::thread::spawn(move || {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"_x\",\"params\":\"{}\"}}\n", "x".repeat(1000));
        // Fits into the two pipes and the buffer between them, so that the editor can leave.
        for _ in 0..90 {
            drop(std::io::Write::write_all(&mut stdin, line.as_bytes()));
        }
    });
    let ended = editor.ended();
    assert_eq!(ended.code(), Some(if cfg!(windows) { 1 } else { 137 }), "{:#?}", ended.log);
    assert!(cfg!(windows) || ended.log.iter().any(|line| line.contains("SIGTERM")), "{:#?}", ended.log);
}

/// What the agent did not finish must not swallow the answers that follow.
fn a_line_that_is_cut_off() {
    let skills = Skills::new();
    let says = skills.write(
        "says",
        "{\"jsonrpc\":\"2.0\",\"method\":\"_whole\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"_last\"}",
    );
    let hears = skills.path().join("hears");
    let proxy = Proxy::new().env(crate::agent::SAYS, &says).env(crate::agent::HEARS, &hears);
    let mut editor = proxy.agent("tape");
    let open = editor.request("_open", json!({}));
    editor.wait_for("the first line", |message| message["method"] == "_whole");
    editor.close();
    let ended = editor.ended();
    let methods: Vec<_> = ended.messages.iter().map(|message| message["method"].clone()).collect();
    assert_eq!(methods, [json!("_last"), Value::Null], "{:?}", ended.messages);
    assert!(ended.answer(&open)["error"]["message"].as_str().unwrap().contains("exited with code 0"));
}

/// Killed without warning, by an agent and its child that take no notice of anything.
fn a_proxy_that_is_killed() {
    let mut stage = Stage::new(Proxy::new());
    stage.order("spawn", json!({ "script": "stubborn" })).expect("a child");
    stage.editor.logged("agent: ready");
    stage.editor.kill();
    if cfg!(unix) {
        stage.editor.logged("agent: SIGTERM");
    }
    assert_eq!(stage.editor.ended().code(), KILLED, "it was killed");
}

/// An agent may make a group or a session of its own; nobody knows better where it is than its number says.
/// Only here is there a program `setsid`.
#[cfg(target_os = "linux")]
fn an_agent_that_leaves_its_group() {
    let agent = || {
        Proxy::new()
            .arg("--")
            .arg("setsid")
            .arg("sh")
            .arg("-c")
            .arg("trap '' TERM; echo here >&2; sleep 600 & wait")
    };
    let mut editor = agent().start();
    editor.logged("here");
    editor.close();
    assert_eq!(editor.ended().code(), Some(128 + 9), "it was ended");
    let mut editor = agent().start();
    editor.logged("here");
    kill(&editor, Signal::KILL);
    assert_eq!(editor.ended().code(), None, "the proxy was killed");
}

#[cfg(unix)]
/// Nobody reads it, and the start must not wait for somebody who does.
fn a_fifo_for_what_is_written() {
    let skills = Skills::review();
    let fifo = skills.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    for flag in ["--events", "--log-file"] {
        let ended = skills.proxy().flag(flag, &fifo).agent("scripted").ended();
        assert_eq!(ended.code(), Some(2), "{:#?}", ended.log);
        assert!(ended.log[0].ends_with("the file is a FIFO without a reader"), "{:#?}", ended.log);
    }
}

#[cfg(unix)]
fn only_the_owner_may_read_what_is_written() {
    use std::os::unix::fs::PermissionsExt;
    let skills = Skills::review();
    let path = |name: &str| skills.path().join(name);
    let proxy = skills.proxy().flag("--events", path("events")).flag("--log-file", path("log"));
    let mut stage = Stage::over_http(proxy.flag("--state", path("state")).flag("--log", "debug"));
    stage.new_session("s");
    stage.finish();
    for (name, expected) in [("events", 0o600), ("log", 0o600), ("state", 0o700)] {
        let mode = std::fs::metadata(path(name)).expect("it was written").permissions().mode();
        assert_eq!(mode & 0o777, expected, "{name}: {mode:o}");
    }
}
