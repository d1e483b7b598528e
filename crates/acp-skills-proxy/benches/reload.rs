//! Measures how fast a change of one skill is detected: `cargo bench -p acp-skills-proxy --bench reload`.
//!
//! For several numbers of skills, one `SKILL.md` is written repeatedly. `reload` is the time from the end of the debounce delay
//! to the new snapshot. `until notified` is the time from the write to the notification, most of which is the debounce delay.
//! `full reload` is the time for reading all skills. With `--smoke` or without `--bench`, a single small round checks that
//! everything runs. Times are never asserted.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use std::{
    env, fs,
    path::Path,
    sync::{Arc, mpsc::channel},
    time::{Duration, Instant},
};

use acp_skills::{
    config::{Config, Settings},
    library::{Library, Workspace},
};
use anyhow::ensure;

fn main() -> anyhow::Result<()> {
    // Note that `cargo test` also runs benches, but without `--bench`.
    let smoke = env::args().any(|word| word == "--smoke") || !env::args().any(|word| word == "--bench");
    let (counts, rounds): (&[usize], usize) = if smoke { (&[10], 1) } else { (&[10, 1_000, 10_000], 21) };
    println!("| skills | reload | until notified | full reload |");
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
    ensure!(library.at(&Workspace::default()).len() == count, "not all skills were found");
    let (sender, reloads) = channel();
    Arc::clone(&library).watch(Box::new(move |reloaded| {
        // This fails for changes after we stop measuring, which is fine.
        let _ = sender.send(reloaded);
    }));

    // Wait for the watches to be set up and for the first change to be detected.
    let number = count / 2;
    let mut attempts = 0;
    loop {
        write(dir, number, &format!("Attempt {attempts}."))?;
        attempts += 1;
        if reloads.recv_timeout(Duration::from_secs(2)).is_ok() {
            break;
        }
        ensure!(attempts < 30, "no change was detected");
    }
    let mut reload = Vec::new();
    let mut notified = Vec::new();
    let mut full_reload = Vec::new();
    for round in 0..rounds {
        let start = Instant::now();
        write(dir, number, &format!("Round {round}."))?;
        let reloaded = reloads.recv_timeout(Duration::from_secs(30))?;
        notified.push(start.elapsed());
        reload.push(reloaded.took);
        ensure!(reloaded.changed == 1 && reloaded.added + reloaded.removed == 0, "{reloaded:?}");
        let set = library.at(&Workspace::default());
        let found = set.get(&name(number)).map(|skill| skill.description.clone());
        ensure!(found == Some(format!("Round {round}.")), "{found:?}");
    }
    for _ in 0..rounds {
        let start = Instant::now();
        library.reload();
        full_reload.push(start.elapsed());
    }
    println!("| {count} | {:.1?} | {:.1?} | {:.1?} |", median(reload), median(notified), median(full_reload));
    Ok(())
}

fn name(number: usize) -> String {
    format!("skill-{number:05}")
}

/// Writes a skill of a typical size.
fn write(dir: &Path, number: usize, description: &str) -> std::io::Result<()> {
    let name = name(number);
    let body = "Do this, then that, and tell the user the result.\n".repeat(70);
    let dir = dir.join(&name);
    fs::create_dir_all(&dir)?;
    fs::write(dir.join("SKILL.md"), format!("---\nname: {name}\ndescription: {description}\n---\n\n{body}"))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
