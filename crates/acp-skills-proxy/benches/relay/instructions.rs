//! Counts the instructions that the proxy needs for a message, with callgrind if it is installed.
//!
//! Two runs differ only in the number of messages, so the difference is the cost of these messages. It does not depend on the
//! load of the machine.

use std::fs;

use anyhow::Context;

use crate::{
    Plan,
    line::Line,
    peers::{Peer, find},
};

/// The number of instructions that it takes to forward a message of each kind.
pub(crate) struct Counts {
    /// The instructions for an update, for each size in the plan.
    pub(crate) updates: Vec<u64>,
    /// The instructions for an update if many sessions are open and receive updates in turn.
    pub(crate) crowded: u64,
    /// The instructions for a prompt and its answer.
    pub(crate) turn: u64,
}

/// Counts the instructions. Returns `None` if the plan counts none, or if valgrind is not installed.
pub(crate) fn count(peer: &Peer, plan: &Plan) -> anyhow::Result<Option<Counts>> {
    if plan.counted == 0 {
        return Ok(None);
    }
    let Some(valgrind) = find("valgrind") else {
        eprintln!("valgrind is not installed; skipping the count of instructions");
        return Ok(None);
    };
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("callgrind.out");
    let file = file.to_str().context("a path")?;
    let run = |play: &dyn Fn(&mut Line) -> anyhow::Result<()>| -> anyhow::Result<u64> {
        let out = format!("--callgrind-out-file={file}");
        let mut line = Line::start(peer, &[&valgrind, "--tool=callgrind", &out])?;
        line.session()?;
        line.prompt("s", "echo")?;
        play(&mut line)?;
        line.end()?;
        total(&fs::read_to_string(file)?)
    };
    let cost = |count: usize, play: &dyn Fn(&mut Line, usize) -> anyhow::Result<()>| {
        let few = run(&|line| play(line, count / 10))?;
        let many = run(&|line| play(line, count))?;
        anyhow::Ok(many.saturating_sub(few) / (count - count / 10) as u64)
    };
    let mut updates = Vec::new();
    for &(of, size) in plan.floods {
        let count = plan.counted.min(of);
        updates.push(cost(count, &|line, count| line.flood("s", count, size).map(drop))?);
    }
    let crowded = cost(plan.counted, &|line, count| {
        for number in 1..plan.sessions {
            line.session()?;
            line.prompt(&format!("s{number}"), "echo")?;
        }
        line.prompt("s", &format!("storm {count} {}", plan.floods[0].1)).map(drop)
    })?;
    let turn = cost(plan.counted / 20, &|line, count| {
        (0..count).try_for_each(|_| line.prompt("s", "echo").map(drop))
    })?;
    Ok(Some(Counts { updates, crowded, turn }))
}

/// Returns the total of a file that callgrind wrote.
fn total(file: &str) -> anyhow::Result<u64> {
    let line = file.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    let total =
        line.and_then(|line| line.split_whitespace().next()).context("no total in the file of callgrind")?;
    Ok(total.parse()?)
}
