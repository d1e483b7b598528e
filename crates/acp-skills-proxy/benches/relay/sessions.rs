//! One session beside many: the relay is to cost the same.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::{Plan, line::Line, peers::Peer};

/// What one session and many cost, in one round.
pub(crate) struct Growth {
    /// Updates a second with one session, and of all sessions in turns.
    pub(crate) rates: [f64; 2],
    /// Round trips with one session, and with all of them open.
    pub(crate) round_trips: [Vec<Duration>; 2],
}

pub(crate) fn measure(peer: &Peer, plan: &Plan) -> anyhow::Result<Growth> {
    let (count, size) = plan.floods[0];
    let mut line = Line::start(peer, &[])?;
    line.session()?;
    line.prompt("s", "echo")?;
    let before = (storm(&mut line, count, size)?, round_trips(&mut line, plan)?);
    for number in 1..plan.sessions {
        line.session()?;
        line.prompt(&format!("s{number}"), "echo")?;
    }
    let after = (storm(&mut line, count, size)?, round_trips(&mut line, plan)?);
    line.end()?;
    Ok(Growth { rates: [before.0, after.0], round_trips: [before.1, after.1] })
}

/// Updates a second, of all the agent's sessions in turns.
fn storm(line: &mut Line, count: usize, size: usize) -> anyhow::Result<f64> {
    let started = Instant::now();
    let seen = line.prompt("s", &format!("storm {count} {size}"))?;
    // What the proxy itself says of commands may come in between.
    ensure!(seen >= count, "{seen} of {count} updates came through");
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let rate = count as f64 / started.elapsed().as_secs_f64();
    Ok(rate)
}

fn round_trips(line: &mut Line, plan: &Plan) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..plan.round_trips {
        let started = Instant::now();
        line.prompt("s", "echo")?;
        times.push(started.elapsed());
    }
    Ok(times)
}
