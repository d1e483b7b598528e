//! The proxy on a terminal: a client lets its user log in by running our command again there, with extra arguments for the agent. A
//! person who types the command is told what to type instead.

use std::{
    fs::{File, OpenOptions},
    io::Read,
    os::unix::ffi::OsStrExt,
    process::{Command, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::skills::Skills;

crate::trials!(
    the_agent_gets_the_terminal,
    an_agent_from_the_configuration,
    a_typed_command_says_that_it_waits_for_an_editor,
    a_typed_command_without_an_agent,
);

/// An agent that prints its terminal state, its arguments, and a line of its input.
const AGENT: &str = "test -t 0 && test -t 1 && echo on a terminal; echo \"with: $*\"; read word; echo \"heard: $word\"; exit 7";

/// Runs the proxy with these arguments on a terminal and types `secret`. Returns the terminal's output and the exit code.
fn on_a_terminal(arguments: &[&str]) -> (String, Option<i32>) {
    let (stdout, stderr, code) = run(arguments, true);
    assert_eq!(stderr, "", "{stdout}");
    (stdout, code)
}

/// Runs the proxy with its stdin on a terminal and types `secret`. Its stdout is the same terminal or a pipe, and its stderr is a pipe.
/// Returns stdout, stderr and the exit code.
fn run(arguments: &[&str], is_stdout: bool) -> (String, String, Option<i32>) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("a terminal");
    unlockpt(&terminal).expect("a terminal");
    let name = ptsname(&terminal, Vec::new()).expect("a terminal has a name");
    let path = std::ffi::OsStr::from_bytes(name.as_bytes());
    let other_end = OpenOptions::new().read(true).write(true).open(path).expect("the other end");
    let end = || Stdio::from(other_end.try_clone().expect("a descriptor"));
    let child = Command::new(env!("CARGO_BIN_EXE_acp-skills-proxy"))
        .args(arguments)
        .stdin(end())
        .stdout(if is_stdout { end() } else { Stdio::piped() })
        .stderr(Stdio::piped())
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
    let output = child.wait_with_output().expect("the program exits");
    let seen = if is_stdout { &seen } else { &output.stdout };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\r', "");
    (text(seen), text(&output.stderr), output.status.code())
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

fn a_typed_command_says_that_it_waits_for_an_editor() {
    let skills = Skills::review();
    let skill = skills.dir("review");
    let skill = skill.to_str().unwrap();
    for is_stdout in [true, false] {
        let (stdout, stderr, code) =
            run(&["--skill", skill, "--", "sh", "-c", "read word; exit 7"], is_stdout);
        let lines: Vec<_> = stderr.lines().take(3).collect();
        assert!(lines[0].starts_with("note: waiting for an editor"), "{stderr}");
        assert!(
            lines[1].ends_with(&format!("acp-skills-proxy try --skill {skill} -- sh -c 'read word; exit 7'")),
            "{stderr}"
        );
        assert!(lines[2].ends_with("acp-skills-proxy setup"), "{stderr}");
        assert_eq!(code, Some(7), "{stderr}");
        assert_eq!(stdout.replace("secret\n", ""), "", "{stderr}");
    }
    // Flags that `try` does not have are left out together with all others.
    let (_, stderr, _) = run(&["--skill", skill, "--exit-wait", "1", "--", "sh", "-c", "read word"], true);
    assert!(stderr.contains("acp-skills-proxy try --skill DIR -- sh -c 'read word'"), "{stderr}");
}

fn a_typed_command_without_an_agent() {
    let skills = Skills::review();
    let skill = skills.dir("review");
    for is_stdout in [true, false] {
        let (stdout, stderr, code) = run(&["--skill", skill.to_str().unwrap()], is_stdout);
        assert!(stderr.starts_with("error: no agent to run"), "{stderr}");
        for words in ["`acp-skills-proxy try --skill ", "`acp-skills-proxy setup`"] {
            assert!(stderr.contains(words), "{words:?} is not in {stderr}");
        }
        assert_eq!((stdout.replace("secret\n", ""), code), (String::new(), Some(2)), "{stderr}");
    }
}
