//! The client's end of a conversation with a real agent. It sends requests, answers the agent's requests, and records all
//! messages.

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

use serde_json::{Value, json};

/// The maximum time to wait for an event. Some agents need many seconds to start.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// The environment variable that marks the processes of a run, even if they change their process groups.
const RUN: &str = "AGENTS_RUN";

/// A connection to an agent, or to a proxy in front of one.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    run: String,
    next: u64,
    /// All lines with their sender, in order.
    pub(crate) said: Vec<(Side, String)>,
    /// The number of times that the agent asked for permission.
    pub(crate) asked: u32,
    answers: HashMap<String, Value>,
}

/// The sender of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Agent,
}

/// The result of a conversation.
pub(crate) struct End {
    pub(crate) status: ExitStatus,
    /// The processes that are still running.
    pub(crate) left: Vec<String>,
    /// Lines on stdout that are not JSON-RPC.
    pub(crate) stray: Vec<String>,
}

impl Client {
    /// Starts a command with this environment and none of ours.
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
        let said = Vec::new();
        let answers = HashMap::new();
        Self { child, stdin, lines, run, next: 0, said, asked: 0, answers }
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let line = message.to_string();
        self.said.push((Side::Client, line.clone()));
        if let Some(stdin) = &mut self.stdin {
            // If the agent has exited, its missing answer shows that.
            let _ = stdin.write_all(format!("{line}\n").as_bytes()).and_then(|()| stdin.flush());
        }
    }

    /// Sends a request. Returns its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        self.next
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Waits for the answer to a request and returns the whole message, or an error if there is none in time.
    pub(crate) fn answer(&mut self, id: u64, within: Duration) -> Result<Value, String> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(answer) = self.answers.remove(&id.to_string()) {
                return Ok(answer);
            }
            self.hear(deadline).map_err(|why| format!("no answer to request {id}: {why}"))?;
        }
    }

    /// Sends a request and returns its result.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let id = self.request(method, params);
        let mut answer = self.answer(id, DEADLINE)?;
        match answer.get("error") {
            Some(error) => Err(format!("{method}: {error}")),
            None => Ok(answer["result"].take()),
        }
    }

    /// Reads messages for this time, or until `enough` returns true.
    pub(crate) fn listen(&mut self, time: Duration, enough: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + time;
        while !enough(self) {
            let pause = Instant::now() + Duration::from_millis(50);
            if self.hear(pause.min(deadline)).is_err() && Instant::now() >= deadline {
                return;
            }
        }
    }

    /// Reads a line.
    fn hear(&mut self, deadline: Instant) -> Result<(), String> {
        let line =
            self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())).map_err(|error| {
                match error {
                    RecvTimeoutError::Timeout => "too late",
                    RecvTimeoutError::Disconnected => "it has ended",
                }
            })?;
        self.said.push((Side::Agent, line.clone()));
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

    /// Returns the answers of a user and an editor.
    fn reply(&mut self, method: &str, params: &Value) -> Option<Value> {
        match method {
            "session/request_permission" => {
                self.asked += 1;
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

    /// Returns the agent's messages from line `since` on.
    pub(crate) fn heard(&self, since: usize) -> Vec<Value> {
        let agents = self.said[since..].iter().filter(|(side, _)| *side == Side::Agent);
        agents.filter_map(|(_, line)| serde_json::from_str(line).ok()).collect()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Closes stdin, and waits until the other side has exited.
    pub(crate) fn end(mut self) -> End {
        drop(self.stdin.take());
        let deadline = Instant::now() + DEADLINE;
        let status = loop {
            // Reads its last lines.
            while self.hear(Instant::now()).is_ok() {}
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
        let stray = self.said.iter().filter(is_stray).map(|(_, line)| line.clone()).collect();
        End { status, left: left(&self.run), stray }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for id in marked(&self.run) {
            if let Some(id) = rustix::process::Pid::from_raw(id) {
                // The process may have exited meanwhile.
                let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Returns a number that is different in each run.
fn id() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(())
}

/// Returns the processes of a run.
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

/// Returns the processes that are still running after a short wait.
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
