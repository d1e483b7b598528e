//! An ACP client for real agents. It sends requests, answers the agent's requests, and keeps a transcript of all lines.

use std::{
    collections::HashMap,
    ffi::OsString,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

/// The timeout for anything that must happen. Some agents need many seconds to start.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// The environment variable that marks the processes of one run. Process groups don't serve, because agents change them.
const RUN: &str = "AGENTS_RUN";

/// A connection to an agent, or to a proxy in front of one.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    run: String,
    next: u64,
    /// All lines in order, each with its author.
    pub(crate) transcript: Vec<(Side, String)>,
    /// The number of permission requests from the agent.
    pub(crate) permission_requests: u32,
    answers: HashMap<String, Value>,
}

/// The author of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Agent,
}

/// The outcome of a conversation.
pub(crate) struct End {
    pub(crate) status: ExitStatus,
    /// The command lines of processes that still run.
    pub(crate) left: Vec<String>,
    /// Lines on stdout that aren't JSON-RPC messages.
    pub(crate) stray: Vec<String>,
}

impl Client {
    /// Starts a command with exactly this environment. Its stderr is appended to the file `log`.
    pub(crate) fn start(
        command: &[OsString],
        environment: &[(String, OsString)],
        cwd: &Path,
        log: &Path,
    ) -> Self {
        let run = format!("{}-{}", std::process::id(), id());
        let log = std::fs::File::options().create(true).append(true).open(log).expect("a log");
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .env(RUN, &run)
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdout = child.stdout.take().expect("a pipe");
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        Self {
            child,
            stdin,
            lines,
            run,
            next: 0,
            transcript: Vec::new(),
            permission_requests: 0,
            answers: HashMap::new(),
        }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let line = message.to_string();
        self.transcript.push((Side::Client, line.clone()));
        if let Some(stdin) = &mut self.stdin {
            // If the agent has already exited, this will fail, but then we'll see an error when we wait for the answer.
            let _ = stdin.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdin.flush());
        }
    }

    /// Sends a request and returns the id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        self.next
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Waits for the answer to a request and returns the whole message.
    ///
    /// # Errors
    /// Returns an error if the agent ends, or if there is no answer after the time `within`.
    pub(crate) fn answer(&mut self, id: u64, within: Duration) -> Result<Value> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(answer) = self.answers.remove(&id.to_string()) {
                return Ok(answer);
            }
            self.read_line(deadline).map_err(|why| anyhow!("no answer to request {id}: {why}"))?;
        }
    }

    /// Sends a request and returns its result.
    ///
    /// # Errors
    /// Returns an error if the answer is an error, or if there is no answer within [`DEADLINE`].
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.request(method, params);
        let mut answer = self.answer(id, DEADLINE)?;
        match answer.get("error") {
            Some(error) => Err(anyhow!("{method}: {error}")),
            None => Ok(answer["result"].take()),
        }
    }

    /// Reads lines for this time, or until `enough` returns true.
    pub(crate) fn listen(&mut self, time: Duration, enough: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + time;
        while !enough(self) {
            let pause = Instant::now() + Duration::from_millis(50);
            if self.read_line(pause.min(deadline)).is_err() && Instant::now() >= deadline {
                return;
            }
        }
    }

    /// Reads one line from the agent, and answers it if it is a request.
    fn read_line(&mut self, deadline: Instant) -> Result<()> {
        let line =
            self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).map_err(|error| {
                match error {
                    RecvTimeoutError::Timeout => anyhow!("timed out"),
                    RecvTimeoutError::Disconnected => anyhow!("the agent has exited"),
                }
            })?;
        self.transcript.push((Side::Agent, line.clone()));
        let Ok(message) = serde_json::from_str::<Value>(&line) else { return Ok(()) };
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => {
                let answer = self.reply(method, &message["params"]);
                let mut reply = json!({ "jsonrpc": "2.0", "id": id });
                match answer {
                    Some(result) => reply["result"] = result,
                    None => reply["error"] = json!({ "code": -32601, "message": "method not found" }),
                }
                self.send(&reply);
            }
            (None, Some(id)) => {
                self.answers.insert(id.to_string(), message);
            }
            _ => {}
        }
        Ok(())
    }

    /// Answers a request of the agent's as an editor does: allows each call once, and reads files from disk. Returns `None` for
    /// methods that this client doesn't support.
    fn reply(&mut self, method: &str, params: &Value) -> Option<Value> {
        match method {
            "session/request_permission" => {
                self.permission_requests += 1;
                let options = params["options"].as_array()?;
                let option = options.iter().find(|option| option["kind"] == "allow_once")?;
                Some(json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } }))
            }
            "fs/read_text_file" => {
                let text = std::fs::read_to_string(params["path"].as_str()?).ok()?;
                Some(json!({ "content": text }))
            }
            _ => None,
        }
    }

    /// Returns the agent's messages from this line of the transcript on.
    pub(crate) fn agent_messages(&self, since: usize) -> Vec<Value> {
        let agents = self.transcript[since..].iter().filter(|(side, _)| *side == Side::Agent);
        agents.filter_map(|(_, line)| serde_json::from_str(line).ok()).collect()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes the agent's stdin and waits until the agent exits. Kills it after [`DEADLINE`].
    pub(crate) fn end(mut self) -> End {
        drop(self.stdin.take());
        let deadline = Instant::now() + DEADLINE;
        let status = loop {
            // Make sure we've read all of the lines from the agent.
            while self.read_line(Instant::now()).is_ok() {}
            match self.child.try_wait().expect("a child") {
                Some(status) => break status,
                None if Instant::now() > deadline => {
                    let _ = self.child.kill();
                    break self.child.wait().expect("a child");
                }
                None => thread::sleep(Duration::from_millis(10)),
            }
        };
        let is_stray = |line: &&(Side, String)| {
            line.0 == Side::Agent
                && !line.1.trim().is_empty()
                && !serde_json::from_str::<Value>(&line.1).is_ok_and(|message| message.is_object())
        };
        let stray = self.transcript.iter().filter(is_stray).map(|(_, line)| line.clone()).collect();
        End { status, left: left(&self.run), stray }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for id in marked(&self.run) {
            if let Some(id) = rustix::process::Pid::from_raw(id) {
                // The process may have exited in the meantime, so ignore this error.
                let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Returns a random number that identifies a run.
fn id() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(())
}

/// Returns the ids of all processes of a run.
fn marked(run: &str) -> Vec<i32> {
    let mark = format!("{RUN}={run}");
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let is_ours = |dir: PathBuf| {
        let mut environment = Vec::new();
        let file = std::fs::File::open(dir.join("environ")).ok()?;
        file.take(1 << 20).read_to_end(&mut environment).ok()?;
        environment.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes()).then_some(())
    };
    let ids = processes.flatten().filter_map(|process| {
        let id = process.file_name().to_str()?.parse().ok()?;
        is_ours(process.path()).map(|()| id)
    });
    ids.collect()
}

/// Returns the command lines of processes of a run that still run after a grace period of 2 seconds.
fn left(run: &str) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(2);
    loop {
        let ids = marked(run);
        if ids.is_empty() || Instant::now() > deadline {
            let name = |id: i32| {
                let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned()
            };
            return ids.into_iter().map(name).filter(|name| !name.is_empty()).collect();
        }
        thread::sleep(Duration::from_millis(50));
    }
}
