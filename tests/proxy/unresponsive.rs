//! The shutdown if one side or a child keeps running, but has closed a stream or ignores what the proxy asks for.

#[cfg(unix)]
use std::time::Duration;

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

#[cfg(unix)]
use crate::editor::Proxy;
use crate::{fixture::Fixture, skills::Skills};

crate::trials!(
    #[cfg(unix)]
    an_agent_that_closes_its_stdin_and_keeps_running,
    #[cfg(target_os = "linux")]
    a_child_that_leaves_the_group_and_writes,
    #[cfg(unix)]
    repeated_signals_do_not_extend_the_grace_period,
    an_editor_that_closes_its_stdout_while_the_agent_is_silent,
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
