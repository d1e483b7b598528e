//! Tests with a skill library that blocks, like a directory on a slow network drive. Messages that don't need the library are
//! forwarded in both directions.
//!
//! Each test is both the editor and the agent, over pipes. The library reports when it blocks, and continues when the test
//! allows it.

use std::{
    io::{self, BufRead, BufReader, PipeWriter, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use acp_skills::{
    intercept::Policy,
    library::{SkillLibrary, Workspace},
    skills_core::{Skill, SkillSet, skill::Sha256},
};
use acp_skills_runtime::{
    activation_store::ActivationStore,
    host::Host,
    relay::{Ends, Relay},
};
use libtest_mimic::Trial;
use serde_json::{Value, json};

/// A timeout that no passing test reaches.
const DEADLINE: Duration = Duration::from_secs(30);

/// A timeout that is longer than the timeout of the store's lock.
const PATIENCE: Duration = Duration::from_secs(5);

/// The tests of this file.
pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn()| {
        Trial::test(format!("slow::{name}"), move || {
            test();
            Ok(())
        })
    };
    vec![
        trial("a_new_session_waits_for_its_skills", a_new_session_waits_for_its_skills),
        trial("a_loaded_session_waits_for_its_skills", a_loaded_session_waits_for_its_skills),
        trial("a_reload_waits_for_the_library", a_reload_waits_for_the_library),
        trial("a_waiting_session_survives_the_editor", a_waiting_session_survives_the_editor),
        trial("an_agent_that_does_not_read_is_throttled", an_agent_that_does_not_read_is_throttled),
        trial("a_locked_store_delays_no_message", a_locked_store_delays_no_message),
        #[cfg(unix)]
        trial("a_slow_store_delays_only_its_session", a_slow_store_delays_only_its_session),
    ]
}

/// A library that blocks in directories named `slow`, and on each reload.
struct Blocking {
    skills: SkillSet,
    entered: Sender<()>,
    /// Guards the receiver, which is held while the library blocks. Only one call blocks at a time.
    leave: Mutex<Receiver<()>>,
}

impl Blocking {
    fn block(&self) {
        self.entered.send(()).expect("the test is running");
        self.leave
            .lock()
            .expect("no thread has panicked")
            .recv_timeout(DEADLINE)
            .expect("the test unblocks the library in time");
    }
}

impl SkillLibrary for Blocking {
    fn at(&self, workspace: &Workspace) -> SkillSet {
        if workspace.cwd.as_ref().is_some_and(|cwd| cwd.ends_with("slow")) {
            self.block();
        }
        self.skills.clone()
    }

    fn reload(&self) {
        self.block();
    }
}

/// The test's end of a connection.
struct End {
    writer: Option<PipeWriter>,
    lines: Receiver<Value>,
}

impl End {
    fn send(&mut self, message: &Value) {
        writeln!(self.writer.as_mut().expect("the connection is open"), "{message}")
            .expect("the proxy reads");
    }

    fn request(&mut self, id: u64, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    fn respond(&mut self, id: u64, result: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    /// Waits for the next message.
    fn receive(&self) -> Value {
        self.lines.recv_timeout(DEADLINE).expect("a line in time")
    }
}

struct Fixture {
    editor: End,
    agent: End,
    entered: Receiver<()>,
    leave: Sender<()>,
    /// The entry of our server in the first session.
    server: Value,
}

impl Fixture {
    /// Starts a proxy with a blocking library, and opens the session `s` in a fast directory.
    fn new() -> Self {
        Self::with("http", None)
    }

    /// Starts a proxy for an agent that supports the MCP transport `mcp`, with a store for active skills.
    fn with(mcp: &str, store: Option<ActivationStore>) -> Self {
        let (entered, enters) = mpsc::channel();
        let (leave, leaves) = mpsc::channel();
        let skill = Skill::builder("review", "Reviews.").body("Do it.").build().expect("a skill");
        let skills: SkillSet = [skill].into_iter().collect();
        let library = Arc::new(Blocking { skills, entered, leave: Mutex::new(leaves) });
        let (editor, from_editor) = end();
        let (agent, from_agent) = end();
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let policy = Policy { mcp_wait: Duration::ZERO, ..Policy::default() };
                let relay =
                    Relay::start(policy, Host::new(library).activation_store(store), from_editor, from_agent)
                        .expect("threads");
                // Check that the relay isn't dropped before the end of the test.
                let _ = relay.agent_done.await;
            });
        });
        let mut fixture = Self { editor, agent, entered: enters, leave, server: Value::Null };
        fixture.editor.request(0, "initialize", &json!({ "protocolVersion": 1 }));
        fixture.agent.receive();
        let capabilities = json!({ "mcpCapabilities": { mcp: true }, "loadSession": true });
        fixture.agent.respond(0, &json!({ "protocolVersion": 1, "agentCapabilities": capabilities }));
        fixture.editor.receive();
        fixture.editor.request(1, "session/new", &json!({ "cwd": "/quick", "mcpServers": [] }));
        let new = fixture.agent.receive();
        fixture.server = new["params"]["mcpServers"][0].clone();
        fixture.agent.respond(1, &json!({ "sessionId": "s" }));
        fixture.editor.receive();
        // Skip the second message, which is the list of slash commands.
        fixture.editor.receive();
        fixture
    }

    /// Waits until the library blocks.
    fn wait_until_blocked(&self) {
        self.entered.recv_timeout(DEADLINE).expect("the library blocks in time");
    }

    fn unblock(&self) {
        self.leave.send(()).expect("the library is blocked");
    }

    /// Checks that messages are forwarded in both directions while the library blocks.
    fn check_flow(&mut self) {
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "hello" }] });
        self.editor.request(90, "session/prompt", &prompt);
        assert_eq!(self.agent.receive()["id"], 90);
        let update = json!({ "sessionId": "s", "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "…" } } });
        self.agent.send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": update }));
        assert_eq!(self.editor.receive()["params"], update);
        self.agent.request(91, "fs/read_text_file", &json!({ "sessionId": "s", "path": "/x" }));
        assert_eq!(self.editor.receive()["id"], 91);
        self.editor.respond(91, &json!({ "content": "x" }));
        assert_eq!(self.agent.receive()["id"], 91);
        self.editor
            .send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } }));
        assert_eq!(self.agent.receive()["method"], "session/cancel");
        self.agent.respond(90, &json!({ "stopReason": "cancelled" }));
        assert_eq!(self.editor.receive()["id"], 90);
        self.editor.request(92, "session/new", &json!({ "cwd": "/other", "mcpServers": [] }));
        assert_eq!(self.agent.receive()["id"], 92);
    }
}

/// Creates a connection and returns the test's end and the proxy's end.
fn end() -> (End, Ends) {
    let (proxy_reads, writer) = io::pipe().expect("a pipe");
    let (reader, proxy_writes) = io::pipe().expect("a pipe");
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(reader).lines() {
            let message = serde_json::from_str(&line.expect("text")).expect("a message");
            if sender.send(message).is_err() {
                // The test has dropped the receiver, but we have to keep the pipe open.
                loop {
                    thread::park();
                }
            }
        }
    });
    (End { writer: Some(writer), lines }, Ends::new(proxy_reads, proxy_writes))
}

fn a_new_session_waits_for_its_skills() {
    let mut fixture = Fixture::new();
    fixture.editor.request(2, "session/new", &json!({ "cwd": "/very/slow", "mcpServers": [] }));
    fixture.wait_until_blocked();
    fixture.check_flow();
    fixture.unblock();
    let new = fixture.agent.receive();
    assert_eq!((&new["id"], new["params"]["mcpServers"].as_array().map(Vec::len)), (&json!(2), Some(1)));
}

fn a_loaded_session_waits_for_its_skills() {
    let mut fixture = Fixture::new();
    let load = json!({ "sessionId": "old", "cwd": "/very/slow", "mcpServers": [] });
    fixture.editor.request(2, "session/load", &load);
    fixture.wait_until_blocked();
    // Any message for this session has to wait until this is done.
    fixture.editor.request(3, "session/set_mode", &json!({ "sessionId": "old", "modeId": "x" }));
    fixture.check_flow();
    fixture.unblock();
    let load = fixture.agent.receive();
    assert_eq!((&load["id"], load["params"]["mcpServers"].as_array().map(Vec::len)), (&json!(2), Some(1)));
    assert_eq!(fixture.agent.receive()["id"], 3);
}

fn a_reload_waits_for_the_library() {
    let mut fixture = Fixture::new();
    fixture.editor.request(2, "session/new", &json!({ "cwd": "/quick", "mcpServers": [] }));
    fixture.agent.receive();
    fixture.agent.respond(2, &json!({ "sessionId": "t" }));
    fixture.editor.receive();
    fixture.editor.receive();
    let reload = json!({ "sessionId": "t", "prompt": [{ "type": "text", "text": "/skills reload" }] });
    fixture.editor.request(3, "session/prompt", &reload);
    fixture.wait_until_blocked();
    fixture.check_flow();
    fixture.unblock();
    let message = fixture.editor.receive();
    let text = message["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
    assert!(text.contains("No changes"), "{message}");
    assert_eq!(fixture.editor.receive()["id"], 3);
}

/// The agent receives all messages of the editor, even if the editor has closed the connection before the skills are ready.
fn a_waiting_session_survives_the_editor() {
    let mut fixture = Fixture::new();
    fixture.editor.request(2, "session/new", &json!({ "cwd": "/very/slow", "mcpServers": [] }));
    fixture.wait_until_blocked();
    drop(fixture.editor.writer.take());
    fixture.unblock();
    let new = fixture.agent.receive();
    assert_eq!((&new["id"], new["params"]["mcpServers"].as_array().map(Vec::len)), (&json!(2), Some(1)));
}

/// The queue of answers is bounded: the proxy stops reading from the agent, and the editor is not affected.
fn an_agent_that_does_not_read_is_throttled() {
    const REQUESTS: usize = 200_000;
    let mut fixture = Fixture::with("acp", None);
    // Don't read from the agent's pipe from now on, so that it fills up.
    let (silent, unread) = mpsc::channel();
    fixture.agent.lines = unread;
    drop(silent);
    let mut agent = fixture.agent.writer.take().expect("the connection is open");
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let line = |id: usize| {
        let params = json!({ "serverId": fixture.server["serverId"], "method": "tools/list", "params": {} });
        json!({ "jsonrpc": "2.0", "id": id, "method": "mcp/message", "params": params })
    };
    let lines: Vec<String> = (0..1000).map(|id| line(id).to_string()).collect();
    thread::spawn(move || {
        for number in 0..REQUESTS {
            // This fails at the end of the test, when the other end of the pipe is closed.
            if writeln!(agent, "{}", lines[number % lines.len()]).is_err() {
                return;
            }
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    // The proxy should always answer the editor, even if it has to stop reading from the agent at some point.
    let mut before = 0;
    let mut rounds = 0;
    for id in 100.. {
        let overview = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills" }] });
        fixture.editor.request(id, "session/prompt", &overview);
        while fixture.editor.receive()["id"] != id {}
        let now = sent.load(Ordering::Relaxed);
        assert!(now < REQUESTS, "the proxy has read all requests");
        rounds = if now == before { rounds + 1 } else { 0 };
        before = now;
        if rounds > 200 {
            return;
        }
    }
}

/// Another process holds the lock of the store.
fn a_locked_store_delays_no_message() {
    // If the machine is slow, we might run into the timeout for the lock. To make this less likely, try it up to five times.
    assert!((0..5).any(|_| only_the_store_waits()), "messages wait for the store");
}

/// Returns true if the store is written after the other process has released the lock.
fn only_the_store_waits() -> bool {
    let directory = tempfile::tempdir().expect("a directory");
    let store = ActivationStore::open(directory.path()).expect("a store");
    let mut fixture = Fixture::with("http", Some(store));
    let other = std::fs::File::create(directory.path().join(".lock")).expect("a lock");
    other.lock().expect("the lock is free");
    let activation = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/review" }] });
    fixture.editor.request(2, "session/prompt", &activation);
    assert_eq!(fixture.agent.receive()["id"], 2);
    fixture.check_flow();
    drop(other);
    let file = directory.path().join(format!("{}.json", Sha256::of(b"s")));
    let deadline = Instant::now() + PATIENCE;
    while !file.exists() && Instant::now() < deadline {
        thread::yield_now();
    }
    file.exists()
}

/// A FIFO in place of a session's file simulates a disk that doesn't respond.
#[cfg(unix)]
fn a_slow_store_delays_only_its_session() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = ActivationStore::open(directory.path()).expect("a store");
    let digest = Sha256::of(b"old");
    let file = directory.path().join(format!("{digest}.json"));
    let made = std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo");
    assert!(made.success());
    let mut fixture = Fixture::with("http", Some(store));
    fixture.editor.request(
        2,
        "session/load",
        &json!({ "sessionId": "old", "cwd": "/quick", "mcpServers": [] }),
    );
    fixture.check_flow();
    std::fs::write(&file, r#"{"v":1,"skills":[{"name":"review","by":"user"}]}"#)
        .expect("the proxy reads the file");
    assert_eq!(fixture.agent.receive()["id"], 2);
    fixture.agent.respond(2, &json!({}));
    // At this point, the stored skill must be active.
    let overview = json!({ "sessionId": "old", "prompt": [{ "type": "text", "text": "/skills" }] });
    fixture.editor.request(3, "session/prompt", &overview);
    let text = loop {
        let message = fixture.editor.receive();
        if let Some(text) = message["params"]["update"]["content"]["text"].as_str() {
            break text.to_owned();
        }
    };
    assert!(text.contains("active, by you"), "{text}");
}
