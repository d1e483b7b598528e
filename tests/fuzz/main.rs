//! Runs the fuzz targets (`targets`) with all past findings, with the recordings, and with mutations of both.
//!
//! `tests/fuzz/libfuzzer` searches for new findings. If an input violates an invariant, add it to `corpus/NAME`. The inputs that
//! reach new code are stored in `reached/NAME`, one line of base64 each. To update them, minimize the corpora of a libFuzzer run
//! with `-set_cover_merge=1 -use_counters=0`, and then run
//!
//!     FUZZ_REACHED=DIR cargo test -p acp-skills --test fuzz
//!
//! with the minimized corpus of each target in `DIR/NAME`.

#[expect(unreachable_pub, reason = "the libFuzzer crate uses it too")]
mod targets;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use fastrand::Rng;

use self::targets::{TARGETS, Target};

/// The number of mutations of each target's inputs.
const MUTATIONS: u64 = 3_000;

/// Returns all known inputs of a target.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut seeds = files(&root.join("fuzz/corpus").join(name));
    assert!(!seeds.is_empty(), "no corpus for {name}");
    let reached = fs::read_to_string(reached(name)).expect("the file of reached inputs");
    seeds.extend(reached.lines().map(|line| BASE64_STANDARD.decode(line).expect("base64")));
    if matches!(name, "wire" | "envelope") {
        let recordings =
            ["direct", "proxied"].iter().flat_map(|kind| files(&root.join("recordings").join(kind)));
        for recording in recordings {
            seeds.extend(recording.split(|&byte| byte == b'\n').map(<[u8]>::to_vec));
        }
    }
    seeds
}

/// Returns the contents of the files in a directory, in the order of their names.
fn files(dir: &Path) -> Vec<Vec<u8>> {
    let mut files: Vec<_> =
        fs::read_dir(dir).into_iter().flatten().map(|file| file.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a file")).collect()
}

/// Returns the file with a target's inputs that reach new code.
fn reached(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/reached").join(name)
}

/// Stores the corpora of a libFuzzer run.
fn store(corpora: &Path) {
    for (name, _) in TARGETS {
        let mut inputs = files(&corpora.join(name));
        assert!(!inputs.is_empty(), "no corpus for {name}");
        inputs.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
        inputs.dedup();
        let lines = inputs.iter().filter(|input| !input.is_empty());
        let text: String = lines.map(|input| BASE64_STANDARD.encode(input) + "\n").collect();
        fs::write(reached(name), text).expect("the file of reached inputs");
    }
}

/// Returns a mutation of one of the inputs.
fn mutate(random: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.usize(..seeds.len())].clone();
    for _ in 0..=random.usize(..4) {
        let at = random.usize(..=bytes.len());
        match random.usize(..4) {
            0 if at < bytes.len() => bytes[at] = random.u8(..),
            1 if at < bytes.len() => {
                let _ = bytes.remove(at);
            }
            2 => bytes.truncate(at),
            _ => {
                let other = &seeds[random.usize(..seeds.len())];
                let from = random.usize(..=other.len());
                let length = random.usize(..24).min(other.len() - from);
                bytes.splice(at..at, other[from..from + length].iter().copied());
            }
        }
    }
    bytes
}

fn check(name: &str, target: Target, bytes: &[u8]) {
    let outcome = std::panic::catch_unwind(|| target(bytes));
    assert!(outcome.is_ok(), "{name} fails for {:?}", String::from_utf8_lossy(bytes));
}

#[test]
fn invariants_hold_for_any_bytes() {
    if let Some(corpora) = env::var_os("FUZZ_REACHED") {
        store(Path::new(&corpora));
    }
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        for seed in &seeds {
            check(name, target, seed);
        }
        let mut random = Rng::with_seed(1);
        for _ in 0..MUTATIONS {
            check(name, target, &mutate(&mut random, &seeds));
        }
    }
}
