//! The client's end of one run.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::{Plan, peers::Peer};

/// What is measured of one peer in one round.
#[derive(Default)]
pub(crate) struct Sample {
    /// To the answer to `initialize`.
    pub(crate) start: Duration,
    /// Resident memory after the first turn, in KiB, and what of it is the process's own; 0 where the system does not tell.
    pub(crate) memory_kib: u64,
    pub(crate) own_kib: u64,
    /// Updates a second, for each of the sizes.
    pub(crate) rates: Vec<f64>,
    pub(crate) round_trips: Vec<Duration>,
}

/// Everything that is measured of a peer, once.
pub(crate) fn measure(peer: &Peer, plan: &Plan) -> anyhow::Result<Sample> {
    let started = Instant::now();
    let mut line = Line::start(peer, &[])?;
    let mut sample = Sample { start: started.elapsed(), ..Sample::default() };
    line.session()?;
    line.prompt("s", "echo")?;
    let memory = fs::read_to_string(format!("/proc/{}/smaps_rollup", line.child.id())).unwrap_or_default();
    (sample.memory_kib, sample.own_kib) = (kib(&memory, "Rss:"), kib(&memory, "Private_Dirty:"));
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

/// A client, and what it is connected to.
pub(crate) struct Line {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: usize,
    /// The answer to the last request.
    answer: Vec<u8>,
}

impl Line {
    /// Starts a peer below `wrapper`; returns when `initialize` is answered.
    pub(crate) fn start(peer: &Peer, wrapper: &[&str]) -> anyhow::Result<Self> {
        let mut child = peer.start(wrapper)?;
        let stdin = child.stdin.take().context("stdin")?;
        let stdout = BufReader::with_capacity(256 * 1024, child.stdout.take().context("stdout")?);
        let mut line = Self { child, stdin, stdout, next: 0, answer: Vec::new() };
        line.ask("initialize", r#"{"protocolVersion":1,"clientCapabilities":{}}"#)?;
        Ok(line)
    }

    /// Opens a session. Returns the answer's result.
    pub(crate) fn session(&mut self) -> anyhow::Result<Value> {
        self.ask("session/new", r#"{"cwd":"/","mcpServers":[]}"#)?;
        let mut answer: Value = serde_json::from_slice(&self.answer)?;
        Ok(answer["result"].take())
    }

    /// Sends a prompt; returns how many lines came before its answer.
    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> anyhow::Result<usize> {
        let params = format!(r#"{{"sessionId":"{session}","prompt":[{{"type":"text","text":"{text}"}}]}}"#);
        self.ask("session/prompt", &params)
    }

    /// Has the agent send `count` updates of `size` bytes; returns how many came in a second.
    pub(crate) fn flood(&mut self, session: &str, count: usize, size: usize) -> anyhow::Result<f64> {
        let started = Instant::now();
        let seen = self.prompt(session, &format!("flood {count} {size}"))?;
        // What the proxy itself says of commands may come in between.
        ensure!(seen >= count, "{seen} of {count} updates came through");
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let rate = count as f64 / started.elapsed().as_secs_f64();
        Ok(rate)
    }

    /// Leaves.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        drop(self.stdin);
        self.child.wait()?;
        Ok(())
    }

    /// Sends a request; returns how many other lines came before its answer.
    fn ask(&mut self, method: &str, params: &str) -> anyhow::Result<usize> {
        self.next += 1;
        let id = self.next;
        writeln!(self.stdin, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)?;
        let mut others = 0;
        // The last line is the answer: the agent sends everything else before. So line breaks are counted, and only the
        // last lines of what was read are looked at.
        let answers = [format!(r#""id":{id},"#), format!(r#""id":{id}}}"#)];
        loop {
            let buffer = self.stdout.fill_buf()?;
            ensure!(!buffer.is_empty(), "the other side is gone");
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

/// The lines of `lines` from the last one back to the first that is no list of commands: the proxy says those when it
/// likes to.
fn last_lines(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut end = lines.len();
    std::iter::from_fn(move || {
        let rest = lines.get(..end.checked_sub(1)?)?;
        let start = memchr::memrchr(b'\n', rest).map_or(0, |at| at + 1);
        let line = &lines[start..end];
        let goes_on = memchr::memmem::find(line, b"available_commands_update").is_some();
        end = if goes_on { start } else { 0 };
        Some(line)
    })
}

fn is_answer(line: &[u8], answers: &[String; 2]) -> bool {
    line.len() < 2_000 && answers.iter().any(|answer| memchr::memmem::find(line, answer.as_bytes()).is_some())
}

/// The number of KiB in the line of `/proc/…/smaps_rollup` that begins with `name`.
fn kib(memory: &str, name: &str) -> u64 {
    let line = memory.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
