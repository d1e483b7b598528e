//! Tests in acpx, a command-line client.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Child, Stdio},
    thread,
    time::Instant,
};

use anyhow::Result;
use libtest_mimic::Trial;

use crate::{
    fixture::{DEADLINE, Fixture, POLL_INTERVAL, compare, installed, on_path},
    trial,
};

type Test = fn(&Acpx);

pub(crate) fn trials() -> Result<Vec<Trial>> {
    let acpx = installed("acpx/node_modules/.bin/acpx")?;
    let node = installed("node/node_modules/node/bin/node").or_else(|_| on_path("node"))?;
    let run = Acpx { acpx, node };
    let tests: [(&str, Test); 6] = [
        ("a_skill_is_activated_by_the_model", a_skill_is_activated_by_the_model),
        ("a_skill_is_activated_by_a_command", a_skill_is_activated_by_a_command),
        ("permission_is_granted_or_refused", permission_is_granted_or_refused),
        ("a_session_is_cancelled_and_resumed", a_session_is_cancelled_and_resumed),
        ("a_killed_editor_leaves_no_process", a_killed_editor_leaves_no_process),
        ("a_failed_start_is_shown", a_failed_start_is_shown),
    ];
    let tests = tests.into_iter().map(|(name, test)| {
        let run = run.clone();
        trial(&format!("acpx::{name}"), move || test(&run))
    });
    Ok(tests.collect())
}

#[derive(Clone)]
struct Acpx {
    acpx: PathBuf,
    node: PathBuf,
}

impl Acpx {
    /// Starts acpx. Its output is written to the returned file.
    fn start(&self, fixture: &Fixture, agent: &[String], arguments: &[&str]) -> (Child, PathBuf) {
        let file = fixture.path(".shown");
        let shown = File::create(&file).expect("a file");
        let mut command = fixture.command(&self.node);
        // We have to pass a single string here. It will be split by acpx.
        let agent = agent.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        command.arg(&self.acpx).args(["--agent", &agent]).args(arguments).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stderr(shown.try_clone().expect("a file")).stdout(shown);
        (command.spawn().expect("acpx starts"), file)
    }

    /// Runs acpx until it exits and returns the output.
    fn run(&self, fixture: &Fixture, agent: &[String], arguments: &[&str]) -> String {
        let (mut child, file) = self.start(fixture, agent, arguments);
        let end = Instant::now() + DEADLINE;
        while child.try_wait().expect("acpx can be polled").is_none() {
            if Instant::now() > end {
                let _ = child.kill();
                panic!("acpx {arguments:?} does not exit: {}", fs::read_to_string(&file).unwrap_or_default());
            }
            thread::sleep(POLL_INTERVAL);
        }
        fs::read_to_string(&file).expect("text")
    }

    /// Runs acpx with the proxy, and compares its output with the file of a screen.
    fn shows(&self, screen: &str, arguments: &[&str]) {
        let fixture = Fixture::new();
        let shown = self.run(&fixture, &fixture.proxy(), arguments);
        compare(screen, || shown.clone());
        fixture.wait_until_stopped();
    }
}

fn a_skill_is_activated_by_the_model(acpx: &Acpx) {
    acpx.shows("acpx-model", &["--approve-all", "exec", "review it"]);
}

fn a_skill_is_activated_by_a_command(acpx: &Acpx) {
    acpx.shows("acpx-command", &["exec", "/code-review main.rs"]);
    acpx.shows("acpx-skills", &["exec", "/skills"]);
    // If the file is a JSON array of content blocks, acpx will send them as they are. We use this to send what other clients do
    // when the user shares a file.
    let blocks = r#"[{"type":"resource_link","uri":"file:///project/main.rs","name":"main.rs"},{"type":"text","text":"/code-review look at it"}]"#;
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(&file, blocks).expect("there is space");
    acpx.shows("acpx-context", &["exec", "--file", &file.path().display().to_string()]);
}

fn permission_is_granted_or_refused(acpx: &Acpx) {
    acpx.shows("acpx-accepted", &["--approve-all", "exec", "delete build"]);
    acpx.shows("acpx-refused", &["--deny-all", "exec", "delete build"]);
}

fn a_session_is_cancelled_and_resumed(acpx: &Acpx) {
    let fixture = Fixture::new();
    let proxy = fixture.proxy();
    let run = |arguments: &[&str]| acpx.run(&fixture, &proxy, arguments);
    run(&["sessions", "new"]);
    // If `--ttl 1` is used, the process for this session will exit after being idle for a second.
    let command = run(&["--ttl", "1", "/code-review main.rs"]);
    compare("acpx-first", || command.clone());
    fixture.wait_until_stopped();
    let (mut waiting, file) = acpx.start(&fixture, &proxy, &["--ttl", "1", "wait"]);
    let end = Instant::now() + DEADLINE;
    let shown = loop {
        let shown = fs::read_to_string(&file).unwrap_or_default();
        if shown.contains("until somebody stops me") {
            break shown;
        }
        assert!(Instant::now() < end, "{shown}");
        // If the process for this session is about to exit, it doesn't take any more prompts, so we have to try this again.
        if shown.contains("is shutting down") {
            waiting.wait().expect("acpx exits");
            waiting = acpx.start(&fixture, &proxy, &["--ttl", "1", "wait"]).0;
        }
        thread::sleep(POLL_INTERVAL);
    };
    let mut cancel = fixture.command(&acpx.node);
    let agent = proxy.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    cancel.arg(&acpx.acpx).args(["--agent", &agent, "cancel"]);
    assert!(cancel.output().expect("acpx runs").status.success(), "{shown}");
    waiting.wait().expect("acpx exits");
    assert!(fixture.wire().contains("session/cancel"), "the agent did not receive the cancellation");
    fixture.wait_until_stopped();
    // The session is now loaded in another process. The history contains the skill that we've added to the prompt, but it
    // shouldn't be shown.
    assert!(fixture.wire().contains("<skill_content name=\\\"code-review\\\">"));
    let resumed = run(&["--ttl", "1", "and now"]);
    compare("acpx-resumed", || resumed.clone());
    assert!(fixture.wire().contains(r#""method":"session/load""#));
    fixture.wait_until_stopped();
}

fn a_killed_editor_leaves_no_process(acpx: &Acpx) {
    let fixture = Fixture::new();
    let (mut child, file) = acpx.start(&fixture, &fixture.proxy(), &["exec", "wait"]);
    let end = Instant::now() + DEADLINE;
    while !fs::read_to_string(&file).unwrap_or_default().contains("until somebody stops me") {
        assert!(Instant::now() < end, "{}", fs::read_to_string(&file).unwrap_or_default());
        thread::sleep(POLL_INTERVAL);
    }
    child.kill().expect("acpx can be killed");
    child.wait().expect("acpx exits");
    fixture.wait_until_stopped();
}

fn a_failed_start_is_shown(acpx: &Acpx) {
    let fixture = Fixture::new();
    let shown = acpx.run(&fixture, &fixture.broken_proxy(), &["exec", "hello"]);
    compare("acpx-fails", || shown.clone());
}
