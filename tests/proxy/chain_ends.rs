//! Conductors that stop reading, leave, or send faster than they read.

#[cfg(unix)]
use std::sync::mpsc::channel;
use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

#[cfg(unix)]
use crate::chain::{component, to_successor};
use crate::{editor::DEADLINE, fixture::cwd, skills::Skills};

crate::trials!(
    a_conductor_that_stops_reading,
    a_silent_conductor_that_stops_reading,
    #[cfg(unix)]
    a_conductor_that_leaves_without_reading,
    #[cfg(unix)]
    held_messages_wait_for_a_conductor,
);

/// A component in a chain. The test closes its pipes one by one.
struct Bare {
    proxy: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Bare {
    fn start(skills: &Skills) -> Self {
        let mut proxy = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        proxy.args(["--no-config", "--mcp-wait", "0", "--skill"]).arg(skills.dir("review"));
        let proxy = proxy.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut proxy = proxy.spawn().expect("the proxy starts");
        let stdout = proxy.stdout.take().map(BufReader::new);
        Self { stdin: proxy.stdin.take(), stdout, proxy }
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(format!("{message}\n").as_bytes()).expect("the proxy reads");
    }

    fn message(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.as_mut().expect("stdout is open").read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("a message")
    }

    /// Sends a request of the client and the answer of the agent.
    fn exchange(&mut self, id: u32, method: &str, params: &Value, result: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let asked = self.message();
        assert_eq!((&asked["method"], &asked["id"]), (&json!("proxy/successor"), &json!(id)));
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        assert_eq!(self.message()["id"], id);
    }

    /// Returns the exit code. Kills a program that doesn't exit before the deadline.
    fn code(&mut self) -> Option<i32> {
        let deadline = Instant::now() + DEADLINE;
        while Instant::now() < deadline {
            if let Some(status) = self.proxy.try_wait().expect("the program was started") {
                return status.code();
            }
            thread::park_timeout(Duration::from_millis(5));
        }
        self.proxy.kill().expect("the program runs");
        None
    }
}

/// A conductor that stops reading ends the proxy, just as one that closes the proxy's stdin does.
fn a_conductor_that_stops_reading() {
    let skills = Skills::review();
    let mut conductor = Bare::start(&skills);
    drop(conductor.stdout.take());
    let params = json!({ "protocolVersion": 1 });
    conductor.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "proxy/initialize", "params": params }));
    // Note that stdin is still open.
    assert_eq!(conductor.code(), Some(0));
}

/// The conductor sends nothing more, so only a message that the proxy sends on its own can fail.
fn a_silent_conductor_that_stops_reading() {
    let skills = Skills::review();
    let mut conductor = Bare::start(&skills);
    let version = json!({ "protocolVersion": 1 });
    conductor.exchange(1, "proxy/initialize", &version, &version);
    let params = json!({ "cwd": cwd(), "mcpServers": [] });
    conductor.exchange(2, "session/new", &params, &json!({ "sessionId": "s" }));
    assert_eq!(conductor.message()["params"]["update"]["sessionUpdate"], "available_commands_update");
    drop(conductor.stdout.take());
    skills.add("review", "Another description.", "# Review");
    assert_eq!(conductor.code(), Some(0));
}

/// The conductor has closed stdin, and keeps stdout open without reading the last messages.
#[cfg(unix)]
fn a_conductor_that_leaves_without_reading() {
    let skills = Skills::review();
    let mut conductor = Bare::start(&skills);
    let version = json!({ "protocolVersion": 1 });
    conductor.exchange(1, "proxy/initialize", &version, &version);
    // This is more than a pipe holds, so the proxy has to wait after it has read the line.
    conductor.send(&json!({ "jsonrpc": "2.0", "method": "_x", "params": ["x".repeat(1024 * 1024)] }));
    drop(conductor.stdin.take());
    assert_eq!(conductor.code(), Some(0));
    assert!(conductor.stdout.is_some());
}

/// The proxy holds each `session/new` until the skills were loaded. A client must not be able to fill its memory with them.
#[cfg(unix)]
fn held_messages_wait_for_a_conductor() {
    const MIB: usize = 1024 * 1024;
    let skills = Skills::review();
    let mut conductor = component(&skills).start();
    let id = conductor.request("proxy/initialize", json!({ "protocolVersion": 1 }));
    to_successor(&mut conductor, "proxy/successor");
    conductor.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "protocolVersion": 1 } }));
    conductor.message();
    let (progress, written) = channel();
    let mut stdin = conductor.take_stdin();
    let writer = thread::spawn(move || {
        let params = json!({ "cwd": cwd(), "mcpServers": [], "_meta": { "x": "x".repeat(MIB) } });
        for id in 10..90 {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": "session/new", "params": params });
            stdin.write_all(format!("{request}\n").as_bytes()).expect("the proxy reads");
            let _ = progress.send(id - 10);
        }
        stdin
    });
    // The time only has to be long enough for a proxy without back-pressure to read the next message.
    while let Ok(count) = written.recv_timeout(Duration::from_secs(3)) {
        assert!(count < 50, "the proxy read {count} MiB that the conductor did not take");
    }
    // The sessions are set up at the same time, so a later request can be ready first.
    let mut ids: Vec<_> =
        (10..90).map(|_| to_successor(&mut conductor, "proxy/successor")["id"].as_u64()).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq((10..90).map(Some)));
    drop(writer.join().expect("everything is written"));
    let ended = conductor.ended();
    assert_eq!((ended.code(), ended.messages), (Some(0), Vec::new()));
}
