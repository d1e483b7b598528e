//! What the proxy costs, beside its peers, in one run: `cargo bench -p acp-skills-proxy --bench relay`.
//!
//! | file | owns |
//! |---|---|
//! | `peers` | the ways from a client to an agent that are compared |
//! | `line` | the client's end: what is asked, counted and timed |
//! | `agent` | the agent's end, which floods and echoes; the pass-through proxy for the conductor |
//! | `tools` | calls of `activate_skill` over HTTP |
//! | `sessions` | one session beside many |
//! | `instructions` | what a message costs in instructions, which no neighbour on the machine can change |
//! | `report` | the tables, and which goals are met |
//!
//! Rounds are interleaved and medians are shown, because machines are noisy; only ratios within one run mean something.
//! Without `--bench`, as `cargo test` runs it, everything runs once and small, to see that it runs. Nothing is ever
//! asserted about time.

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

/// What this program is when it is started by something that it measures.
const ROLE: &str = "ACP_BENCH_ROLE";

/// How much is done.
struct Plan {
    rounds: usize,
    /// Number and size in bytes of the updates.
    floods: &'static [(usize, usize)],
    round_trips: usize,
    /// Calls of a tool in a row, and in each of the connections at once.
    calls: (usize, usize),
    /// How many sessions are many.
    sessions: usize,
    /// How many messages are counted in instructions.
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
    counted: 100,
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
    let (mut calls, mut growth) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        for (peer, samples) in peers.iter().zip(&mut samples) {
            samples.push(measure(peer, &plan).with_context(|| peer.name.clone())?);
        }
        calls.push(tools::measure(ours, &plan)?);
        growth.push(sessions::measure(ours, &plan)?);
    }
    let counts = instructions::count(ours, &plan)?;
    if !full {
        println!("A smoke run, without `--bench`: the figures mean nothing.");
    }
    report::print(&peers, &samples, &calls, &growth, counts.as_ref(), &plan);
    Ok(())
}
