//! What it takes to notice that one skill among many has changed: `cargo bench -p acp-skills-proxy --bench reload`.
//!
//! For some numbers of skills, one `SKILL.md` is written again and again. `looking again` is the time from the settled
//! change to the new snapshot; `until told` is the time from the write to whoever wants to know, most of which is the
//! quiet that has to follow a change. Beside them, for comparison, what it takes to look at everything. With `--smoke`
//! everything runs once and small; nothing is ever asserted about time.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use std::{
    env, fs,
    path::Path,
    sync::{Arc, mpsc::channel},
    time::{Duration, Instant},
};

use acp_skills::{
    config::{Config, Settings},
    library::Library,
};
use anyhow::ensure;

fn main() -> anyhow::Result<()> {
    // `cargo test` runs benches too, without `--bench`.
    let smoke = env::args().any(|word| word == "--smoke") || !env::args().any(|word| word == "--bench");
    let (counts, rounds): (&[usize], usize) = if smoke { (&[10], 1) } else { (&[10, 1_000, 10_000], 21) };
    println!("| skills | looking again | until told | looking at everything |");
    println!("|---:|---:|---:|---:|");
    for &count in counts {
        let dir = tempfile::tempdir()?;
        for number in 0..count {
            write(dir.path(), number, "Knows something. Use when the user asks for that.")?;
        }
        measure(dir.path(), count, rounds)?;
    }
    Ok(())
}

fn measure(dir: &Path, count: usize, rounds: usize) -> anyhow::Result<()> {
    let mut config = Config::default();
    config.roots = vec![dir.to_owned()];
    let settings = Settings::resolve(config)?;
    let library: Library = settings.skills.load()?.into_library();
    ensure!(library.at(None).len() == count, "not all skills were found");
    let (sender, reloads) = channel();
    Arc::clone(&library).watch(Box::new(move |reloaded| {
        // The last one comes when nobody waits any more.
        let _ = sender.send(reloaded);
    }));

    // The first change is noticed once everything is watched, however long that takes.
    let number = count / 2;
    let mut attempts = 0;
    loop {
        write(dir, number, &format!("Attempt {attempts}."))?;
        attempts += 1;
        if reloads.recv_timeout(Duration::from_secs(2)).is_ok() {
            break;
        }
        ensure!(attempts < 30, "nothing was noticed");
    }
    let (mut looking, mut told, mut everything) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let start = Instant::now();
        write(dir, number, &format!("Round {round}."))?;
        let reloaded = reloads.recv_timeout(Duration::from_secs(30))?;
        told.push(start.elapsed());
        looking.push(reloaded.took);
        ensure!(reloaded.changed == 1 && reloaded.added + reloaded.removed == 0, "{reloaded:?}");
        let set = library.at(None);
        let found = set.get(&name(number)).map(|skill| skill.description.clone());
        ensure!(found == Some(format!("Round {round}.")), "{found:?}");
    }
    for _ in 0..rounds {
        let start = Instant::now();
        library.reload();
        everything.push(start.elapsed());
    }
    println!("| {count} | {:.1?} | {:.1?} | {:.1?} |", median(looking), median(told), median(everything));
    Ok(())
}

fn name(number: usize) -> String {
    format!("skill-{number:05}")
}

/// A skill of a usual size.
fn write(dir: &Path, number: usize, description: &str) -> std::io::Result<()> {
    let (name, body) = (name(number), "Do this, then that, and tell the user what came of it.\n".repeat(70));
    let dir = dir.join(&name);
    fs::create_dir_all(&dir)?;
    fs::write(dir.join("SKILL.md"), format!("---\nname: {name}\ndescription: {description}\n---\n\n{body}"))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
