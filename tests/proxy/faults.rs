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
    skills::Skills,
};

crate::trials!(
    few_descriptors,
    descriptors_that_run_out,
    few_processes,
    commands_with_few_processes,
    little_memory,
    a_full_disk,
    stdout_as_a_file,
    a_full_stdout,
    a_client_that_cannot_be_read,
    commands_in_a_removed_directory,
    files_that_may_not_grow,
    a_skill_is_created_completely_or_not_at_all,
    commands_whose_files_may_not_grow,
    commands_on_a_full_disk,
    directories_without_permissions,
    directories_that_are_removed,
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
fn has(programs: &[&str]) -> bool {
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
fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("skipped: only root can switch to another user");
    }
    is_root
}

/// Creates skills that every user may read, and the agent.
fn skills_and_agent() -> (Skills, PathBuf) {
    let skills = Skills::review();
    let agent = skills.write("agent.sh", AGENT);
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).expect("a file");
    fs::set_permissions(skills.path(), fs::Permissions::from_mode(0o755)).expect("a directory");
    (skills, agent)
}

/// Returns the proxy under a `prlimit` limit.
fn limited(limit: &str) -> Proxy {
    Proxy::of("prlimit").arg(limit).arg(env!("CARGO_BIN_EXE_acp-skills-proxy"))
}

/// Returns a user id that no other process uses, and no other test of this machine.
fn user_id() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    (FIRST_USER_ID + std::process::id() * 16 + NEXT.fetch_add(1, Ordering::Relaxed)).to_string()
}

/// Returns the proxy under a limit, as a user who is not root.
fn limited_user(limit: &str) -> Proxy {
    let id = user_id();
    let user = Proxy::of("setpriv").flag("--reuid", &id).flag("--regid", &id).arg("--clear-groups");
    user.arg("prlimit").arg(limit).arg(env!("CARGO_BIN_EXE_acp-skills-proxy"))
}

/// Runs a short conversation. Either it works, or the proxy exits and says why.
fn works_or_reports_why(case: &str, skills: &Skills, agent: &Path, proxy: Proxy) {
    let ended = converse(proxy.skill(&skills.dir("review")), agent);
    assert_reports_why(case, &ended);
    if ended.code() == Some(0) {
        for id in [1, 2] {
            assert!(ended.answer(&json!(id)).get("result").is_some(), "{case}: {:?}", ended.messages);
        }
    }
}

/// Runs a short conversation, which may end at any time.
fn converse(proxy: Proxy, agent: &Path) -> Ended {
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
fn assert_reports_why(case: &str, ended: &Ended) {
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

/// The conversation does not depend on the event file or the log file.
fn a_full_disk() {
    let (skills, agent) = skills_and_agent();
    for flag in ["--events", "--log-file"] {
        let proxy = Proxy::new().flag("--log", "debug").flag(flag, "/dev/full").skill(&skills.dir("review"));
        let mut editor = proxy.arg("--").arg(&agent).start();
        let id = editor.request("initialize", json!({ "protocolVersion": 1 }));
        assert!(editor.answer(&id).get("result").is_some());
        editor.request("session/new", json!({ "cwd": cwd(), "mcpServers": [] }));
        let ended = editor.finish();
        assert_eq!(ended.code(), Some(0), "{flag}: {:?}", ended.log);
        let reported = ended.log.iter().filter(|line| line.contains("to /dev/full: No space left on device"));
        assert_eq!(reported.count(), 1, "{flag}: {:?}", ended.log);
    }
}

/// Stdout is reserved for messages of the protocol.
fn stdout_as_a_file() {
    let (skills, agent) = skills_and_agent();
    for flag in ["--events", "--log-file"] {
        for path in ["/dev/stdout", "/dev/fd/1"] {
            let proxy = Proxy::new().flag("--log", "trace").flag(flag, path).skill(&skills.dir("review"));
            let ended = proxy.arg("--").arg(&agent).start().ended();
            assert_eq!(ended.code(), Some(2), "{flag} {path}: {:?}", ended.log);
            let reported = ended.log.iter().any(|line| line.contains("path leads to stdout"));
            assert!(reported, "{flag} {path}: {:?}", ended.log);
        }
    }
}

/// Returns a proxy that a shell starts, after the shell has run `prepared`.
fn after(prepared: &str) -> Proxy {
    let script = format!("{prepared} exec \"$@\"");
    Proxy::of("sh").flag("-c", script).arg("sh").arg(env!("CARGO_BIN_EXE_acp-skills-proxy"))
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

fn commands_in_a_removed_directory() {
    let (skills, agent) = skills_and_agent();
    let skill = skills.dir("review");
    for arguments in [
        vec!["doctor".into(), "--skill".into(), skill, "--".into(), agent],
        vec!["check".into(), ".".into()],
        vec!["list".into(), "--skill".into(), ".".into()],
    ] {
        let gone = tempfile::tempdir().expect("a directory");
        let script = format!("cd {0} && rmdir {0}; exec \"$@\"", gone.path().display());
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_acp-skills-proxy")]).args(&arguments);
        let output = command.stdin(Stdio::null()).output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(
            said.starts_with("error: cannot ")
                && said.contains("hint: the working directory no longer exists"),
            "{arguments:?}: {said}"
        );
    }
}

fn files_that_may_not_grow() {
    if !has(&["prlimit"]) {
        return;
    }
    let (skills, agent) = skills_and_agent();
    for limit in [0, 100] {
        for flag in ["--events", "--log-file", "--state"] {
            let written = skills.path().join("written");
            let proxy = limited(&format!("--fsize={limit}")).flag("--log", "debug").flag(flag, &written);
            works_or_reports_why(&format!("{flag} of {limit} bytes"), &skills, &agent, proxy);
            let _ = fs::remove_file(&written);
        }
    }
}

fn a_skill_is_created_completely_or_not_at_all() {
    if !has(&["prlimit"]) {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let made = |limit: &str| {
        let mut init = Command::new("prlimit");
        init.args([limit, env!("CARGO_BIN_EXE_acp-skills-proxy"), "init", "note-taking"]);
        init.current_dir(dir.path()).output().expect("the program runs")
    };
    // 750 bytes are enough to write the first file, but not all of them.
    for limit in ["--fsize=0", "--fsize=750"] {
        let output = made(limit);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{limit}: {said}");
        assert!(said.contains("File too large") && said.contains("`ulimit -f`"), "{limit}: {said}");
        assert!(!dir.path().join("note-taking").exists(), "{limit}: a partial skill is left");
    }
    // A process that was killed has left its hidden directory. A newer one may still be in use.
    for (name, age) in [(".note-taking-init-old", 120), (".note-taking-init-new", 0)] {
        let left = dir.path().join(name);
        fs::create_dir(&left).expect("a directory");
        let modified = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        fs::File::open(left).and_then(|left| left.set_modified(modified)).expect("a directory");
    }
    assert!(made("--fsize=unlimited").status.success(), "the next attempt succeeds");
    let mut names: Vec<_> = fs::read_dir(dir.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, [".note-taking-init-new", "note-taking"]);
    let mode = fs::metadata(dir.path().join("note-taking")).expect("a directory").permissions().mode();
    assert_eq!(mode & 0o700, 0o700);
}

/// The error names the limit and how to raise it, and existing files stay unchanged.
fn commands_whose_files_may_not_grow() {
    if !has(&["prlimit"]) {
        return;
    }
    let (skills, _) = skills_and_agent();
    let configuration = "sources:\n  - github:acme/skills\n  - github:acme/others\n";
    let settings = "{ \"agent_servers\": { \"mine\": { \"command\": \"/opt/mine\" } } }\n";
    skills.write("skills.yaml", configuration);
    skills.write("events.jsonl", "");
    skills.write(".config/zed/settings.json", settings);
    for (words, unwritten) in [
        (&["remove", "github:acme/skills", "--config", "skills.yaml"][..], None),
        // In this case, git cannot write either, because it runs with the same limit.
        (&["add", "git+file:///nowhere", "--config", "skills.yaml", "--yes"], None),
        (&["setup", "zed", "--agent", "mine", "--yes"], Some(".local/state/acp-skills-proxy/setup/0001")),
        (&["check", "review", "--sarif", "check.sarif"], None),
        (&["report", "events.jsonl", "--html", "report.html"], None),
        (&["man", "man"], None),
        (&["completions", "bash"], None),
        (&["list", "--skill", "review", "--json"], None),
        (&["--help"], None),
    ] {
        let printed = fs::File::create(skills.path().join("printed")).expect("a file");
        let is_printed = matches!(words[0], "completions" | "list" | "--help");
        let mut command = Command::new("prlimit");
        command.args(["--fsize=0", env!("CARGO_BIN_EXE_acp-skills-proxy")]).args(words);
        for kind in ["CONFIG", "STATE", "CACHE", "DATA"] {
            command.env_remove(format!("XDG_{kind}_HOME"));
        }
        command.current_dir(skills.path()).env("HOME", skills.path()).stdin(Stdio::null());
        command.stdout(if is_printed { Stdio::from(printed) } else { Stdio::piped() });
        let output = command.output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{words:?}: {:?} {said}", output.status);
        assert!(said.to_lowercase().contains("file too large"), "{words:?}: {said}");
        assert!(said.contains("hint: file exceeds the maximum file size"), "{words:?}: {said}");
        if let Some(path) = unwritten {
            assert!(!skills.path().join(path).exists(), "{words:?}: {path} is left");
        }
    }
    let text = |path| fs::read_to_string(skills.path().join(path)).expect("a file");
    assert_eq!(text("skills.yaml"), configuration);
    assert_eq!(text(".config/zed/settings.json"), settings);
}

fn commands_on_a_full_disk() {
    let (skills, agent) = skills_and_agent();
    let review = skills.dir("review");
    let review = review.to_str().expect("text");
    let agent = agent.to_str().expect("text");
    for words in [
        &["list", "--skill", review][..],
        &["list", "--skill", review, "--json"],
        &["check", review],
        &["search", "--skill", review, "code"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
        &["doctor", "--skill", review, "--", agent],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").expect("the device");
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        let output =
            command.args(words).stdin(Stdio::null()).stdout(full).output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{words:?}: {said}");
        assert!(
            said.contains("No space left on device") && said.contains("hint: disk is full"),
            "{words:?}: {said}"
        );
    }
}

fn directories_without_permissions() {
    if !has(&["prlimit", "setpriv"]) || !is_root() {
        return;
    }
    let (skills, agent) = skills_and_agent();
    skills.add("closed", "Nobody may look.", "x");
    let closed = skills.dir("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("a directory");
    let start = |flag: &str, path: &Path| converse(limited_user("--core=0").flag(flag, path), &agent);
    // If the skill is given by name, this is an error. If we only find it in a directory, we log a warning and skip it.
    let ended = start("--skill", &closed);
    assert_eq!(ended.code(), Some(2), "{:?}", ended.log);
    assert!(ended.log.join(" ").contains("Permission denied"), "{:?}", ended.log);
    let ended = start("--skills", skills.path());
    assert_eq!(ended.code(), Some(0), "{:?}", ended.log);
    assert!(ended.log.join(" ").contains("Permission denied"), "{:?}", ended.log);
    for flag in ["--events", "--log-file", "--state"] {
        let ended = start(flag, &closed.join("written"));
        assert_eq!(ended.code(), Some(2), "{flag}: {:?}", ended.log);
        assert!(
            ended.log[0].starts_with("error: ") && ended.log[0].contains("Permission denied"),
            "{:?}",
            ended.log
        );
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).expect("a directory");
}

/// Removes the working directory of the session, the skill's directory, and the proxy's own working directory.
fn directories_that_are_removed() {
    let skills = Skills::review();
    skills.write("review/scripts/say.sh", "echo said");
    let work = tempfile::tempdir().expect("a directory");
    let mut fixture = Fixture::over_http(skills.proxy().arg("--allow-scripts"));
    let params = json!({ "cwd": work.path(), "mcpServers": [] });
    let (received, _) = fixture.exchange("session/new", params, json!({ "result": { "sessionId": "s" } }));
    let connection = fixture.connect(&entry(&received["params"]), MCP_2025);
    let script = json!({ "skill": "review", "script": "scripts/say.sh" });
    let (text, failed) = fixture.call(&connection, "run_skill_script", script.clone());
    assert!(!failed, "{text}");
    work.close().expect("a directory");
    let (text, failed) = fixture.call(&connection, "run_skill_script", script);
    assert!(failed && text.contains("does not exist"), "{text}");
    fs::remove_dir_all(skills.dir("review")).expect("a directory");
    let (text, failed) = fixture.call(
        &connection,
        "read_skill_file",
        json!({ "skill": "review", "path": "references/checklist.md" }),
    );
    assert!(failed && !text.is_empty(), "{text}");
    assert!(!fixture.prompt("s", "hello").is_empty());
    fixture.finish();

    let (skills, agent) = skills_and_agent();
    let gone = skills.path().join("gone");
    fs::create_dir(&gone).expect("a directory");
    let script = format!("cd {} && rmdir . 2>/dev/null || rmdir ../gone; exec \"$@\"", gone.display());
    let proxy = Proxy::of("sh").flag("-c", script).arg("sh").arg(env!("CARGO_BIN_EXE_acp-skills-proxy"));
    let ended = proxy.skill(&skills.dir("review")).arg("--").arg(&agent).start().finish();
    assert_reports_why("a directory that is gone", &ended);
}
