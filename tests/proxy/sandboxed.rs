//! Scripts in the sandbox (Linux), ended at the worst instant: process 1 of the sandbox runs, has not yet started the script,
//! and its parent is gone, so that nobody tells it. A `bwrap` that waits there makes the instant as long as a test needs.

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

use skills_core::exec::Sandbox;

use crate::{
    editor::{DEADLINE, Editor},
    fixtures::Skills,
    scripts::{bridge, cancelled, kit, patient, request},
    stage::Stage,
};

crate::trials!(with_a_proxy_that_is_killed, when_it_is_cancelled);

/// The files beside that `bwrap`.
const GATE: &str = "gate";
const WITNESS: &str = "witness";
const MONITOR: &str = "monitor";
const BEGUN: &str = "begun";

/// A script that is about to run.
struct Victim {
    skills: Skills,
    stage: Stage,
    client: Editor,
    gate: File,
    /// Ends when the sandbox and its script are gone.
    witness: File,
    /// The parent of the sandbox's process 1.
    monitor: PathBuf,
}

impl Victim {
    /// `None` where there is no sandbox.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    fn new() -> Option<Self> {
        if let Err(error) = Sandbox::bwrap(false) {
            eprintln!("skipped: {error}");
            return None;
        }
        let skills = kit();
        let at = |name: &str| skills.dir(name);
        assert!(Command::new("mkfifo").args([GATE, WITNESS].map(at)).status().expect("mkfifo").success());
        // For both ways, so that nobody waits for anybody.
        let gate = File::options().read(true).write(true).open(at(GATE)).expect("a FIFO");
        let path = env::var_os("PATH").expect("a PATH");
        let path = env::join_paths(iter::once(slow_bwrap(&skills, &path)).chain(env::split_paths(&path)));
        let proxy = patient(&skills).flag("--sandbox", "bwrap").flag("--script-cwd", "skill");
        let proxy = proxy.flag("--mcp", "stdio").env("PATH", path.expect("a PATH"));
        let mut stage = Stage::over_http(proxy);
        let mut client = bridge(&mut stage);
        // It says nothing: nobody listens.
        client.send(&request(7, "until", &["/never"], None));
        wait_until("process 1", || at(BEGUN).exists());
        let witness = File::open(at(WITNESS)).expect("process 1 holds it");
        let monitor = fs::read_to_string(at(MONITOR)).expect("a number");
        let monitor = Path::new("/proc").join(monitor.trim()).join("stat");
        Some(Self { skills, stage, client, gate, witness, monitor })
    }

    /// Once the parent of process 1 is gone, lets that go on, and waits until nobody is left.
    fn gone(mut self) {
        // Who has ended may wait for a parent, as a zombie, and an init may be in no hurry.
        wait_until("the parent's end", || {
            fs::read_to_string(&self.monitor).map_or(true, |stat| stat.contains(") Z "))
        });
        self.gate.write_all(b"!").expect("a FIFO takes a byte");
        let (sender, ended) = channel();
        thread::spawn(move || sender.send(self.witness.read_to_end(&mut Vec::new())));
        assert!(ended.recv_timeout(DEADLINE).is_ok(), "the sandbox and its script are left");
        drop(self.skills);
    }
}

/// A directory with a `bwrap` whose process 1, when it is there for a script, waits until something is in the gate.
fn slow_bwrap(skills: &Skills, path: &OsStr) -> PathBuf {
    let real = env::split_paths(path).map(|dir| dir.join("bwrap")).find(|it| it.is_file()).expect("it works");
    let text = format!(
        "#!/bin/bash\n\
         real='{}' room='{}'\n\
         case $* in *scripts/until*) ;; *) exec \"$real\" \"$@\" ;; esac\n\
         echo $$ >\"$room/{MONITOR}\"\n\
         exec 200<>\"$room/{WITNESS}\" 201<\"$room/{GATE}\"\n\
         exec \"$real\" --sync-fd 200 --block-fd 201 --bind \"$room\" \"$room\" --dir \"$room/{BEGUN}\" \"$@\"\n",
        real.display(),
        skills.path().display(),
    );
    let bwrap = skills.write("bin/bwrap", &text);
    fs::set_permissions(&bwrap, fs::Permissions::from_mode(0o755)).expect("a program");
    bwrap.parent().expect("a directory").to_owned()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < end, "waited for: {what}");
        thread::yield_now();
    }
}

fn with_a_proxy_that_is_killed() {
    let Some(mut victim) = Victim::new() else { return };
    victim.stage.editor.kill();
    victim.gone();
}

fn when_it_is_cancelled() {
    let Some(mut victim) = Victim::new() else { return };
    victim.client.send(&cancelled(7));
    victim.gone();
}
