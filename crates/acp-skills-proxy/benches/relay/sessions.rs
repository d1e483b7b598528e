//! Compares one session with many. The cost of the relay should not depend on the number of sessions.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::{Plan, line::Line, peers::Peer};

/// The measurements with one session and with many, in one round.
pub(crate) struct Growth {
    /// Updates per second with one session, and with many if updates rotate through them.
    pub(crate) rates: [f64; 2],
    /// Round trips with one session, and with many open sessions.
    pub(crate) round_trips: [Vec<Duration>; 2],
}

pub(crate) fn measure(peer: &Peer, plan: &Plan) -> anyhow::Result<Growth> {
    let (count, size) = plan.floods[0];
    let mut line = Line::start(peer, &[])?;
    line.session()?;
    line.prompt("s", "echo")?;
    let rate_of_one = storm(&mut line, count, size)?;
    let round_trips_of_one = round_trips(&mut line, plan)?;
    for number in 1..plan.sessions {
        line.session()?;
        line.prompt(&format!("s{number}"), "echo")?;
    }
    let rate_of_many = storm(&mut line, count, size)?;
    let round_trips_of_many = round_trips(&mut line, plan)?;
    line.end()?;
    Ok(Growth { rates: [rate_of_one, rate_of_many], round_trips: [round_trips_of_one, round_trips_of_many] })
}

/// Returns the updates per second if they rotate through all sessions of the agent.
fn storm(line: &mut Line, count: usize, size: usize) -> anyhow::Result<f64> {
    let started = Instant::now();
    let seen = line.prompt("s", &format!("storm {count} {size}"))?;
    // The count can be higher, because the proxy also sends updates for slash commands.
    ensure!(seen >= count, "received {seen} of {count} updates");
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
