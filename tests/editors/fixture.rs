//! The fixture of each test: a home directory with a project, a skill and the agent's files.
//!
//! The directory has a fixed path, because editors show it and wrap lines according to its length. A file lock makes the tests
//! run one after the other.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, anyhow};

use crate::agent;

/// The home directory.
const HOME: &str = "/tmp/you";
/// The lock file. If it exists, [`HOME`] was created by these tests and may be removed.
const LOCK: &str = "/tmp/you.lock";

/// The directory of the agent's files in the home directory.
const AGENT: &str = ".agent";

/// The environment variable with the directory of the installed editors.
const EDITORS_HOME: &str = "EDITORS_HOME";

/// The timeout for the expected screen. It is generous for busy machines.
const SCREEN_TIMEOUT: Duration = Duration::from_secs(10);
/// The timeout for anything that must happen.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);
/// The interval at which a condition is checked.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Returns the path of an editor's file in `$EDITORS_HOME`.
///
/// # Errors
/// Returns an error if the variable is not set or the file does not exist.
pub(crate) fn installed(file: &str) -> Result<PathBuf> {
    let home = env::var_os(EDITORS_HOME).with_context(|| format!("{EDITORS_HOME} is not set"))?;
    let path = Path::new(&home).join(file);
    // This must be an absolute path, because we use another working directory for the editor.
    let missing = || anyhow!("{} does not exist; run tests/editors/install", path.display());
    path.canonicalize().map_err(|_| missing())
}

/// The skill.
const SKILL: &str = "---
name: code-review
description: Reviews code for bugs. Use when the user asks for a review.
argument-hint: file, commit or branch
---
# Code review

Look for what goes wrong, and say where.
";

/// Returns the path of a program in `PATH`.
///
/// # Errors
/// Returns an error if the program is not installed.
pub(crate) fn on_path(program: &str) -> Result<PathBuf> {
    let dirs = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&dirs).map(|dir| dir.join(program)).find(|path| path.is_file());
    found.with_context(|| format!("{program} is not installed"))
}

/// The file in the project.
const PROGRAM: &str = "\
fn main() {
    let numbers: Vec<u32> = std::env::args().skip(1).map(|number| number.parse().unwrap()).collect();
    println!(\"{}\", numbers.iter().sum::<u32>() / numbers.len() as u32);
}
";

/// The home directory of a test. Dropping the value removes it.
pub(crate) struct Fixture {
    home: PathBuf,
    /// Locked until the value is dropped, so that only one test uses the directory.
    _lock: File,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let is_free = Path::new(LOCK).exists() || !Path::new(HOME).exists();
        assert!(is_free, "{HOME} exists, but these tests did not create it; remove it to run them");
        let lock = File::create(LOCK).expect("a file");
        lock.lock().expect("a lock");
        let fixture = Self { home: HOME.into(), _lock: lock };
        // If the last test was killed, it might not have removed all of its files, so do that first.
        let _ = fs::remove_dir_all(HOME);
        for dir in [fixture.path(AGENT), fixture.path("skills/code-review"), fixture.project()] {
            fs::create_dir_all(dir).expect("a directory");
        }
        fs::write(fixture.path("skills/code-review/SKILL.md"), SKILL).expect("a file");
        fs::write(fixture.project().join("main.rs"), PROGRAM).expect("a file");
        fixture
    }

    /// Returns a path in the home directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// Returns the working directory of the editor.
    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// Returns the command line of the scripted agent.
    pub(crate) fn agent(&self) -> Vec<String> {
        let this = env::current_exe().expect("this program has a path");
        [this, agent::ARGUMENT.into(), self.path(AGENT)].map(text_of).into()
    }

    /// Returns the command line of the proxy with the scripted agent.
    pub(crate) fn proxy(&self) -> Vec<String> {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        let proxy = [program, "--skill".into(), self.path("skills/code-review"), "--".into()].map(text_of);
        proxy.into_iter().chain(self.agent()).collect()
    }

    /// Returns the command line of a proxy that fails to start because its skill does not exist.
    pub(crate) fn broken_proxy(&self) -> Vec<String> {
        let mut proxy = self.proxy();
        proxy[2] = text_of(self.path("skills/no-such-skill"));
        proxy
    }

    /// Returns a command for a program with a minimal environment.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.project());
        command.env("HOME", HOME).env("LANG", "C.UTF-8").env("SHELL", "/bin/sh");
        command.env("PATH", env::var_os("PATH").unwrap_or_default());
        command
    }

    /// Returns all messages that the agent received and sent, one per line.
    pub(crate) fn wire(&self) -> String {
        fs::read_to_string(self.path(AGENT).join(agent::WIRE)).unwrap_or_default()
    }

    /// Waits until the agent has received or sent a message with these words.
    pub(crate) fn wait_for_message(&self, words: &str) {
        self.wait_for_text(&format!("{AGENT}/{}", agent::WIRE), words);
    }

    /// Waits until a file in the home directory contains these words.
    pub(crate) fn wait_for_text(&self, file: &str, words: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            let text = fs::read_to_string(self.path(file)).unwrap_or_default();
            if text.contains(words) {
                return;
            }
            assert!(Instant::now() < end, "{words:?} is not in {file}:\n{text}");
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until neither the proxy nor the agent of this fixture runs. They are found by the agent's directory in their
    /// arguments, which the bridge doesn't have.
    pub(crate) fn wait_until_stopped(&self) {
        let end = Instant::now() + DEADLINE;
        while self.is_running() {
            assert!(Instant::now() < end, "the proxy or its agent still runs");
            thread::sleep(POLL_INTERVAL);
        }
    }

    fn is_running(&self) -> bool {
        let directory = text_of(self.path(AGENT));
        let processes = fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
        let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        lines.any(|line| line.split(|byte| *byte == 0).any(|argument| argument == directory.as_bytes()))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // This might fail if a process hasn't exited yet and keeps writing files. Those will be removed by the next test.
        let _ = fs::remove_dir_all(HOME);
    }
}

/// Compares a screen with the file `screens/NAME.txt`. Calls `shown` repeatedly until they are equal, and fails after
/// [`SCREEN_TIMEOUT`]. With `UPDATE_EXPECT=1`, writes the file.
pub(crate) fn compare(name: &str, mut shown: impl FnMut() -> String) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/editors/screens");
    let file = dir.join(name).with_extension("txt");
    let known = fs::read_to_string(&file).unwrap_or_default();
    let updates = env::var_os("UPDATE_EXPECT").is_some();
    let end = Instant::now() + SCREEN_TIMEOUT;
    let mut last = String::new();
    loop {
        let screen = plain(&shown());
        if screen == known && !updates {
            return;
        }
        // Don't update the file if the screen is still changing.
        if Instant::now() > end {
            assert!(!updates || screen == last, "the screen keeps changing:\n{screen}");
            expect_test::expect_file![file].assert_eq(&screen);
            return;
        }
        last = screen;
        thread::sleep(POLL_INTERVAL);
    }
}

/// Removes trailing spaces, and the marker of the active tab in toad's line, which does not always match the tab.
fn plain(text: &str) -> String {
    let text = text.replace(['╸', '╺'], "━");
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

fn text_of(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("text")
}
