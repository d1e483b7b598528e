//! Measures the proxy and its peers in one run: `cargo bench -p acp-skills-proxy --bench relay`.
//!
//! | file | owns |
//! |---|---|
//! | `peers` | the connections between client and agent that are compared |
//! | `line` | the client's end, which sends requests, counts and measures |
//! | `agent` | the agent's end; the pass-through proxy for the conductor |
//! | `tools` | calls of `activate_skill` over HTTP |
//! | `sessions` | one session compared to many |
//! | `instructions` | the number of instructions for a message, which does not depend on the load |
//! | `report` | the tables and the goals |
//!
//! Machines are noisy, so rounds are interleaved and medians are shown, and only the ratios within a run are meaningful. Without
//! `--bench`, as under `cargo test`, a single small round checks that everything runs. Times are never asserted.

#![expect(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods, reason = "a bench prints")]

mod agent;
mod instructions;
mod line;
mod peers;
mod report;
mod sessions;
mod tools;

use std::env;

use anyhow::Context;

use self::line::{Sample, measure};

/// The environment variable that selects the role of this program if a peer starts it.
const ROLE: &str = "ACP_BENCH_ROLE";

/// The amount of work.
struct Plan {
    rounds: usize,
    /// The number of updates of each size, and the size in bytes.
    floods: &'static [(usize, usize)],
    round_trips: usize,
    /// The number of tool calls in sequence, and the number on each of the concurrent connections.
    calls: (usize, usize),
    /// The number of sessions to compare with one.
    sessions: usize,
    /// The number of messages whose instructions are counted. If this is 0, nothing is counted.
    counted: usize,
}

const FULL: Plan = Plan {
    rounds: 7,
    floods: &[(20_000, 120), (20_000, 4_096), (2_000, 65_536)],
    round_trips: 2_000,
    calls: (2_000, 500),
    sessions: 500,
    counted: 20_000,
};
const SMOKE: Plan = Plan {
    rounds: 1,
    floods: &[(200, 120), (20, 4_096), (4, 65_536)],
    round_trips: 20,
    calls: (5, 2),
    sessions: 3,
    // Each run under callgrind takes seconds.
    counted: 0,
};

fn main() -> anyhow::Result<()> {
    match env::var(ROLE).as_deref() {
        Ok("agent") => return Ok(agent::run()?),
        Ok("pass-through") => return agent::pass_through(),
        _ => {}
    }
    let full = env::args().any(|word| word == "--bench");
    let plan = if full { FULL } else { SMOKE };
    let directory = tempfile::tempdir()?;
    let peers = peers::all(directory.path())?;
    let ours = peers.iter().find(|peer| peer.is_ours).context("the proxy is a peer")?;

    let mut samples: Vec<Vec<Sample>> = peers.iter().map(|_| Vec::new()).collect();
    let mut calls = Vec::new();
    let mut growth = Vec::new();
    for _ in 0..plan.rounds {
        for (peer, samples) in peers.iter().zip(&mut samples) {
            samples.push(measure(peer, &plan).with_context(|| peer.name.clone())?);
        }
        calls.push(tools::measure(ours, &plan)?);
        growth.push(sessions::measure(ours, &plan)?);
    }
    let counts = instructions::count(ours, &plan)?;
    if !full {
        println!("This is a smoke run, because `--bench` is missing. The figures are meaningless.");
    }
    report::print(&peers, &samples, &calls, &growth, counts.as_ref(), &plan);
    Ok(())
}
