//! Runs a proxy in front of an agent and another one in a chain for minutes, with sessions, prompts, tool calls, scripts,
//! and skills that change all the time. Their memory, descriptors, threads and children must not grow.
//!
//!     SOAK_MINUTES=10 cargo test --release -p acp-skills-proxy --test proxy soak -- --nocapture
//!
//! The chart is written to `target/tmp/soak.svg`.

mod samples;

use std::{
    env, fs,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    editor::{DEADLINE, Editor, Proxy},
    fixture::{Fixture, MCP_2025, cwd, entry},
    skills::Skills,
};
use samples::Samples;

crate::trials!(resources_do_not_grow);

/// The environment variable for the duration in minutes.
const MINUTES: &str = "SOAK_MINUTES";
/// The number of updates in a turn.
const UPDATES: usize = 300;
/// Skills are rewritten once per this number of sessions.
const STORM_EVERY: u64 = 5;
const STORM_WRITES: u64 = 40;

#[expect(clippy::print_stderr, reason = "a skipped test says so, and a measurement prints its results")]
fn resources_do_not_grow() {
    let minutes = env::var(MINUTES).ok().map(|text| text.parse::<f64>().expect("SOAK_MINUTES is a number"));
    let Some(minutes) = minutes else {
        eprintln!("skipped: this test takes minutes; set {MINUTES}=10 to run it for ten");
        return;
    };
    let skills = Skills::review();
    skills.write("review/scripts/say.sh", "echo said");
    let directory = skills.path();
    let proxy = Proxy::new().flag("--skills", directory).arg("--allow-scripts");
    let mut fixture = Fixture::over_http(proxy);
    let mut chain = Chain::begin(directory);
    let mut samples = [("standalone", fixture.editor.id()), ("chain", chain.conductor.id())].map(Samples::of);
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(minutes * 60.0);
    let mut cycles = 0;
    while Instant::now() < end {
        cycles += 1;
        session(&mut fixture, cycles, &skills);
        chain.session(cycles);
        for samples in &mut samples {
            samples.take(start.elapsed());
        }
    }
    let chart = Path::new(env!("CARGO_TARGET_TMPDIR")).join("soak.svg");
    fs::write(&chart, samples::chart(&samples)).expect("a file");
    eprintln!("{cycles} sessions in each of two proxies, {minutes} minutes; {}", chart.display());
    for samples in &samples {
        eprintln!("{samples}");
    }
    fixture.finish();
    assert_eq!(chain.conductor.finish().code(), Some(0));
    samples.iter().for_each(Samples::assert_flat);
}

/// Runs a session from start to end.
fn session(fixture: &mut Fixture, number: u64, skills: &Skills) {
    let name = format!("s{number}");
    let params = fixture.new_session(&name);
    let connection = fixture.connect(&entry(&params), MCP_2025);
    assert!(fixture.prompt(&name, "hello").len() > 1, "the catalog");
    for _ in 0..3 {
        for (tool, arguments) in [
            ("activate_skill", json!({ "name": "review" })),
            ("read_skill_file", json!({ "skill": "review", "path": "references/checklist.md" })),
            ("run_skill_script", json!({ "skill": "review", "script": "scripts/say.sh" })),
        ] {
            let (text, failed) = fixture.call(&connection, tool, arguments);
            assert!(!failed, "{tool}: {text}");
        }
        let line = update(&name, "agent_message_chunk", &"word ".repeat(20)).to_string();
        fixture.agent_writes(&vec![line.as_str(); UPDATES]);
        assert_eq!(fixture.editor.unread().len(), UPDATES);
        let blocks = fixture.prompt(&name, "/review it");
        for block in &blocks {
            // Send the prompt back to the client, as an agent would do if it stored the prompt.
            fixture.agent_sends(&update(&name, "user_message_chunk", block["text"].as_str().expect("text")));
        }
        fixture.editor.unread();
    }
    if number.is_multiple_of(STORM_EVERY) {
        storm(skills, number);
        // After a storm, we need to wait until the proxy has noticed the last change.
        let last = format!("storm-{number}");
        let deadline = Instant::now() + DEADLINE;
        while !fixture.skill_names(&connection).as_array().is_some_and(|names| names.contains(&json!(last))) {
            assert!(Instant::now() < deadline, "{last} is not noticed");
        }
        let _ = fs::remove_dir_all(skills.dir(&last));
    }
    fixture.order("disconnect", json!({ "connection": connection.number })).expect("a connection");
    let params = json!({ "sessionId": name });
    fixture.exchange("session/close", params, json!({ "result": {} }));
}

/// Adds, changes and removes skills.
fn storm(skills: &Skills, number: u64) {
    for write in 0..STORM_WRITES {
        let name = format!("storm-{number}-{}", write % 5);
        skills.add(&name, &format!("Change {write}."), "Do it.");
        if write % 3 == 0 {
            let _ = fs::remove_dir_all(skills.dir(&name));
        }
    }
    for write in 0..5 {
        let _ = fs::remove_dir_all(skills.dir(&format!("storm-{number}-{write}")));
    }
    skills.add(&format!("storm-{number}"), "The last one.", "Do it.");
}

fn update(session: &str, kind: &str, text: &str) -> Value {
    let content = json!({ "type": "text", "text": text });
    let params = json!({ "sessionId": session, "update": { "sessionUpdate": kind, "content": content } });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })
}

/// A proxy in a chain. The test plays both its conductor and its successor.
struct Chain {
    conductor: Editor,
}

impl Chain {
    fn begin(skills: &Path) -> Self {
        let mut conductor = Proxy::new().flag("--mcp-wait", "0").flag("--skills", skills).start();
        conductor.request("proxy/initialize", json!({ "protocolVersion": 1 }));
        let mut chain = Self { conductor };
        chain.reply(
            json!({ "protocolVersion": 1, "agentCapabilities": { "mcpCapabilities": { "http": true } } }),
        );
        chain
    }

    /// Answers the next request for the successor.
    fn reply(&mut self, result: Value) {
        let is_its = |message: &Value| message["method"] == "proxy/successor" && message.get("id").is_some();
        let asked = self.conductor.wait_for("a request for the successor", is_its);
        self.conductor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
        self.conductor.answer(&asked["id"]);
    }

    fn session(&mut self, number: u64) {
        let name = format!("s{number}");
        self.conductor.request("session/new", json!({ "cwd": cwd(), "mcpServers": [] }));
        self.reply(json!({ "sessionId": name }));
        for text in ["hello", "/review it"] {
            let prompt = json!([{ "type": "text", "text": text }]);
            self.conductor.request("session/prompt", json!({ "sessionId": name, "prompt": prompt }));
            for _ in 0..UPDATES {
                let said = update(&name, "agent_message_chunk", "word");
                let inner = json!({ "method": said["method"], "params": said["params"] });
                self.conductor.notify("proxy/successor", inner);
                self.conductor.wait_for("the update", |message| message["method"] == "session/update");
            }
            self.reply(json!({ "stopReason": "end_turn" }));
        }
        self.conductor.request("session/close", json!({ "sessionId": name }));
        self.reply(json!({}));
    }
}
