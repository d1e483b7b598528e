//! Scarce resources: descriptors, processes, memory, disk space, permissions. The proxy either exits with a message or
//! works without the resource. It never hangs and never panics.

use std::{
    fs,
    io::Read,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        atomic::{AtomicU32, Ordering},
        mpsc::channel,
    },
};

use serde_json::json;

use crate::{
    editor::{DEADLINE, Ended, Proxy},
    fixture::{Fixture, MCP_2025, cwd, entry},
    scripts,
    skills::Skills,
};

crate::trials!(
    few_descriptors,
    descriptors_that_run_out,
    few_processes,
    commands_with_few_processes,
    little_memory,
    little_address_space,
    an_ignored_signal_of_children,
    a_full_stdout,
    a_client_that_cannot_be_read,
);

/// The first user id of the tests. No other process uses these ids, because a limit counts all processes of a user.
const FIRST_USER_ID: u32 = 1_054_321;

/// An agent that needs few resources.
const AGENT: &str = r#"#!/bin/sh
while read -r line; do
    case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true}}}}' ;;
    *'"session/new"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}' ;;
    esac
done
"#;

/// Returns true if these programs are installed.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn has(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| {
        let run = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        run.is_err()
    });
    if let Some(program) = missing {
        eprintln!("skipped: there is no program `{program}`");
    }
    missing.is_none()
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: only root can switch to another user");
    }
    is_root
}

/// Creates skills that every user may read, and the agent.
pub(crate) fn skills_and_agent() -> (Skills, PathBuf) {
    let skills = Skills::review();
    let agent = skills.write("agent.sh", AGENT);
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("a file");
    fs::set_permissions(skills.path(), fs::Permissions::from_mode(0o755)).expect("a directory");
    (skills, agent)
}

/// Returns the proxy under a `prlimit` limit.
pub(crate) fn limited(limit: &str) -> Proxy {
    Proxy::of("prlimit").arg(limit).arg(env!("CARGO_BIN_EXE_acp-skills-proxy"))
}

/// Returns a user id that no other process uses, and no other test of this machine.
fn user_id() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    (FIRST_USER_ID + std::process::id() * 16 + NEXT.fetch_add(1, Ordering::Relaxed)).to_string()
}

/// Returns the proxy under a limit, as a user who is not root.
pub(crate) fn limited_user(limit: &str) -> Proxy {
    let id = user_id();
    let user = Proxy::of("setpriv").flag("--reuid", &id).flag("--regid", &id).arg("--clear-groups");
    user.arg("prlimit").arg(limit).arg(env!("CARGO_BIN_EXE_acp-skills-proxy"))
}

/// Runs a short conversation. Either it works, or the proxy exits and says why.
pub(crate) fn works_or_reports_why(case: &str, skills: &Skills, agent: &Path, proxy: Proxy) {
    let ended = converse(proxy.skill(&skills.dir("review")), agent);
    assert_reports_why(case, &ended);
    if ended.code() == Some(0) {
        for id in [1, 2] {
            assert!(ended.answer(&json!(id)).get("result").is_some(), "{case}: {:?}", ended.messages);
        }
    }
}

/// Runs a short conversation, which may end at any time.
pub(crate) fn converse(proxy: Proxy, agent: &Path) -> Ended {
    let proxy = proxy.flag("--mcp-wait", "0").env("RUST_BACKTRACE", "0");
    let mut editor = proxy.arg("--").arg(agent).start();
    let mut stdin = editor.take_stdin();
    for (id, method, params) in [
        (1, "initialize", json!({ "protocolVersion": 1 })),
        (2, "session/new", json!({ "cwd": cwd(), "mcpServers": [] })),
    ] {
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        // This might fail if the proxy has already exited.
        let _ = std::io::Write::write_all(&mut stdin, format!("{line}\n").as_bytes());
    }
    drop(stdin);
    editor.ended()
}

/// Asserts that the proxy did not panic, and that a failure has a reason in the log.
pub(crate) fn assert_reports_why(case: &str, ended: &Ended) {
    let log = ended.log.join("\n");
    assert!(!log.contains("panicked"), "{case}: {log}");
    let is_reported = log.contains("error: ")
        || log.contains("error while loading")
        || log.contains("memory allocation of ");
    assert!(ended.code() == Some(0) || is_reported, "{case}: {:?} and {log:?}", ended.code());
}

fn few_descriptors() {
    if !has(&["prlimit"]) {
        return;
    }
    let (skills, agent) = skills_and_agent();
    for limit in (4..40).step_by(2) {
        works_or_reports_why(
            &format!("{limit} descriptors"),
            &skills,
            &agent,
            limited(&format!("--nofile={limit}")),
        );
    }
    let ended = limited("--nofile=10").skill(&skills.dir("review")).arg("--").arg(&agent).start().ended();
    assert_eq!(ended.code(), Some(125));
    assert!(
        ended.log.iter().any(|line| line.starts_with("hint: ") && line.contains("ulimit -n")),
        "{:?}",
        ended.log
    );
}

/// The agent uses up all descriptors with connections. The conversation continues, and a call that fails returns the
/// reason.
fn descriptors_that_run_out() {
    if !has(&["prlimit"]) {
        return;
    }
    let (skills, _) = skills_and_agent();
    let proxy = Proxy::of("prlimit").arg("--nofile=64:1024").arg(env!("CARGO_BIN_EXE_acp-skills-proxy"));
    let this = std::env::current_exe().expect("this program has a path");
    // We use a separate limit for the agent here, so that only the proxy runs out of descriptors.
    let proxy = proxy.skill(&skills.dir("review")).env(crate::agent::SCRIPT, "scripted");
    let editor = proxy.arg("--").arg("prlimit").arg("--nofile=1024:1024").arg(this).start();
    let mut fixture = Fixture::of(editor);
    let capabilities = json!({ "mcpCapabilities": { "http": true } });
    fixture.exchange(
        "initialize",
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
        json!({ "result": { "protocolVersion": 1, "agentCapabilities": capabilities } }),
    );
    let params = fixture.new_session("s");
    let first = fixture.connect(&entry(&params), MCP_2025);
    let url = entry(&params)["url"].as_str().expect("an address").to_owned();
    let address = url.trim_start_matches("http://").split('/').next().expect("an address").to_owned();
    let connections: Vec<_> = (0..80).map_while(|_| std::net::TcpStream::connect(&address).ok()).collect();
    assert!(connections.len() > 40, "{}", connections.len());
    let (text, _) = fixture.call(
        &first,
        "read_skill_file",
        json!({ "skill": "review", "path": "references/checklist.md" }),
    );
    assert!(text.contains("names") || text.contains("Too many open files"), "{text}");
    // We don't need a descriptor for these messages, so they should still work.
    fixture.new_session("t");
    assert!(!fixture.prompt("s", "hello").is_empty());
    drop(connections);
    fixture.finish();
}

fn few_processes() {
    if !has(&["prlimit", "setpriv"]) || !is_root() {
        return;
    }
    let (skills, agent) = skills_and_agent();
    for limit in 1..18 {
        works_or_reports_why(
            &format!("{limit} processes"),
            &skills,
            &agent,
            limited_user(&format!("--nproc={limit}")),
        );
    }
}

/// Some commands start threads: for the built-in agent, or to scan many skills.
fn commands_with_few_processes() {
    if !has(&["prlimit", "setpriv"]) || !is_root() {
        return;
    }
    let (skills, _) = skills_and_agent();
    for number in 0..100 {
        skills.add(&format!("skill-{number}"), "One of many.", "x");
    }
    let review = skills.dir("review");
    let all = skills.path().to_owned();
    let commands = [("try", "--skill", &review), ("doctor", "--skill", &review), ("list", "--skills", &all)];
    let id = user_id();
    for limit in 1..12 {
        for (command, flag, path) in &commands {
            let mut limited = Command::new("setpriv");
            limited.args(["--reuid", &id, "--regid", &id, "--clear-groups", "prlimit"]);
            limited.arg(format!("--nproc={limit}")).arg(env!("CARGO_BIN_EXE_acp-skills-proxy"));
            limited.args([command, flag]).arg(path).env("RUST_BACKTRACE", "0").stdin(Stdio::null());
            let output = output_in_time(&mut limited);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!said.contains("panicked"), "{command} with {limit} processes: {said}");
            let is_reported = said.contains("error: ") || !output.stdout.is_empty();
            assert!(is_reported, "{command} with {limit} processes: {:?} {said}", output.status);
        }
    }
}

/// Runs a command to its end. Kills it and fails with its stderr if it takes too long.
fn output_in_time(command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    let mut stderr = child.stderr.take().expect("stderr is a pipe");
    let mut stdout = child.stdout.take().expect("stdout is a pipe");
    let errors = std::thread::spawn(move || {
        let mut said = Vec::new();
        stderr.read_to_end(&mut said).map(|_| said)
    });
    let (sender, printed) = channel();
    std::thread::spawn(move || {
        let mut printed = Vec::new();
        let _ = stdout.read_to_end(&mut printed);
        let _ = sender.send(printed);
    });
    let printed = printed.recv_timeout(DEADLINE);
    if printed.is_err() {
        child.kill().expect("the program runs");
    }
    let status = child.wait().expect("the program ends");
    let stderr = errors.join().expect("no panic").expect("a pipe");
    let Ok(stdout) = printed else {
        panic!("{command:?} did not end in {DEADLINE:?}: {}", String::from_utf8_lossy(&stderr))
    };
    Output { status, stdout, stderr }
}

fn little_memory() {
    if !has(&["prlimit"]) {
        return;
    }
    let (skills, agent) = skills_and_agent();
    let mebibytes = |size: u64| format!("--as={}", size << 20);
    for limit in [100, 128, 160, 192] {
        works_or_reports_why(&format!("{limit} MiB"), &skills, &agent, limited(&mebibytes(limit)));
    }
    // Now send a line that doesn't fit into memory.
    let mut editor = limited(&mebibytes(256)).arg("--").arg(&agent).start();
    let mut stdin = editor.take_stdin();
    let say = std::thread::spawn(move || {
        let chunk = vec![b'x'; 1 << 20];
        while std::io::Write::write_all(&mut stdin, &chunk).is_ok() {}
    });
    let ended = editor.ended();
    say.join().expect("no panic");
    assert_ne!(ended.code(), Some(0));
    assert_reports_why("a long line", &ended);
}

/// Any limit either lets the proxy work, or the client gets an error that names the limit. Below that, the system cannot load the
/// program.
fn little_address_space() {
    /// The address space in MiB that has to be missing so that there may be no answer, slightly less than the proxy needs after its start.
    const ALMOST_NEEDED: u64 = 20;
    let (skills, agent) = skills_and_agent();
    let mut refused = 0;
    let mut worked = 0;
    for mebibytes in (12..=112).step_by(4) {
        let limited = after(&format!("ulimit -v {};", mebibytes << 10));
        let ended = converse(limited.skill(&skills.dir("review")), &agent);
        let is_loaded = ended.log.iter().any(|line| line.starts_with("error: ") || line.contains("WARN"));
        match ended.messages.iter().find(|message| message["id"] == 1) {
            Some(answer) if answer.get("result").is_some() => worked += 1,
            Some(answer) => {
                let why = answer["error"]["message"].as_str().expect("a message");
                let limit = format!("the address space is limited to {mebibytes} MiB");
                assert!(why.contains(&limit) && why.contains("ulimit -v"), "{mebibytes} MiB: {why}");
                assert_eq!((ended.code(), worked), (Some(125), 0), "{mebibytes} MiB");
                refused += 1;
            }
            // If the program has just been loaded, nothing is left for the answer.
            None => {
                let needed =
                    ended.log.iter().find_map(|line| line.split_once("needs at least ")?.1.split(' ').next());
                let needed = needed.map_or(0, |needed| needed.parse::<u64>().expect("a number"));
                let is_full = needed > mebibytes + ALMOST_NEEDED;
                assert!(!is_loaded || is_full, "{mebibytes} MiB: {:?} {:?}", ended.code(), ended.log);
            }
        }
    }
    assert!(refused > 0 && worked > 0, "{refused} refused, {worked} worked");
}

/// Returns a proxy that a shell starts, after the shell has run `prepared`.
fn after(prepared: &str) -> Proxy {
    let script = format!("{prepared} exec \"$@\"");
    Proxy::of("sh").flag("-c", script).arg("sh").arg(env!("CARGO_BIN_EXE_acp-skills-proxy"))
}

/// Without this signal, the system drops the exit status of a process, and a script would seem not to have started.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn an_ignored_signal_of_children() {
    let ignored = Command::new("env").args(["--ignore-signal=CHLD", "true"]).output();
    if !ignored.is_ok_and(|output| output.status.success()) {
        return eprintln!("skipped: this `env` cannot ignore signals");
    }
    let skills = scripts::kit();
    let proxy = after("set -- env --ignore-signal=CHLD \"$@\";")
        .flag("--skills", skills.path())
        .arg("--allow-scripts");
    let mut fixture = Fixture::over_http(proxy);
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    for _ in 0..10 {
        let arguments = json!({ "skill": "kit", "script": scripts::path("much") });
        let (text, failed) = fixture.call(&connection, "run_skill_script", arguments);
        assert!(!failed, "{text}");
    }
    fixture.finish();
}

/// The agent is not to blame, even if the proxy notices its exit before it notices the failed write.
fn a_full_stdout() {
    let (skills, patient) = skills_and_agent();
    // These agents exit in the same moment in which the proxy writes their first answer.
    let hasty = AGENT.replace("}}}}' ;;", "}}}}'; exit 3 ;;");
    let killed = AGENT.replace("}}}}' ;;", "}}}}'; kill -KILL $$ ;;");
    assert_ne!(hasty, AGENT);
    let others = [("hasty.sh", hasty), ("killed.sh", killed)].map(|(name, text)| {
        let agent = skills.write(name, &text);
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("a file");
        agent
    });
    for agent in [&patient, &others[0], &others[1]].into_iter().cycle().take(15) {
        let ended = converse(after("exec > /dev/full;").skill(&skills.dir("review")), agent);
        let reported = |words: &str| ended.log.iter().filter(|line| line.contains(words)).count();
        assert_eq!(reported("cannot write to the client: No space left on device"), 1, "{:?}", ended.log);
        assert_eq!(reported("the agent"), 0, "the agent is not to blame: {:?}", ended.log);
    }
}

fn a_client_that_cannot_be_read() {
    let (skills, agent) = skills_and_agent();
    let ended = converse(after("exec < /;").skill(&skills.dir("review")), &agent);
    let reported = ended.log.iter().any(|line| line.contains("cannot read from the client: Is a directory"));
    assert!(reported, "{:?}", ended.log);
}
