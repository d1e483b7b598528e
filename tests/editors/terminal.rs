//! A terminal that tests control with keys and read as a screen. It is tmux with its own server.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::fixture::{DEADLINE, Fixture, POLL_INTERVAL, compare, on_path};

/// Columns and rows.
pub(crate) const SIZE: (usize, usize) = (100, 34);

/// The environment variable with a directory for screens with their colours, from which `.ci/recording` draws pictures.
const SCREENS: &str = "EDITORS_SCREENS";

/// The time after which a key without effect is pressed again.
const KEY_TIMEOUT: Duration = Duration::from_secs(2);

/// A program in a terminal. Dropping the value ends it.
pub(crate) struct Terminal<'b> {
    tmux: PathBuf,
    socket: PathBuf,
    fixture: &'b Fixture,
}

impl<'b> Terminal<'b> {
    /// Starts `command` in a new terminal.
    pub(crate) fn start(fixture: &'b Fixture, command: &Command) -> Self {
        let socket = fixture.path(".tmux");
        let terminal = Self { tmux: on_path("tmux").expect("tmux is installed"), socket, fixture };
        let mut tmux = terminal.tmux();
        let columns = SIZE.0.to_string();
        let rows = SIZE.1.to_string();
        tmux.args(["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows]);
        tmux.arg("-c").arg(fixture.project()).args([
            "env",
            "-i",
            "TERM=xterm-256color",
            "COLORTERM=truecolor",
        ]);
        for (name, value) in command.get_envs() {
            if let (Some(name), Some(value)) = (name.to_str(), value.and_then(|value| value.to_str())) {
                tmux.arg(format!("{name}={value}"));
            }
        }
        tmux.arg(command.get_program()).args(command.get_args());
        assert!(tmux.status().expect("tmux starts").success(), "{tmux:?}");
        terminal
    }

    fn tmux(&self) -> Command {
        let mut tmux = self.fixture.command(&self.tmux);
        tmux.arg("-S").arg(&self.socket).stdin(Stdio::null());
        tmux
    }

    /// Types a text.
    pub(crate) fn types(&self, text: &str) {
        let status = self.tmux().args(["send-keys", "-l", "--", text]).status();
        assert!(status.expect("tmux runs").success(), "{text}");
    }

    /// Presses keys. Their names are those of tmux.
    pub(crate) fn presses(&self, keys: &[&str]) {
        let status = self.tmux().arg("send-keys").args(keys).status();
        assert!(status.expect("tmux runs").success(), "{keys:?}");
    }

    /// Kills the program with SIGKILL.
    pub(crate) fn kill(&self) {
        let pid = self.pid();
        let status = Command::new("kill").args(["-9", &pid]).status();
        assert!(status.expect("kill runs").success(), "{pid}");
    }

    /// Returns the process id of the program. It is empty if the terminal is closed.
    fn pid(&self) -> String {
        let pid = self.tmux().args(["display-message", "-p", "#{pane_pid}"]).output().expect("tmux runs");
        String::from_utf8_lossy(&pid.stdout).trim().to_owned()
    }

    /// Compares the screen with the recorded screen `name`.
    pub(crate) fn compare(&self, name: &str) {
        compare(name, || self.screen());
        if let Some(dir) = env::var_os(SCREENS) {
            let output = self.tmux().args(["capture-pane", "-e", "-p"]).output().expect("tmux runs");
            fs::write(Path::new(&dir).join(name).with_extension("ansi"), output.stdout).expect("a file");
        }
    }

    /// Returns the text on the screen.
    pub(crate) fn screen(&self) -> String {
        let output = self.tmux().args(["capture-pane", "-p"]).output().expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until the screen contains these words on one line.
    pub(crate) fn shows(&self, words: &str) {
        assert!(self.shows_within(words, DEADLINE), "{words:?} is not on the screen:\n{}", self.screen());
    }

    /// Waits until the screen no longer contains these words.
    pub(crate) fn shows_no_longer(&self, words: &str) {
        self.wait_until(&format!("{words:?} is still on the screen"), |screen| !screen.contains(words));
    }

    /// Waits until `matches` returns true for the screen. Panics with the message `wrong` after [`DEADLINE`].
    pub(crate) fn wait_until(&self, wrong: &str, matches: impl Fn(&str) -> bool) {
        let end = Instant::now() + DEADLINE;
        while !matches(&self.screen()) {
            assert!(Instant::now() < end, "{wrong}:\n{}", self.screen());
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Types a text until the screen contains these words. Deletes it before it is typed again.
    pub(crate) fn types_until(&self, text: &str, words: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            self.types(text);
            if self.shows_within(words, KEY_TIMEOUT) {
                return;
            }
            assert!(Instant::now() < end, "{words:?} is not on the screen:\n{}", self.screen());
            self.presses(&vec!["BSpace"; text.len()]);
        }
    }

    /// Presses keys repeatedly until the screen contains these words.
    pub(crate) fn presses_until(&self, keys: &[&str], words: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            self.presses(keys);
            if self.shows_within(words, KEY_TIMEOUT) {
                return;
            }
            assert!(Instant::now() < end, "{words:?} is not on the screen:\n{}", self.screen());
        }
    }

    /// Turns the mouse wheel in the middle of the screen until these words are visible. The program must read the mouse.
    pub(crate) fn scrolls_up_to(&self, words: &str) {
        let end = Instant::now() + DEADLINE;
        let turn = format!("\x1b[<64;{};{}M", SIZE.0 / 2, SIZE.1 / 2);
        while !self.screen().contains(words) {
            assert!(Instant::now() < end, "{words:?} is not above the screen:\n{}", self.screen());
            self.types(&turn);
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Presses keys repeatedly until the screen no longer contains these words.
    pub(crate) fn presses_while(&self, keys: &[&str], words: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            self.presses(keys);
            if self.within(KEY_TIMEOUT, |screen| !screen.contains(words)) {
                return;
            }
            assert!(Instant::now() < end, "{words:?} is still on the screen:\n{}", self.screen());
        }
    }

    fn shows_within(&self, words: &str, time: Duration) -> bool {
        self.within(time, |screen| screen.contains(words))
    }

    fn within(&self, time: Duration, matches: impl Fn(&str) -> bool) -> bool {
        let end = Instant::now() + time;
        loop {
            if matches(&self.screen()) {
                return true;
            }
            if Instant::now() > end {
                return false;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let pid = self.pid();
        let process = Path::new("/proc").join(&pid);
        let _ = self.tmux().arg("kill-server").stderr(Stdio::null()).status();
        // Wait for the program to exit. Otherwise, Emacs might still be writing to the directory when we remove it.
        let end = Instant::now() + DEADLINE;
        while !pid.is_empty() && process.exists() && Instant::now() < end {
            thread::sleep(POLL_INTERVAL);
        }
    }
}
