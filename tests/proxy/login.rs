//! A client that runs our command on a terminal to let the user log in, with additional arguments for the agent.

use std::{
    fs::{File, OpenOptions},
    io::Read,
    os::unix::ffi::OsStrExt,
    process::{Command, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::skills::Skills;

crate::trials!(the_agent_gets_the_terminal, an_agent_from_the_configuration);

/// An agent that prints its terminal state, its arguments, and a line of its input.
const AGENT: &str = "test -t 0 && test -t 1 && echo on a terminal; echo \"with: $*\"; read word; echo \"heard: $word\"; exit 7";

/// Runs the proxy with these arguments on a terminal and types `secret`. Returns the terminal's output and the exit code.
fn on_a_terminal(arguments: &[&str]) -> (String, Option<i32>) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("a terminal");
    unlockpt(&terminal).expect("a terminal");
    let name = ptsname(&terminal, Vec::new()).expect("a terminal has a name");
    let path = std::ffi::OsStr::from_bytes(name.as_bytes());
    let other_end = OpenOptions::new().read(true).write(true).open(path).expect("the other end");
    let end = || Stdio::from(other_end.try_clone().expect("a descriptor"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
        .args(arguments)
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .expect("the proxy starts");
    let mut terminal = File::from(terminal);
    std::io::Write::write_all(&mut terminal, b"secret\n").expect("typing");
    drop(other_end);
    let mut seen = Vec::new();
    let mut buffer = [0; 1024];
    // When the other end of a terminal is closed, we get an error here instead of the end of the file.
    while let Ok(read @ 1..) = terminal.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..read]);
    }
    let code = child.wait().expect("the program exits").code();
    (String::from_utf8_lossy(&seen).replace('\r', ""), code)
}

fn assert_logged_in((seen, code): (String, Option<i32>), with: &str) {
    for words in ["on a terminal\n", &format!("with: {with}\n"), "heard: secret\n"] {
        assert!(seen.contains(words), "{words:?} is not in {seen}");
    }
    assert_eq!(code, Some(7), "{seen}");
}

fn the_agent_gets_the_terminal() {
    let skills = Skills::review();
    let skill = skills.dir("review");
    let arguments = ["--skill", skill.to_str().unwrap(), "--", "sh", "-c", AGENT, "sh", "--cli", "login"];
    assert_logged_in(on_a_terminal(&arguments), "--cli login");
}

/// Without `--`, the arguments do not show whether they are for the proxy or for the agent.
fn an_agent_from_the_configuration() {
    let skills = Skills::review();
    let config = serde_json::json!({ "agent": ["sh", "-c", AGENT, "sh"], "skills": ["review"] });
    let config = skills.write("skills.yaml", &config.to_string());
    let config = config.to_str().unwrap();
    assert_logged_in(on_a_terminal(&["--config", config, "login", "--now"]), "login --now");
    assert_logged_in(on_a_terminal(&["--config", config, "--cli"]), "--cli");
}
