//! Measures the time and the memory of a search for skills.
//!
//! `cargo bench -p skills-core --bench discovery` writes trees of realistic skills to a temporary directory, searches each tree
//! with a warm cache, and prints medians. The targets on two cores are 150 ms for 10,000 skills, 20 ms for 1,000 skills, and less
//! than 2 KB of memory per skill in addition to its text. Without `--bench`, as under `cargo test`, two small trees check that
//! everything runs.

#![expect(clippy::print_stdout, reason = "prints the results")]

use std::{
    alloc::System,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use skills_core::{
    SkillSet,
    discovery::{Discovery, Root},
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const RUNS: usize = 21;

fn main() {
    let full = std::env::args().any(|word| word == "--bench");
    let trees: &[(usize, usize)] =
        if full { &[(1_000, 1), (10_000, 1), (10_000, 100)] } else { &[(50, 1), (50, 5)] };
    if !full {
        println!("This is a smoke run, because `--bench` is missing. The figures are meaningless.");
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{cores} cores, warm cache, median of {RUNS} searches");
    println!("| skills | layout | median | fastest | slowest | memory per skill | without text |");
    println!("|---:|---|---:|---:|---:|---:|---:|");
    for &(count, groups) in trees {
        let dir = tempfile::tempdir().expect("a temporary directory");
        write_tree(dir.path(), count, groups);
        measure(dir.path(), count, groups);
    }
}

fn measure(dir: &Path, count: usize, groups: usize) {
    let search = Discovery::new([Root::scanned(dir)]);
    let region = Region::new(ALLOCATOR);
    let set = search.find();
    let change = region.change();
    assert_eq!((set.len(), set.skipped().len()), (count, 0));
    let memory = change.bytes_allocated.saturating_sub(change.bytes_deallocated) / count;
    let beyond = memory.saturating_sub(text_bytes(&set) / count);

    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            let set = search.find();
            let time = start.elapsed();
            assert_eq!(set.len(), count);
            time
        })
        .collect();
    times.sort_unstable();
    let layout = if groups == 1 { "flat".to_owned() } else { format!("in {groups} directories") };
    println!(
        "| {count} | {layout} | {:.1?} | {:.1?} | {:.1?} | {memory} B | {beyond} B |",
        times[RUNS / 2],
        times[0],
        times[RUNS - 1]
    );
}

/// Returns the size of the texts that a set keeps: names, descriptions and other fields.
fn text_bytes(set: &SkillSet) -> usize {
    let text = |text: &Option<Box<str>>| text.as_deref().map_or(0, str::len);
    set.iter()
        .map(|skill| {
            skill.name.as_str().len()
                + skill.description.len()
                + text(&skill.properties.license)
                + text(&skill.properties.version)
        })
        .sum()
}

/// Writes skills of realistic sizes: a description of 200 characters, a few fields, a body of 4 KB and another file.
fn write_tree(dir: &Path, count: usize, groups: usize) {
    let body = "Do this, then that, and tell the user what came of it.\n".repeat(70);
    for index in 0..count {
        let name = format!("skill-{index:05}");
        let skill = if groups == 1 {
            dir.join(&name)
        } else {
            dir.join(format!("group-{}", index % groups)).join(&name)
        };
        fs::create_dir_all(skill.join("references")).expect("a directory");
        let text = format!(
            "---\nname: {name}\ndescription: Reads, checks and writes documents of kind {index}. Use when the user mentions \
             kind {index}, asks for a report about it, or wants to convert one into another format, and also when a file \
             of that kind is open.\nlicense: Apache-2.0\nversion: 1.{index}\nmetadata:\n  author: somebody\n  category: \
             documents\n---\n\n# Documents of kind {index}\n\n{body}"
        );
        fs::write(skill.join("SKILL.md"), text).expect("a file");
        fs::write(skill.join("references/REFERENCE.md"), "# Reference\n").expect("a file");
    }
}
