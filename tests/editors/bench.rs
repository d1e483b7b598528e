//! The environment of a test: a home directory with a project and a skill, and the agent's storage.
//!
//! The home directory has the same path in each run, because screens show it and break lines within it. So tests run one
//! at a time.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use crate::agent;

/// The home directory.
const HOME: &str = "/tmp/you";
/// The lock that a test holds while the others wait. Its existence shows that the home directory is ours and may be
/// removed.
const LOCK: &str = "/tmp/you.lock";

/// The directory of the agent's storage.
const AGENT: &str = ".agent";

/// The directory of the editors.
const EDITORS_HOME: &str = "EDITORS_HOME";

/// The maximum time until a screen is as expected, on a busy machine.
const SETTLED: Duration = Duration::from_secs(10);
/// The maximum time to wait for an event.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);
/// The polling interval.
pub(crate) const GLANCE: Duration = Duration::from_millis(50);

/// Returns the file of an editor below `$EDITORS_HOME`.
///
/// # Errors
/// Returns an explanation if the file does not exist.
pub(crate) fn installed(file: &str) -> Result<PathBuf, String> {
    let home = env::var_os(EDITORS_HOME).ok_or_else(|| format!("{EDITORS_HOME} is not set"))?;
    let path = Path::new(&home).join(file);
    // The path is absolute, because editors start in another directory.
    path.canonicalize().map_err(|_| format!("{} is not there (tests/editors/install)", path.display()))
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

/// Returns the path of a program in the `PATH`.
///
/// # Errors
/// Returns an explanation if the program is not installed.
pub(crate) fn on_path(program: &str) -> Result<PathBuf, String> {
    let dirs = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&dirs).map(|dir| dir.join(program)).find(|path| path.is_file());
    found.ok_or_else(|| format!("{program} is not installed"))
}

/// The file that the tests edit.
const PROGRAM: &str = "\
fn main() {
    let numbers: Vec<u32> = std::env::args().skip(1).map(|it| it.parse().unwrap()).collect();
    println!(\"{}\", numbers.iter().sum::<u32>() / numbers.len() as u32);
}
";

/// A test environment. It is removed when the value is dropped.
pub(crate) struct Bench {
    home: PathBuf,
    /// The lock of the current test.
    _lock: File,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let is_free = Path::new(LOCK).exists() || !Path::new(HOME).exists();
        assert!(is_free, "{HOME} belongs to another program, and the tests of editors need it");
        let lock = File::create(LOCK).expect("a file");
        lock.lock().expect("a lock");
        let bench = Self { home: HOME.into(), _lock: lock };
        // A test that was killed may have left files.
        let _ = fs::remove_dir_all(HOME);
        for dir in [bench.path(AGENT), bench.path("skills/code-review"), bench.project()] {
            fs::create_dir_all(dir).expect("a directory");
        }
        fs::write(bench.path("skills/code-review/SKILL.md"), SKILL).expect("a file");
        fs::write(bench.project().join("main.rs"), PROGRAM).expect("a file");
        bench
    }

    /// Returns a path in the home directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// Returns the directory that the editor works in.
    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// Returns the command line of the agent.
    pub(crate) fn agent(&self) -> Vec<String> {
        let this = env::current_exe().expect("this program has a path");
        [this, agent::ARGUMENT.into(), self.path(AGENT)].map(text_of).into()
    }

    /// Returns the command line of the proxy in front of the agent.
    pub(crate) fn proxy(&self) -> Vec<String> {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        let proxy = [program, "--skill".into(), self.path("skills/code-review"), "--".into()].map(text_of);
        proxy.into_iter().chain(self.agent()).collect()
    }

    /// Returns the command line of a proxy that cannot start.
    pub(crate) fn broken_proxy(&self) -> Vec<String> {
        let mut proxy = self.proxy();
        proxy[2] = text_of(self.path("skills/no-such-skill"));
        proxy
    }

    /// Returns a command with a minimal environment.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.project());
        command.env("HOME", HOME).env("LANG", "C.UTF-8").env("SHELL", "/bin/sh");
        command.env("PATH", env::var_os("PATH").unwrap_or_default());
        command
    }

    /// Returns the agent's messages in both directions, one per line.
    pub(crate) fn heard(&self) -> String {
        fs::read_to_string(self.path(AGENT).join(agent::WIRE)).unwrap_or_default()
    }

    /// Waits until a message of the agent, in either direction, contains these words.
    pub(crate) fn hears(&self, words: &str) {
        self.has(&format!("{AGENT}/{}", agent::WIRE), words);
    }

    /// Waits until a file in the home directory contains these words.
    pub(crate) fn has(&self, file: &str, words: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            let text = fs::read_to_string(self.path(file)).unwrap_or_default();
            if text.contains(words) {
                return;
            }
            assert!(Instant::now() < end, "{words:?} is not in {file}:\n{text}");
            thread::sleep(GLANCE);
        }
    }

    /// Waits until neither proxy nor agent of this environment runs. Both have the agent's directory among their
    /// arguments; the bridge does not.
    pub(crate) fn is_left(&self) {
        let end = Instant::now() + DEADLINE;
        while self.runs() {
            assert!(Instant::now() < end, "the proxy or its agent is still there");
            thread::sleep(GLANCE);
        }
    }

    fn runs(&self) -> bool {
        let place = text_of(self.path(AGENT));
        let processes = fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
        let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        lines.any(|line| line.split(|byte| *byte == 0).any(|argument| argument == place.as_bytes()))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A process that is exiting may still write files. The next test removes them.
        let _ = fs::remove_dir_all(HOME);
    }
}

/// Compares the screen with the file `screens/NAME.txt`. Calls `shown` until they are equal, or until the time is up.
pub(crate) fn compare(name: &str, mut shown: impl FnMut() -> String) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/editors/screens");
    let file = dir.join(name).with_extension("txt");
    let known = fs::read_to_string(&file).unwrap_or_default();
    let updates = env::var_os("UPDATE_EXPECT").is_some();
    let end = Instant::now() + SETTLED;
    let mut last = String::new();
    loop {
        let screen = plain(&shown());
        if screen == known && !updates {
            return;
        }
        // A new expectation must be a screen that has settled.
        if Instant::now() > end {
            assert!(!updates || screen == last, "the screen does not come to rest:\n{screen}");
            expect_test::expect_file![file].assert_eq(&screen);
            return;
        }
        last = screen;
        thread::sleep(GLANCE);
    }
}

/// Removes spaces at the ends of lines, and the position of the tab that Toad's line shows, which does not always follow
/// the tab.
fn plain(text: &str) -> String {
    let text = text.replace(['╸', '╺'], "━");
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

fn text_of(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("text")
}
