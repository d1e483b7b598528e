//! What must hold for any bytes (`targets`), with everything that was ever found, the recordings, and some changes of them.
//!
//! `tests/fuzz/libfuzzer` looks for more. What it finds is put below `corpus/NAME` and stays there.

#[expect(unreachable_pub, reason = "the crate of libFuzzer uses it, too")]
mod targets;

use std::{fs, path::Path};

use self::targets::{TARGETS, Target};

/// How many changes of what is there are tried.
const CHANGES: u64 = 3_000;

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let read = |dir: &Path| -> Vec<Vec<u8>> {
        let mut files: Vec<_> =
            fs::read_dir(dir).into_iter().flatten().map(|file| file.expect("a file").path()).collect();
        files.sort();
        files.iter().map(|file| fs::read(file).expect("a file")).collect()
    };
    let mut seeds = read(&root.join("fuzz/corpus").join(name));
    assert!(!seeds.is_empty(), "no corpus for {name}");
    if matches!(name, "wire" | "envelope") {
        for recording in
            ["direct", "proxied"].iter().flat_map(|kind| read(&root.join("recordings").join(kind)))
        {
            seeds.extend(recording.split(|&byte| byte == b'\n').map(<[u8]>::to_vec));
        }
    }
    seeds
}

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    /// Below `end`.
    fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end.max(1) as u64).expect("it is below")
    }
}

/// A change of some bytes.
fn change(numbers: &mut Numbers, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[numbers.below(seeds.len())].clone();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len() + 1);
        match numbers.below(4) {
            0 if at < bytes.len() => bytes[at] = u8::try_from(numbers.below(256)).expect("a byte"),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            _ => {
                let other = &seeds[numbers.below(seeds.len())];
                let from = numbers.below(other.len() + 1);
                let length = numbers.below(24).min(other.len() - from);
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
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        for seed in &seeds {
            holds(name, target, seed);
        }
        let mut numbers = Numbers(1);
        for _ in 0..CHANGES {
            holds(name, target, &change(&mut numbers, &seeds));
        }
    }
}
