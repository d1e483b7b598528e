//! The scripted editor: the other end of the proxy's stdin, stdout and stderr.
//!
//! Threads read the pipes, and a test waits with a deadline. A line on stdout that isn't JSON-RPC fails the test that
//! reads it. At the end, both pipes are read to their end, so a process that still holds one, such as an orphan, fails
//! the test.

use std::{
    collections::VecDeque,
    ffi::OsStr,
    io::{BufRead, BufReader, PipeWriter, Read, Write},
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::agent;

/// The maximum time to wait for an event. It is generous because the machine may be busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(50);

/// The exit code of a proxy that was killed.
pub(crate) const KILLED: Option<i32> = if cfg!(unix) { None } else { Some(1) };

/// The command line of a proxy.
pub(crate) struct Proxy {
    command: Command,
    /// A pipe to use for stderr. By default, the editor reads stderr.
    stderr: Option<PipeWriter>,
}

impl Proxy {
    pub(crate) fn new() -> Self {
        Self::of(env!("CARGO_BIN_EXE_acp-skills-proxy"))
    }

    /// Runs another program instead of the proxy.
    pub(crate) fn of(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        // Make sure the test doesn't depend on the environment of the user who runs it.
        for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "ACP_SKILLS_LOG"] {
            command.env_remove(variable);
        }
        // Use directories that don't exist and can't be created, to avoid reading or writing the configuration of the user.
        for variable in ["XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"] {
            command.env(variable, Path::new(env!("CARGO_BIN_EXE_acp-skills-proxy")).join("is-no-directory"));
        }
        Self { command, stderr: None }
    }

    /// Uses this pipe for stderr of the proxy and of its agent. [`Editor::wait_for_log`] can't be used then.
    #[cfg(target_os = "linux")]
    pub(crate) fn with_stderr(mut self, pipe: PipeWriter) -> Self {
        self.stderr = Some(pipe);
        self
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn flag(self, flag: &str, value: impl AsRef<OsStr>) -> Self {
        self.arg(flag).arg(value)
    }

    pub(crate) fn skill(self, dir: &Path) -> Self {
        self.flag("--skill", dir)
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Passes a descriptor to the proxy that all its child processes inherit. Reading the other end of the pipe returns
    /// end of file once all of them have exited.
    #[cfg(unix)]
    pub(crate) fn with_inherited_pipe(mut self) -> (Self, impl Read + Send + 'static) {
        use command_fds::CommandFdExt;
        let (reader, writer) = std::io::pipe().expect("a pipe");
        self.command.preserved_fds(vec![writer.into()]);
        (self, reader)
    }

    /// On Windows all processes inherit stderr, including those that have another stderr of their own. [`Editor::ended`]
    /// waits for its end, so no other pipe is needed.
    #[cfg(windows)]
    pub(crate) fn with_inherited_pipe(self) -> (Self, impl Read + Send + 'static) {
        (self, std::io::empty())
    }

    /// Starts the proxy with this binary as its agent.
    pub(crate) fn agent(self, script: &str) -> Editor {
        let this = std::env::current_exe().expect("this program has a path");
        self.env(agent::SCRIPT, script).arg("--").arg(this).start()
    }

    /// Starts the proxy with this command line.
    pub(crate) fn start(mut self) -> Editor {
        let stderr = self.stderr.take().map_or_else(Stdio::piped, Stdio::from);
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .expect("the proxy starts");
        // We don't want to read stdout before the test does, but we do have to read stderr, since otherwise the agent would
        // block on it.
        let stdout = lines(child.stdout.take().expect("stdout is a pipe"), 0);
        let stderr = match child.stderr.take() {
            Some(stderr) => lines(stderr, 10_000),
            None => lines(std::io::empty(), 0),
        };
        Editor {
            stdin: child.stdin.take(),
            child,
            stdout,
            stderr,
            inbox: VecDeque::new(),
            menus: VecDeque::new(),
            log: Vec::new(),
            next: 0,
        }
    }
}

/// Reads the lines of `source` in a thread, at most `ahead` of them before they are taken.
fn lines(source: impl Read + Send + 'static, ahead: usize) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(ahead);
    thread::spawn(move || {
        let mut source = BufReader::with_capacity(64 * 1024, source);
        loop {
            let mut line = Vec::new();
            if source.read_until(b'\n', &mut line).unwrap_or(0) == 0 || sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// A running proxy, as its editor sees it.
pub(crate) struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Receiver<Vec<u8>>,
    stderr: Receiver<Vec<u8>>,
    /// Messages that have not been read by the test, in order.
    inbox: VecDeque<Value>,
    /// Command menus that have not been read by the test, in order.
    menus: VecDeque<Value>,
    /// Lines of stderr that were read.
    log: Vec<String>,
    next: u64,
}

/// The result of a proxy that has exited.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// The messages that the test had not asked for.
    pub(crate) messages: Vec<Value>,
    /// All lines of stderr.
    pub(crate) log: Vec<String>,
}

impl Ended {
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Returns the only answer to this request.
    pub(crate) fn answer(&self, id: &Value) -> &Value {
        let mut answers =
            self.messages.iter().filter(|message| message["id"] == *id && message.get("method").is_none());
        let answer = answers.next().unwrap_or_else(|| panic!("no answer to {id} in {:?}", self.messages));
        assert!(answers.next().is_none(), "two answers to {id} in {:?}", self.messages);
        answer
    }
}

impl Editor {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes bytes unchanged.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(bytes).and_then(|()| stdin.flush()).expect("the proxy reads");
    }

    /// Takes the proxy's stdin, so that a thread can write to it.
    pub(crate) fn take_stdin(&mut self) -> ChildStdin {
        self.stdin.take().expect("stdin is open")
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes());
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Sends a request and returns the id.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = Value::from(self.next);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        self.wait_for(&format!("an answer to {id}"), |message| {
            message["id"] == *id && message.get("method").is_none()
        })
    }

    /// Waits for the first message for which `fits` returns true.
    pub(crate) fn wait_for(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.inbox.iter().position(&fits) {
            return self.inbox.remove(at).expect("the entry exists");
        }
        loop {
            let Some(line) = self.line() else { self.fail(&format!("stdout ended before {what}")) };
            let message = message(&line);
            if fits(&message) {
                return message;
            }
            self.inbox.push_back(message);
        }
    }

    /// Waits for the next message.
    pub(crate) fn message(&mut self) -> Value {
        self.wait_for("a message", |_| true)
    }

    /// Takes the received messages that the test has not asked for.
    pub(crate) fn unread(&mut self) -> Vec<Value> {
        self.inbox.drain(..).collect()
    }

    /// Returns the next line as bytes, or `None` at the end. Menus are collected separately, because their timing varies.
    pub(crate) fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.stdout.recv_timeout(DEADLINE) {
                Ok(line) if is_menu(&line) => self.menus.push_back(message(&line)),
                Ok(line) => return Some(line),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => self.fail("nothing came on stdout"),
            }
        }
    }

    /// Waits for the next command menu.
    pub(crate) fn menu(&mut self) -> Value {
        while self.menus.is_empty() {
            let Ok(line) = self.stdout.recv_timeout(DEADLINE) else { self.fail("there is no menu") };
            if is_menu(&line) {
                self.menus.push_back(message(&line));
            } else {
                self.inbox.push_back(message(&line));
            }
        }
        self.menus.pop_front().expect("the entry exists")
    }

    /// Closes our end of stdout.
    pub(crate) fn stop_reading(&mut self) {
        // The thread that reads stdout will drop the pipe when it can't send a line to this channel.
        self.stdout = sync_channel(0).1;
    }

    /// Reads stdout to its end, and drops the messages.
    #[cfg(unix)]
    pub(crate) fn discard_stdout(&mut self) {
        while self.stdout.recv_timeout(DEADLINE).is_ok() {}
    }

    /// Reads stdout to its end. Returns false if it doesn't end within this time after the last line.
    pub(crate) fn closes_stdout(&mut self, time: Duration) -> bool {
        loop {
            match self.stdout.recv_timeout(time) {
                Ok(line) => self.inbox.push_back(message(&line)),
                Err(error) => return error == RecvTimeoutError::Disconnected,
            }
        }
    }

    /// Waits for a line on stderr that contains `words`, after the lines that earlier calls have read.
    pub(crate) fn wait_for_log(&mut self, words: &str) -> String {
        loop {
            match self.stderr.recv_timeout(DEADLINE) {
                Ok(line) => {
                    let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                    self.log.push(line.clone());
                    if line.contains(words) {
                        return line;
                    }
                }
                Err(error) => self.fail(&format!("stderr does not say {words:?}: {error}")),
            }
        }
    }

    /// Kills the proxy with SIGKILL or TerminateProcess.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("the proxy runs");
    }

    /// Closes the proxy's stdin, as an editor does when it is closed.
    pub(crate) fn close(&mut self) {
        self.stdin = None;
    }

    /// Closes the proxy's stdin and waits until it has exited.
    pub(crate) fn finish(mut self) -> Ended {
        self.close();
        self.ended()
    }

    /// Waits for the end of stdout, the end of stderr (no process holds it any more), and the exit of the proxy.
    pub(crate) fn ended(mut self) -> Ended {
        while let Some(line) = self.line() {
            let message = message(&line);
            self.inbox.push_back(message);
        }
        let end = Instant::now() + DEADLINE;
        loop {
            match self.stderr.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(line) => self.log.push(String::from_utf8_lossy(&line).trim_end().to_owned()),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => self.fail("a process still holds stderr"),
            }
        }
        let status = self.child.wait().expect("the proxy ends");
        Ended { status, messages: self.inbox.drain(..).collect(), log: std::mem::take(&mut self.log) }
    }

    fn fail(&mut self, what: &str) -> ! {
        let rest = self.stderr.try_iter().map(|line| String::from_utf8_lossy(&line).trim_end().to_owned());
        self.log.extend(rest);
        let state = match self.child.try_wait() {
            Ok(Some(status)) => format!("has exited: {status}"),
            _ => "is running".to_owned(),
        };
        panic!("{what}; the proxy {state}\nunread: {:?}\nstderr: {:#?}", self.inbox, self.log)
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // If the test has failed, the proxy will still be running, so kill it here. The agent will exit when stdin is closed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_menu(line: &[u8]) -> bool {
    memchr::memmem::find(line, br#""available_commands_update""#).is_some()
}

/// Parses the message, or the batch of messages, in a line.
fn message(line: &[u8]) -> Value {
    let text = String::from_utf8_lossy(&line[..line.len().min(500)]).into_owned();
    let value: Value = serde_json::from_slice(line).unwrap_or_else(|_| panic!("not JSON on stdout: {text}"));
    let all = value.as_array().map_or(std::slice::from_ref(&value), Vec::as_slice);
    for message in all {
        let is_json_rpc =
            message["jsonrpc"] == "2.0" && message.as_object().is_some_and(|members| members.len() > 1);
        assert!(is_json_rpc, "not JSON-RPC on stdout: {text}");
    }
    value
}
