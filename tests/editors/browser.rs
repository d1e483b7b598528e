//! A web application, and a page in a headless browser that tests control and read.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::fixture::{DEADLINE, Fixture, POLL_INTERVAL, compare, installed, on_path};

/// The environment variable with a directory for pictures of the compared screens.
const PICTURES: &str = "EDITORS_PICTURES";

/// The time after which a click without effect is repeated.
const CLICK_TIMEOUT: Duration = Duration::from_secs(5);

/// The programs that show a page.
#[derive(Clone)]
pub(crate) struct Browser {
    node: PathBuf,
    playwright: PathBuf,
    chromium: PathBuf,
}

impl Browser {
    /// Finds the programs.
    ///
    /// # Errors
    /// Returns an error if one of them is not installed.
    pub(crate) fn find() -> Result<Self> {
        Ok(Self {
            chromium: on_path("chromium")?,
            playwright: installed("browser/node_modules/playwright-core")?,
            node: installed("node/node_modules/node/bin/node")?,
        })
    }

    pub(crate) fn node(&self) -> &Path {
        &self.node
    }
}

/// A program that serves a web application. Dropping the value ends the program and its children.
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts the program that `command` returns for a port, and waits until it listens on that port.
    pub(crate) fn start(command: impl FnOnce(u16) -> Command) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let port = free.expect("a port").port();
        let mut command = command(port);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut server = Self { child: command.spawn().expect("the server starts"), port };
        let end = Instant::now() + DEADLINE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            let ended = server.child.try_wait().expect("a process");
            assert!(ended.is_none(), "{command:?} ended: {ended:?}");
            assert!(Instant::now() < end, "{command:?} does not listen");
            thread::sleep(POLL_INTERVAL);
        }
        server
    }

    /// Returns the URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = kill_process_group(group.expect("an id"), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A page in a headless browser. Dropping the value closes the browser.
pub(crate) struct Page {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Page {
    pub(crate) fn open(browser: &Browser, fixture: &Fixture, url: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/editors/browser.mjs");
        let mut command = fixture.command(&browser.node);
        command.arg(script).arg(&browser.playwright).arg(&browser.chromium);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the browser starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut page = Self { input: child.stdin.take(), child, output };
        page.act("open", url);
        page
    }

    fn act(&mut self, action: &str, argument: &str) -> Value {
        self.try_to(action, argument).unwrap_or_else(|error| panic!("{action} {argument:?}: {error}"))
    }

    fn try_to(&mut self, action: &str, argument: &str) -> Result<Value, String> {
        let mut line = format!("{}\n", json!([action, argument]));
        self.input.as_mut().expect("a pipe").write_all(line.as_bytes()).expect("the browser runs");
        line.clear();
        self.output.read_line(&mut line).expect("the browser runs");
        let mut answer: Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("no answer to {action}"));
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer["value"].take()),
        }
    }

    /// Types a text.
    pub(crate) fn types(&mut self, text: &str) {
        self.act("type", text);
    }

    /// Presses a key. Its name is that of playwright.
    pub(crate) fn presses(&mut self, key: &str) {
        self.act("press", key);
    }

    /// Clicks on the first element with this selector, as soon as there is one.
    pub(crate) fn clicks(&mut self, selector: &str) {
        let end = Instant::now() + DEADLINE;
        // An element can be moved or covered while the page is still being drawn.
        while self.try_to("click", selector) != Ok(json!(true)) {
            assert!(Instant::now() < end, "no {selector} in:\n{}", self.text("body > *"));
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Clicks on an element until another one is visible. An icon that shows and hides a view may need one more click, because on a
    /// busy machine, a click that took too long is repeated although it had an effect.
    pub(crate) fn clicks_until(&mut self, selector: &str, visible: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            self.clicks(selector);
            let clicked = Instant::now();
            while clicked.elapsed() < CLICK_TIMEOUT {
                if !self.text(visible).is_empty() {
                    return;
                }
                thread::sleep(POLL_INTERVAL);
            }
            assert!(Instant::now() < end, "no {visible} in:\n{}", self.text("body > *"));
        }
    }

    /// Returns the visible text of the first element with this selector. It is empty if there is none.
    pub(crate) fn text(&mut self, selector: &str) -> String {
        // This fails if the element was replaced meanwhile.
        let text = self.try_to("text", selector).unwrap_or_default();
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until an element contains these words.
    pub(crate) fn shows(&mut self, selector: &str, words: &str) {
        let end = Instant::now() + DEADLINE;
        loop {
            let text = self.text(selector);
            if text.contains(words) {
                return;
            }
            assert!(
                Instant::now() < end,
                "{words:?} is not in {selector}:\n{text}\n{}",
                self.text("body > *")
            );
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Compares the text of an element with the recorded screen `name`.
    pub(crate) fn compare(&mut self, selector: &str, name: &str) {
        compare(name, || self.text(selector));
        if let Some(dir) = env::var_os(PICTURES) {
            let file = Path::new(&dir).join(name).with_extension("png");
            self.act("picture", file.to_str().expect("text"));
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // The browser closes when its input ends.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
