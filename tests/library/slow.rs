//! A library that blocks, as a directory on a network mount does: whoever does not need it goes on, in both directions.
//!
//! The test is the editor and the agent at once, over pipes; the library tells when it begins to block, and goes on when the
//! test lets it.

use std::{
    io::{self, BufRead, BufReader, PipeWriter, Write},
    path::Path,
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
    library::SkillLibrary,
    skills_core::{Skill, SkillSet, remote::Sha256},
};
use acp_skills_runtime::{
    activation_store::ActivationStore,
    host::Host,
    relay::{Ends, Relay},
};
use libtest_mimic::Trial;
use serde_json::{Value, json};

/// Longer than anything takes that works.
const DEADLINE: Duration = Duration::from_secs(30);

/// Longer than another process is waited for.
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
        trial("a_new_session_in_a_slow_directory", a_new_session_in_a_slow_directory),
        trial("a_session_that_is_loaded", a_session_that_is_loaded),
        trial("a_reload", a_reload),
        trial("an_editor_that_leaves", an_editor_that_leaves),
        trial("an_agent_that_asks_and_does_not_read", an_agent_that_asks_and_does_not_read),
        trial("a_memory_that_another_process_holds", a_memory_that_another_process_holds),
        #[cfg(unix)]
        trial("a_memory_on_a_slow_disk", a_memory_on_a_slow_disk),
    ]
}

/// Blocks in directories named `slow`, and when it is to look again.
struct Blocking {
    skills: SkillSet,
    entered: Sender<()>,
    /// Held while one waits; nobody else does.
    leave: Mutex<Receiver<()>>,
}

impl Blocking {
    fn block(&self) {
        self.entered.send(()).expect("the test is there");
        self.leave.lock().expect("nobody panicked").recv_timeout(DEADLINE).expect("the test lets it go on");
    }
}

impl SkillLibrary for Blocking {
    fn at(&self, cwd: Option<&Path>) -> SkillSet {
        if cwd.is_some_and(|cwd| cwd.ends_with("slow")) {
            self.block();
        }
        self.skills.clone()
    }

    fn reload(&self) {
        self.block();
    }
}

/// One end of the wire.
struct End {
    writer: Option<PipeWriter>,
    lines: Receiver<Value>,
}

impl End {
    fn say(&mut self, message: &Value) {
        writeln!(self.writer.as_mut().expect("it has not left"), "{message}").expect("somebody listens");
    }

    fn request(&mut self, id: u64, method: &str, params: &Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    fn respond(&mut self, id: u64, result: &Value) {
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    /// The next line.
    fn hear(&self) -> Value {
        self.lines.recv_timeout(DEADLINE).expect("a line in time")
    }
}

struct World {
    editor: End,
    agent: End,
    entered: Receiver<()>,
    leave: Sender<()>,
    /// The entry of our server in the first session.
    server: Value,
}

impl World {
    /// A proxy over such a library, with a session `s` in a quick directory.
    fn new() -> Self {
        Self::with("http", None)
    }

    /// The same for an agent that takes MCP servers over this transport, with a memory of other sessions.
    fn with(mcp: &str, memory: Option<ActivationStore>) -> Self {
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
                let relay = Relay::start(
                    policy,
                    Host::new(library).activation_store(memory),
                    from_editor,
                    from_agent,
                )
                .expect("threads");
                // Until the test is over.
                drop(relay.agent_done.await);
            });
        });
        let mut world = Self { editor, agent, entered: enters, leave, server: Value::Null };
        world.editor.request(0, "initialize", &json!({ "protocolVersion": 1 }));
        world.agent.hear();
        let capabilities = json!({ "mcpCapabilities": { mcp: true }, "loadSession": true });
        world.agent.respond(0, &json!({ "protocolVersion": 1, "agentCapabilities": capabilities }));
        world.editor.hear();
        world.editor.request(1, "session/new", &json!({ "cwd": "/quick", "mcpServers": [] }));
        let new = world.agent.hear();
        world.server = new["params"]["mcpServers"][0].clone();
        world.agent.respond(1, &json!({ "sessionId": "s" }));
        world.editor.hear();
        // The menu.
        world.editor.hear();
        world
    }

    /// The library blocks now.
    fn blocks(&self) {
        self.entered.recv_timeout(DEADLINE).expect("it blocks in time");
    }

    fn unblock(&self) {
        self.leave.send(()).expect("it waits");
    }

    /// Everything that does not need the library goes through, in both directions.
    fn flows(&mut self) {
        let prompt = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "hello" }] });
        self.editor.request(90, "session/prompt", &prompt);
        assert_eq!(self.agent.hear()["id"], 90);
        let update = json!({ "sessionId": "s", "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "…" } } });
        self.agent.say(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": update }));
        assert_eq!(self.editor.hear()["params"], update);
        self.agent.request(91, "fs/read_text_file", &json!({ "sessionId": "s", "path": "/x" }));
        assert_eq!(self.editor.hear()["id"], 91);
        self.editor.respond(91, &json!({ "content": "x" }));
        assert_eq!(self.agent.hear()["id"], 91);
        self.editor
            .say(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": "s" } }));
        assert_eq!(self.agent.hear()["method"], "session/cancel");
        self.agent.respond(90, &json!({ "stopReason": "cancelled" }));
        assert_eq!(self.editor.hear()["id"], 90);
        self.editor.request(92, "session/new", &json!({ "cwd": "/other", "mcpServers": [] }));
        assert_eq!(self.agent.hear()["id"], 92);
    }
}

/// One end for the test, and the ends that the proxy has of it.
fn end() -> (End, Ends) {
    let (proxy_reads, writer) = io::pipe().expect("a pipe");
    let (reader, proxy_writes) = io::pipe().expect("a pipe");
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(reader).lines() {
            let message = serde_json::from_str(&line.expect("text")).expect("a message");
            if sender.send(message).is_err() {
                // Nobody listens any more, but the end stays open.
                loop {
                    thread::park();
                }
            }
        }
    });
    (End { writer: Some(writer), lines }, Ends::new(proxy_reads, proxy_writes))
}

fn a_new_session_in_a_slow_directory() {
    let mut world = World::new();
    world.editor.request(2, "session/new", &json!({ "cwd": "/very/slow", "mcpServers": [] }));
    world.blocks();
    world.flows();
    world.unblock();
    let new = world.agent.hear();
    assert_eq!((&new["id"], new["params"]["mcpServers"].as_array().map(Vec::len)), (&json!(2), Some(1)));
}

fn a_session_that_is_loaded() {
    let mut world = World::new();
    let load = json!({ "sessionId": "old", "cwd": "/very/slow", "mcpServers": [] });
    world.editor.request(2, "session/load", &load);
    world.blocks();
    // What is about the same session keeps its place.
    world.editor.request(3, "session/set_mode", &json!({ "sessionId": "old", "modeId": "x" }));
    world.flows();
    world.unblock();
    let load = world.agent.hear();
    assert_eq!((&load["id"], load["params"]["mcpServers"].as_array().map(Vec::len)), (&json!(2), Some(1)));
    assert_eq!(world.agent.hear()["id"], 3);
}

fn a_reload() {
    let mut world = World::new();
    world.editor.request(2, "session/new", &json!({ "cwd": "/quick", "mcpServers": [] }));
    world.agent.hear();
    world.agent.respond(2, &json!({ "sessionId": "t" }));
    world.editor.hear();
    world.editor.hear();
    let reload = json!({ "sessionId": "t", "prompt": [{ "type": "text", "text": "/skills reload" }] });
    world.editor.request(3, "session/prompt", &reload);
    world.blocks();
    world.flows();
    world.unblock();
    let said = world.editor.hear();
    let text = said["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
    assert!(text.contains("Nothing has changed"), "{said}");
    assert_eq!(world.editor.hear()["id"], 3);
}

/// The agent gets all that the editor said, with its skills when they come in a while.
fn an_editor_that_leaves() {
    let mut world = World::new();
    world.editor.request(2, "session/new", &json!({ "cwd": "/very/slow", "mcpServers": [] }));
    world.blocks();
    drop(world.editor.writer.take());
    world.unblock();
    let new = world.agent.hear();
    assert_eq!((&new["id"], new["params"]["mcpServers"].as_array().map(Vec::len)), (&json!(2), Some(1)));
}

/// What it asks for is bounded: it is not read any more, and the editor goes on.
fn an_agent_that_asks_and_does_not_read() {
    const REQUESTS: usize = 200_000;
    let mut world = World::with("acp", None);
    // Nobody reads what the agent is told from here on: the pipe to it fills up.
    let (silent, unread) = mpsc::channel();
    world.agent.lines = unread;
    drop(silent);
    let mut agent = world.agent.writer.take().expect("it has not left");
    let said = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&said);
    let line = |id: usize| {
        let params = json!({ "serverId": world.server["serverId"], "method": "tools/list", "params": {} });
        json!({ "jsonrpc": "2.0", "id": id, "method": "mcp/message", "params": params })
    };
    let lines: Vec<String> = (0..1000).map(|id| line(id).to_string()).collect();
    thread::spawn(move || {
        for number in 0..REQUESTS {
            // Fails when the test is over.
            if writeln!(agent, "{}", lines[number % lines.len()]).is_err() {
                return;
            }
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    // The proxy answers the editor all the while, and reads no more of the agent after some time.
    let (mut before, mut rounds) = (0, 0);
    for id in 100.. {
        let overview = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/skills" }] });
        world.editor.request(id, "session/prompt", &overview);
        while world.editor.hear()["id"] != id {}
        let now = said.load(Ordering::Relaxed);
        assert!(now < REQUESTS, "all of it was taken");
        rounds = if now == before { rounds + 1 } else { 0 };
        before = now;
        if rounds > 200 {
            return;
        }
    }
}

/// Another process keeps the lock on what is remembered.
fn a_memory_that_another_process_holds() {
    // That process is not waited for without end, and a machine may be slow itself: once is enough.
    assert!((0..5).any(|_| memory_waits_alone()), "everything waits for what is remembered");
}

/// Whether it is written when the other process lets go, after everything has gone on.
fn memory_waits_alone() -> bool {
    let directory = tempfile::tempdir().expect("a directory");
    let memory = ActivationStore::open(directory.path()).expect("a memory");
    let mut world = World::with("http", Some(memory));
    let other = std::fs::File::create(directory.path().join(".lock")).expect("a lock");
    other.lock().expect("nobody has it");
    let activation = json!({ "sessionId": "s", "prompt": [{ "type": "text", "text": "/review" }] });
    world.editor.request(2, "session/prompt", &activation);
    assert_eq!(world.agent.hear()["id"], 2);
    world.flows();
    drop(other);
    let file = directory.path().join(format!("{}.json", Sha256::of(b"s")));
    let deadline = Instant::now() + PATIENCE;
    while !file.exists() && Instant::now() < deadline {
        thread::yield_now();
    }
    file.exists()
}

/// A pipe that nobody writes to, in the place of the file of a session, is a disk that does not answer.
#[cfg(unix)]
fn a_memory_on_a_slow_disk() {
    let directory = tempfile::tempdir().expect("a directory");
    let memory = ActivationStore::open(directory.path()).expect("a memory");
    let digest = Sha256::of(b"old");
    let file = directory.path().join(format!("{digest}.json"));
    let made = std::process::Command::new("mkfifo").arg(&file).status().expect("mkfifo");
    assert!(made.success());
    let mut world = World::with("http", Some(memory));
    world.editor.request(
        2,
        "session/load",
        &json!({ "sessionId": "old", "cwd": "/quick", "mcpServers": [] }),
    );
    world.flows();
    std::fs::write(&file, r#"{"v":1,"skills":[{"name":"review","by":"user"}]}"#).expect("somebody reads");
    assert_eq!(world.agent.hear()["id"], 2);
    world.agent.respond(2, &json!({}));
    // What was remembered counts.
    let overview = json!({ "sessionId": "old", "prompt": [{ "type": "text", "text": "/skills" }] });
    world.editor.request(3, "session/prompt", &overview);
    let text = loop {
        let said = world.editor.hear();
        if let Some(text) = said["params"]["update"]["content"]["text"].as_str() {
            break text.to_owned();
        }
    };
    assert!(text.contains("active, by you"), "{text}");
}
