//! Sandboxed scripts (Linux) that are ended at the worst moment: process 1 of the sandbox runs but has not started the
//! script yet, and its parent, which would stop it, is gone. A `bwrap` that blocks at this point holds the moment open
//! for as long as a test needs.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    io::{Read, Write},
    iter,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc::channel,
    thread,
    time::Instant,
};

use serde_json::{Value, json};
use skills_core::exec::Sandbox;

use crate::{
    editor::{DEADLINE, Editor, Proxy},
    fixture::{Fixture, MCP_2025, entry},
    scripts::{bridge, cancelled, kit, request, with_long_timeout},
    skills::Skills,
};

crate::trials!(
    a_proxy_killed_while_a_sandbox_starts,
    a_call_cancelled_while_a_sandbox_starts,
    variables_of_a_skill_are_only_set_inside,
    a_sandbox_with_another_mount_starts_no_script,
);

/// Files in the directory of that `bwrap`.
const GATE: &str = "gate";
const ALIVE: &str = "alive";
const MONITOR: &str = "monitor";
const INFO: &str = "info";

/// A script that is about to run.
struct Target {
    skills: Skills,
    fixture: Fixture,
    client: Editor,
    gate: File,
    /// Returns end of file when the sandbox and its script are gone.
    alive: File,
    /// The `stat` file of the parent of the sandbox's process 1.
    monitor: PathBuf,
}

impl Target {
    /// Returns `None` if sandboxing is not available.
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn new() -> Option<Self> {
        if let Err(error) = Sandbox::bwrap(false) {
            eprintln!("skipped: {error}");
            return None;
        }
        let skills = kit();
        let at = |name: &str| skills.dir(name);
        assert!(Command::new("mkfifo").args([GATE, ALIVE].map(at)).status().expect("mkfifo").success());
        // We open the FIFO for both reading and writing, since otherwise `open` would block until the other end is opened.
        let gate = File::options().read(true).write(true).open(at(GATE)).expect("a FIFO");
        let path = env::var_os("PATH").expect("a PATH");
        let path = env::join_paths(iter::once(slow_bwrap(&skills, &path)).chain(env::split_paths(&path)));
        let proxy = with_long_timeout(&skills).flag("--sandbox", "bwrap").flag("--script-cwd", "skill");
        let proxy = proxy.flag("--mcp", "stdio").env("PATH", path.expect("a PATH"));
        let mut fixture = Fixture::over_http(proxy);
        let mut client = bridge(&mut fixture);
        // We don't expect any output from the script, since our `bwrap` will wait before it is started.
        client.send(&request(7, "until", &["/never"], None));
        wait_until("process 1", || is_ready(&at(INFO)));
        let alive = File::open(at(ALIVE)).expect("process 1 holds it");
        let monitor = fs::read_to_string(at(MONITOR)).expect("a number");
        let monitor = Path::new("/proc").join(monitor.trim()).join("stat");
        Some(Self { skills, fixture, client, gate, alive, monitor })
    }

    /// Waits until the parent of process 1 is gone, lets process 1 continue, and waits until no process is left.
    fn gone(mut self) {
        // It may take a while until the parent is reaped, so a zombie is fine here too.
        wait_until("the parent's end", || {
            fs::read_to_string(&self.monitor).map_or(true, |stat| stat.contains(") Z "))
        });
        self.gate.write_all(b"!").expect("a FIFO takes a byte");
        let (sender, ended) = channel();
        thread::spawn(move || sender.send(self.alive.read_to_end(&mut Vec::new())));
        assert!(ended.recv_timeout(DEADLINE).is_ok(), "the sandbox and its script are left");
        drop(self.skills);
    }
}

/// Returns a directory with a `bwrap` whose process 1 waits for a byte in the gate before it starts a script.
fn slow_bwrap(skills: &Skills, path: &OsStr) -> PathBuf {
    let room = skills.path().display();
    let prepared = format!(
        "echo $$ >'{room}/{MONITOR}'; exec 200<>'{room}/{ALIVE}' 201<'{room}/{GATE}' 202>'{room}/{INFO}'"
    );
    other_bwrap(skills, path, "scripts/until", &prepared, "--sync-fd 200 --block-fd 201 --info-fd 202")
}

/// Returns a directory with a `bwrap` that runs commands and adds options before it starts a certain script.
fn other_bwrap(skills: &Skills, path: &OsStr, script: &str, prepared: &str, options: &str) -> PathBuf {
    let real = env::split_paths(path)
        .map(|dir| dir.join("bwrap"))
        .find(|file| file.is_file())
        .expect("bwrap exists");
    let real = real.display();
    let text = format!(
        "#!/bin/bash\n\
         case $* in *{script}*) ;; *) exec '{real}' \"$@\" ;; esac\n\
         {prepared}\n\
         words=()\n\
         for word; do\n\
         [ \"$word\" = -- ] && [ -z \"$own\" ] && own='{options}' && words+=($own)\n\
         words+=(\"$word\")\n\
         done\n\
         exec '{real}' \"${{words[@]}}\"\n"
    );
    let bwrap = skills.write("bin/bwrap", &text);
    fs::set_permissions(&bwrap, fs::Permissions::from_mode(0o755)).expect("a program");
    bwrap.parent().expect("a directory").to_owned()
}

/// A script must not start if a directory that was replaced by a link has led to another mount. Here, `bwrap` itself adds the mount.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn a_sandbox_with_another_mount_starts_no_script() {
    if let Err(error) = Sandbox::bwrap(false) {
        return eprintln!("skipped: {error}");
    }
    for (option, starts) in [("--ro-bind", true), ("--bind", false)] {
        let skills = Skills::new();
        skills.add("kit", "Does things.", "# Kit");
        skills.write("kit/scripts/say.sh", "#!/bin/sh\necho ZQ-ran\n");
        let home = skills.write("home/file", "mine").with_file_name("");
        let home = home.to_str().expect("text").trim_end_matches('/');
        let path = env::var_os("PATH").expect("a PATH");
        let other = other_bwrap(&skills, &path, "scripts/say", ":", &format!("{option} {home} {home}"));
        let path = env::join_paths(iter::once(other).chain(env::split_paths(&path))).expect("a PATH");
        let proxy = Proxy::new().skill(&skills.dir("kit")).arg("--allow-scripts").flag("--sandbox", "bwrap");
        let mut fixture = Fixture::over_http(proxy.flag("--script-cwd", "skill").env("PATH", path));
        let params = fixture.new_session("s");
        let connection = fixture.connect(&entry(&params), MCP_2025);
        let call = json!({ "skill": "kit", "script": "scripts/say.sh" });
        let (text, failed) = fixture.call(&connection, "run_skill_script", call);
        assert_eq!((text.contains("ZQ-ran"), !failed), (starts, starts), "{option}: {text}");
        assert_eq!(text.contains("the sandbox has other mounts than it should"), !starts, "{text}");
        fixture.finish();
    }
}

/// Returns true if the process 1 that a file names has its own `/proc`, as one of the last steps before it starts the script. The proxy
/// doesn't know this process, so it doesn't let the script start.
fn is_ready(info: &Path) -> bool {
    let info: Option<Value> = fs::read(info).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let mounts =
        info.and_then(|info| fs::read_to_string(format!("/proc/{}/mountinfo", info["child-pid"])).ok());
    mounts.is_some_and(|mounts| mounts.matches(" /proc ").count() > 1)
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < end, "waited for: {what}");
        thread::yield_now();
    }
}

fn a_proxy_killed_while_a_sandbox_starts() {
    let Some(mut target) = Target::new() else { return };
    target.fixture.editor.kill();
    target.gone();
}

fn a_call_cancelled_while_a_sandbox_starts() {
    let Some(mut target) = Target::new() else { return };
    target.client.send(&cancelled(7));
    target.gone();
}

/// The dynamic linker of bubblewrap must not see the variables of a skill. Otherwise, a library in `LD_PRELOAD` runs without the sandbox.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn variables_of_a_skill_are_only_set_inside() {
    if let Err(error) = Sandbox::bwrap(false) {
        eprintln!("skipped: {error}");
        return;
    }
    let skills = Skills::new();
    skills.add("kit", "Does things.", "# Kit");
    skills
        .write("kit/scripts/env.sh", "#!/bin/sh\necho \"$TOKEN $LD_DEBUG\"; tr '\\0' ' ' </proc/1/cmdline\n");
    let outside = tempfile::tempdir().expect("a directory");
    let long = "ZQ-token".repeat(1_000);
    // The linker writes what it does to this file, if it can.
    let env = json!({ "TOKEN": long, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": outside.path().join("trace") });
    let config = json!({ "skills": [{ "skill": skills.dir("kit"), "env": env }] });
    let config = skills.write("skills.yaml", &config.to_string());
    let proxy = Proxy::new().flag("--config", config).arg("--allow-scripts").flag("--sandbox", "bwrap");
    let proxy = proxy.flag("--script-cwd", "skill");
    let mut fixture = Fixture::over_http(proxy);
    let params = fixture.new_session("s");
    let connection = fixture.connect(&entry(&params), MCP_2025);
    let call = json!({ "skill": "kit", "script": "scripts/env.sh" });
    let (text, failed) = fixture.call(&connection, "run_skill_script", call);
    let result: Value = serde_json::from_str(&text).expect("JSON");
    let stdout = result["stdout"].as_str().expect("text");
    assert!(!failed && stdout.contains(&format!("{long} files\n")), "{text}");
    assert_eq!(stdout.matches(&long).count(), 1, "the arguments of bubblewrap have no value");
    assert_eq!(fs::read_dir(outside.path()).expect("a directory").count(), 0);
    fixture.finish();
}
