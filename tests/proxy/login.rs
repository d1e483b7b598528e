//! A client that lets its user log in: it runs our command again, on a terminal, with arguments for the agent.

use std::{
    fs::{File, OpenOptions},
    io::Read,
    os::unix::ffi::OsStrExt,
    process::{Command, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::fixtures::Skills;

crate::trials!(the_terminal_is_the_agents, an_agent_from_the_configuration);

/// An agent that tells whether it has a terminal, what it was given, and what it hears.
const AGENT: &str = "test -t 0 && test -t 1 && echo on a terminal; echo \"with: $*\"; read word; echo \"heard: $word\"; exit 7";

/// What is seen on a terminal on which the proxy runs with these arguments and somebody types `secret`.
fn on_a_terminal(arguments: &[&str]) -> (String, Option<i32>) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&ours).expect("a terminal");
    unlockpt(&ours).expect("a terminal");
    let name = ptsname(&ours, Vec::new()).expect("a terminal has a name");
    let path = std::ffi::OsStr::from_bytes(name.as_bytes());
    let theirs = OpenOptions::new().read(true).write(true).open(path).expect("the other end");
    let end = || Stdio::from(theirs.try_clone().expect("a descriptor"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
        .args(arguments)
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .expect("the proxy starts");
    let mut ours = File::from(ours);
    std::io::Write::write_all(&mut ours, b"secret\n").expect("typing");
    drop(theirs);
    let mut seen = Vec::new();
    let mut buffer = [0; 1024];
    // A terminal whose other end is closed fails instead of ending.
    while let Ok(read @ 1..) = ours.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..read]);
    }
    let code = child.wait().expect("it ends").code();
    (String::from_utf8_lossy(&seen).replace('\r', ""), code)
}

fn assert_logged_in((seen, code): (String, Option<i32>), with: &str) {
    for words in ["on a terminal\n", &format!("with: {with}\n"), "heard: secret\n"] {
        assert!(seen.contains(words), "{words:?} is not in {seen}");
    }
    assert_eq!(code, Some(7), "{seen}");
}

fn the_terminal_is_the_agents() {
    let skills = Skills::review();
    let skill = skills.dir("review");
    let arguments = ["--skill", skill.to_str().unwrap(), "--", "sh", "-c", AGENT, "sh", "--cli", "login"];
    assert_logged_in(on_a_terminal(&arguments), "--cli login");
}

/// Without `--` there is nothing that says whose the arguments are.
fn an_agent_from_the_configuration() {
    let skills = Skills::review();
    let config = serde_json::json!({ "agent": ["sh", "-c", AGENT, "sh"], "skills": ["review"] });
    let config = skills.write("skills.yaml", &config.to_string());
    let config = config.to_str().unwrap();
    assert_logged_in(on_a_terminal(&["--config", config, "login", "--now"]), "login --now");
    assert_logged_in(on_a_terminal(&["--config", config, "--cli"]), "--cli");
}
