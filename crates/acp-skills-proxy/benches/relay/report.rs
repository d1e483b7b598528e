//! Prints the tables and the goals.

use std::{fs, process::Command, time::Duration};

use crate::{
    Plan,
    instructions::Counts,
    line::Sample,
    peers::{Peer, SKILLS, find, proxy},
    sessions::Growth,
    tools::{CONNECTIONS, Calls},
};

pub(crate) fn print(
    peers: &[Peer],
    samples: &[Vec<Sample>],
    calls: &[Calls],
    growth: &[Growth],
    counts: Option<&Counts>,
    plan: &Plan,
) {
    let rows: Vec<Row> = samples.iter().map(|samples| Row::of(samples, plan)).collect();
    print_peers(peers, &rows, plan);
    println!("\n| what | goal | measured | |\n|---|---|---|---|");
    print_goals_of_peers(peers, &rows, plan);
    print_goals_of_calls(calls);
    print_goals_of_growth(growth, plan);
    if let Some(counts) = counts {
        print_instructions(counts, plan);
    }
}

fn print_peers(peers: &[Peer], rows: &[Row], plan: &Plan) {
    print!("| |");
    plan.floods.iter().for_each(|(_, size)| print!(" updates/s, {size} bytes |"));
    println!(" round trip p50 | p99 | to the initialize answer | resident memory | its own |");
    println!("|---|{}---|---|---|---|---|", "---|".repeat(plan.floods.len()));
    for (peer, row) in peers.iter().zip(rows) {
        print!("| {} |", peer.name);
        row.rates.iter().for_each(|rate| print!(" {rate:.0} |"));
        print!(" {:.0} µs | {:.0} µs | {:.1} ms |", row.p50, row.p99, row.start);
        println!(" {:.1} MiB | {:.1} MiB |", row.memory, row.own);
    }
}

fn print_goals_of_peers(peers: &[Peer], rows: &[Row], plan: &Plan) {
    let row = |name: &str| peers.iter().zip(rows).find(|(peer, _)| peer.name == name).map(|(_, row)| row);
    let [few, some, many] = SKILLS.map(|count| row(&format!("this, {count} skills")).expect("a peer"));
    if let Some(socat) = row("socat") {
        for ((index, (_, size)), goal) in plan.floods.iter().enumerate().zip([0.7, 0.9, 0.9]) {
            let ratio = few.rates[index] / socat.rates[index];
            goals::at_least(&format!("updates/s, {size} bytes, over socat"), goal, ratio, "×");
        }
        goals::at_most("round trip p50, over socat", 1.0, few.p50 / socat.p50, "×");
        goals::at_most("round trip p99, over socat", 1.5, few.p99 / socat.p99, "×");
    }
    if let Some(conductor) = row("conductor") {
        let ratio = few.rates[0] / conductor.rates[0];
        goals::at_least("updates/s, shortest, over the conductor", 80.0, ratio, "×");
    }
    let direct = row("direct pipe").expect("a peer");
    for ((row, skills), goal) in [few, some, many].into_iter().zip(SKILLS).zip([3.0, 20.0, 150.0]) {
        let added = row.start - direct.start;
        goals::at_most(&format!("added to the initialize answer, {skills} skills"), goal, added, " ms");
    }
    goals::at_most(&format!("memory of its own, {} skills", SKILLS[0]), 2.0, few.own, " MiB");
    for ((row, skills), goal) in [few, some].into_iter().zip(SKILLS).zip([8.5, 10.0]) {
        goals::at_most(&format!("resident memory, {skills} skills"), goal, row.memory, " MiB");
    }
    // More skills should cost at most 10 %.
    let skills = many.rates[0] / few.rates[0];
    goals::at_least(&format!("updates/s with {} skills, over {}", SKILLS[2], SKILLS[0]), 0.9, skills, "×");
}

fn print_goals_of_calls(calls: &[Calls]) {
    let times: Vec<_> = calls.iter().map(|calls| percentile(&calls.times, 0.5)).collect();
    goals::at_most("`activate_skill` over HTTP, p50", 250.0, median(times), " µs");
    let rate = median(calls.iter().map(|calls| calls.rate).collect());
    goals::at_least(&format!("the same with {CONNECTIONS} connections"), 5_000.0, rate, " calls/s");
    if let Some(size) = stripped() {
        goals::at_most("binary, stripped", 9.0, size, " MB");
    }
}

/// More sessions may cost at most 10 % more.
fn print_goals_of_growth(growth: &[Growth], plan: &Plan) {
    let rates = growth.iter().map(|growth| growth.rates[1] / growth.rates[0]).collect();
    goals::at_least(
        &format!("updates/s of {} sessions in turns, over one", plan.sessions),
        0.9,
        median(rates),
        "×",
    );
    let trips = growth.iter().map(|growth| {
        let [one, many] = &growth.round_trips;
        percentile(many, 0.5) / percentile(one, 0.5)
    });
    goals::at_most(
        &format!("round trip with {} sessions, over one", plan.sessions),
        1.1,
        median(trips.collect()),
        "×",
    );
}

fn print_instructions(counts: &Counts, plan: &Plan) {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    goals::at_most(
        &format!("instructions for an update of {} bytes", plan.floods[0].1),
        350.0,
        counts.updates[0] as f64,
        "",
    );
    println!("\n| instructions (callgrind) | |\n|---|---|");
    for ((_, size), count) in plan.floods.iter().zip(&counts.updates) {
        println!("| an update of {size} bytes | {count} |");
    }
    println!("| one of the shortest, of {} sessions in turns | {} |", plan.sessions, counts.crowded);
    println!("| a prompt and its answer | {} |", counts.turn);
}

/// The medians of a peer.
struct Row {
    rates: Vec<f64>,
    /// In microseconds.
    p50: f64,
    p99: f64,
    /// In milliseconds.
    start: f64,
    /// In MiB.
    memory: f64,
    /// Memory that no other process shares, in MiB.
    own: f64,
}

impl Row {
    fn of(samples: &[Sample], plan: &Plan) -> Self {
        let of = |value: &dyn Fn(&Sample) -> f64| median(samples.iter().map(value).collect());
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let mib = |kib: u64| kib as f64 / 1024.0;
        Self {
            rates: (0..plan.floods.len()).map(|index| of(&|sample| sample.rates[index])).collect(),
            p50: of(&|sample| percentile(&sample.round_trips, 0.5)),
            p99: of(&|sample| percentile(&sample.round_trips, 0.99)),
            start: of(&|sample| sample.start.as_secs_f64() * 1e3),
            memory: of(&|sample| mib(sample.memory_kib)),
            own: of(&|sample| mib(sample.own_kib)),
        }
    }
}

/// Prints goals with their results.
mod goals {
    pub(super) fn at_least(what: &str, goal: f64, measured: f64, unit: &str) {
        line(what, &format!("≥ {goal}{unit}"), measured, unit, measured >= goal);
    }

    pub(super) fn at_most(what: &str, goal: f64, measured: f64, unit: &str) {
        line(what, &format!("≤ {goal}{unit}"), measured, unit, measured <= goal);
    }

    fn line(what: &str, goal: &str, measured: f64, unit: &str, met: bool) {
        let digits = if measured < 100.0 { 2 } else { 0 };
        let met = if met { "met" } else { "**not met**" };
        println!("| {what} | {goal} | {measured:.digits$}{unit} | {met} |");
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns a percentile in microseconds. `share` is from 0 to 1.
fn percentile(times: &[Duration], share: f64) -> f64 {
    let mut times: Vec<_> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
    times.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index"
    )]
    let index = ((times.len() - 1) as f64 * share) as usize;
    times[index]
}

/// Returns the size of the program without its symbols, in MB. `None` if `strip` is not installed.
fn stripped() -> Option<f64> {
    let directory = tempfile::tempdir().ok()?;
    let copy = directory.path().join("stripped");
    let done = Command::new(find("strip")?).arg("-o").arg(&copy).arg(proxy()).status().ok()?;
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let size = done.success().then(|| fs::metadata(&copy).ok())??.len() as f64;
    Some(size / 1e6)
}
