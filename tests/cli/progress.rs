//! Progress on a terminal.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::Read,
    net::TcpListener,
    os::unix::ffi::OsStrExt,
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Opens a terminal. Returns our end and the end for the program.
pub(crate) fn terminal() -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = OpenOptions::new().read(true).write(true).open(OsStr::from_bytes(name.as_bytes())).unwrap();
    rustix::termios::tcsetwinsize(
        &theirs,
        rustix::termios::Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 },
    )
    .unwrap();
    (File::from(ours), theirs)
}

/// Starts the program with stderr on a terminal.
fn start(dir: &Path, arguments: &[&str], stdout: Stdio) -> (Child, File) {
    let (ours, theirs) = terminal();
    let child = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
        .args(arguments)
        .current_dir(dir)
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .env_remove("ACP_SKILLS_LOG")
        .env("XDG_CONFIG_HOME", "/nowhere")
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .env("XDG_STATE_HOME", dir.join("state"))
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(theirs)
        .spawn()
        .unwrap();
    (child, ours)
}

/// Reads until `word` appears or the terminal is closed. Returns everything that was read.
pub(crate) fn read_until(terminal: &mut File, word: &str) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 1024];
    while !String::from_utf8_lossy(&seen).contains(word) {
        match terminal.read(&mut buffer) {
            Ok(count @ 1..) => seen.extend_from_slice(&buffer[..count]),
            // When the other end of a terminal is closed, we get an error here, and not the end of the file.
            _ => break,
        }
    }
    String::from_utf8_lossy(&seen).into_owned()
}

#[test]
fn doctor_shows_the_pending_step() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("s")).unwrap();
    fs::write(dir.path().join("s/SKILL.md"), "---\nname: s\ndescription: d\n---\nBody\n").unwrap();
    let arguments = ["doctor", "--skill", "s", "--timeout", "600", "--", "sleep", "600"];
    let (mut child, mut terminal) = start(dir.path(), &arguments, Stdio::piped());
    let seen = read_until(&mut terminal, "waiting for response to initialize");
    assert!(seen.contains("waiting for response to initialize"), "{seen:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The web site accepts a connection and does not answer until it is closed.
#[test]
fn slow_work_is_shown_and_cleared() {
    let dir = tempfile::tempdir().unwrap();
    let site = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", site.local_addr().unwrap());
    let (mut child, mut terminal) = start(dir.path(), &["list", "--source", &address], Stdio::piped());
    let seen = read_until(&mut terminal, "looking for skills");
    assert!(seen.contains("looking for skills"), "{seen:?}");
    drop(site);
    let rest = read_until(&mut terminal, "cannot fetch");
    let (progress, _) = rest.split_once(" WARN ").expect("a warning about the closed site");
    assert!(progress.ends_with("\u{1b}[2K"), "the progress is not cleared: {progress:?}");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn colors_are_for_terminals() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("SKILL.md"), "---\nname: \"a\\e[2Jb\"\n---\nBody\n").unwrap();
    let (mut ours, theirs) = terminal();
    let (mut child, _) = start(dir.path(), &["check", "."], theirs.into());
    let seen = read_until(&mut ours, "1 skill checked");
    child.wait().unwrap();
    assert!(seen.contains("\u{1b}[1m") && seen.contains("error"), "{seen:?}");
    assert!(!seen.contains("\u{1b}[2J"), "{seen:?}");
}
