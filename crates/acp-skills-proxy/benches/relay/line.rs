//! The client that measures a peer in one run.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::{Plan, peers::Peer};

/// The measurements of a peer in one round.
#[derive(Default)]
pub(crate) struct Sample {
    /// The time from the start to the answer to `initialize`.
    pub(crate) start: Duration,
    /// The resident memory after the first turn, in KiB. 0 if the system does not report it.
    pub(crate) memory_kib: u64,
    /// The part of the resident memory that no other process shares, in KiB.
    pub(crate) own_kib: u64,
    /// The number of updates per second, for each size in the plan.
    pub(crate) rates: Vec<f64>,
    pub(crate) round_trips: Vec<Duration>,
}

/// Measures a peer once.
pub(crate) fn measure(peer: &Peer, plan: &Plan) -> anyhow::Result<Sample> {
    let started = Instant::now();
    let mut line = Line::start(peer, &[])?;
    let mut sample = Sample { start: started.elapsed(), ..Sample::default() };
    line.session()?;
    line.prompt("s", "echo")?;
    let memory = fs::read_to_string(format!("/proc/{}/smaps_rollup", line.child.id())).unwrap_or_default();
    sample.memory_kib = kib(&memory, "Rss:");
    sample.own_kib = kib(&memory, "Private_Dirty:");
    for _ in 0..plan.round_trips {
        let started = Instant::now();
        line.prompt("s", "echo")?;
        sample.round_trips.push(started.elapsed());
    }
    for &(count, size) in plan.floods {
        sample.rates.push(line.flood("s", count, size)?);
    }
    line.end()?;
    Ok(sample)
}

/// A client with its connection to a peer.
pub(crate) struct Line {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: usize,
    /// The answer to the last request.
    answer: Vec<u8>,
}

impl Line {
    /// Starts a peer under the command `wrapper`. Returns after the answer to `initialize`.
    pub(crate) fn start(peer: &Peer, wrapper: &[&str]) -> anyhow::Result<Self> {
        let mut child = peer.start(wrapper)?;
        let stdin = child.stdin.take().context("stdin")?;
        let stdout = BufReader::with_capacity(256 * 1024, child.stdout.take().context("stdout")?);
        let mut line = Self { child, stdin, stdout, next: 0, answer: Vec::new() };
        line.ask("initialize", r#"{"protocolVersion":1,"clientCapabilities":{}}"#)?;
        Ok(line)
    }

    /// Opens a session. Returns the result of `session/new`.
    pub(crate) fn session(&mut self) -> anyhow::Result<Value> {
        self.ask("session/new", r#"{"cwd":"/","mcpServers":[]}"#)?;
        let mut answer: Value = serde_json::from_slice(&self.answer)?;
        Ok(answer["result"].take())
    }

    /// Sends a prompt. Returns the number of lines that arrived before its answer.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> anyhow::Result<usize> {
        let params = format!(r#"{{"sessionId":"{session}","prompt":[{{"type":"text","text":"{text}"}}]}}"#);
        self.ask("session/prompt", &params)
    }

    /// Makes the agent send `count` updates of `size` bytes. Returns the number of updates per second.
    pub(crate) fn flood(&mut self, session: &str, count: usize, size: usize) -> anyhow::Result<f64> {
        let started = Instant::now();
        let seen = self.prompt(session, &format!("flood {count} {size}"))?;
        // The count can be higher, because the proxy also sends updates for slash commands.
        ensure!(seen >= count, "received {seen} of {count} updates");
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let rate = count as f64 / started.elapsed().as_secs_f64();
        Ok(rate)
    }

    /// Closes the connection and waits for the peer to exit.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        drop(self.stdin);
        self.child.wait()?;
        Ok(())
    }

    /// Sends a request. Returns the number of other lines that arrived before its answer.
    fn ask(&mut self, method: &str, params: &str) -> anyhow::Result<usize> {
        self.next += 1;
        let id = self.next;
        writeln!(self.stdin, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)?;
        let mut others = 0;
        // The agent sends the answer last, so we just need to count line ends and search the last lines of each buffer.
        let answers = [format!(r#""id":{id},"#), format!(r#""id":{id}}}"#)];
        loop {
            let buffer = self.stdout.fill_buf()?;
            ensure!(!buffer.is_empty(), "the peer has closed the connection");
            let Some(end) = memchr::memrchr(b'\n', buffer) else {
                let mut line = Vec::new();
                self.stdout.read_until(b'\n', &mut line)?;
                if is_answer(&line, &answers) {
                    self.answer = line;
                    return Ok(others);
                }
                others += 1;
                continue;
            };
            let lines = memchr::memchr_iter(b'\n', &buffer[..=end]).count();
            let answer =
                last_lines(&buffer[..=end]).find(|line| is_answer(line, &answers)).map(<[u8]>::to_vec);
            self.stdout.consume(end + 1);
            others += lines;
            if let Some(answer) = answer {
                self.answer = answer;
                return Ok(others - 1);
            }
        }
    }
}

/// Returns the lines from the last one backwards, and stops after the first line that is not an update of slash
/// commands. The proxy may send these updates at any time.
fn last_lines(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut end = lines.len();
    std::iter::from_fn(move || {
        let rest = lines.get(..end.checked_sub(1)?)?;
        let start = memchr::memrchr(b'\n', rest).map_or(0, |at| at + 1);
        let line = &lines[start..end];
        let is_of_commands = memchr::memmem::find(line, b"available_commands_update").is_some();
        end = if is_of_commands { start } else { 0 };
        Some(line)
    })
}

fn is_answer(line: &[u8], answers: &[String; 2]) -> bool {
    line.len() < 2_000 && answers.iter().any(|answer| memchr::memmem::find(line, answer.as_bytes()).is_some())
}

/// Returns the number of KiB in the line of `/proc/…/smaps_rollup` that begins with `name`, or 0.
fn kib(memory: &str, name: &str) -> u64 {
    let line = memory.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
