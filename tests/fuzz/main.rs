//! What must hold for any bytes (`targets`), with everything that was ever found, the recordings, and some changes of them.
//!
//! `tests/fuzz/libfuzzer` looks for more. An input that breaks something is put below `corpus/NAME` and stays there. Those that
//! reach what no other does are kept in `reached/NAME`, a line of base64 each; a run's corpora, with as few inputs as reach the
//! same (`-set_cover_merge=1 -use_counters=0`), get there with
//!
//!     FUZZ_REACHED=DIR cargo test -p acp-skills --test fuzz
//!
//! where `DIR/NAME` is such a corpus.

#[expect(unreachable_pub, reason = "the crate of libFuzzer uses it, too")]
mod targets;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use fastrand::Rng;

use self::targets::{TARGETS, Target};

/// How many changes of what is there are tried.
const CHANGES: u64 = 3_000;

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut seeds = files(&root.join("fuzz/corpus").join(name));
    assert!(!seeds.is_empty(), "no corpus for {name}");
    let reached = fs::read_to_string(reached(name)).expect("what was reached");
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

/// What the files in a directory hold, in the order of their names.
fn files(dir: &Path) -> Vec<Vec<u8>> {
    let mut files: Vec<_> =
        fs::read_dir(dir).into_iter().flatten().map(|file| file.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a file")).collect()
}

/// The file of the inputs of a target that reach what no other does.
fn reached(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz/reached").join(name)
}

/// Keeps a run's corpora.
fn keep(corpora: &Path) {
    for (name, _) in TARGETS {
        let mut inputs = files(&corpora.join(name));
        assert!(!inputs.is_empty(), "no corpus for {name}");
        inputs.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
        inputs.dedup();
        let lines = inputs.iter().filter(|input| !input.is_empty());
        let text: String = lines.map(|input| BASE64_STANDARD.encode(input) + "\n").collect();
        fs::write(reached(name), text).expect("what was reached");
    }
}

/// A change of some bytes.
fn change(numbers: &mut Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[numbers.usize(..seeds.len())].clone();
    for _ in 0..=numbers.usize(..4) {
        let at = numbers.usize(..=bytes.len());
        match numbers.usize(..4) {
            0 if at < bytes.len() => bytes[at] = numbers.u8(..),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            _ => {
                let other = &seeds[numbers.usize(..seeds.len())];
                let from = numbers.usize(..=other.len());
                let length = numbers.usize(..24).min(other.len() - from);
                bytes.splice(at..at, other[from..from + length].iter().copied());
            }
        }
    }
    bytes
}

fn holds(name: &str, target: Target, bytes: &[u8]) {
    let outcome = std::panic::catch_unwind(|| target(bytes));
    assert!(outcome.is_ok(), "{name} does not hold for {:?}", String::from_utf8_lossy(bytes));
}

#[test]
fn what_must_hold_for_any_bytes() {
    if let Some(corpora) = env::var_os("FUZZ_REACHED") {
        keep(Path::new(&corpora));
    }
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        for seed in &seeds {
            holds(name, target, seed);
        }
        let mut numbers = Rng::with_seed(1);
        for _ in 0..CHANGES {
            holds(name, target, &change(&mut numbers, &seeds));
        }
    }
}
