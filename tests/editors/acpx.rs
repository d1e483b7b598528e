//! acpx, a client for the command line.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Child, Stdio},
    thread,
    time::Instant,
};

use libtest_mimic::Trial;

use crate::{
    bench::{Bench, DEADLINE, GLANCE, compare, installed, on_path},
    trial,
};

type Test = fn(&Acpx);

pub(crate) fn trials() -> Result<Vec<Trial>, String> {
    let acpx = installed("acpx/node_modules/.bin/acpx")?;
    let node = installed("node/node_modules/node/bin/node").or_else(|_| on_path("node"))?;
    let run = Acpx { acpx, node };
    let tests: [(&str, Test); 6] = [
        ("a_skill_by_the_model", by_the_model),
        ("a_skill_by_command", by_command),
        ("permission", permission),
        ("cancelled_and_resumed", cancelled_and_resumed),
        ("killed", killed),
        ("a_start_that_fails", fails),
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
    /// Starts it with its output going to a file. Returns the process and the path of the file.
    fn start(&self, bench: &Bench, agent: &[String], arguments: &[&str]) -> (Child, PathBuf) {
        let file = bench.path(".shown");
        let shown = File::create(&file).expect("a file");
        let mut command = bench.command(&self.node);
        // The command is a single string, which acpx splits itself.
        let agent = agent.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        command.arg(&self.acpx).args(["--agent", &agent]).args(arguments).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stderr(shown.try_clone().expect("a file")).stdout(shown);
        (command.spawn().expect("acpx starts"), file)
    }

    /// Runs it until it exits. Returns its output.
    fn run(&self, bench: &Bench, agent: &[String], arguments: &[&str]) -> String {
        let (mut child, file) = self.start(bench, agent, arguments);
        let end = Instant::now() + DEADLINE;
        while child.try_wait().expect("it can be asked").is_none() {
            if Instant::now() > end {
                let _ = child.kill();
                panic!("acpx {arguments:?} does not end: {}", fs::read_to_string(&file).unwrap_or_default());
            }
            thread::sleep(GLANCE);
        }
        fs::read_to_string(&file).expect("text")
    }

    /// Runs it in front of the proxy, and compares its output.
    fn shows(&self, screen: &str, arguments: &[&str]) {
        let bench = Bench::new();
        let shown = self.run(&bench, &bench.proxy(), arguments);
        compare(screen, || shown.clone());
        bench.is_left();
    }
}

fn by_the_model(acpx: &Acpx) {
    acpx.shows("acpx-model", &["--approve-all", "exec", "review it"]);
}

fn by_command(acpx: &Acpx) {
    acpx.shows("acpx-command", &["exec", "/code-review main.rs"]);
    acpx.shows("acpx-skills", &["exec", "/skills"]);
    // acpx sends a file with blocks as these blocks, as clients do that share a file.
    let blocks = r#"[{"type":"resource_link","uri":"file:///project/main.rs","name":"main.rs"},{"type":"text","text":"/code-review look at it"}]"#;
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(&file, blocks).expect("there is space");
    acpx.shows("acpx-context", &["exec", "--file", &file.path().display().to_string()]);
}

fn permission(acpx: &Acpx) {
    acpx.shows("acpx-accepted", &["--approve-all", "exec", "delete build"]);
    acpx.shows("acpx-refused", &["--deny-all", "exec", "delete build"]);
}

fn cancelled_and_resumed(acpx: &Acpx) {
    let bench = Bench::new();
    let proxy = bench.proxy();
    let run = |arguments: &[&str]| acpx.run(&bench, &proxy, arguments);
    run(&["sessions", "new"]);
    // The process that serves the session exits when it has nothing to do.
    let command = run(&["--ttl", "1", "/code-review main.rs"]);
    compare("acpx-first", || command.clone());
    bench.is_left();
    let (mut waiting, file) = acpx.start(&bench, &proxy, &["--ttl", "1", "wait"]);
    let end = Instant::now() + DEADLINE;
    let shown = loop {
        let shown = fs::read_to_string(&file).unwrap_or_default();
        if shown.contains("until somebody stops me") {
            break shown;
        }
        assert!(Instant::now() < end, "{shown}");
        // The process that served the session accepts nothing while it exits.
        if shown.contains("is shutting down") {
            waiting.wait().expect("it ends");
            waiting = acpx.start(&bench, &proxy, &["--ttl", "1", "wait"]).0;
        }
        thread::sleep(GLANCE);
    };
    let mut cancel = bench.command(&acpx.node);
    let agent = proxy.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    cancel.arg(&acpx.acpx).args(["--agent", &agent, "cancel"]);
    assert!(cancel.output().expect("acpx runs").status.success(), "{shown}");
    waiting.wait().expect("it ends");
    assert!(bench.heard().contains("session/cancel"), "the agent was not told");
    bench.is_left();
    // Another process continues the session. Its history contains what the proxy added to the command.
    assert!(bench.heard().contains("<skill_content name=\\\"code-review\\\">"));
    let resumed = run(&["--ttl", "1", "and now"]);
    compare("acpx-resumed", || resumed.clone());
    assert!(bench.heard().contains(r#""method":"session/load""#));
    bench.is_left();
}

fn killed(acpx: &Acpx) {
    let bench = Bench::new();
    let (mut child, file) = acpx.start(&bench, &bench.proxy(), &["exec", "wait"]);
    let end = Instant::now() + DEADLINE;
    while !fs::read_to_string(&file).unwrap_or_default().contains("until somebody stops me") {
        assert!(Instant::now() < end, "{}", fs::read_to_string(&file).unwrap_or_default());
        thread::sleep(GLANCE);
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    bench.is_left();
}

fn fails(acpx: &Acpx) {
    let bench = Bench::new();
    let shown = acpx.run(&bench, &bench.broken_proxy(), &["exec", "hello"]);
    compare("acpx-fails", || shown.clone());
}
