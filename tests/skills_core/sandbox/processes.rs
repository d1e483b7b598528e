//! Cases about processes: sessions, signals, the terminal, and the end of the calling process.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    mem::ManuallyDrop,
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use rustix::{
    process::setsid,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use skills_core::exec::{Sandbox, SandboxError};

use crate::{
    cases::{HOLDING, WITHOUT_NAMESPACES, WITHOUT_PROGRAM, skipped, text},
    fixture::{CASE_DIR, CASE_FLAG, Fixture},
};

/// Simulates a program that was started from a terminal.
pub(crate) fn the_terminal_cannot_be_opened() {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    // Don't close this terminal, since we would be killed by SIGHUP.
    let terminal = ManuallyDrop::new(openpt(flags).unwrap());
    grantpt(&*terminal).unwrap();
    unlockpt(&*terminal).unwrap();
    let name = ptsname(&*terminal, Vec::new()).unwrap();
    setsid().unwrap();
    // If a session leader opens a terminal, this will be its controlling terminal.
    let _controlling = fs::OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let fixture = Fixture::new();
    fixture.all_succeed_outside("terminal", &[]);
    fixture.all_fail("terminal", &[]);
}

/// Some scripts run `kill 0` at their end. It must not kill the sandbox.
pub(crate) fn a_script_cannot_signal_the_sandbox() {
    Fixture::new().all_succeed("signal", &[]);
}

pub(crate) fn the_sandbox_works_without_flock() {
    works_without("flock");
}

pub(crate) fn the_sandbox_works_without_setsid() {
    works_without("setsid");
}

fn works_without(program: &str) {
    // The sandbox has its own `/tmp`, so a program in the original `/tmp` can't be found.
    let hidden = tempfile::tempdir_in("/tmp").unwrap();
    let path = env::var("PATH").unwrap();
    let found = env::split_paths(&path).map(|dir| dir.join(program)).find(|path| path.exists()).unwrap();
    std::os::unix::fs::symlink(found, hidden.path().join(program)).unwrap();
    let output = Command::new(env::current_exe().unwrap())
        .args([CASE_FLAG, WITHOUT_PROGRAM])
        .env("PATH", format!("{}:{path}", text(hidden.path())))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Kills a process that runs a script, and waits until the script and its child, which hold a FIFO open, have ended.
pub(crate) fn killing_the_caller_ends_the_script() {
    let fixture = Fixture::new();
    let fifo = fixture.cwd.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let case_dir = fixture.path("holding");
    fs::create_dir(&case_dir).unwrap();
    let mut holder = Command::new(env::current_exe().unwrap())
        .args([CASE_FLAG, HOLDING])
        .env(CASE_DIR, &case_dir)
        .env("FIFO", &fifo)
        .env("FIFO_DIR", &fixture.cwd)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let mut reader = BufReader::new(fs::File::open(&fifo).unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "here\n");
    holder.kill().unwrap();
    holder.wait().unwrap();
    // We won't get to the end of this until all processes have closed the FIFO.
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || sender.send(reader.read_to_end(&mut Vec::new())));
    let rest = receiver.recv_timeout(Duration::from_secs(30)).expect("the script should be killed");
    assert_eq!(rest.unwrap(), 0);
}

pub(crate) fn hold_a_fifo() {
    let mut fixture = Fixture::new();
    fixture.cwd = env::var_os("FIFO_DIR").unwrap().into();
    fixture.inside("hold", &[&env::var("FIFO").unwrap()]);
}

pub(crate) fn root_without_user_namespaces_is_rejected() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // We can use bubblewrap for this: it lets us run as root, but without any more user namespaces.
    let output = Command::new("bwrap")
        .args(["--bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-user", "--disable-userns"])
        .args(["--cap-add", "ALL", "--"])
        .arg(env::current_exe().unwrap())
        .args([CASE_FLAG, WITHOUT_NAMESPACES])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("Unknown option") {
        return skipped("this bubblewrap cannot disable user namespaces");
    }
    assert!(output.status.success(), "{stderr}");
}

pub(crate) fn without_namespaces() {
    let error = Sandbox::bwrap(false).unwrap_err();
    assert!(matches!(error, SandboxError::Root(_)), "{error}");
    assert!(error.to_string().contains("run as another user, or allow user namespaces"), "{error}");
}
