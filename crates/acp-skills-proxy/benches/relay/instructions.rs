//! What a message costs in instructions of the proxy's process, counted by callgrind where it is installed.
//!
//! Two runs that differ only in the number of messages: the difference is what those messages cost, and the same on any
//! machine of the kind, however busy.

use std::fs;

use anyhow::Context;

use crate::{
    Plan,
    line::Line,
    peers::{Peer, find},
};

/// Instructions for one of each.
pub(crate) struct Counts {
    /// An update of the shortest size, 4,096 and 65,536 bytes.
    pub(crate) updates: Vec<u64>,
    /// An update with many sessions, of all of them in turns.
    pub(crate) crowded: u64,
    /// A prompt and its answer.
    pub(crate) turn: u64,
}

/// `None` where there is no valgrind.
pub(crate) fn count(peer: &Peer, plan: &Plan) -> anyhow::Result<Option<Counts>> {
    let Some(valgrind) = find("valgrind") else {
        eprintln!("valgrind is not installed: no instructions are counted");
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
        let (few, many) = (run(&|line| play(line, count / 10))?, run(&|line| play(line, count))?);
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

/// The total in a file of callgrind's.
fn total(file: &str) -> anyhow::Result<u64> {
    let line = file.lines().find_map(|line| line.strip_prefix("totals: ").or(line.strip_prefix("summary: ")));
    let total = line.and_then(|line| line.split_whitespace().next()).context("callgrind tells no total")?;
    Ok(total.parse()?)
}
