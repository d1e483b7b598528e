//! Full disks, limits on files, and directories that are removed or have no permissions. The proxy either exits with a
//! message or works without the files, and no command leaves a partial file.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::json;

use crate::{
    editor::Proxy,
    faults::{
        assert_reports_why, converse, has, is_root, limited, limited_user, skills_and_agent,
        works_or_reports_why,
    },
    fixture::{Fixture, MCP_2025, cwd, entry},
    skills::Skills,
};

crate::trials!(
    a_full_disk,
    stdout_as_a_file,
    commands_in_a_removed_directory,
    files_that_may_not_grow,
    a_skill_is_created_completely_or_not_at_all,
    commands_whose_files_may_not_grow,
    commands_on_a_full_disk,
    directories_without_permissions,
    directories_that_are_removed,
);

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
            said.starts_with("error: ") && said.contains("hint: the working directory no longer exists"),
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
        assert!(said.contains("file too large") && said.contains("`ulimit -f`"), "{limit}: {said}");
        assert!(!dir.path().join("note-taking").exists(), "{limit}: a partial skill is left");
    }
    // A process that was killed has left its hidden directory. A newer one may still be in use.
    // Other directories with such a name belong to the user.
    for (name, file, age) in [
        (".note-taking-init-a1B2c3", "note-taking", 120),
        (".other-init-a1B2c3", "other", 120),
        (".other-init-new456", "other", 0),
        (".other-init-a1B2c4", "mine", 120),
        (".other-init-scripts", "other", 120),
    ] {
        let left = dir.path().join(name);
        fs::create_dir_all(left.join(file)).expect("a directory");
        let modified = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        fs::File::open(left).and_then(|left| left.set_modified(modified)).expect("a directory");
    }
    assert!(made("--fsize=unlimited").status.success(), "the next attempt succeeds");
    let mut names: Vec<_> = fs::read_dir(dir.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, [".other-init-a1B2c4", ".other-init-new456", ".other-init-scripts", "note-taking"]);
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
            ended.log[0].starts_with("error: ") && ended.log[0].to_lowercase().contains("permission denied"),
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
