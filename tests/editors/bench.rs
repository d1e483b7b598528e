//! What each test finds: a home directory with a project and a skill, and the agent's memory.
//!
//! It is at the same place in each run, because screens show it, and break lines in the middle of it. So one test waits for
//! the other.

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
/// What one test holds while the others wait. That it is there says that the home directory is ours, and may be removed.
const LOCK: &str = "/tmp/you.lock";

/// Where the agent keeps its memory.
const AGENT: &str = ".agent";

/// Where the editors are.
const EDITORS_HOME: &str = "EDITORS_HOME";

/// How long a screen may take to be what it should be, on a machine that has much else to do.
const SETTLED: Duration = Duration::from_secs(10);
/// When something that has to happen has not happened.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);
/// How often one looks.
pub(crate) const GLANCE: Duration = Duration::from_millis(50);

/// The file of an editor below `$EDITORS_HOME`.
///
/// # Errors
/// It is not there; says so for people.
pub(crate) fn installed(file: &str) -> Result<PathBuf, String> {
    let home = env::var_os(EDITORS_HOME).ok_or_else(|| format!("{EDITORS_HOME} is not set"))?;
    let path = Path::new(&home).join(file);
    // An editor is started in another directory.
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

/// A program that everybody has, or nobody.
///
/// # Errors
/// It is not there; says so for people.
pub(crate) fn on_path(program: &str) -> Result<PathBuf, String> {
    let dirs = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&dirs).map(|dir| dir.join(program)).find(|path| path.is_file());
    found.ok_or_else(|| format!("{program} is not installed"))
}

/// What is worked on.
const PROGRAM: &str = "\
fn main() {
    let numbers: Vec<u32> = std::env::args().skip(1).map(|it| it.parse().unwrap()).collect();
    println!(\"{}\", numbers.iter().sum::<u32>() / numbers.len() as u32);
}
";

/// A place to work. It is gone with the value.
pub(crate) struct Bench {
    home: PathBuf,
    /// Held by whoever is there.
    _lock: File,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let is_free = Path::new(LOCK).exists() || !Path::new(HOME).exists();
        assert!(is_free, "{HOME} is somebody else's; the tests of editors need it");
        let lock = File::create(LOCK).expect("a file");
        lock.lock().expect("a lock");
        let bench = Self { home: HOME.into(), _lock: lock };
        // What a test has left that was killed.
        drop(fs::remove_dir_all(HOME));
        for dir in [bench.path(AGENT), bench.path("skills/code-review"), bench.project()] {
            fs::create_dir_all(dir).expect("a directory");
        }
        fs::write(bench.path("skills/code-review/SKILL.md"), SKILL).expect("a file");
        fs::write(bench.project().join("main.rs"), PROGRAM).expect("a file");
        bench
    }

    /// A path in the home directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.join(name)
    }

    /// The directory that the editor works in.
    pub(crate) fn project(&self) -> PathBuf {
        self.path("project")
    }

    /// The command line of the agent.
    pub(crate) fn agent(&self) -> Vec<String> {
        let this = env::current_exe().expect("this program has a path");
        [this, agent::ARGUMENT.into(), self.path(AGENT)].map(text_of).into()
    }

    /// The command line of the proxy in front of it.
    pub(crate) fn proxy(&self) -> Vec<String> {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_acp-skills-proxy"));
        let proxy = [program, "--skill".into(), self.path("skills/code-review"), "--".into()].map(text_of);
        proxy.into_iter().chain(self.agent()).collect()
    }

    /// A proxy that cannot start.
    pub(crate) fn broken_proxy(&self) -> Vec<String> {
        let mut proxy = self.proxy();
        proxy[2] = text_of(self.path("skills/no-such-skill"));
        proxy
    }

    /// A program with nothing of the environment that people have.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.project());
        command.env("HOME", HOME).env("LANG", "C.UTF-8").env("SHELL", "/bin/sh");
        command.env("PATH", env::var_os("PATH").unwrap_or_default());
        command
    }

    /// What the agent heard and said, one message a line.
    pub(crate) fn heard(&self) -> String {
        fs::read_to_string(self.path(AGENT).join(agent::WIRE)).unwrap_or_default()
    }

    /// Waits until the agent has heard or said something with these words.
    pub(crate) fn hears(&self, words: &str) {
        self.has(&format!("{AGENT}/{}", agent::WIRE), words);
    }

    /// Waits until a file in the home directory has these words.
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

    /// Waits until neither proxy nor agent of this bench runs: they have the agent's directory among their arguments, as the
    /// bridge has not.
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
        // Whoever still ends may write while it goes; the next test removes what is left.
        drop(fs::remove_dir_all(HOME));
    }
}

/// Compares what is shown with what was there when it was right, in the file `screens/NAME.txt`; `shown` is asked until it
/// is so, or for long enough.
pub(crate) fn compare(name: &str, mut shown: impl FnMut() -> String) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/editors/screens");
    let file = dir.join(name).with_extension("txt");
    let known = fs::read_to_string(&file).unwrap_or_default();
    let updates = env::var_os("UPDATE_EXPECT").is_some();
    let (end, mut last) = (Instant::now() + SETTLED, String::new());
    loop {
        let screen = plain(&shown());
        if screen == known && !updates {
            return;
        }
        // What is written anew has to be what stays.
        if Instant::now() > end {
            assert!(!updates || screen == last, "the screen does not come to rest:\n{screen}");
            expect_test::expect_file![file].assert_eq(&screen);
            return;
        }
        last = screen;
        thread::sleep(GLANCE);
    }
}

/// `text` without the space at the ends of lines, and without the place of the tab that Toad's line shows: it does not always
/// follow the tab.
fn plain(text: &str) -> String {
    let text = text.replace(['╸', '╺'], "━");
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

fn text_of(path: PathBuf) -> String {
    path.into_os_string().into_string().expect("text")
}
