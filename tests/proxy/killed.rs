//! A proxy that is killed while it starts processes. Each process holds a pipe, whose end shows that no process is left.

#[cfg(target_os = "linux")]
use std::fs;
use std::{
    io::{ErrorKind, Read},
    net::TcpListener,
    process::{Command, Stdio},
    sync::mpsc::channel,
    thread,
    time::{Duration, Instant},
};

#[cfg(target_os = "linux")]
use serde_json::json;

#[cfg(target_os = "linux")]
use crate::progress::{HELD, expect, listen_for_processes};
use crate::{
    editor::{DEADLINE, Editor, KILLED, Proxy},
    fixture::Fixture,
    repositories::Home,
    scripts::{bridge, kit, request, with_long_timeout},
    skills::Skills,
};

crate::trials!(
    a_proxy_killed_while_it_starts_its_agent,
    a_proxy_killed_while_it_starts_scripts,
    a_proxy_killed_by_its_own_scripts,
    a_command_killed_while_it_fetches,
    #[cfg(target_os = "linux")]
    a_proxy_killed_after_a_signal_to_its_watchdog,
);

/// The maximum number of rounds in which Wine may keep the handles of a killed process.
const MAX_LOST: u32 = 2;

/// As many scripts as may run at once.
const SCRIPTS: u64 = 4;

/// A proxy that is about to run scripts, its MCP client, and the pipe that all processes hold.
struct Target {
    fixture: Fixture,
    client: Editor,
    held: Box<dyn Read + Send>,
}

impl Target {
    fn new(skills: &Skills) -> Self {
        let (proxy, held) = with_long_timeout(skills).flag("--mcp", "stdio").with_inherited_pipe();
        let mut fixture = Fixture::over_http(proxy);
        let client = bridge(&mut fixture);
        Self { fixture, client, held: Box::new(held) }
    }

    fn run(&mut self, script: &str, args: &[&str]) {
        let calls = (0..SCRIPTS).map(|id| format!("{}\n", request(id + 7, script, args, None)));
        self.client.write(calls.collect::<String>().as_bytes());
    }

    /// Waits until all processes that the proxy has started have ended.
    fn gone(self, round: u32, code: Option<i32>) {
        assert_eq!(self.fixture.editor.ended().code(), code, "round {round}: it was killed");
        drop(self.client);
        let (sender, ended) = channel();
        let mut held = self.held;
        thread::spawn(move || sender.send(held.read_to_end(&mut Vec::new())));
        let end = ended.recv_timeout(DEADLINE);
        assert!(end.is_ok(), "round {round}: a process that the proxy has started is left");
    }
}

/// The agent ignores its stdin. It must not survive the proxy, however early that is killed: the agent holds stderr.
fn a_proxy_killed_while_it_starts_its_agent() {
    let editors: Vec<_> = (0..40)
        .map(|number| {
            let mut editor = Proxy::new().agent("deaf and dumb");
            let delay = Instant::now() + Duration::from_micros(500) * number;
            while Instant::now() < delay {
                thread::yield_now();
            }
            editor.kill();
            editor
        })
        .collect();
    for editor in editors {
        let ended = editor.ended();
        // If the proxy was running for long enough, it logs a warning about having no skills, which we can ignore.
        let unexpected = ended.log.iter().filter(|line| !line.contains("no skills selected")).count();
        assert_eq!((ended.code(), unexpected), (KILLED, 0), "{:#?}", ended.log);
    }
}

fn a_proxy_killed_while_it_starts_scripts() {
    let skills = kit();
    let targets: Vec<_> = (0..24)
        .map(|round| {
            let mut target = Target::new(&skills);
            target.run("slow", &[]);
            let instant = Instant::now() + Duration::from_micros(400) * round;
            while Instant::now() < instant {
                thread::yield_now();
            }
            target.fixture.editor.kill();
            (target, round)
        })
        .collect();
    for (target, round) in targets {
        target.gone(round, KILLED);
    }
}

/// The first of the scripts runs while the others are being started.
fn a_proxy_killed_by_its_own_scripts() {
    let skills = kit();
    let mut lost = 0;
    for round in 0..24 {
        let mut target = Target::new(&skills);
        let proxy = target.fixture.editor.id().to_string();
        target.run("kill", &[&proxy]);
        if crate::is_wine() && !target.fixture.editor.closes_stdout(DEADLINE / 2) {
            // Wine sometimes keeps the handles of a process that was killed while it started another one. No process is left, but
            // its pipes and connections stay open.
            lost += 1;
            assert!(lost <= MAX_LOST, "round {round}: the proxy is not killed, or a process is left");
            continue;
        }
        // We get a different exit code for `taskkill` under Wine.
        target.gone(round, if crate::is_wine() { Some(0) } else { KILLED });
    }
}

/// Signals for all processes of this program, such as those of `killall`, don't end the watchdog before the proxy is killed.
#[cfg(target_os = "linux")]
fn a_proxy_killed_after_a_signal_to_its_watchdog() {
    use rustix::process::{Pid, Signal, kill_process};
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT] {
        let skills = kit();
        let mut target = Target::new(&skills);
        let (address, seen) = listen_for_processes();
        let call = request(7, "hold", &[&address], None);
        target.client.send(&call);
        expect(&seen, HELD);
        // When the script connects, it may not be registered with the watchdog yet.
        target.client.send(&json!({ "jsonrpc": "2.0", "id": 8, "method": "ping" }));
        target.client.answer(&json!(8));
        let proxy = target.fixture.editor.id();
        let watchdog = children(proxy).into_iter().find(|(_, arguments)| arguments.ends_with("watchdog"));
        let (watchdog, _) = watchdog.expect("the proxy has a watchdog");
        kill_process(Pid::from_raw(watchdog).expect("an id"), signal).expect("the watchdog is running");
        target.fixture.editor.kill();
        expect(&seen, "gone");
        target.gone(0, KILLED);
    }
}

/// Returns the children of a process, with their arguments.
#[cfg(target_os = "linux")]
fn children(parent: u32) -> Vec<(i32, String)> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).expect("the process is running");
    let ids = tasks.flat_map(|task| {
        let children = fs::read_to_string(task.expect("a task").path().join("children")).unwrap_or_default();
        children.split_whitespace().map(|id| id.parse().expect("an id")).collect::<Vec<i32>>()
    });
    ids.map(|id| {
        let arguments = fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        (id, arguments.trim_end_matches('\0').to_owned())
    })
    .collect()
}

/// Git would receive what a hostile server sends without a limit.
fn a_command_killed_while_it_fetches() {
    let home = Home::new();
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let source = format!("git+https://{}/x", server.local_addr().expect("an address"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
    command.args(["list", "--source", &source]).envs(home.variables());
    let mut command = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program runs");
    server.set_nonblocking(true).expect("a socket");
    let deadline = Instant::now() + DEADLINE;
    let mut connection = loop {
        match server.accept() {
            Ok((connection, _)) => break connection,
            Err(_) => assert!(Instant::now() < deadline, "git does not connect"),
        }
        thread::yield_now();
    };
    connection.set_nonblocking(false).expect("a socket");
    command.kill().expect("it runs");
    command.wait().expect("it has ended");
    connection.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    // A process that is killed can also reset its connections.
    let end = connection.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
    assert!(matches!(end, Ok(_) | Err(ErrorKind::ConnectionReset)), "git still runs: {end:?}");
}
