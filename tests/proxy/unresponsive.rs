//! The shutdown if one side or a child keeps running, but has closed a stream or ignores what the proxy asks for.

#[cfg(unix)]
use std::time::{Duration, Instant};

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

#[cfg(unix)]
use crate::editor::{DEADLINE, Proxy};
use crate::{fixture::Fixture, skills::Skills};

crate::trials!(
    #[cfg(unix)]
    an_agent_that_closes_its_stdin_and_keeps_running,
    #[cfg(target_os = "linux")]
    a_child_that_leaves_the_group_and_writes,
    #[cfg(unix)]
    repeated_signals_do_not_extend_the_grace_period,
    an_editor_that_closes_its_stdout_while_the_agent_is_silent,
    #[cfg(target_os = "linux")]
    an_editor_that_never_reads_stderr,
    #[cfg(target_os = "linux")]
    a_start_that_fails_while_stderr_is_not_read,
    #[cfg(unix)]
    ctrl_c_ends_an_agent_that_does_not_react,
    #[cfg(unix)]
    ctrl_c_ends_a_stopped_agent_while_the_proxy_answers,
    #[cfg(unix)]
    ctrl_c_keeps_an_agent_that_continues,
    #[cfg(unix)]
    an_agent_that_floods_its_commands,
);

/// The agent can't receive a request that was held, and the client must not have to wait for an answer.
#[cfg(unix)]
fn an_agent_that_closes_its_stdin_and_keeps_running() {
    let skills = Skills::review();
    let script = r#"read line
        echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}'
        exec <&-; echo closed >&2; exec sleep 600"#;
    let proxy = skills.proxy().flag("--exit-wait", "0.2").arg("--").arg("sh").arg("-c").arg(script);
    let mut editor = proxy.start();
    let start = editor.request("initialize", json!({ "protocolVersion": 1 }));
    editor.answer(&start);
    editor.wait_for_log("closed");
    let open = editor.request("session/new", json!({ "cwd": crate::fixture::cwd(), "mcpServers": [] }));
    let text = editor.answer(&open)["error"]["message"].clone();
    assert!(text.as_str().is_some_and(|text| text.contains("session/new")), "{text}");
    assert_eq!(editor.ended().code(), Some(128 + 15));
}

/// A child of the agent writes for a minute after the agent has exited, and we can't end it. The client must not have to wait
/// for its last message.
#[cfg(target_os = "linux")]
fn a_child_that_leaves_the_group_and_writes() {
    let ticks = r#"echo started >&2; exec 2>/dev/null; i=0
        while [ $i -lt 600 ]; do i=$((i+1)); echo '{"jsonrpc":"2.0","method":"_tick"}'; sleep 0.1; done
        echo '{"jsonrpc":"2.0","method":"_last_tick"}'"#;
    let script = r#"setsid sh -c "$1" & read line; exit 6"#;
    let proxy = Proxy::new().arg("--").arg("sh").arg("-c").arg(script).arg("agent").arg(ticks);
    let mut editor = proxy.start();
    editor.wait_for_log("started");
    let open = editor.request("initialize", json!({ "protocolVersion": 1 }));
    let ended = editor.ended();
    assert_eq!(ended.code(), Some(6), "{:#?}", ended.log);
    assert!(ended.answer(&open).get("error").is_some());
    let has = |method: &str| ended.messages.iter().any(|message| message["method"] == method);
    assert!(has("_tick") && !has("_last_tick"), "the proxy waited for the child");
}

#[cfg(unix)]
fn repeated_signals_do_not_extend_the_grace_period() {
    let mut editor = Proxy::new().agent("stubborn");
    editor.wait_for_log("agent: ready");
    let id = Pid::from_raw(editor.id().cast_signed()).expect("an id");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let sender = std::thread::spawn(move || {
        let tick = Duration::from_millis(200);
        while stopped.recv_timeout(tick) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            // The proxy is not reaped while this loop runs, so the id is still valid.
            let _ = kill_process(id, Signal::TERM);
        }
    });
    assert_eq!(editor.line(), None, "stdout ends with the proxy");
    drop(stop);
    sender.join().expect("the sender ends");
    assert_eq!(editor.ended().code(), Some(128 + 9));
}

/// Only the proxy writes to the editor here, so the thread that reads from the agent cannot notice it.
fn an_editor_that_closes_its_stdout_while_the_agent_is_silent() {
    let skills = Skills::review();
    let mut fixture = Fixture::over_http(skills.proxy());
    fixture.new_session("s");
    let mut editor = fixture.editor;
    editor.stop_reading();
    let mut stdin = editor.take_stdin();
    let asks = std::thread::spawn(move || {
        let params = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills" }] });
        let ask = json!({ "jsonrpc": "2.0", "id": "ask", "method": "session/prompt", "params": params });
        let line = format!("{ask}\n");
        // Our end of stdout is closed after we have received one more line. Until the proxy exits, its stdin stays open.
        while std::io::Write::write_all(&mut stdin, line.as_bytes()).is_ok() {}
    });
    let ended = editor.ended();
    assert!(ended.code().is_some(), "{:#?}", ended.log);
    asks.join().expect("the writer ends");
}

/// Returns a pipe that is full, so each write to it blocks.
#[cfg(target_os = "linux")]
fn full_pipe() -> (std::io::PipeReader, std::io::PipeWriter) {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let flags = fcntl_getfl(&writer).expect("flags");
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).expect("flags can be set");
    while std::io::Write::write(&mut writer, &[b'x'; 4096]).is_ok() {}
    fcntl_setfl(&writer, flags).expect("flags can be set");
    (reader, writer)
}

/// Starts the proxy with the scripted agent. Stderr of the proxy is a full pipe, and that of the agent is discarded.
#[cfg(target_os = "linux")]
fn with_full_stderr(proxy: Proxy) -> (Fixture, std::io::PipeReader) {
    let (reader, stderr) = full_pipe();
    let agent = std::env::current_exe().expect("this program has a path");
    let proxy = proxy.with_stderr(stderr).env(crate::agent::SCRIPT, "scripted");
    let proxy = proxy.arg("--").arg("sh").arg("-c").arg(r#"exec "$0" 2>/dev/null"#).arg(agent);
    (Fixture::of(proxy.start()), reader)
}

#[cfg(target_os = "linux")]
fn an_editor_that_never_reads_stderr() {
    let skills = Skills::review();
    for ends_by_signal in [false, true] {
        for flags in [["--log", "trace"], ["--log", "debug"], ["--max-message", "1"], ["--log", "warn"]] {
            let (mut fixture, stderr) = with_full_stderr(skills.proxy().flag(flags[0], flags[1]));
            let capabilities = json!({ "mcpCapabilities": { "http": true }, "loadSession": true });
            fixture.exchange(
                "initialize",
                json!({ "protocolVersion": 1, "clientCapabilities": {} }),
                json!({ "result": { "protocolVersion": 1, "agentCapabilities": capabilities } }),
            );
            let params = fixture.new_session("s");
            let connection = fixture.connect(&crate::fixture::entry(&params), crate::fixture::MCP_2025);
            let (text, is_error) = fixture.call(&connection, "activate_skill", json!({ "name": "review" }));
            assert!(!is_error, "{text}");
            // With `--max-message 1`, there is a warning for this, which is logged by the thread that reads from the editor.
            if flags[0] == "--max-message" {
                fixture.editor.notify("_long", json!({ "text": "x".repeat(2 << 20) }));
            }
            fixture.prompt("s", "hello");
            if ends_by_signal {
                let id = Pid::from_raw(fixture.editor.id().cast_signed()).expect("an id");
                kill_process(id, Signal::TERM).expect("the proxy runs");
            } else {
                fixture.editor.close();
            }
            let code = fixture.editor.ended().code();
            assert_eq!(code, Some(if ends_by_signal { 128 + 15 } else { 0 }), "{flags:?}");
            drop(stderr);
        }
    }
}

#[cfg(target_os = "linux")]
fn a_start_that_fails_while_stderr_is_not_read() {
    for (args, code) in [(vec!["--skill", "/nowhere", "--", "true"], 2), (vec!["--", "/nowhere/agent"], 127)]
    {
        let (stderr, full) = full_pipe();
        let mut editor = args.iter().fold(Proxy::new().with_stderr(full), Proxy::arg).start();
        let open = editor.request("initialize", json!({ "protocolVersion": 1 }));
        let error = editor.answer(&open)["error"]["message"].clone();
        assert!(error.as_str().is_some_and(|text| text.contains("nowhere")), "{error}");
        assert_eq!(editor.finish().code(), Some(code));
        drop(stderr);
    }
}

/// An agent that was stopped, and one that ignores signals. A single Ctrl-C ends each after the shutdown grace, and repeated ones do
/// without waiting for it.
#[cfg(unix)]
fn ctrl_c_ends_an_agent_that_does_not_react() {
    let stopped = "echo here >&2; kill -STOP $$; sleep 600";
    let ignoring = "trap '' INT TERM HUP; echo here >&2; sleep 600";
    for script in [stopped, ignoring] {
        for (exit_wait, presses) in [("0.3", 1), ("100000", 100)] {
            let proxy = Proxy::new().flag("--exit-wait", exit_wait).arg("--").arg("sh").arg("-c").arg(script);
            let mut editor = proxy.start();
            let open = editor.request("initialize", json!({ "protocolVersion": 1 }));
            editor.wait_for_log("here");
            let id = Pid::from_raw(editor.id().cast_signed()).expect("an id");
            for _ in 0..presses {
                // The proxy is not reaped while this loop runs, so the id is still valid.
                let _ = kill_process(id, Signal::INT);
                if editor.closes_stdout(Duration::from_millis(50)) {
                    break;
                }
            }
            let ended = editor.ended();
            // The agent may not have stopped itself before it receives the signal.
            let ends = if script == stopped { [128 + 9, 128 + 2] } else { [128 + 9; 2] };
            assert!(
                ended.code().is_some_and(|code| ends.contains(&code)),
                "{:?}: {:#?}",
                ended.code(),
                ended.log
            );
            assert!(ended.answer(&open).get("error").is_some());
        }
    }
}

/// The agent is not alive because the proxy sends something by itself.
#[cfg(unix)]
fn ctrl_c_ends_a_stopped_agent_while_the_proxy_answers() {
    let script = r#"read line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
        read line; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
        read line; echo here >&2; kill -STOP $$; sleep 600"#;
    let mut editor =
        Proxy::new().flag("--exit-wait", "0.3").arg("--").arg("sh").arg("-c").arg(script).start();
    for (method, params) in [
        ("initialize", json!({ "protocolVersion": 1 })),
        ("session/new", json!({ "cwd": crate::fixture::cwd(), "mcpServers": [] })),
    ] {
        let id = editor.request(method, params);
        assert!(editor.answer(&id)["result"].is_object());
    }
    editor.notify("_stop", json!({}));
    editor.wait_for_log("here");
    let id = Pid::from_raw(editor.id().cast_signed()).expect("an id");
    kill_process(id, Signal::INT).expect("the proxy runs");
    let deadline = Instant::now() + DEADLINE;
    while !editor.closes_stdout(Duration::from_millis(50)) {
        assert!(Instant::now() < deadline, "the agent was not ended");
        let prompt = json!([{ "type": "text", "text": "/skills" }]);
        editor.request("session/prompt", json!({ "sessionId": "s", "prompt": prompt }));
    }
    // The agent may not have stopped itself before it receives the signal.
    assert!(editor.ended().code().is_some_and(|code| [128 + 9, 128 + 2].contains(&code)));
}

/// An agent that uses Ctrl-C to stop the turn continues to run.
#[cfg(unix)]
fn ctrl_c_keeps_an_agent_that_continues() {
    let script = r#"trap 'echo "{\"jsonrpc\":\"2.0\",\"method\":\"_stopped\"}"; stopped=1' INT
        echo here >&2; while [ -z "$stopped" ]; do sleep 0.05; done; read line; exit 5"#;
    let mut editor = Proxy::new().flag("--exit-wait", "2").arg("--").arg("sh").arg("-c").arg(script).start();
    editor.wait_for_log("here");
    let id = Pid::from_raw(editor.id().cast_signed()).expect("an id");
    kill_process(id, Signal::INT).expect("the proxy runs");
    editor.wait_for("the end of the turn", |message| message["method"] == "_stopped");
    assert!(!editor.closes_stdout(Duration::from_secs(3)), "the agent was ended");
    editor.notify("_end", json!({}));
    assert_eq!(editor.ended().code(), Some(5));
}

/// Each list of commands of the agent gets the commands of all skills. This must not delay the shutdown.
#[cfg(unix)]
fn an_agent_that_floods_its_commands() {
    let skills = Skills::new();
    for number in 0..3_000 {
        skills.add(&format!("skill-{number}"), "Does it.", "Body");
    }
    let mut fixture = Fixture::new(Proxy::new().flag("--skills", skills.path()));
    fixture.new_session("s");
    let commands = json!([{ "name": "web", "description": "Searches." }]);
    let update = json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
    let params = json!({ "sessionId": "s", "update": update });
    let line = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string();
    fixture.editor.request("_agent/say", json!({ "lines": vec![line; 600] }));
    fixture.wait_for_command("web");
    let start = Instant::now();
    let id = Pid::from_raw(fixture.editor.id().cast_signed()).expect("an id");
    kill_process(id, Signal::TERM).expect("the proxy runs");
    fixture.editor.discard_stdout();
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(fixture.editor.ended().code(), Some(128 + 15));
}
