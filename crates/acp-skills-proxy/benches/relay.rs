//! What the relay costs, beside its peers, in one run: `cargo bench -p acp-skills-proxy --bench relay`.
//!
//! Peers: a direct pipe; `socat`, which copies without looking (where it is installed); and the published
//! `agent-client-protocol-conductor` with one pass-through proxy (where it is installed; `CONDUCTOR` names the binary).
//! Rounds are interleaved and medians are shown, because machines are noisy. With `--smoke` everything runs once and
//! small, to see that it runs; nothing is ever asserted about time.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints")]

use std::{
    env, fs,
    io::{self, BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

const ROLE: &str = "ACP_BENCH_ROLE";
const PROXY: &str = env!("CARGO_BIN_EXE_acp-skills-proxy");

/// What is measured of one peer in one round.
#[derive(Default)]
struct Sample {
    start: Duration,
    memory_kib: u64,
    /// Updates a second, for each of the sizes.
    rates: Vec<f64>,
    round_trips: Vec<Duration>,
}

struct Plan {
    rounds: usize,
    /// Number and size in bytes of the updates.
    floods: &'static [(usize, usize)],
    round_trips: usize,
}

const FULL: Plan =
    Plan { rounds: 7, floods: &[(20_000, 120), (20_000, 4_096), (2_000, 65_536)], round_trips: 2_000 };
const SMOKE: Plan = Plan { rounds: 1, floods: &[(200, 120), (20, 4_096), (4, 65_536)], round_trips: 20 };

fn main() -> anyhow::Result<()> {
    match env::var(ROLE).as_deref() {
        Ok("agent") => return Ok(agent()?),
        Ok("pass-through") => return pass_through(),
        _ => {}
    }
    // `cargo test` runs benches too, without `--bench`.
    let smoke = env::args().any(|word| word == "--smoke") || !env::args().any(|word| word == "--bench");
    let plan = if smoke { SMOKE } else { FULL };
    let skills = tempfile::tempdir()?;
    let peers = peers(skills.path())?;
    let mut samples: Vec<Vec<Sample>> = peers.iter().map(|_| Vec::new()).collect();
    for _ in 0..plan.rounds {
        for (peer, samples) in peers.iter().zip(&mut samples) {
            samples.push(measure(peer, &plan).with_context(|| peer.name.clone())?);
        }
    }
    report(&peers, &samples, &plan);
    Ok(())
}

/// A way from the client to the agent.
struct Peer {
    name: String,
    command: Vec<String>,
}

fn peers(dir: &Path) -> anyhow::Result<Vec<Peer>> {
    let me = env::current_exe()?.to_str().context("a path")?.to_owned();
    let peer = |name: &str, command: Vec<String>| Peer { name: name.to_owned(), command };
    let mut peers = vec![peer("direct pipe", vec![me.clone()])];
    match find("socat") {
        Some(socat) => peers.push(peer("socat", vec![socat, "-".into(), format!("EXEC:{me},pipes")])),
        None => eprintln!("socat is not installed: left out"),
    }
    for count in [10, 10_000] {
        let root = dir.join(count.to_string());
        for number in 0..count {
            let skill = root.join(format!("skill-{number}"));
            fs::create_dir_all(&skill)?;
            let text = format!("---\nname: skill-{number}\ndescription: Does {number}.\n---\nDo it.\n");
            fs::write(skill.join("SKILL.md"), text)?;
        }
        let mut command: Vec<String> = [PROXY, "--skills"].map(Into::into).to_vec();
        command.extend([root.to_str().context("a path")?.to_owned()]);
        command.extend(["--mcp-wait", "0", "--", &me].map(Into::into));
        peers.push(peer(&format!("this, {count} skills"), command));
    }
    match env::var("CONDUCTOR").ok().or_else(|| find("agent-client-protocol-conductor")) {
        Some(conductor) => {
            let proxy = format!("env {ROLE}=pass-through {me}");
            peers.push(peer("conductor", vec![conductor, "agent".into(), proxy, me]));
        }
        None => eprintln!("agent-client-protocol-conductor is not installed: left out"),
    }
    Ok(peers)
}

fn find(program: &str) -> Option<String> {
    let found =
        env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| path.is_file());
    found.and_then(|path: PathBuf| path.to_str().map(str::to_owned))
}

/// The client's end of one run.
struct Line {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

fn measure(peer: &Peer, plan: &Plan) -> anyhow::Result<Sample> {
    let started = Instant::now();
    let mut child = Command::new(&peer.command[0])
        .args(&peer.command[1..])
        .env(ROLE, "agent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let stdin = child.stdin.take().context("stdin")?;
    let stdout = BufReader::with_capacity(256 * 1024, child.stdout.take().context("stdout")?);
    let mut line = Line { child, stdin, stdout };
    let mut sample = Sample::default();
    line.ask(1, "initialize", r#"{"protocolVersion":1,"clientCapabilities":{}}"#)?;
    sample.start = started.elapsed();
    line.ask(2, "session/new", r#"{"cwd":"/","mcpServers":[]}"#)?;
    line.prompt(3, "echo")?;
    sample.memory_kib = resident(line.child.id());
    for number in 0..plan.round_trips {
        let started = Instant::now();
        line.prompt(100 + number, "echo")?;
        sample.round_trips.push(started.elapsed());
    }
    for (index, &(count, size)) in plan.floods.iter().enumerate() {
        let started = Instant::now();
        let seen = line.prompt(10 + index, &format!("flood {count} {size}"))?;
        ensure!(seen == count, "{seen} of {count} updates came through");
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        sample.rates.push(count as f64 / started.elapsed().as_secs_f64());
    }
    drop(line.stdin);
    line.child.wait()?;
    Ok(sample)
}

impl Line {
    /// Sends a request; returns how many other lines came before its answer.
    fn ask(&mut self, id: usize, method: &str, params: &str) -> anyhow::Result<usize> {
        writeln!(self.stdin, r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)?;
        let mut others = 0;
        // The last line is the answer: the agent sends everything else before. So only line breaks are counted, and
        // the last line is looked at when there is nothing more to read.
        let answers = [format!(r#""id":{id},"#), format!(r#""id":{id}}}"#)];
        loop {
            let buffer = self.stdout.fill_buf()?;
            ensure!(!buffer.is_empty(), "the other side is gone");
            let Some(end) = memchr::memrchr(b'\n', buffer) else {
                let mut line = Vec::new();
                self.stdout.read_until(b'\n', &mut line)?;
                if is_answer(&line, &answers) {
                    return Ok(others);
                }
                others += 1;
                continue;
            };
            let lines = memchr::memchr_iter(b'\n', &buffer[..=end]).count();
            let last = memchr::memrchr(b'\n', &buffer[..end]).map_or(0, |at| at + 1);
            let done = is_answer(&buffer[last..=end], &answers);
            self.stdout.consume(end + 1);
            others += lines;
            if done {
                return Ok(others - 1);
            }
        }
    }

    fn prompt(&mut self, id: usize, text: &str) -> anyhow::Result<usize> {
        let params = format!(r#"{{"sessionId":"s","prompt":[{{"type":"text","text":"{text}"}}]}}"#);
        self.ask(id, "session/prompt", &params)
    }
}

fn is_answer(line: &[u8], answers: &[String; 2]) -> bool {
    line.len() < 1_000 && answers.iter().any(|answer| memchr::memmem::find(line, answer.as_bytes()).is_some())
}

/// The resident memory of a process in KiB; 0 where the system does not tell this way.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// An agent that floods or echoes.
fn agent() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let message: serde_json::Value = serde_json::from_str(&line)?;
        let Some(id) = message.get("id") else { continue };
        let result = match message["method"].as_str() {
            Some("initialize") => {
                r#"{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true}}}"#
            }
            Some("session/new") => r#"{"sessionId":"s"}"#,
            _ => {
                let blocks = message["params"]["prompt"].as_array().into_iter().flatten();
                let text = blocks.filter_map(|block| block["text"].as_str()).next_back().unwrap_or_default();
                let words: Vec<_> = text.split(' ').collect();
                if let ["flood", count, size] = words[..] {
                    flood(&mut stdout, count.parse().unwrap_or(0), size.parse().unwrap_or(0))?;
                }
                r#"{"stopReason":"end_turn"}"#
            }
        };
        writeln!(stdout, r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)?;
        stdout.flush()?;
    }
    Ok(())
}

fn flood(out: &mut impl Write, count: usize, size: usize) -> io::Result<()> {
    let frame = |text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        ) + "\n"
    };
    // The envelope alone is longer than the shortest size; then the text is what it can be.
    let line = frame(&"x".repeat(size.saturating_sub(frame("").len()).max(1)));
    let batch = line.repeat((256 * 1024 / line.len()).clamp(1, count));
    let per_batch = batch.len() / line.len();
    for _ in 0..count / per_batch {
        out.write_all(batch.as_bytes())?;
    }
    out.write_all(line.repeat(count % per_batch).as_bytes())
}

/// A proxy that changes nothing, on the SDK.
fn pass_through() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = agent_client_protocol::Proxy.v1().connect_to(agent_client_protocol::Stdio::new());
    runtime.block_on(served).map_err(|error| anyhow::anyhow!("{error}"))
}

fn report(peers: &[Peer], samples: &[Vec<Sample>], plan: &Plan) {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let percentile = |sample: &Sample, share: f64| {
        let mut times: Vec<_> = sample.round_trips.iter().map(|time| time.as_secs_f64() * 1e6).collect();
        times.sort_by(f64::total_cmp);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index"
        )]
        let index = ((times.len() - 1) as f64 * share) as usize;
        times[index]
    };
    print!("| |");
    plan.floods.iter().for_each(|(_, size)| print!(" updates/s, {size} bytes |"));
    println!(" round trip p50 | p99 | to the initialize answer | resident memory |");
    println!("|---|{}---|---|---|---|", "---|".repeat(plan.floods.len()));
    for (peer, samples) in peers.iter().zip(samples) {
        print!("| {} |", peer.name);
        for index in 0..plan.floods.len() {
            let rate = median(samples.iter().map(|sample| sample.rates[index]).collect());
            print!(" {rate:.0} |");
        }
        let p50 = median(samples.iter().map(|sample| percentile(sample, 0.5)).collect());
        let p99 = median(samples.iter().map(|sample| percentile(sample, 0.99)).collect());
        let start = median(samples.iter().map(|sample| sample.start.as_secs_f64() * 1e3).collect());
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let memory = median(samples.iter().map(|sample| sample.memory_kib as f64 / 1024.0).collect());
        println!(" {p50:.0} µs | {p99:.0} µs | {start:.1} ms | {memory:.1} MiB |");
    }
}
