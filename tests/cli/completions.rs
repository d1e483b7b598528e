//! Completion with our scripts in real shells on a terminal. A shell that is not installed is skipped with a message.

#![cfg(unix)]
#![expect(clippy::print_stderr, reason = "explains skipped tests")]

use std::{
    fs,
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::fixture::Fixture;

/// The time that a shell may take to start, or to complete a line.
const DEADLINE: Duration = Duration::from_mins(1);

/// A shell, and the commands after which it completes command lines of `acp-skills-proxy`. The program is replaced by a function that
/// prints its arguments.
struct Shell {
    name: &'static str,
    arguments: &'static str,
    setup: &'static str,
}

const BASH: Shell = Shell {
    name: "bash",
    arguments: "--norc --noprofile -i",
    setup: "bind 'set bell-style none'; source ./script; acp-skills-proxy() { echo \"<$*>\"; }; echo rea''dy",
};

const ZSH: Shell = Shell {
    name: "zsh",
    arguments: "-f -i",
    setup: "autoload -U compinit; compinit -u -D; unsetopt list_beep; source ./script; \
            acp-skills-proxy() { echo \"<$*>\" }; echo rea''dy",
};

const FISH: Shell = Shell {
    name: "fish",
    arguments: "--private --no-config -i",
    setup: "source ./script; function acp-skills-proxy; echo \"<$argv>\"; end; echo rea''dy",
};

/// The start of a command line, and the same line after the last word was completed.
const LINES: [(&str, &str); 13] = [
    ("sourc", "sources"),
    ("setup ze", "setup zed"),
    ("setup zed --agent openc", "setup zed --agent opencode"),
    ("setup --agents", "setup --agents"),
    ("--agent openc", "--agent opencode"),
    ("try --agent openc", "try --agent opencode"),
    ("eval skills/pdf --agent openc", "eval skills/pdf --agent opencode"),
    ("try --skill skills/pdf --ful", "try --skill skills/pdf --full"),
    ("try --catalog-in sy", "try --catalog-in system"),
    ("list --disc", "list --discover"),
    ("check skills/pd", "check skills/pdf"),
    ("--skill skills/pdf -- some-ag", "--skill skills/pdf -- some-agent"),
    ("try -- some-ag", "try -- some-agent"),
];

#[test]
fn bash_completes_command_lines() {
    check(&BASH);
}

#[test]
fn zsh_completes_command_lines() {
    check(&ZSH);
}

#[test]
fn fish_completes_command_lines() {
    check(&FISH);
}

/// Types the start of each line and a tab, and compares the arguments that the program gets.
fn check(shell: &Shell) {
    for program in [shell.name, "script"] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("SKIPPED: {program} is not installed; skipping completion in {}", shell.name);
            return;
        }
    }
    let fixture = Fixture::new();
    let script = String::from_utf8(fixture.run(&["completions", shell.name]).stdout).unwrap();
    fixture.write("script", &script);
    fixture.write("bin/some-agent", "");
    fs::set_permissions(fixture.dir.join("bin/some-agent"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut terminal = Terminal::start(&fixture, shell);
    terminal.enter(shell.setup);
    terminal.wait_for("\nready");
    for (line, expected) in LINES {
        terminal.enter(&format!("acp-skills-proxy {line}\t"));
        let seen = terminal.wait_for(">\n");
        let arguments = seen.rsplit_once('<').map_or("", |(_, arguments)| arguments);
        let arguments = arguments.trim_end_matches(['\n', '>', ' ']);
        // A flag with a value gets a `=` in zsh, and a directory a `/` in the other shells.
        assert_eq!(arguments.trim_end_matches(['=', '/']), expected, "{}: {line}\n{seen}", shell.name);
    }
    terminal.enter("exit");
}

/// A shell on a terminal, which the program `script` provides.
struct Terminal {
    shell: std::process::Child,
    output: mpsc::Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Terminal {
    fn start(fixture: &Fixture, shell: &Shell) -> Self {
        let line = format!("{} {}", shell.name, shell.arguments);
        let mut script = Command::new("script");
        if cfg!(target_os = "linux") {
            script.args(["-qec", &line, "/dev/null"]);
        } else {
            script.args(["-q", "/dev/null"]).args(line.split(' '));
        }
        let path = format!("{}:{}", fixture.dir.join("bin").display(), std::env::var("PATH").unwrap());
        let mut shell = script
            .current_dir(&fixture.dir)
            .env("HOME", fixture.dir.join("home"))
            .env("XDG_CONFIG_HOME", fixture.dir.join("home/.config"))
            .env("XDG_DATA_HOME", fixture.dir.join("home/.local/share"))
            .env("PATH", path)
            .env("TERM", "dumb")
            .env("PS1", "$ ")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = shell.stdout.take().unwrap();
        let (found, output) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stdout.read(&mut buffer) {
                if found.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { shell, output, seen: Vec::new() }
    }

    fn enter(&mut self, line: &str) {
        self.shell.stdin.as_mut().unwrap().write_all(format!("{line}\r").as_bytes()).unwrap();
    }

    /// Returns the output up to and including `text`, without carriage returns.
    fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let seen = String::from_utf8_lossy(&self.seen).replace('\r', "");
            if let Some(at) = seen.find(text) {
                let (before, after) = seen.split_at(at + text.len());
                self.seen = after.as_bytes().to_vec();
                return before.to_owned();
            }
            let rest = deadline.saturating_duration_since(Instant::now());
            let more = self.output.recv_timeout(rest);
            assert!(more.is_ok(), "no {text:?} within {DEADLINE:?}:\n{seen}");
            self.seen.extend(more.unwrap());
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
